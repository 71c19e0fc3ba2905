"""Inputs of the heads."""

from typing import NamedTuple

from starleague.agent.types import Array, Observation


class HeadInputs(NamedTuple):
  """Outputs of encoders and core for one step, of config.dtype."""

  core: Array  # [core_size]: the core's output
  scalar_context: Array  # [C]
  entity_embeddings: Array  # [E, entity_size]
  map_skips: tuple[Array, ...]  # [h, w, c]: coarse map, then each block's output
  observation: Observation  # for the masks
