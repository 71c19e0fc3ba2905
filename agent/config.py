"""The agent's sizes and options, and the presets: data, not code paths.

`full` is the published agent (Vinyals et al. 2019, detailed architecture); `mini` is the same code
with small numbers, for Skirmish on a laptop and for tests.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class AgentConfig:
  """Sizes are widths of activations unless they say otherwise."""

  name: str
  max_entities: int  # E
  map_size: int  # H = W of the planes
  location_size: int  # L
  max_selected: int  # K
  core_layers: int
  core_size: int


def full() -> AgentConfig:
  """The published agent."""
  return AgentConfig(
    name="full", max_entities=512, map_size=128, location_size=256, max_selected=64,
    core_layers=3, core_size=384)


def mini() -> AgentConfig:
  """About 0.2 M parameters: laptops and tests."""
  return AgentConfig(
    name="mini", max_entities=64, map_size=32, location_size=32, max_selected=8,
    core_layers=1, core_size=64)
