"""The spatial encoder: a convolutional network over the map and the scattered entities.

Vinyals et al. 2019, detailed architecture ("spatial encoder").
"""

import functools
from typing import NamedTuple

import haiku as hk
import jax

from starleague.agent import blocks, linear
from starleague.agent.config import AgentConfig
from starleague.agent.encoders import projection
from starleague.agent.types import Array


class SpatialEncoding(NamedTuple):
  """Encoded map, of config.dtype."""

  embedded: jax.Array  # [spatial_size]
  # [coarse, coarse, channels] each: the downsampled map, then the output of each residual block.
  map_skips: tuple[jax.Array, ...]


def encode(config: AgentConfig, minimap: Array, camera: Array, entities: Array,
           entity_embeddings: jax.Array) -> SpatialEncoding:
  """Encodes the map; call within a transform.

  Args:
    config: sizes.
    minimap: [7, H, W] uint8.
    camera: [4] int16.
    entities: [E, F] int16.
    entity_embeddings: [E, entity_size], zero for missing rows.

  Returns:
    SpatialEncoding of config.dtype.
  """
  with hk.name_scope("spatial_encoder"):
    # Without a bias, missing rows scatter zeros.
    vectors = blocks.relu(
      linear.Linear(config.scatter_size, with_bias=False, name="scatter")(entity_embeddings))
    drawing = projection.MapProjection(config.map_projection, name="projection")(
      minimap, camera, entities, vectors)
    first, *others = config.map_downsamples
    with hk.name_scope("downsample_0"):
      kernel, bias = blocks.downsample_weights(config.map_projection, first, vectors.dtype)
    draw = functools.partial(projection.downsampled, method=config.entity_embedding)
    x = blocks.relu(blocks.recompute(draw, config.remat)(drawing, kernel) + bias)
    for i, channels in enumerate(others, start=1):
      x = blocks.relu(blocks.recompute(
        blocks.Downsample(channels, name=f"downsample_{i}"), config.remat)(x))
    map_skips = [x]
    for i in range(config.map_blocks):
      block = blocks.ConvResidualBlock(config.map_downsamples[-1], name=f"block_{i}")
      x = blocks.recompute(block, config.remat)(x)
      map_skips.append(x)
    embedded = blocks.relu(linear.Linear(config.spatial_size, name="embedded")(x.reshape(-1)))
  return SpatialEncoding(embedded, tuple(map_skips))
