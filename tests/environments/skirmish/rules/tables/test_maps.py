"""Maps: symmetric, with all bases connected and usable."""

import numpy as np
import pytest

from starleague.environments.skirmish.rules.tables import constants, maps, tiers
from starleague.environments.skirmish.rules.tables.constants import TOWNHALL_REACH

TIERS = ("default", "large")
HALL_RADIUS = 2.75


@pytest.fixture(params=TIERS)
def tier(request):
  return tiers.TIERS[request.param]


@pytest.fixture
def terrain(tier):
  return maps.make_terrain(int(tier.map_size), tier.field_block)


def cell(terrain, place):
  """The row and column of a place."""
  return tuple(int(np.floor(v + terrain.cells / 2)) for v in (place[1], place[0]))


def everywhere(tier):
  """Both players' bases."""
  homes = np.array(tier.homes)
  return np.concatenate([homes, -homes])


def test_maps_are_symmetric_under_half_a_turn(terrain):
  for layer in (terrain.passable, terrain.buildable, terrain.high):
    assert layer.shape == (3, terrain.cells, terrain.cells)
    np.testing.assert_array_equal(layer, layer[:, ::-1, ::-1])


def test_maps_match_their_names(terrain):
  open_, ramps, river = terrain.passable
  assert open_.all() and not terrain.high[[0, 2]].any()
  assert not ramps.all() and not river.all()
  assert terrain.high[1].sum() == 2 * (terrain.cells // 3) ** 2  # a plateau of a third a side
  middle = terrain.cells // 2
  assert river[middle, middle]  # the ford
  # Off the fords the river is impassable: |x - y| of 12 on the middle line.
  off = int(6 * terrain.cells / maps.REFERENCE_SIZE)
  assert not river[middle + off - 1, middle - off]


def walk(terrain, k, start, goal):
  """Walks along the fields, half a cell a step.

  Args:
    terrain: the maps.
    k: the map's index.
    start: [N, 2] rows and columns in cells.
    goal: [N, 2].

  Returns:
    The length of each walk [N] until 0.3 from its goal; infinite if it takes over 4 G cells.
  """
  where, walked = start.copy(), np.zeros(len(start))
  field = terrain.area_of[(k, *goal.astype(int).T)]
  ways = np.array([*maps.DIRECTIONS, (0, 0)])[:, ::-1]  # rows first
  for _ in range(8 * terrain.cells):
    at = where.astype(int)
    assert terrain.passable[(k, *at.T)].all()
    way = terrain.fields[(field, *at.T)].astype(int)
    assert (way != maps.UNREACHABLE).all()
    middle = at + 0.5 + ways[way]
    ahead = np.where((way == maps.STRAIGHT)[:, None], goal, middle) - where
    far = np.hypot(*ahead.T)
    there = np.hypot(*(goal - where).T) < 0.3
    pace = np.where(there, 0.0, np.minimum(0.5, far))
    where, walked = where + (pace / np.maximum(far, 1e-9))[:, None] * ahead, walked + pace
  return np.where(there, walked, np.inf)


def test_fields_lead_from_every_base_to_every_other(tier, terrain):
  """Following the fields cell by cell arrives, and never enters a cliff."""
  bases = everywhere(tier)[:, ::-1] + terrain.cells / 2
  start, goal = (part.reshape(-1, 2) for part in np.broadcast_arrays(bases[:, None], bases))
  for k in range(3):
    assert walk(terrain, k, start, goal).max() < 2.1 * terrain.cells, maps.NAMES[k]


def test_fields_lead_to_every_passable_cell(tier, terrain):
  """From both homes and from any cell to any place in each cell, beside cliffs and in corners."""
  rng = np.random.default_rng(5)
  for k in range(3):
    cells = np.argwhere(terrain.passable[k])
    goal = cells + rng.uniform(0.0, 1.0, cells.shape)
    homes = np.array([tier.homes[0], -np.array(tier.homes[0])])[:, ::-1] + terrain.cells / 2
    anywhere = rng.permutation(cells) + rng.uniform(0.0, 1.0, cells.shape)
    for start in (*(np.tile(home, (len(cells), 1)) for home in homes), anywhere):
      line, walked = np.hypot(*(goal - start).T), walk(terrain, k, start, goal)
      assert (walked >= line - 0.3 - 1e-6).all() and np.isfinite(walked).all(), maps.NAMES[k]
      # No detour on flat ground; octagonal ways are up to 8% longer than the line.
      assert walked.mean() <= line.mean() * (1.0, 1.09, 1.15)[k], maps.NAMES[k]


def test_areas_divide_the_passable_cells_into_rectangles(terrain):
  covered = np.zeros_like(terrain.passable, int)
  for number, area in enumerate(terrain.areas):
    part = area.map_index, slice(area.top, area.bottom), slice(area.left, area.right)
    covered[part] += 1
    assert (terrain.area_of[part] == number).all() and covered[part].size
    # Its own cells, and any whose line to it could meet a cliff, are told apart exactly.
    assert (terrain.field(number)[part[1:]] == maps.STRAIGHT).all()
  np.testing.assert_array_equal(covered, terrain.passable)
  assert [area.map_index for area in terrain.areas].count(0) == 1  # open ground is one area


def test_walkers_go_straight_where_no_cliff_is_in_the_rectangle_to_their_goal(terrain):
  g = terrain.cells
  for number in range(1, len(terrain.areas), 37):
    k, top, left, bottom, right = terrain.areas[number]
    expected = [[terrain.passable[k, min(row, top):max(row + 1, bottom),
                                  min(column, left):max(column + 1, right)].all()
                 for column in range(g)] for row in range(g)]
    np.testing.assert_array_equal(terrain.field(number) == maps.STRAIGHT, expected)


def test_goals_on_cliffs_have_the_nearest_passable_cell(terrain):
  g = terrain.cells
  for k in range(3):
    cells = np.argwhere(terrain.passable[k])
    own = terrain.nearest[k] == np.arange(g * g).reshape(g, g)
    np.testing.assert_array_equal(own, terrain.passable[k])
    for cell_ in np.argwhere(~terrain.passable[k])[::7]:
      found = np.array(divmod(terrain.nearest[(k, *cell_)], g))
      assert terrain.passable[(k, *found)]
      least = np.hypot(*(cells - cell_).T).min()
      assert np.hypot(*(found - cell_)) == pytest.approx(least)
      assert terrain.area_of[(k, *cell_)] == terrain.area_of[(k, *found)]


def test_resources_are_in_reach_of_their_base_and_clear_of_its_town_hall(tier):
  places, gas = np.array(tier.patches), np.array(tier.geysers)
  each = len(places) // len(tier.homes)
  assert each == {"default": 5, "large": 8}[tier.name]
  assert len(places) == len(gas) == tier.resources // 2
  for b, home in enumerate(np.array(tier.homes)):
    mine = slice(b * each, (b + 1) * each)
    apart = np.hypot(*(places[mine] - home).T)
    assert (apart < TOWNHALL_REACH).all()
    # A hall exactly at its base fits beside its patches.
    assert (apart >= HALL_RADIUS + constants.PATCH_RADIUS).all()
    assert gas[mine].sum() == {"default": 1, "large": 2}[tier.name]
  every = np.concatenate([places, -places])
  assert (np.abs(every) + constants.PATCH_RADIUS <= tier.map_size / 2).all()
  np.testing.assert_array_equal(4 * places, np.round(4 * places))  # exact after half a turn
  # Each resource is nearest to its own base, and no two overlap.
  square = ((every[:, None] - every) ** 2).sum(-1) + 1e9 * np.eye(len(every))
  assert square.min() >= 1.0
  nearest = ((places[:, None] - everywhere(tier)) ** 2).sum(-1).argmin(axis=1)
  np.testing.assert_array_equal(nearest, np.repeat(np.arange(len(tier.homes)), each))


def test_bases_are_buildable_and_resources_reachable(tier, terrain):
  corners = 0.8 * HALL_RADIUS * np.array([(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1)])
  for k in range(3):
    for home in everywhere(tier):
      assert np.abs(home).max() + HALL_RADIUS <= tier.map_size / 2
      for place in home + corners:
        assert terrain.buildable[(k, *cell(terrain, place))], (maps.NAMES[k], home)
    for place in np.concatenate([np.array(tier.patches), -np.array(tier.patches)]):
      assert terrain.passable[(k, *cell(terrain, place))], (maps.NAMES[k], place)


def test_ramp_homes_are_on_high_ground_and_ramps_are_not_buildable(tier, terrain):
  high = terrain.high[1]
  assert high[cell(terrain, tier.homes[0])] and high[cell(terrain, -np.array(tier.homes[0]))]
  assert not any(high[cell(terrain, home)] for home in tier.homes[1:])
  scale = tier.map_size / maps.REFERENCE_SIZE
  for along in (-13.0 * scale,):
    edge = maps.PLATEAU * scale - 0.5
    for place in ((along, edge), (edge, along)):
      assert terrain.passable[(1, *cell(terrain, place))]
      assert not terrain.buildable[(1, *cell(terrain, place))]
  # The edge of the plateau is passable only on the ramps.
  row = cell(terrain, (0.0, maps.PLATEAU * scale - 0.5))[0]
  columns = [c for c in range(cell(terrain, (maps.PLATEAU * scale - 0.5, 0.0))[1] + 1)
             if terrain.passable[1, row, c]]
  assert len(columns) == round(4 * scale)


def test_a_single_field_is_that_of_all_fields():
  terrain = maps.make_terrain.__wrapped__(48, 16)  # not cached: no field is known
  assert terrain.fields.shape == (len(terrain.areas), 48, 48)
  other = maps.make_terrain.__wrapped__(48, 16)
  for number in (len(terrain.areas) - 1, 0, 4):
    np.testing.assert_array_equal(other.field(number), terrain.fields[number])
  assert other.field(4) is other.field(4)
