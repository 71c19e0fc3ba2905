"""The spatial encoder: a convolutional network over the map, with the entities drawn on it.

Vinyals et al. 2019, detailed architecture ("spatial encoder").
"""

from typing import NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp

from starleague.agent import blocks, types
from starleague.agent.config import AgentConfig

# How many values each plane takes; the height is a number, not a class.
PLANE_CLASSES = {"visibility": 4, "creep": 2, "player_relative": 5, "alerts": 2, "pathable": 2,
                 "buildable": 2}


class SpatialEncoding(NamedTuple):
  embedded: jax.Array  # [spatial_size]
  # [coarse, coarse, channels] each: the downsampled map, then the output of each residual block.
  map_skips: tuple[jax.Array, ...]


def planes(minimap, dtype):
  """The planes as channels: [7, H, W] uint8 -> [H, W, 18] of dtype."""
  channels = []
  for plane, name in zip(minimap, types.MINIMAP_PLANES, strict=True):
    if name == "height_map":
      channels.append((plane.astype(jnp.float32) / 255.0).astype(dtype)[..., None])
    else:
      classes = PLANE_CLASSES[name]
      channels.append(jax.nn.one_hot(jnp.minimum(plane, classes - 1), classes, dtype=dtype))
  return jnp.concatenate(channels, axis=-1)


def draw(config: AgentConfig, vectors, entities):
  """Adds up each entity's vector in its cell of the map.

  Args:
    config: gives the map's size.
    vectors: [E, C], zero for the rows that do not exist.
    entities: [E, F] int16, with positions in the 256 grid.

  Returns:
    [H, W, C].
  """
  size = config.map_size
  scale = types.POSITION_GRID // size
  column, row = (jnp.clip(entities[:, types.COLUMN[name]].astype(jnp.int32) // scale, 0, size - 1)
                 for name in ("x", "y"))
  cells = jnp.zeros((size * size, vectors.shape[-1]), vectors.dtype)
  return cells.at[row * size + column].add(vectors).reshape(size, size, -1)


def encode(config: AgentConfig, minimap, entities, entity_embeddings) -> SpatialEncoding:
  """Encodes the map; to be called within a transform.

  Args:
    config: sizes.
    minimap: [7, H, W] uint8.
    entities: [E, F] int16.
    entity_embeddings: [E, entity_size], zero for the rows that do not exist.

  Returns:
    SpatialEncoding of config.dtype.
  """
  dtype = entity_embeddings.dtype
  with hk.name_scope("spatial_encoder"):
    # Without a bias, a row that does not exist draws nothing.
    vectors = jax.nn.relu(
      hk.Linear(config.scatter_size, with_bias=False, name="scatter")(entity_embeddings))
    x = jnp.concatenate([planes(minimap, dtype), draw(config, vectors, entities)], axis=-1)
    x = jax.nn.relu(hk.Linear(config.map_projection, name="projection")(x))
    for i, channels in enumerate(config.map_downsamples):
      x = jax.nn.relu(blocks.Downsample(channels, name=f"downsample_{i}")(x))
    map_skips = [x]
    for i in range(config.map_blocks):
      x = blocks.ConvResidualBlock(config.map_downsamples[-1], name=f"block_{i}")(x)
      map_skips.append(x)
    embedded = jax.nn.relu(hk.Linear(config.spatial_size, name="embedded")(x.reshape(-1)))
  return SpatialEncoding(embedded, tuple(map_skips))
