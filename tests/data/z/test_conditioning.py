"""Conditioning: the z that games are drawn from, by match-up."""

import numpy as np
import pytest

from starleague.agent import types
from starleague.agent import vocabulary as v
from starleague.data.z import conditioning
from starleague.data.z.conditioning import Recent
from starleague.data.z.statistics_library import PlayedGame, StatisticsLibrary


def test_recent_z_repeat_until_full_then_drop_the_oldest():
  marine = v.UNIT_TYPES.index("Marine")
  recent, zerg = Recent(2, 3, np.ones(4), 6200), types.RACES.index("zerg")
  empty = types.zeros(types.statistics_spec())

  def drawn(field: str) -> np.ndarray:
    """Returns a field of all z, [maps, races, races, sides, 2, ...]."""
    found = recent.conditioning()
    return getattr(found.z, field)[found.rows]

  shape = drawn("build_order").shape
  assert shape == (3, 5, 5, 2, 2, 20) and not drawn("build_order").any()
  for x in (3, 5, 9):
    order = np.zeros(types.BUILD_ORDER_LENGTH, np.uint8)
    order[:2] = v.UNIT_TYPES.index("SCV"), marine
    places = np.full((types.BUILD_ORDER_LENGTH, 2), x, np.uint8)
    recent.add(zerg, 1, empty._replace(build_order=order, build_order_xy=places))
    if x == 3:
      np.testing.assert_array_equal(
        drawn("build_order_xy")[:, zerg, :, 1, :, 0], np.full((3, 5, 2, 2), 3))
  np.testing.assert_array_equal(
    drawn("build_order_xy")[:, zerg, :, 1, :, 0, 0], np.broadcast_to([5, 9], (3, 5, 2)))
  orders = drawn("build_order")
  assert (orders[:, zerg, :, 1, :, :2] == [marine, 0]).all()  # no workers
  assert drawn("build_order").shape == shape
  orders[:, zerg, :, 1] = 0
  assert not orders.any()


MARINE = v.UNIT_TYPES.index("Marine")
TERRAN, ZERG = types.RACES.index("terran"), types.RACES.index("zerg")
ACTIVE = np.array([0.5, 0.25, 0.0, 0.0], np.float32)


def library(games: int, races=(TERRAN, ZERG), maps=("river", "open")) -> StatisticsLibrary:
  """Returns a library whose build order positions tell game, map, races and side."""
  played = []
  for i in range(games):
    for map_index, name in enumerate(maps):
      for home in races:
        for away in races:
          for side in range(2):
            executed = types.zeros(types.statistics_spec())
            executed.build_order[0] = MARINE
            executed.build_order_xy[:3] = [[i, map_index], [home, away], [side, 0]]
            executed.build_order[1:3] = MARINE
            played.append(PlayedGame(name, home, away, side, executed))
  return StatisticsLibrary.from_games(played)


@pytest.mark.parametrize("games, size", [(5, 3), (2, 4)])
def test_z_of_a_library_fit_the_match_up(games, size):
  found = conditioning.from_library(
    library(games), ("open", "river"), (TERRAN, ZERG), size, ACTIVE, 7000, seed=3)
  drawn = found.z.build_order_xy[found.rows]
  assert found.rows.shape == (2, 5, 5, 2, size) and found.mmr == 7000
  np.testing.assert_array_equal(found.active, ACTIVE)
  for map_index in range(2):
    for home in (TERRAN, ZERG):
      for away in (TERRAN, ZERG):
        for side in range(2):
          own = drawn[map_index, home, away, side]
          assert (own[:, 0, 1] == 1 - map_index).all()  # `library` plays them in another order
          assert (own[:, 1] == [home, away]).all() and (own[:, 2, 0] == side).all()
          assert len(set(own[:, 0, 0])) == min(games, size)
  assert not found.z.build_order[conditioning.UNCONDITIONAL].any()
  others = [race for race in range(5) if race not in (TERRAN, ZERG)]
  assert (found.rows[:, others] == conditioning.UNCONDITIONAL).all()


def test_a_draw_from_a_library_is_seeded():
  def rows(seed):
    found = conditioning.from_library(
      library(8), ("open", "river"), (TERRAN, ZERG), 2, ACTIVE, 7000, seed)
    return found.z.build_order_xy[found.rows]

  np.testing.assert_array_equal(rows(1), rows(1))
  assert (rows(1) != rows(2)).any()


def test_a_library_without_a_match_up_is_refused():
  with pytest.raises(KeyError, match="No z for map open, zerg against zerg, side 0"):
    conditioning.from_library(
      library(2, races=(TERRAN,)), ("open",), (ZERG, TERRAN), 2, ACTIVE, 7000, 0)
  with pytest.raises(KeyError, match="No z for map ramps"):
    conditioning.from_library(library(1), ("ramps",), (TERRAN,), 2, ACTIVE, 7000, 0)
