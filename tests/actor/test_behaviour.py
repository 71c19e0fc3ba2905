"""Behaviours of players by their observations."""

from types import SimpleNamespace

import numpy as np

from starleague.actor import behaviour
from starleague.agent import types
from starleague.agent import vocabulary as v
from starleague.league.ratings.archive import NEVER, Behaviour

FOOD, COUNT = (types.PLAYER_COLUMNS.index(name) for name in ("food_army", "army_count"))
UNITS, STRUCTURES = (types.SCORE_COLUMNS.index(name)
                     for name in ("killed_value_units", "killed_value_structures"))


def order(*names):
  found = np.zeros(types.BUILD_ORDER_LENGTH, np.uint8)
  found[:len(names)] = [v.UNIT_TYPES.index(name) for name in names]
  return found


def follow(track, loop, food=0, count=0, units=0, structures=0):
  player, score = np.zeros(10, np.int32), np.zeros(13, np.int32)
  player[[FOOD, COUNT]], score[[UNITS, STRUCTURES]] = (food, count), (units, structures)
  return behaviour.follow(track, player, score, np.int32(loop))


def test_the_largest_army_and_the_first_kill_are_kept():
  track = behaviour.start()
  found = []
  for observed in ({"loop": 8, "food": 2, "count": 2}, {"loop": 16, "food": 8, "count": 5},
                   {"loop": 24, "food": 8, "count": 8}, {"loop": 32, "structures": 100},
                   {"loop": 40, "food": 6, "count": 6, "units": 50, "structures": 100}):
    track = follow(track, **observed)
    found.append(tuple(int(x) for x in track))
  assert found == [(2, 2, NEVER), (8, 5, NEVER), (8, 5, NEVER), (8, 5, 32), (8, 5, 32)]
  assert int(follow(behaviour.start(), 8, units=25).attack) == 8


def test_behaviours_of_two_players():
  orders = np.stack([
    order("Barracks", "Marine", "Factory", "Hellion", "Hellion", "Marine", "Marine", "Marine",
          "Marine", "Marine", "CommandCenter", "CommandCenter"), order()])
  track = behaviour.Track(np.array([9, 0]), np.array([6, 0]), np.array([1120, NEVER]))
  assert behaviour.describe(orders, track) == (
    Behaviour(0.2, 1.5, 1120), Behaviour(0.0, 0.0, NEVER))
  assert behaviour.describe(order("Barracks", "Marine", "Lair")[None], track._replace(
    supply=[3], units=[0], attack=[8])) == (Behaviour(2 / 3, 0.0, 8),)


def test_behaviours_of_finished_games_in_order():
  over = np.array([[False, True], [True, False]])
  orders = np.zeros((2, 2, 2, 20), np.uint8)
  orders[0, 1, 1], orders[1, 0, 0] = order("Barracks"), order("Marine")
  numbers = np.arange(8, dtype=np.int32).reshape(2, 2, 2)
  results = SimpleNamespace(
    over=over, executed=SimpleNamespace(build_order=orders),
    track=behaviour.Track(numbers, np.ones_like(numbers), 100 * numbers))
  assert behaviour.of_results(results) == [
    (Behaviour(0.0, 2.0, 200), Behaviour(1.0, 3.0, 300)),
    (Behaviour(0.0, 4.0, 400), Behaviour(0.0, 5.0, 500))]
