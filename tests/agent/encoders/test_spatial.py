"""The spatial encoder: planes, scattered entities, the camera."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import config
from starleague.agent.encoders import spatial
from tests.agent.encoders.observations import entity_row, observation


@pytest.mark.parametrize("method", config.ENTITY_EMBEDDINGS)
def test_entities_are_scattered_to_their_cells_and_summed(method):
  rows = np.concatenate([entity_row(x=0, y=0), entity_row(x=255, y=8), entity_row(x=250, y=15)])
  vectors = jnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
  drawn = np.asarray(spatial.draw(jnp.ones((32, 32, 2)), vectors, rows, method)) - 1
  expected = np.zeros((32, 32, 2))
  expected[0, 0] = [1, 2]
  expected[1, 31] = [8, 10]
  np.testing.assert_array_equal(drawn, expected)


@pytest.mark.parametrize("run", [1, 4, 8])
def test_runs_of_any_length_draw_the_same_map(run):
  place = jnp.array([0, 63, 17, 17, 18])
  vectors = jnp.arange(1.0, 11.0).reshape(5, 2)
  expected = np.zeros((64, 2))
  np.add.at(expected, np.asarray(place), np.asarray(vectors))
  found = spatial.drawn_by_runs(place, vectors, size=8, run=run)
  np.testing.assert_array_equal(np.asarray(found).reshape(64, 2), expected)


def test_smallest_run_balances_both_matrices():
  # 128 x 128 cells of 32 channels: runs of 16 give 1,024 + 16 * 32 columns, rows 128 + 128 * 32.
  assert spatial.smallest_run(128, 32) == 16
  assert spatial.smallest_run(4, 1) == 4


def test_planes_are_one_hots_and_a_height():
  layers = np.zeros((8, 2, 2), np.uint8)
  layers[0, 0, 1] = 51
  layers[1, 0, 1] = 3
  layers[3, 0, 1] = 9  # out of range: the last class
  layers[7, 0, 1] = 1
  channels = np.asarray(spatial.planes(jnp.asarray(layers), jnp.float32))
  assert channels.shape == (2, 2, 20)
  np.testing.assert_allclose(
    channels[0, 1], [0.2, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1, 0, 1, 0, 0, 1], rtol=1e-6)


def test_number_of_map_channels_is_the_published_one():
  # 18 of the game's planes, 2 of the camera, 32 of entities (detailed architecture).
  assert spatial.NUM_CHANNELS + config.full().scatter_size == 52


def test_camera_is_an_input(encode):
  o = observation()
  here, there = (encode(o._replace(camera=np.int16(corners)))[0]
                 for corners in ([0, 0, 128, 128], [128, 128, 256, 256]))
  assert np.abs(here.map_skips[0] - there.map_skips[0]).max() > 1e-3


def test_projecting_planes_equals_the_product_with_their_channels():
  random = np.random.default_rng(0)
  minimap = random.integers(0, 7, (8, 4, 4)).astype(np.uint8)
  weights = jnp.asarray(random.normal(size=(spatial.NUM_CHANNELS, 3)), jnp.float32)
  bias = jnp.asarray(random.normal(size=3), jnp.float32)
  place = jnp.asarray(random.normal(size=(4, 4, 3)), jnp.float32)
  def product(weights, bias):
    return spatial.planes(jnp.asarray(minimap), jnp.float32) @ weights + bias
  def projected(weights, bias):
    return spatial.project_planes(jnp.asarray(minimap, jnp.float32), weights, bias)
  np.testing.assert_allclose(projected(weights, bias), product(weights, bias), atol=1e-5)
  gradients = [jax.grad(lambda w, b, f=f: (f(w, b) * place).sum(), argnums=(0, 1))(weights, bias)
               for f in (projected, product)]
  jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), *gradients)
