"""What every head reads."""

from typing import NamedTuple

from starleague.agent.types import Array, Observation


class HeadInputs(NamedTuple):
  """One step's view of the encoders and the core; activations are of the config's dtype."""

  core: Array  # [core_size], the recurrent core's output
  scalar_context: Array  # [C]
  entity_embeddings: Array  # [E, entity_size]
  map_skips: tuple[Array, ...]  # [h, w, c] each: downsampled map, then each residual block's output
  observation: Observation  # for the masks
