"""Commands are checked against the knowledge of their player."""

import numpy as np
import pytest

from starleague.environments.skirmish.rules.interface import action_results, availability, commands
from starleague.environments.skirmish.rules.tables import constants
from starleague.environments.skirmish.rules.tables.constants import ATTACK
from tests.environments.skirmish import mini_games as mini
from tests.environments.skirmish.default_games import LOCAL, TIER, give
from tests.environments.skirmish.places import PROTOSS, UNIT
from tests.environments.skirmish.scenes import put, run, same, scene
from tests.environments.skirmish.states import first, on_device


@pytest.mark.slow
def test_build_orders_fail_at_once_only_for_known_obstacles(default_game):
  """A free site; a Barracks there in sight, hidden, remembered; and hidden at arrival."""
  state = scene(default_game)
  state.minerals[:] = 100
  site = (2.0, 2.0)
  put(state, UNIT, "SCV", (-12.0, 0.0))
  put(state, UNIT, "SCV", site, games=4)
  for g in (1, 2, 4):
    put(state, 1, "Barracks", (3.0, 3.0), player=1, games=g)
  state.memory.seen[[2, 4], 0, 1] = False
  state.memory.kind[3, 0, 1] = LOCAL["Barracks"]
  state.memory.x[3, 0, 1] = state.memory.y[3, 0, 1] = 3.0
  found = run(default_game, give(
    state, "Build_SupplyDepot_pt", slots=[UNIT], x=site[0], y=site[1]))
  # A builder that meets a hidden obstacle mines again; nothing is paid.
  same(found.orders.verb[:5, 0, 0], [
    constants.BUILD, constants.IDLE, constants.BUILD, constants.IDLE, constants.GATHER])
  same(found.kind[:5, 0, 1], 0)
  same(found.minerals[:5, 0], 100)
  found = run(default_game, found, 60)
  same(found.kind[:5, 0, 1], [LOCAL["SupplyDepot"], 0, 0, 0, 0])
  same(found.orders.verb[2, 0, 0], constants.GATHER)


@pytest.mark.slow
def test_units_without_a_weapon_against_a_target_attack_what_they_meet(default_game):
  """A Zealot and a Stalker are told to attack a Void Ray, beside a Zealot of the enemy."""
  state = scene(default_game, PROTOSS, PROTOSS)
  put(state, UNIT, "Zealot", (0.0, 0.0))
  put(state, UNIT + 1, "Stalker", (0.0, 1.0))
  put(state, UNIT, "VoidRay", (6.0, 0.0), player=1, verb=constants.HOLD)
  put(state, UNIT + 1, "Zealot", (1.5, 0.0), player=1, verb=constants.HOLD)
  found = run(default_game, give(
    state, "Attack_unit", slots=[UNIT, UNIT + 1], target=UNIT, kind=constants.ENEMY))
  same(found.orders.verb[:, 0, :2], [ATTACK, constants.ATTACK_UNIT])
  assert (found.shield[:, 1, UNIT:UNIT + 2] < state.shield[:, 1, UNIT:UNIT + 2]).all()


@pytest.mark.slow
def test_an_empty_patch_is_known_once_seen(default_game):
  state = scene(default_game)
  put(state, UNIT, "SCV", (0.0, 0.0))
  half = TIER.resources // 2
  state.patches[:2, 1, 0] = 0  # the enemy's first patch, out of sight
  state.memory.patches[1, 0, half] = 0
  found = run(default_game, give(
    state, "Harvest_Gather_unit", slots=[UNIT], target=half, kind=constants.RESOURCE))
  same(found.orders.verb[:3, 0, 0], [constants.GATHER, constants.IDLE, constants.GATHER])


def test_rejected_commands_have_their_result_and_no_effect():
  """Player 0 commands its town hall to move; player 1 orders two workers to attack a place."""
  state, rules = first(mini.RULES), mini.RULES
  names = rules.functions.names
  state.commands.function[:] = names.index("Move_pt"), names.index("Attack_pt")
  state.commands.selected[0, 0] = state.commands.selected[1, mini.S:mini.S + 2] = True
  state.commands.x[:] = 3.0
  state = on_device(state)
  found, accepted = commands.give_orders(rules, state, availability.available(rules, state))
  np.testing.assert_array_equal(
    found.refused, [action_results.YOU_CANT_ISSUE_COMMANDS_TO_THAT_UNIT, 0])
  np.testing.assert_array_equal(found.orders.verb[0], state.orders.verb[0])
  np.testing.assert_array_equal(found.orders.verb[1, :2], [ATTACK, ATTACK])
  np.testing.assert_array_equal(found.orders.x[1, :2], [3.0, 3.0])
  np.testing.assert_array_equal(found.orders.verb[1, 2:], state.orders.verb[1, 2:])
  assert not np.any(accepted.trainers) and not np.any(accepted.users)
