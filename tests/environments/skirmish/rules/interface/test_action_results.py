"""Action results of commands that have no effect."""

import jax
import numpy as np
import pytest
from s2clientprotocol import error_pb2

from starleague.agent import vocabulary
from starleague.environments.skirmish.rules.interface import action_results
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish import mini_games as games
from tests.environments.skirmish.default_games import LOCAL, TIER, UPGRADE, give, host
from tests.environments.skirmish.places import BUNKER, GAS_PLACE, HOME, TERRAN, UNIT, ZERG
from tests.environments.skirmish.scenes import put, run, same, scene

RESULTS = dict(error_pb2.ActionResult.items())
OWN, ENEMY, RESOURCE = constants.OWN, constants.ENEMY, constants.RESOURCE


def test_codes_are_those_of_the_protocol():
  named = {name: value for name, value in vars(action_results).items() if name.isupper()
           and isinstance(value, int)}
  assert len(named) > 20
  for name, value in named.items():
    assert RESULTS["".join(word.capitalize() for word in name.split("_"))] == value
  assert set(named.values()) == set(action_results.MESSAGES)


def test_an_action_result_stays_until_the_next_action(game):
  """Too expensive; not in this game; a row that does not exist; no_op."""
  state = games.start(game)
  results = []
  for chosen in (
      games.action("Train_SCV_quick", rows=[0]), games.action("Train_SCV_quick", rows=[0]),
      games.action("Train_Zealot_quick", rows=[0]),
      games.action("Attack_unit", rows=[1], target=60), games.action()):
    acted = game.act(state, games.everyone(chosen), game.due(state))
    state = game.advance(acted)
    results.append(np.asarray(game.observe(state)[0].action_result))
  same(np.array(results)[..., 1], 0)
  same(np.array(results)[..., 0].T, [RESULTS.get(name, 0) for name in (
    "", "NotEnoughMinerals", "NotSupported", "CantTargetThatUnit", "")])


def _terran(default_game):
  """A base with a reason for each action result."""
  state = scene(default_game, TERRAN)
  put(state, 1, "Barracks", (-8.0, -16.0))
  put(state, 2, "Refinery", GAS_PLACE)
  put(state, 3, "OrbitalCommand", (-8.0, -8.0))
  put(state, 4, "SupplyDepot", (0.0, -16.0))
  state.unfinished[:, 0, 4] = 100
  put(state, BUNKER, "Bunker", (0.0, 0.0))
  for i, name in enumerate(["SCV", "SCV", "Marine", "Marine"]):
    put(state, UNIT + i, name, (-12.0 + i, -8.0))
  put(state, UNIT, "Marine", (-10.0, -6.0), player=1)
  state.health[:, 0, UNIT + 3] = 9.0
  state.upgrades[:, 0, UPGRADE["Stimpack"]] = True
  state.minerals[:], state.vespene[:] = 1000, 0
  state.memory.patches[:, 0, 1] = 0
  state.orders.verb[:, 0, 1] = constants.CONSTRUCT
  state.orders.target[:, 0, 1] = 4
  return state


@pytest.mark.slow
def test_terran_commands_have_their_action_results(default_game):
  start = _terran(default_game)
  full = jax.tree.map(np.array, start)
  full.queue[:, 0, 1], full.timers[:, 0, 1] = LOCAL["Marine"], 400
  poor = start._replace(minerals=np.zeros_like(start.minerals))
  scv, busy, marine, weak = (UNIT + i for i in range(4))
  whole = start._replace(upgrades=np.zeros_like(start.upgrades))
  cases = [
    (start, "Train_Marine_quick", {"slots": [1]}, None),
    (start, "Train_Marine_quick", {"slots": [0]}, "YouCantIssueCommandsToThatUnit"),
    (start, "Train_Marine_quick", {"slots": []}, "YouCantIssueCommandsToThatUnit"),
    (poor, "Train_Marine_quick", {"slots": [1]}, "NotEnoughMinerals"),
    (full, "Train_Marine_quick", {"slots": [1]}, "QueueIsFull"),
    (start, "Build_Factory_pt", {"slots": [scv]}, "NotEnoughVespene"),
    (start, "Build_Armory_pt", {"slots": [scv]}, "TechRequirementsNotMet"),
    (start, "Build_EngineeringBay_pt", {"slots": [busy]}, "YouCantIssueCommandsToThatUnit"),
    (start, "Build_EngineeringBay_pt", {"slots": [scv], "x": -8.0, "y": -16.0},
     "CantBuildLocationInvalid"),
    (start, "Build_Refinery_pt", {"slots": [scv]}, "CantBuildLocationInvalid"),
    (start, "Attack_unit", {"slots": [marine], "kind": OWN, "target": 0}, "MustTargetEnemyUnits"),
    (start, "Attack_unit", {"slots": [marine], "kind": ENEMY, "target": 5}, "CantTargetThatUnit"),
    (start, "Attack_unit", {"slots": [marine], "kind": ENEMY, "target": UNIT}, None),
    (start, "Harvest_Gather_unit", {"slots": [scv], "kind": RESOURCE, "target": 1},
     "CantTargetExhaustedResources"),
    (start, "Harvest_Gather_unit", {"slots": [scv], "kind": OWN, "target": 0},
     "MustTargetResources"),
    (start, "Harvest_Return_quick", {"slots": [scv]}, "NoCargoToUnload"),
    (start, "Effect_Repair_unit", {"slots": [scv], "kind": OWN, "target": 0},
     "RequiresRepairTarget"),
    (start, "Effect_Stim_quick", {"slots": [marine]}, None),
    (start, "Effect_Stim_quick", {"slots": [weak]}, "NotEnoughLife"),
    (whole, "Effect_Stim_quick", {"slots": [marine]}, "TechRequirementsNotMet"),
    (start, "Effect_Scan_pt", {"slots": [3]}, "NotEnoughEnergy"),
    (start, "Cancel_quick", {"slots": [4]}, None),
    (start, "Cancel_quick", {"slots": [1]}, "CantFindCancelOrder"),
    (start, "Cancel_Last_quick", {"slots": [1]}, "CantFindCancelOrder")]
  for state, function, order, expected in cases:
    found = host(default_game.advance(give(state, function, **order)))
    results = host(default_game.observe(found)[0].action_result)
    assert set(results[:, 0].tolist()) == {RESULTS.get(expected, 0)}, (function, order)
    same(results[:, 1], 0)


@pytest.mark.slow
def test_zerg_commands_have_their_action_results(default_game):
  state = scene(default_game, ZERG)
  put(state, 1, "Hatchery", (-8.0, -8.0))
  put(state, UNIT, "Queen", HOME)
  state.minerals[:] = 500
  state.energy[:, 0, UNIT] = 60
  state.injected[:, 0, 0] = 100
  inject = {"slots": [UNIT], "kind": OWN}
  tired = jax.tree.map(np.array, state)
  tired.energy[:, 0, UNIT] = 0
  barren = state._replace(larvae=np.zeros_like(state.larvae))
  fed = jax.tree.map(np.array, state)
  for i in range(1, 7):
    put(fed, UNIT + i, "Drone", (0.0, 0.0))
  fed.kind[:, 0, 1] = 0
  full = jax.tree.map(np.array, fed)
  full.kind[:, 0, UNIT + 1:UNIT + 5] = LOCAL["Queen"]
  cases = [
    (state, "Effect_InjectLarva_unit", {"target": 1, **inject}, None),
    (state, "Effect_InjectLarva_unit", {"target": 0, **inject}, "AlreadySpawningLarva"),
    (state, "Effect_InjectLarva_unit", {"target": UNIT, **inject}, "CantTargetThatUnit"),
    (tired, "Effect_InjectLarva_unit", {"target": 1, **inject}, "NotEnoughEnergy"),
    (state, "Train_Drone_quick", {"slots": [0]}, None),
    (barren, "Train_Drone_quick", {"slots": [0]}, "NotEnoughCharges"),
    (full, "Train_Drone_quick", {"slots": [0]}, "NotEnoughFood"),
    (fed, "Train_Zergling_quick", {"slots": [0]}, "TechRequirementsNotMet")]
  for state, function, order, expected in cases:
    found = run(default_game, give(state, function, **order))
    assert set(found.refused[:, 0].tolist()) == {RESULTS.get(expected, 0)}, (function, order)


@pytest.mark.slow
def test_an_upgrade_in_research_is_not_started_again(default_game):
  state = _terran(default_game)
  put(state, 5, "EngineeringBay", (8.0, -16.0))
  put(state, 6, "EngineeringBay", (8.0, -8.0))
  state.vespene[:] = 1000
  research = next(name for name in vocabulary.FUNCTIONS.names
                  if name.startswith("Research_TerranInfantryWeapons"))
  first = run(default_game, give(state, research, slots=[5]))
  same(first.refused[:, 0], 0)
  again = run(default_game, give(first, research, slots=[6]))
  same(again.refused[:, 0], RESULTS["CantQueueThatOrder"])
  assert TIER.structures > 6
