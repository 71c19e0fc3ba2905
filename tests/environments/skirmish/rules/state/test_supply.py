"""Food, and levels of upgrades."""

import numpy as np
import pytest

from starleague.agent import vocabulary
from starleague.environments.skirmish.rules.state import supply
from tests.environments.skirmish import mini_games as mini
from tests.environments.skirmish.default_games import TYPES, UPGRADE, give, host
from tests.environments.skirmish.places import UNIT
from tests.environments.skirmish.scenes import put, run, same, scene
from tests.environments.skirmish.states import first


@pytest.mark.slow
def test_levels_are_researched_in_order_and_once(default_game):
  state = scene(default_game)
  put(state, 1, "EngineeringBay", (-8.0, -16.0))
  put(state, 2, "EngineeringBay", (-8.0, -8.0))
  state.minerals[:], state.vespene[:] = 1000, 1000
  name = "Research_TerranInfantryWeapons_quick"
  state = run(default_game, give(state, name, slots=[1, 2], repeat=3))
  same(state.queue[:, 0, 1:3, 0], [len(TYPES.names) + UPGRADE["TerranInfantryWeaponsLevel1"], 0])
  same(state.minerals[:, 0], 900)
  same(state.vespene[:, 0], 900)
  can = host(default_game.observe(state)[0].available_actions)[:, 0]
  same(can[:, vocabulary.FUNCTIONS.index(name)], False)
  state.timers[:, 0, 1, 0] = 8
  state = run(default_game, state)
  state = run(default_game, give(state, name, slots=[1, 2]))
  same(state.minerals[:, 0], 900)  # the second level needs an Armory
  put(state, 3, "Armory", (-16.0, -6.0))
  state = run(default_game, give(state, name, slots=[1, 2]))
  same(state.minerals[:, 0], 900 - 175)


@pytest.mark.slow
def test_supply_depots_give_food(default_game):
  state = scene(default_game)
  state.minerals[:] = 100
  for i in range(15):  # all the food of a command center
    put(state, UNIT + i, "SCV", (0.0, 0.0))
  for g in (1, 2):
    put(state, 1, "SupplyDepot", (-10.0, -10.0), games=g)
  state.unfinished[1, 0, 1] = 4000
  can = host(default_game.observe(state)[0].available_actions)[:, 0]
  train = vocabulary.FUNCTIONS.index("Train_SCV_quick")
  same(can[:3, train], [False, False, True])
  state = run(default_game, give(state, "Train_SCV_quick", slots=[0], repeat=3))
  same((state.queue[:3, 0, 0] > 0).sum(-1), [0, 0, 2])  # two can be paid
  same(state.minerals[:3, 0], [100, 100, 0])


@pytest.mark.slow
def test_units_in_production_take_food(default_game):
  """13 of 15 used: two more can be queued."""
  state = scene(default_game)
  state.minerals[:] = 500
  for i in range(13):
    put(state, UNIT + i, "SCV", (0.0, 0.0))
  state = run(default_game, give(state, "Train_SCV_quick", slots=[0], repeat=3))
  same((state.queue[:, 0, 0] > 0).sum(-1), 2)
  same(state.minerals[:, 0], 400)


@pytest.mark.slow
def test_food_never_exceeds_the_tiers_cap(default_game):
  state = scene(default_game)
  state.minerals[:] = 500
  for i in range(1, 8):
    put(state, i, "SupplyDepot", (4.0 * i - 16, 0.0))
  for i in range(39):
    put(state, UNIT + i, "SCV", (0.0, 0.0))
  state = run(default_game, give(state, "Train_SCV_quick", slots=[0], repeat=3))
  same((state.queue[:, 0, 0] > 0).sum(-1), 1)  # the fortieth


def test_food_counts_units_and_queues_in_halves():
  state = first(mini.RULES)
  state.queue[0, 0, :2] = mini.SCV
  used, most = supply.food(mini.RULES, state)
  np.testing.assert_array_equal(used, [12, 8])
  np.testing.assert_array_equal(most, [36, 36])
  np.testing.assert_array_equal(supply.free_unit_slots(mini.RULES, state), [12, 14])
  state.unfinished[1, 0] = 8  # an unfinished town hall gives none
  np.testing.assert_array_equal(supply.food(mini.RULES, state)[1], [36, 0])
