"""What commands mean to transports and passengers, without playing a step."""

import numpy as np
import pytest

from starleague.environments.skirmish.rules.interface import action_results, boarding
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish import states
from tests.environments.skirmish import technology as tech
from tests.environments.skirmish.technology import FUNCTION, LOCAL, RULES, TYPES, S

FULL, HALF, TANK, MARINE = S + 20, S + 21, S + 30, S + 31


@pytest.fixture
def state():
  """A full Medivac, one with a Marauder and a Marine, and a Siege Tank and a Marine outside."""
  found = states.first(RULES, races=(tech.TERRAN, tech.TERRAN))
  names = {FULL: "Medivac", HALF: "Medivac", TANK: "SiegeTank", MARINE: "Marine",
           S + 40: "SiegeTank", S + 41: "SiegeTank", S + 42: "Marauder", S + 43: "Marine"}
  for slot, name in names.items():
    tech.put(found, 0, slot, name, float(slot), 0.0)
  for slot, carrier in ((S + 40, FULL), (S + 41, FULL), (S + 42, HALF), (S + 43, HALF)):
    found.orders.verb[0, slot - S], found.orders.target[0, slot - S] = constants.ABOARD, carrier
    found.cargo_taken[0, carrier - S] += TYPES.cargo_size[LOCAL[names[slot]]]
  return found


def resolve(state, function, slots, target=0, own=False):
  """Player 0's command; the other player gives none."""
  asked = np.zeros((2, RULES.tier.slots), bool)
  asked[0, slots] = True

  def both(value, dtype=np.int32):
    return np.array([value, 0], dtype)

  return boarding.resolve(
    RULES, states.on_device(state), both(FUNCTION[function]),
    both(constants.OWN if own else constants.NO_TARGET), both(target), both(0.0, np.float32),
    both(0.0, np.float32), asked)


def failure(transfer):
  return int(action_results.first_failure(boarding.checks(transfer))[0])


def suits(transfer):
  return (S + np.flatnonzero(transfer.suits[0])).tolist()


def test_transports_load_what_they_have_room_for(state):
  """The Marauder and the Marine take 3 of 8; the tank would take 4."""
  assert state.cargo_taken[0, [FULL - S, HALF - S]].tolist() == [8, 3]
  both = resolve(state, "Load_unit", [FULL, HALF], TANK, own=True)
  assert suits(both) == [HALF] and failure(both) == 0 and not both.loads[1]
  alone = resolve(state, "Load_unit", [FULL], TANK, own=True)
  assert failure(alone) == action_results.NOT_ENOUGH_ROOM_TO_LOAD_UNIT
  state.cargo_taken[0, HALF - S] = 5
  assert not suits(resolve(state, "Load_unit", [FULL, HALF], TANK, own=True))
  assert suits(resolve(state, "Load_unit", [FULL, HALF], MARINE, own=True)) == [HALF]
  assert failure(resolve(state, "Load_unit", [HALF], S + 42, own=True)) == (
    action_results.CANT_LOAD_THAT_UNIT)  # it is aboard


def test_units_board_transports_with_room(state):
  found = resolve(state, "Smart_unit", [TANK, MARINE], HALF, own=True)
  assert found.boards[0] and found.room[0, 0] == 5 and failure(found) == 0
  assert resolve(state, "Smart_unit", [TANK], FULL, own=True).room[0, 0] == 0
  follows = resolve(state, "Smart_unit", [TANK], MARINE, own=True)
  assert not follows.boards[0] and not follows.loads[0]


@pytest.mark.parametrize(("function", "target", "expected", "orders"), [
  ("UnloadAll_quick", 0, [FULL, HALF], constants.HERE),
  ("UnloadAllAt_pt", 0, [FULL, HALF], constants.ALL_PASSENGERS),
  ("UnloadUnit_quick", 0, [FULL], constants.FIRST_PASSENGER),
  ("UnloadUnit_quick", S + 43, [HALF], S + 43)])
def test_transports_unload_all_or_one(state, function, target, expected, orders):
  found = resolve(state, function, [FULL, HALF], target)
  assert suits(found) == expected and found.target[0] == orders and failure(found) == 0
  state.cargo_taken[0, [FULL - S, HALF - S]] = 0
  assert failure(resolve(state, function, [FULL, HALF], target)) == (
    action_results.NO_CARGO_TO_UNLOAD)
