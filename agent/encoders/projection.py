"""The map before its first convolution: planes and scattered entities, projected to channels.

Vinyals et al. 2019, detailed architecture ("spatial encoder"). `MapProjection` describes the map as
a `Drawing`. `cells` computes it cell by cell; `squares` in the order that the first downsampling
multiplies.
"""

import math
from typing import NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from starleague.agent import blocks, coordinates, types
from starleague.agent.types import Array

PLANES = (*types.MINIMAP_PLANES, "camera")
# Number of classes of each plane; the height is a number.
PLANE_CLASSES = {"visibility": 4, "creep": 2, "player_relative": 5, "alerts": 2, "pathable": 2,
                 "buildable": 2, "camera": 2}
NUM_CHANNELS = sum(PLANE_CLASSES.values()) + 1
_CLASSES = np.array([PLANE_CLASSES.get(name, 1) for name in PLANES])
_PLANE = np.repeat(np.arange(len(PLANES)), _CLASSES)  # of each channel
_HEIGHT = PLANES.index("height_map")
# The class that a channel stands for; the height has none.
_CLASS = np.where(_PLANE == _HEIGHT, -1, np.concatenate([np.arange(n) for n in _CLASSES]))
_HEIGHT_CHANNEL = int(np.argmin(_CLASS))
_GREATEST = np.where(np.arange(len(PLANES)) == _HEIGHT, 255, _CLASSES - 1)[:, None, None]
# A combination of the planes' classes has the number sum(class * stride). The height counts as one
# class.
_STRIDES = np.cumprod([1, *_CLASSES[:-1]])
_COMBINATIONS = np.arange(np.prod(_CLASSES))[:, None] // _STRIDES % _CLASSES  # [640, 8]: classes
_CHANNELS = (_COMBINATIONS[:, _PLANE] == _CLASS).astype(np.float32)  # [640, NUM_CHANNELS]


def _clipped(layers: Array) -> jax.Array:
  """Returns layers [8, H, W] with the last class in place of unknown ones."""
  return jnp.minimum(layers, _GREATEST.astype(layers.dtype))


def planes(layers: Array, dtype: DTypeLike) -> jax.Array:
  """Converts map layers to channels: [8, H, W] in the order of PLANES -> [20, H, W] of dtype."""
  values = _clipped(layers)[_PLANE]
  classes = _CLASS[:, None, None]
  return jnp.where(classes < 0, values.astype(jnp.float32) / 255.0,
                   values == classes.astype(np.float32)).astype(dtype)


@jax.custom_vjp
def project_planes(layers: jax.Array, weights: jax.Array, bias: jax.Array) -> jax.Array:
  """Projects `planes(layers)` by weights and bias: [8, H, W] integral floats -> [H, W, C].

  The forward pass looks up the sum for a cell's combination of classes, and stores no one-hots. The
  backward pass is one matrix product. By autodiff both take three times as long on a CPU.
  """
  table = jnp.matmul(_CHANNELS.astype(weights.dtype), weights,
                     precision=jax.lax.Precision.HIGHEST) + bias
  classes = jnp.minimum(layers.astype(jnp.int32), (_CLASSES - 1)[:, None, None])
  combination = (classes * _STRIDES[:, None, None]).sum(0)
  height = (layers[_HEIGHT] / 255.0).astype(weights.dtype)
  return table[combination] + height[..., None] * weights[_HEIGHT_CHANNEL]


def _project_planes_forward(layers: jax.Array, weights: jax.Array,
                            bias: jax.Array) -> tuple[jax.Array, jax.Array]:
  return project_planes(layers, weights, bias), layers


def _project_planes_backward(layers: jax.Array,
                             gradient: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
  of_weights = jnp.einsum("phw,hwc->pc", planes(layers, gradient.dtype), gradient)
  # A cell has one class of the last plane, so the gradients of its classes add up to the bias's.
  of_bias = of_weights[-_CLASSES[-1]:].sum(0)
  return jnp.zeros_like(layers), of_weights, of_bias


project_planes.defvjp(_project_planes_forward, _project_planes_backward)


class Drawing(NamedTuple):
  """A map of C channels that is not computed yet: weights of planes, and vectors of entities."""

  layers: jax.Array  # [8, H, W] float32, integral, in the order of PLANES
  planes: jax.Array  # [NUM_CHANNELS, C]
  bias: jax.Array  # [C]
  rows: jax.Array  # [E] int32: cells of the entities
  columns: jax.Array  # [E] int32
  vectors: jax.Array  # [E, C], zero for missing rows; added to the cells


def cells(drawing: Drawing, method: str) -> jax.Array:
  """Computes a map, cell by cell.

  Args:
    drawing: of the map.
    method: of config.ENTITY_EMBEDDINGS. "one_hot" multiplies by one-hot rows and columns. TPUs
      execute scatters serially, and their compiler takes minutes for the transpose that a scatter
      onto a batch of maps needs.

  Returns:
    [H, W, C], after a ReLU.
  """
  planes_of_cells = project_planes(drawing.layers, drawing.planes, drawing.bias)
  size, channels = planes_of_cells.shape[1:]
  place = drawing.rows * size + drawing.columns
  if method == "one_hot":
    run = smallest_run(size, channels)
    return blocks.relu(planes_of_cells + drawn_by_runs(place, drawing.vectors, size, run))
  drawn = planes_of_cells.reshape(size * size, channels).at[place].add(drawing.vectors)
  return blocks.relu(drawn.reshape(planes_of_cells.shape))


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


def squares(drawing: Drawing) -> jax.Array:
  """Computes a map with a frame of one cell of zeros, as squares of 2 x 2 cells.

  Matrix products alone put the cells into this order. In any other way, a TPU's compiler copies the
  map into another memory layout before the convolution.

  Args:
    drawing: of a map with even H = W.

  Returns:
    [H / 2 + 1, W / 2 + 1, 4 C], after a ReLU: `blocks.space_to_depth` of the framed `cells`.
  """
  vectors, dtype = drawing.vectors, drawing.vectors.dtype
  size, channels = drawing.layers.shape[-1], vectors.shape[-1]
  side = size // 2 + 1
  one_hots = _square_planes(jax.lax.stop_gradient(drawing.layers), side, dtype)
  # A cell has one class of the last plane, whose weights include the bias.
  weights = drawing.planes.at[-_CLASSES[-1]:].add(drawing.bias)
  weights = jnp.einsum("ij,pc->ipjc", jnp.eye(4, dtype=dtype), weights)
  total = jnp.matmul(one_hots, weights.reshape(4 * NUM_CHANNELS, 4 * channels),
                     precision=jax.lax.Precision.HIGHEST)
  row, column = drawing.rows + 1, drawing.columns + 1
  place = jax.nn.one_hot(row // 2 * side + column // 2, side * side, dtype=dtype)
  corner = jax.nn.one_hot(row % 2 * 2 + column % 2, 4, dtype=dtype)
  corners = (corner[:, :, None] * vectors[:, None]).reshape(-1, 4 * channels)
  drawn = jnp.einsum("ehx,ec->hxc", place.reshape(-1, side, side), corners,
                     precision=jax.lax.Precision.HIGHEST)
  return blocks.relu(total + drawn)


def _square_planes(layers: jax.Array, side: int, dtype: DTypeLike) -> jax.Array:
  """[8, H, W] -> [side, side, 4 * NUM_CHANNELS]: `planes` of four cells; zeros in the frame."""
  size = layers.shape[-1]
  # Exact in bfloat16: whole numbers up to 255, each times a single 1.
  layers = _clipped(layers).astype(jnp.bfloat16)
  layers = jnp.pad(layers, ((0, 0), (1, 1), (0, 0))).reshape(len(PLANES), side, 2, size)
  columns = np.eye(size + 2)[1:-1].reshape(size, side, 2)
  chosen = np.einsum("ai,bj,pc->abpijc", np.eye(2), np.eye(2), np.eye(len(PLANES))[:, _PLANE])
  layers = jnp.einsum("phaw,wxb->abphx", layers, jnp.asarray(columns, jnp.bfloat16))
  values = jnp.einsum(
    "abphx,abpc->hxc", layers,
    jnp.asarray(chosen.reshape(2, 2, len(PLANES), 4 * NUM_CHANNELS), jnp.bfloat16),
    preferred_element_type=jnp.float32)
  inside = np.pad(np.ones((size, size)), 1).reshape(side, 2, side, 2).transpose(0, 2, 1, 3)
  inside = np.repeat(inside.reshape(side, side, 4), NUM_CHANNELS, axis=-1)
  of_channel = np.tile(_CLASS, 4)
  found = jnp.where(of_channel < 0, values / 255.0, values == of_channel)
  return (found * inside).astype(dtype)


def downsampled(drawing: Drawing, kernel: jax.Array, method: str) -> jax.Array:
  """Computes a map and the convolution that halves it, without its bias.

  Args:
    drawing: of the map.
    kernel: of `blocks.downsample`.
    method: as for `cells`.

  Returns:
    [H / 2, W / 2, D].
  """
  def by_cells(drawing: Drawing, kernel: jax.Array) -> jax.Array:
    return blocks.downsample(cells(drawing, method), kernel)

  def by_squares(drawing: Drawing, kernel: jax.Array) -> jax.Array:
    return blocks.convolution(squares(drawing), kernel)

  if method != "one_hot":
    return by_cells(drawing, kernel)
  return jax.lax.platform_dependent(drawing, kernel, tpu=by_squares, default=by_cells)


class MapProjection(hk.Module):
  """A 1x1 convolution over the concatenated planes and scattered entities.

  Because it is linear, it is applied to the E entities before the scatter, not to H * W cells.
  """

  def __init__(self, channels: int, name: str):
    super().__init__(name=name)
    self._channels = channels

  def __call__(self, minimap: Array, camera: Array, entities: Array,
               vectors: jax.Array) -> Drawing:
    """Projects the map.

    Args:
      minimap: [7, H, W] uint8.
      camera: [4] int16.
      entities: [E, F] int16, with positions in the 256 grid.
      vectors: [E, scatter_size], zero for missing rows.

    Returns:
      Drawing of `channels` channels, of vectors' dtype.
    """
    # The fan-in: about 9 inputs are not zero, one class of each plane and the entities.
    init = hk.initializers.TruncatedNormal(9 ** -0.5)
    of_planes = hk.get_parameter("planes", (NUM_CHANNELS, self._channels), vectors.dtype, init)
    of_entities = hk.get_parameter(
      "entities", (vectors.shape[-1], self._channels), vectors.dtype, init)
    bias = hk.get_parameter("bias", (self._channels,), vectors.dtype, jnp.zeros)
    size = minimap.shape[-1]
    # Floats, because JAX 0.10 rejects integer constants as arguments that have a gradient.
    shown = coordinates.shown(camera, size)
    # Without the barrier XLA recomputes the layers in each consumer.
    layers = jax.lax.optimization_barrier(
      jnp.concatenate([minimap.astype(jnp.float32), shown[None].astype(jnp.float32)]))
    scale = types.POSITION_GRID // size
    columns, rows = (
      jnp.clip(entities[:, types.COLUMN[name]].astype(jnp.int32) // scale, 0, size - 1)
      for name in ("x", "y"))
    return Drawing(layers, of_planes, bias, rows, columns, vectors @ of_entities)
