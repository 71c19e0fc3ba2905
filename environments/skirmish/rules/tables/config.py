"""The arguments of `make_skirmish` as one value, with the sizes of each tier."""

from typing import NamedTuple

from starleague.agent.config import AgentConfig


class GameConfig(NamedTuple):
  """The arguments of `make_skirmish`."""

  tier: str = "mini"
  max_entities: int = 64
  map_size: int = 32
  location_size: int = 32
  max_selected: int = 8


DEFAULT_GAME_CONFIG = GameConfig()
# The sizes of the agent's interface; those of the first two are the presets `mini` and `medium`.
GAME_CONFIGS = {
  "mini": DEFAULT_GAME_CONFIG,
  "default": GameConfig(
    "default", max_entities=192, map_size=64, location_size=128, max_selected=16),
  "large": GameConfig(
    "large", max_entities=384, map_size=128, location_size=256, max_selected=16),
}


def game_config(tier: str, config: AgentConfig) -> GameConfig:
  """The GameConfig of a tier with the sizes of an agent's config."""
  return GameConfig(tier, *(getattr(config, size) for size in GameConfig._fields[1:]))
