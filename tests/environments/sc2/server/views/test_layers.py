"""Cells that units cover on feature layers: hand-worked discs, and an independent search."""

import numpy as np

from starleague.environments.sc2.protocol import raw_pb
from starleague.environments.sc2.server.views import layers

GRID = layers.Grid(left=0.0, top=4.0, width=4.0, height=4.0, columns=4, rows=4)


def test_discs_cover_the_cells_whose_middles_they_hold():
  numbers = layers.topmost(GRID, GRID.discs([(1.5, 2.5, 1.0), (2.5, 1.5, 0.5), (3.9, 0.1, 0.1)]))
  np.testing.assert_array_equal(numbers, [
    [0, 1, 0, 0],
    [1, 1, 1, 0],
    [0, 1, 2, 0],  # later discs cover earlier ones
    [0, 0, 0, 3]])  # a disc without any middle covers its own cell


def test_discs_beyond_the_edge_are_cut_off():
  numbers = layers.topmost(GRID, GRID.discs([(0.0, 4.0, 1.0), (9.0, 9.0, 1.0), (-3.0, 2.0, 1.0)]))
  np.testing.assert_array_equal(np.argwhere(numbers == 1), [[0, 0]])
  assert numbers.max() == 1


def test_a_layer_without_cells_has_empty_discs():
  empty = layers.Grid(left=0.0, top=4.0, width=4.0, height=4.0, columns=0, rows=0)
  assert layers.topmost(empty, empty.discs([(1.5, 2.5, 1.0)])).shape == (0, 0)


def testtopmost_units_equal_a_search_of_all_cells():
  rng = np.random.default_rng(0)
  grid = layers.Grid(left=-2.0, top=10.0, width=12.0, height=9.0, columns=17, rows=13)
  places = [tuple(place) for place in rng.uniform((-4, -1, 0.5), (12, 12, 2.5), (40, 3)).tolist()]
  found = layers.topmost(grid, grid.discs(places))
  xs, ys = grid.middles()
  for row, column in np.ndindex(found.shape):
    covering = [number for number, (x, y, radius) in enumerate(places, 1)
                if (xs[column] - x) ** 2 + (ys[row] - y) ** 2 <= radius ** 2]
    assert found[row, column] == max(covering, default=0)


def test_layers_show_a_value_of_thetopmost_units():
  units = [raw_pb.Unit(health=7.0), raw_pb.Unit(health=300.0), raw_pb.Unit(health=12.9)]
  top = np.array([[0, 2], [3, 3]], np.int32)
  drawn = layers.draw(top, units, lambda unit: int(unit.health), np.int32)
  assert drawn.dtype == np.int32 and drawn.tolist() == [[0, 300], [12, 12]]
