"""The map before its first convolution: planes, scattered entities, both ways of computing it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import blocks, config
from starleague.agent.encoders import projection
from tests.agent.encoders.observations import entity_row, transformed

CHANNELS = projection.NUM_CHANNELS


def drawing(size, channels, entities, seed=0):
  """A drawing of random planes, whose first entity is in a corner and which has two in a cell."""
  random = np.random.default_rng(seed)
  layers = random.integers(0, 7, (len(projection.PLANES), size, size))
  layers[projection.PLANES.index("height_map")] = random.integers(0, 256, (size, size))
  rows, columns = random.integers(0, size, (2, entities))
  rows[:3], columns[:3] = [0, size - 1, size - 1], [size - 1, 0, 0]

  def normal(*shape):
    return jnp.asarray(random.normal(size=shape), jnp.float32)

  return projection.Drawing(
    jnp.asarray(layers, jnp.float32), normal(CHANNELS, channels), normal(channels),
    jnp.asarray(rows, jnp.int32), jnp.asarray(columns, jnp.int32), normal(entities, channels))


@pytest.mark.parametrize("method", config.ENTITY_EMBEDDINGS)
def test_entities_are_added_to_their_cells(method):
  vectors = jnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [-70.0, 0.0]])
  empty = drawing(32, 2, 4)._replace(
    planes=jnp.zeros((CHANNELS, 2)), bias=jnp.array([1.0, 0.0]), vectors=vectors,
    rows=jnp.array([0, 1, 1, 5]), columns=jnp.array([0, 31, 31, 7]))
  expected = np.tile([1.0, 0.0], (32, 32, 1))
  expected[0, 0] = [2, 2]
  expected[1, 31] = [9, 10]
  expected[5, 7] = [0, 0]  # the ReLU of 1 - 70
  np.testing.assert_array_equal(projection.cells(empty, method), expected)


@pytest.mark.parametrize("x, y, row, column", [(0, 0, 0, 0), (255, 8, 1, 31), (250, 15, 1, 31)])
def test_positions_are_cells_of_the_map(x, y, row, column):
  found = transformed(lambda: projection.MapProjection(2, name="projection")(
    np.zeros((7, 32, 32), np.uint8), np.zeros(4, np.int16), entity_row(x=x, y=y),
    jnp.ones((1, 3))))
  drawn = found.apply(found.init(jax.random.key(0)))
  assert (int(drawn.rows[0]), int(drawn.columns[0])) == (row, column)


@pytest.mark.parametrize("size, channels, entities", [(4, 3, 5), (32, 8, 40)])
def test_squares_are_those_of_the_framed_cells(size, channels, entities):
  drawn = drawing(size, channels, entities)
  for method in config.ENTITY_EMBEDDINGS:
    framed = jnp.pad(projection.cells(drawn, method), blocks.FRAME)
    np.testing.assert_allclose(
      projection.squares(drawn), blocks.space_to_depth(framed), atol=2e-5)


def test_squares_and_cells_have_equal_convolutions_and_gradients():
  drawn, random = drawing(16, 4, 20), np.random.default_rng(1)
  kernel, place = (jnp.asarray(random.normal(size=shape), jnp.float32)
                   for shape in ((2, 2, 16, 5), (8, 8, 5)))

  def by_squares(planes, bias, vectors, kernel):
    changed = drawn._replace(planes=planes, bias=bias, vectors=vectors)
    return (blocks.convolution(projection.squares(changed), kernel) * place).sum()

  def by_cells(planes, bias, vectors, kernel):
    changed = drawn._replace(planes=planes, bias=bias, vectors=vectors)
    return (projection.downsampled(changed, kernel, "gather") * place).sum()

  found, expected = (
    jax.value_and_grad(f, (0, 1, 2, 3))(drawn.planes, drawn.bias, drawn.vectors, kernel)
    for f in (by_squares, by_cells))
  jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-3), found, expected)


@pytest.mark.parametrize("run", [1, 4, 8])
def test_runs_of_any_length_draw_the_same_map(run):
  place = jnp.array([0, 63, 17, 17, 18])
  vectors = jnp.arange(1.0, 11.0).reshape(5, 2)
  expected = np.zeros((64, 2))
  np.add.at(expected, np.asarray(place), np.asarray(vectors))
  found = projection.drawn_by_runs(place, vectors, size=8, run=run)
  np.testing.assert_array_equal(np.asarray(found).reshape(64, 2), expected)


def test_smallest_run_balances_both_matrices():
  # 128 x 128 cells of 32 channels: runs of 16 give 1,024 + 16 * 32 columns, rows 128 + 128 * 32.
  assert projection.smallest_run(128, 32) == 16
  assert projection.smallest_run(4, 1) == 4


def test_planes_are_one_hots_and_a_height():
  layers = np.zeros((8, 2, 2), np.uint8)
  layers[0, 0, 1] = 51
  layers[1, 0, 1] = 3
  layers[3, 0, 1] = 9  # out of range: the last class
  layers[7, 0, 1] = 1
  channels = np.asarray(projection.planes(jnp.asarray(layers), jnp.float32))
  assert channels.shape == (20, 2, 2)
  np.testing.assert_allclose(
    channels[:, 0, 1], [0.2, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1, 0, 1, 0, 0, 1], rtol=1e-6)


def test_number_of_map_channels_is_the_published_one():
  # 18 of the game's planes, 2 of the camera, 32 of entities (detailed architecture).
  assert projection.NUM_CHANNELS + config.full().scatter_size == 52


def test_projecting_planes_equals_the_product_with_their_channels():
  random = np.random.default_rng(0)
  minimap = random.integers(0, 7, (8, 4, 4)).astype(np.uint8)
  weights = jnp.asarray(random.normal(size=(projection.NUM_CHANNELS, 3)), jnp.float32)
  bias = jnp.asarray(random.normal(size=3), jnp.float32)
  place = jnp.asarray(random.normal(size=(4, 4, 3)), jnp.float32)
  def product(weights, bias):
    return jnp.einsum(
      "phw,pc->hwc", projection.planes(jnp.asarray(minimap), jnp.float32), weights) + bias
  def projected(weights, bias):
    return projection.project_planes(jnp.asarray(minimap, jnp.float32), weights, bias)
  np.testing.assert_allclose(projected(weights, bias), product(weights, bias), atol=1e-5)
  gradients = [jax.grad(lambda w, b, f=f: (f(w, b) * place).sum(), argnums=(0, 1))(weights, bias)
               for f in (projected, product)]
  jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), *gradients)
