"""Conversion between the game's coordinates and the agent's grids."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import coordinates


def test_hand_worked_positions():
  # 256 / 168 cells a game unit; y runs down from the map's top edge.
  assert [int(x) for x in coordinates.to_grid(10.0, 20.0, 152, 168)] == [15, 225]
  x, y = coordinates.to_game(15, 225, 152, 168)
  assert (x, y) == (pytest.approx(10.171875), pytest.approx(20.015625))
  # A grid of 32 on a square map of 64: two units a cell.
  assert [int(x) for x in coordinates.to_grid(5.0, 63.0, 64, 64, grid=32)] == [2, 0]


@pytest.mark.parametrize("width, height, grid", ((152, 168, 256), (200, 176, 256), (64, 64, 32)))
def test_grid_to_game_to_grid_is_identity_on_the_map(width, height, grid):
  scale = grid / max(width, height)
  columns, rows = np.meshgrid(
    np.arange(int(width * scale)), np.arange(int(height * scale)), indexing="ij")
  for numpy in (np, jnp):
    x, y = coordinates.to_game(numpy.asarray(columns), numpy.asarray(rows), width, height, grid)
    assert 0 < x.min() and x.max() < width and 0 < y.min() and y.max() < height
    again = coordinates.to_grid(x, y, width, height, grid)
    np.testing.assert_array_equal(again[0], columns)
    np.testing.assert_array_equal(again[1], rows)


def test_edges_stay_on_the_grid():
  column, row = coordinates.to_grid(np.array([0.0, 64.0, -3.0]), np.array([0.0, 64.0, 99.0]), 64,
                                    64)
  assert column.tolist() == [0, 255, 0] and row.tolist() == [255, 0, 0]
  assert column.dtype == row.dtype == np.int32


def test_runs_under_jit():
  found = jax.jit(lambda x, y: coordinates.to_grid(x, y, 152, 168))(10.0, 20.0)
  assert [int(x) for x in found] == [15, 225]


def test_camera_shows_cells_whose_centres_are_inside():
  # Middles of a 4 x 4 grid are at 32, 96, 160 and 224: left and top count, right and bottom do not.
  found = coordinates.shown(np.array([32, 97, 224, 256], np.int16), 4)
  np.testing.assert_array_equal(found, [[0] * 4, [0] * 4, [1, 1, 1, 0], [1, 1, 1, 0]])
  assert coordinates.shown(np.array([0, 0, 256, 256], np.int16), 8).all()
  assert not coordinates.shown(np.zeros(4, np.int16), 8).any()
