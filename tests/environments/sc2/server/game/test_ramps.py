"""Ramps and bases of realistic maps, by the rules that bots of python-sc2 find them with."""

import itertools

import numpy as np
import pytest
from scipy import ndimage

from starleague.environments.sc2.server.game import engine, ramps, world

MAPS = ("open", "ramps", "river")
LEAST_CELLS = 8  # of a ramp; smaller groups do not count
SPREAD = 8.5  # between resources of one base, at most
NEAREST = {False: 6, True: 7}  # of a town hall and a mineral patch, a geyser
SIDE, BORDER = 96, 8  # cells of the playable area and around it
WHOLE = SIDE + 2 * BORDER
INSIDE = (slice(BORDER, BORDER + SIDE),) * 2


@pytest.fixture(params=range(len(MAPS)), ids=MAPS)
def ground(request):
  return world.make_world(engine.rules_of("large"), request.param, realistic=True)


def starts():
  x, y = world.shown_start(engine.rules_of("large"), True)
  return [(float(WHOLE / 2 + side * x), float(WHOLE / 2 - side * y)) for side in (1, -1)]


def find_ramps(ground):
  """[k, 2] columns and rows of each ramp: groups of cells that are pathable, not placeable, and at
  heights that differ around them."""
  varied = ndimage.maximum_filter(ground.height, 3) != ndimage.minimum_filter(ground.height, 3)
  labels, count = ndimage.label(
    ground.passable & ~ground.buildable & varied, structure=np.ones((3, 3)))
  groups = [np.argwhere(labels == label)[:, ::-1] for label in range(1, count + 1)]
  return [group for group in groups if len(group) >= LEAST_CELLS]


def ends(ground, ramp):
  """The highest and the lowest cells of a ramp."""
  heights = ground.height[ramp[:, 1], ramp[:, 0]]
  return ramp[heights == heights.max()], ramp[heights == heights.min()]


def test_each_player_has_a_ramp_with_two_highest_cells(ground):
  found = find_ramps(ground)
  plateau = (ground.height == 160).any()
  assert [len(ramp) for ramp in found] == [22] * (4 if plateau else 2)
  for ramp in found:
    upper, lower = ends(ground, ramp)
    # Diagonal neighbours: a Barracks in the middle of a wall touches both.
    assert len(upper) == 2 and np.abs(upper[0] - upper[1]).tolist() == [1, 1]
    assert len(lower) == 2
    nearest = min(starts(), key=lambda start: np.hypot(*(start - upper.mean(axis=0))))
    distance = [np.hypot(*(nearest - cells.mean(axis=0))) for cells in (upper, lower)]
    assert distance[0] < distance[1] < 25  # it leads upwards to the base
  upper = [ends(ground, ramp)[0].mean(axis=0) for ramp in found]
  assert all(min(np.hypot(*(start - place)) for place in upper) < 14 for start in starts())


@pytest.mark.parametrize("index", range(len(MAPS)), ids=MAPS)
def test_each_piece_of_a_wall_fits_alone_above_each_ramp(index):
  """Depots touch the highest cells from three sides; a Barracks stands in the middle instead.

  Their cells are shown as placeable, and the ground lets each stand there. Together they do not
  fit: Skirmish keeps structures as far apart as their radii say.
  """
  rules = engine.rules_of("large")
  shown = world.make_world(rules, index, realistic=True)
  corners = 0.8 * np.array(np.meshgrid((-1, 0, 1), (-1, 0, 1)))  # see `placement.footprint`
  for ramp in find_ramps(shown):
    upper, lower = (cells.mean(axis=0) + 0.5 for cells in ends(shown, ramp))
    up = np.sign(upper - lower)
    depot, across = upper + up, up * (1, -1)
    for name, side, place in (
        ("SupplyDepot", 2, depot), ("SupplyDepot", 2, depot - up / 2 + 1.5 * across),
        ("SupplyDepot", 2, depot - up / 2 - 1.5 * across), ("Barracks", 3, upper + 1.5 * up)):
      low = place - side / 2
      assert np.array_equal(low, np.round(low))  # on whole cells
      (column, row), radius = low.astype(int), rules.types.radius[rules.types.local(name)]
      assert shown.buildable[row:row + side, column:column + side].all(), (name, place)
      # Both players' frames: the game looks up the cells in their own.
      for x, y in (place[:, None, None] + radius * corners,
                   WHOLE - place[:, None, None] + radius * corners):
        row_, column_ = (np.floor(values).astype(int) - BORDER for values in (WHOLE - y, x))
        assert rules.terrain.buildable[index][row_, column_].all(), (name, place)


@pytest.mark.parametrize("index", range(len(MAPS)), ids=MAPS)
def test_shown_cells_are_what_they_seem(index):
  shown = world.make_world(engine.rules_of("large"), index, realistic=True)
  true = world.make_world(engine.rules_of("large"), index)
  assert (shown.size, shown.playable, shown.border) == (WHOLE, SIDE, BORDER)
  assert shown.passable.sum() == shown.passable[INSIDE].sum()  # nothing stands on the border
  assert shown.buildable.sum() == shown.buildable[INSIDE].sum()
  # Half a turn maps the ground onto itself.
  for grid in (shown.passable, shown.buildable, shown.height):
    np.testing.assert_array_equal(grid, grid[::-1, ::-1])
  shown = shown._replace(passable=shown.passable[INSIDE], buildable=shown.buildable[INSIDE])
  assert (shown.passable <= true.passable).all() and (shown.buildable <= true.buildable).all()
  # The shown ground is one piece.
  assert ndimage.label(shown.passable)[1] == ndimage.label(true.passable)[1] == 1
  # Cells that lose their use are those of ramps and of the cliffs' margins.
  assert (true.buildable & ~shown.buildable <= shown.passable).all()
  assert (true.passable & ~shown.passable <= ~true.buildable).all()
  small = engine.rules_of("default")
  np.testing.assert_array_equal(world.make_world(small, index, realistic=True).height,
                                world.make_world(small, index).height)


def test_rows_of_a_ramp_fall_by_the_same_step():
  depth = ramps.ramp_cells()[2]
  assert [(depth == row).sum() for row in range(9)] == [2, 3, 2, 3, 2, 3, 2, 3, 2]
  ground = world.make_world(engine.rules_of("large"), 1, realistic=True)
  ramp = find_ramps(ground)[0]
  assert sorted(set(ground.height[ramp[:, 1], ramp[:, 0]].tolist())) == list(range(96, 161, 8))


def find_bases(places, geysers, ground):
  """The place of a town hall for each group of resources: the nearest to all that is far enough."""
  apart = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
  heights = ground.height[places[:, 1].astype(int), places[:, 0].astype(int)].astype(int)
  near = (apart <= SPREAD) & (np.abs(heights[:, None] - heights) <= 10)
  found = {}
  for _ in range(len(places)):
    near = near @ near
  for group in np.unique(near, axis=0):
    members, gas = places[group], geysers[group]
    middle = members.mean(axis=0).astype(int) + 0.5
    offsets = np.array([offset for offset in itertools.product(range(-7, 8), repeat=2)
                        if 4 < np.hypot(*offset) <= 8])
    around = middle + offsets
    distance = np.hypot(*(around[:, None] - members[None]).transpose(2, 0, 1))
    free = (distance >= np.where(gas, NEAREST[True], NEAREST[False])).all(axis=1)
    free &= ground.buildable[around[:, 1].astype(int), around[:, 0].astype(int)]
    best = around[free][np.argmin(distance[free].sum(axis=1))]
    found[tuple(best.tolist())] = int(group.sum())
  return found


def test_starting_town_halls_stand_where_bases_are_computed(ground):
  rules = engine.rules_of("large")
  half = world.shown_resources(rules, True)
  places = np.stack(ground.to_world(*np.concatenate([half, -half], axis=1)), axis=1)
  found = find_bases(places, np.tile(rules.tier.geysers, 2), ground)
  assert list(found.values()) == [8] * 8
  assert starts() == [(24.5, 87.5), (87.5, 24.5)]
  assert set(starts()) <= set(found)
  sites = np.stack(ground.to_world(*np.array(rules.tier.homes, np.float32).T), axis=1)
  for site in np.concatenate([sites, WHOLE - sites]):
    assert min(np.hypot(*(site - place)) for place in found) <= 1.5
