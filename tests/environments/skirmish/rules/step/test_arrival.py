"""The end of orders: at their goal, at the bank of a goal in water, and without their target."""

import numpy as np
import pytest

from starleague.environments.skirmish.rules.step import arrival, combat
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish.default_games import RULES, S
from tests.environments.skirmish.places import UNIT
from tests.environments.skirmish.scenes import put, run, scene
from tests.environments.skirmish.states import first, on_device

WET = (-8.01, 7.99)  # on the map `river`, nearer to the bank of the own home


def verbs_after(units, ground=2):
  """The verbs of units (name, place, verb, goal) once orders have ended: [units]."""
  state = first(RULES, ground=ground)
  state.kind[:, S:] = 0
  state.orders.verb[:] = constants.IDLE
  for i, (name, place, verb, goal) in enumerate(units):
    state.kind[0, S + i] = RULES.types.local(name)
    state.x[0, S + i], state.y[0, S + i] = place
    state.orders.verb[0, i] = verb
    state.orders.x[0, i], state.orders.y[0, i] = goal
  state = on_device(state)
  found = arrival.complete_orders(RULES, state, combat.plan(RULES, state))
  return np.array(found.orders.verb)[0, :len(units)].tolist()


def test_orders_end_near_their_goal():
  cases = [
    ("Marine", constants.MOVE, 0.7, constants.IDLE),
    ("Marine", constants.MOVE, 0.8, constants.MOVE),
    ("Marine", constants.ATTACK, 1.4, constants.IDLE),
    ("Marine", constants.ATTACK, 1.6, constants.ATTACK),
    ("SCV", constants.MOVE, 0.7, constants.GATHER), ("Marine", constants.HOLD, 0.0, constants.HOLD)]
  places = [(-16.0, -16.0 + 3.0 * i) for i in range(len(cases))]
  assert verbs_after([
    (name, (x, y), verb, (x + far, y)) for (name, verb, far, _), (x, y) in zip(
      cases, places, strict=True)]) == [after for *_, after in cases]


def test_goals_in_water_are_reached_at_the_bank_except_by_flyers():
  nearest = divmod(int(RULES.terrain.nearest[2, 31, 15]), 48)  # (-9.5, 7.5) or (-8.5, 6.5)
  bank = nearest[1] + 0.5 - 24, nearest[0] + 0.5 - 24
  assert np.hypot(bank[0] - WET[0], bank[1] - WET[1]) > 1.5
  assert verbs_after([
    ("Marine", bank, constants.MOVE, WET), ("Marine", bank, constants.ATTACK, WET),
    ("SCV", bank, constants.MOVE, WET), ("Banshee", bank, constants.ATTACK, WET),
  ]) == [constants.IDLE, constants.IDLE, constants.GATHER, constants.ATTACK]


@pytest.mark.parametrize(("verb", "far", "most"), [
  (constants.MOVE, 1.2, 5), (constants.ATTACK, 1.6, 9)])
def test_orders_end_where_own_units_fill_half_of_the_disc_around_the_goal(verb, far, most):
  """Marines of radius 0.375: six at 1.2 from the goal, 0.84 of 1.44; ten at 1.6, 1.41 of 2.56."""
  goal = (-12.0, -4.0)
  beyond = [("Marine", (-12.0, -5.7), constants.HOLD, goal)] * 9
  above = [("Medivac", goal, constants.HOLD, goal)] * 7
  miners = [("SCV", goal, constants.GATHER, goal)] * 7
  for others, after in ((most, verb), (most + 1, constants.IDLE)):
    near = [("Marine", (-12.0 + 0.1 * i, -3.5), constants.HOLD, goal) for i in range(others)]
    assert verbs_after([("Marine", (-12.0 + far, -4.0), verb, goal),
                        *near, *beyond, *above, *miners])[0] == after


def test_the_end_of_attacks_of_an_army():
  """Two Zealots of radius 0.5 end within 1.5, 18 of them within the root of 18 / 4 / 0.5."""
  zealot = np.full(20, RULES.types.local("Zealot"), np.int32)
  for number, end in ((0, 1.5), (2, 1.5), (18, 3.0)):
    army = np.where(np.arange(20) < number, zealot, 0)
    np.testing.assert_allclose(arrival.end_of_attacks(RULES, army), end, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name, number", [("Queen", 8), ("SiegeTank", 16), ("Zealot", 32)])
def test_moves_of_large_groups_end_near_their_goal(default_game, name, number):
  """Units that push each other away from a goal stop in a disc that they fill by half or more."""
  state = scene(default_game)
  places = [(-6.0 + 2.0 * (i % 6), -4.0 + 2.0 * (i // 6)) for i in range(number)]
  for i, place in enumerate(places):
    put(state, UNIT + i, name, place, verb=constants.MOVE)
    state.orders.x[:, 0, i], state.orders.y[:, 0, i] = 6.0, 2.0
  found = run(default_game, state, 60)
  assert (found.orders.verb[:, 0, :number] == constants.IDLE).all()
  apart = np.hypot(found.x[:, 0, UNIT:UNIT + number] - 6.0, found.y[:, 0, UNIT:UNIT + number] - 2.0)
  radius = RULES.types.radius[RULES.types.local(name)]
  assert (apart < constants.ARRIVED + radius * np.sqrt(number / constants.CROWDED)).all()


@pytest.mark.slow
def test_queued_orders_follow_a_goal_in_water(default_game):
  state = scene(default_game, ground=2)
  for i, verb in enumerate((constants.MOVE, constants.PATROL)):
    put(state, UNIT + i, "Marine", (-12.0, 2.0 - 2 * i), verb=verb)
    state.orders.x[:, 0, i], state.orders.y[:, 0, i] = WET
    state.next_orders.verb[:, 0, i] = verb
    state.next_orders.x[:, 0, i], state.next_orders.y[:, 0, i] = -12.0, 2.0 - 2 * i
  found = run(default_game, state, 7)
  np.testing.assert_array_equal(found.orders.x[:, 0, :2], -12.0)  # on the way back
  found = run(default_game, found, 5)
  assert (found.orders.verb[:, 0, 0] == constants.IDLE).all()
  assert (found.orders.verb[:, 0, 1] == constants.PATROL).all()
  np.testing.assert_array_equal(found.orders.x[:, 0, 1], np.float32(WET[0]))  # it has turned twice
