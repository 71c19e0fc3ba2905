"""The spatial encoder: a convolutional network over the map and the scattered entities.

Vinyals et al. 2019, detailed architecture ("spatial encoder").
"""

import math
from typing import NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from starleague.agent import blocks, coordinates, linear, types
from starleague.agent.config import AgentConfig
from starleague.agent.types import Array

PLANES = (*types.MINIMAP_PLANES, "camera")
# Number of classes of each plane; the height is a number.
PLANE_CLASSES = {"visibility": 4, "creep": 2, "player_relative": 5, "alerts": 2, "pathable": 2,
                 "buildable": 2, "camera": 2}
NUM_CHANNELS = sum(PLANE_CLASSES.values()) + 1


class SpatialEncoding(NamedTuple):
  """Encoded map, of config.dtype."""

  embedded: jax.Array  # [spatial_size]
  # [coarse, coarse, channels] each: the downsampled map, then the output of each residual block.
  map_skips: tuple[jax.Array, ...]


def planes(layers: Array, dtype: DTypeLike) -> jax.Array:
  """Converts map layers to channels: [8, H, W] in the order of PLANES -> [H, W, 20] of dtype."""
  channels = []
  for plane, name in zip(layers, PLANES, strict=True):
    if name == "height_map":
      channels.append((plane.astype(jnp.float32) / 255.0).astype(dtype)[..., None])
    else:
      classes = PLANE_CLASSES[name]
      index = jnp.minimum(plane, classes - 1).astype(jnp.int32)
      channels.append(jax.nn.one_hot(index, classes, dtype=dtype))
  return jnp.concatenate(channels, axis=-1)


@jax.custom_vjp
def project_planes(layers: jax.Array, weights: jax.Array, bias: jax.Array) -> jax.Array:
  """Computes `planes(layers) @ weights + bias`: [8, H, W] integral floats -> [H, W, C].

  The forward pass selects the weights of a cell's class, and stores no one-hots. The backward pass
  is one matrix product. As XLA derives them, each takes three times as long on a CPU.
  """
  total, at = bias, 0
  for plane, name in zip(layers, PLANES, strict=True):
    if name == "height_map":
      height = (plane.astype(jnp.float32) / 255.0).astype(weights.dtype)
      total, at = total + height[..., None] * weights[at], at + 1
    else:
      classes = PLANE_CLASSES[name]
      value = jnp.minimum(plane, classes - 1)[..., None]
      chosen = weights[at]
      for i in range(1, classes):
        chosen = jnp.where(value == i, weights[at + i], chosen)
      total, at = total + chosen, at + classes
  return total


def _project_planes_forward(layers: jax.Array, weights: jax.Array,
                            bias: jax.Array) -> tuple[jax.Array, jax.Array]:
  return project_planes(layers, weights, bias), layers


def _project_planes_backward(layers: jax.Array,
                             gradient: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
  of_weights = jnp.einsum("hwp,hwc->pc", planes(layers, gradient.dtype), gradient)
  # A cell has one class of the last plane, so the gradients of its classes add up to the bias's.
  of_bias = of_weights[-PLANE_CLASSES[PLANES[-1]]:].sum(0)
  return jnp.zeros_like(layers), of_weights, of_bias


project_planes.defvjp(_project_planes_forward, _project_planes_backward)


def draw(cells: jax.Array, vectors: jax.Array, entities: Array,
         method: str = "gather") -> jax.Array:
  """Scatters entities onto the map: adds each vector to the cell of its entity.

  Args:
    cells: [H, W, C], the map.
    vectors: [E, C], zero for missing rows.
    entities: [E, F] int16, with positions in the 256 grid.
    method: of config.ENTITY_EMBEDDINGS. "one_hot" multiplies by one-hot rows and columns. TPUs
      execute scatters serially, and their compiler takes minutes for the transpose that a scatter
      onto a batch of maps needs.

  Returns:
    [H, W, C].
  """
  size = cells.shape[0]
  scale = types.POSITION_GRID // size
  column, row = (jnp.clip(entities[:, types.COLUMN[name]].astype(jnp.int32) // scale, 0, size - 1)
                 for name in ("x", "y"))
  place = row * size + column  # of a cell, in the order of `cells`
  if method == "one_hot":
    return cells + drawn_by_runs(place, vectors, size, smallest_run(size, vectors.shape[-1]))
  drawn = cells.reshape(size * size, -1).at[place].add(vectors)
  return drawn.reshape(cells.shape)


def drawn_by_runs(place: jax.Array, vectors: jax.Array, size: int, run: int) -> jax.Array:
  """Draws on an empty map by a matrix product: one-hot runs, and vectors at places in a run.

  Args:
    place: [E] int32, cells.
    vectors: [E, C].
    size: rows and columns of the map.
    run: cells of a run, a divisor of `size`.

  Returns:
    [size, size, C].
  """
  runs = jax.nn.one_hot(place // run, size * size // run, dtype=vectors.dtype)
  places = jax.nn.one_hot(place % run, run, dtype=vectors.dtype)
  drawn = jnp.einsum("er,epc->rpc", runs, places[:, :, None] * vectors[:, None],
                     precision=jax.lax.Precision.HIGHEST)
  return drawn.reshape(size, size, -1)


def smallest_run(size: int, channels: int) -> int:
  """Returns the run, a power of two, with which both matrices have the fewest columns."""
  return min(size, 2 ** round(math.log2(size ** 2 / channels) / 2))


class MapProjection(hk.Module):
  """A 1x1 convolution over the concatenated planes and scattered entities.

  Because it is linear, it is applied to the E entities before the scatter, not to H * W cells.
  """

  def __init__(self, channels: int, method: str, name: str):
    super().__init__(name=name)
    self._channels = channels
    self._method = method

  def __call__(self, minimap: Array, camera: Array, entities: Array,
               vectors: jax.Array) -> jax.Array:
    """Projects the map.

    Args:
      minimap: [7, H, W] uint8.
      camera: [4] int16.
      entities: [E, F] int16.
      vectors: [E, scatter_size].

    Returns:
      [H, W, channels] of vectors' dtype.
    """
    # The fan-in: about 9 inputs are not zero, one class of each plane and the entities.
    init = hk.initializers.TruncatedNormal(9 ** -0.5)
    of_planes = hk.get_parameter("planes", (NUM_CHANNELS, self._channels), vectors.dtype, init)
    of_entities = hk.get_parameter(
      "entities", (vectors.shape[-1], self._channels), vectors.dtype, init)
    bias = hk.get_parameter("bias", (self._channels,), vectors.dtype, jnp.zeros)
    # Floats, because JAX 0.10 rejects integer constants as arguments that have a gradient.
    shown = coordinates.shown(camera, minimap.shape[-1])
    layers = jnp.concatenate([minimap.astype(jnp.float32), shown[None].astype(jnp.float32)])
    cells = project_planes(layers, of_planes, bias)
    return draw(cells, vectors @ of_entities, entities, self._method)


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
    x = blocks.relu(
      MapProjection(config.map_projection, config.entity_embedding, name="projection")(
        minimap, camera, entities, vectors))
    for i, channels in enumerate(config.map_downsamples):
      x = blocks.relu(blocks.recompute(
        blocks.Downsample(channels, name=f"downsample_{i}"), config.remat)(x))
    map_skips = [x]
    for i in range(config.map_blocks):
      block = blocks.ConvResidualBlock(config.map_downsamples[-1], name=f"block_{i}")
      x = blocks.recompute(block, config.remat)(x)
      map_skips.append(x)
    embedded = blocks.relu(linear.Linear(config.spatial_size, name="embedded")(x.reshape(-1)))
  return SpatialEncoding(embedded, tuple(map_skips))
