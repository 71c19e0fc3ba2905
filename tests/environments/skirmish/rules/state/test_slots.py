"""Slots: spawning into them, and clearing them."""

import hypothesis
import hypothesis.extra.numpy as hnp
import numpy as np

from starleague.environments.skirmish.rules.state import slots
from starleague.environments.skirmish.rules.tables.constants import GATHER, IDLE, MOVE
from tests.environments.skirmish import default_games
from tests.environments.skirmish.mini_games import BARRACKS, MARINE, RULES, SCV, S
from tests.environments.skirmish.states import first, on_device


@hypothesis.settings(max_examples=25, deadline=None)
@hypothesis.given(free=hnp.arrays(bool, (2, 6)), born=hnp.arrays(bool, (2, 4)))
def test_free_slots_take_the_units_in_order(free, born):
  for p in range(2):  # no more units than free slots
    born[p, np.flatnonzero(born[p])[free[p].sum():]] = False
  expected = np.full((2, 6), -1)
  for p in range(2):
    units = np.flatnonzero(born[p])
    expected[p, np.flatnonzero(free[p])[:len(units)]] = units
  np.testing.assert_array_equal(slots._match_slots(free, born), expected)


def test_spawned_workers_mine_and_others_go_to_their_rally_point():
  state = first(RULES)
  state.cargo[:, 4:] = 5  # of units that were there before
  units = slots.Spawns(np.array([[SCV, MARINE, MARINE], [0, 0, 0]]),
                       *(np.full((2, 3), value, np.float32) for value in (1.0, 2.0)))
  rally = slots.RallyPoints(np.array([[True, True, False]] * 2),
                            *(np.full((2, 3), value, np.float32) for value in (3.0, 4.0)))
  found = slots.spawn(RULES, on_device(state), units, rally)
  np.testing.assert_array_equal(found.kind[0, S + 4:S + 8], [SCV, MARINE, MARINE, 0])
  np.testing.assert_array_equal(found.kind[1], state.kind[1])
  np.testing.assert_array_equal(found.orders.verb[0, 4:7], [GATHER, MOVE, IDLE])
  np.testing.assert_array_equal(found.health[0, S + 4:S + 7], [45, 45, 45])
  assert (float(found.x[0, S + 5]), float(found.orders.y[0, 5])) == (1.0, 4.0)
  np.testing.assert_array_equal(found.cargo[0, 4:8], [0, 0, 0, 5])


def test_cleared_slots_are_empty_and_no_longer_targeted():
  state = first(RULES)
  state.kind[0, 1], state.queue[0, 1, 0], state.timers[0, 1, 0] = BARRACKS, MARINE, 8
  state.was_targeted[:] = True
  gone = np.zeros(state.kind.shape, bool)
  gone[0, [1, S]] = True
  found = slots.clear_slots(RULES, state, gone)
  assert not found.kind[0, 1] and not found.kind[0, S] and not found.queue[0, 1].any()
  assert int(found.orders.verb[0, 0]) == IDLE and float(found.health[0, S]) == 0
  np.testing.assert_array_equal(found.kind[~gone], state.kind[~gone])
  n = gone.shape[1]
  np.testing.assert_array_equal(found.was_targeted[0, :n], ~gone[0])
  np.testing.assert_array_equal(found.was_targeted[1, n:2 * n], ~gone[0])
  assert np.all(found.was_targeted[:, 2 * n:])


def test_structures_that_shoot_have_slots_of_their_own():
  rules = default_games.RULES
  tier, types = rules.tier, rules.types
  product = np.array([types.local("Bunker"), types.local("Barracks")])
  free = slots.free_structure_slots(rules, first(rules), product)
  own = np.arange(tier.structures) >= tier.unarmed
  np.testing.assert_array_equal(free[0], own)
  np.testing.assert_array_equal(free[1], ~own & (np.arange(tier.structures) > 0))
