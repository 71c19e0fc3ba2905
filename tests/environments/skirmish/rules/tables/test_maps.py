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


def test_fields_lead_from_every_base_to_every_other(tier, terrain):
  """Following the fields cell by cell arrives, and never enters a cliff."""
  g, across = terrain.cells, terrain.cells // terrain.block
  for k in range(3):
    longest = 0.0
    for goal in everywhere(tier):
      row, column = cell(terrain, goal)
      field = terrain.fields[k, row // terrain.block * across + column // terrain.block]
      for start in everywhere(tier):
        x, y = start[0] + g / 2, start[1] + g / 2
        to_x, to_y = goal[0] + g / 2, goal[1] + g / 2
        walked = 0.0
        while np.hypot(to_x - x, to_y - y) > 1.0:
          at = int(np.floor(y)), int(np.floor(x))
          assert terrain.passable[(k, *at)], (maps.NAMES[k], start, goal, at)
          way = field[at]
          assert way != maps.UNREACHABLE
          if way == maps.STRAIGHT:
            dx, dy = to_x - x, to_y - y
          else:
            step = maps.DIRECTIONS[way]
            dx, dy = at[1] + step[0] + 0.5 - x, at[0] + step[1] + 0.5 - y
          far = np.hypot(dx, dy)
          pace = min(0.5, far)
          x, y = x + pace * dx / far, y + pace * dy / far
          walked += pace
          assert walked < 4 * g, (maps.NAMES[k], start, goal)
        longest = max(longest, walked)
    assert longest < 2.1 * g, maps.NAMES[k]


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
  assert terrain.fields.shape == (3, 9, 48, 48)
  other = maps.make_terrain.__wrapped__(48, 16)
  for k in range(3):
    for block in (8, 0, 4):
      np.testing.assert_array_equal(other.field(k, block), terrain.fields[k, block])
  assert other.field(1, 4) is other.field(1, 4)
