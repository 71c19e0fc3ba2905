"""The virtual camera's view: its edges, and the cells of the grid that it touches."""

import numpy as np
import pytest

from starleague.environments.sc2.converter import camera
from starleague.environments.sc2.converter.camera import Camera


def test_edges_are_in_view():
  x = np.array([34, 66, 50, 50, 33.9, 66.1, 50, 50])
  y = np.array([50, 50, 37, 57, 50, 50, 36.9, 57.1])
  assert camera.contains(Camera(50, 50), x, y).tolist() == [True] * 4 + [False] * 4


@pytest.mark.parametrize("place, size, cells", [
  ((50, 50), (128, 128), [68, 142, 133, 183]),  # two cells a game unit, rows downwards
  ((0, 128), (128, 128), [0, 0, 33, 27]),  # cut off at the corner of the map
  ((128, 0), (128, 128), [224, 242, 256, 256]),
  ((50, 30), (64, 32), [136, 0, 256, 61])])  # the longer side of the map fills the grid
def test_the_rectangle_holds_the_cells_in_view(place, size, cells):
  found = camera.rectangle(Camera(*place), *size)
  assert found.dtype == np.int16 and found.tolist() == cells


def test_a_cell_is_in_the_rectangle_if_a_place_of_it_is_in_view():
  view, size = Camera(40.3, 71.7), 184
  left, top, right, bottom = camera.rectangle(view, size, size).tolist()
  rng = np.random.default_rng(0)
  x, y = rng.uniform((20, 55), (60, 85), (20_000, 2)).T  # the view and its surroundings
  inside = camera.contains(view, x, y)
  column, row = np.floor(x * 256 / size), np.floor((size - y) * 256 / size)
  in_cells = (column >= left) & (column < right) & (row >= top) & (row < bottom)
  assert 5_000 < inside.sum() < 15_000 and in_cells[inside].all()
  assert {int(c) for c in column[inside]} == set(range(left, right))
  assert {int(r) for r in row[inside]} == set(range(top, bottom))


def test_the_whole_map_is_the_whole_grid():
  assert camera.WHOLE_MAP.tolist() == [0, 0, 256, 256]
