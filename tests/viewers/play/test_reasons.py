"""Reasons of unavailable orders: they name what is missing and agree with the rules."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import types, vocabulary
from starleague.environments.skirmish.games import dm_environment, live, replays
from starleague.environments.skirmish.rules.interface import action_results, observation
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS
from starleague.viewers.play import reasons, view
from tests.environments.skirmish import states
from tests.environments.skirmish import technology as tech
from tests.viewers.games import DEFAULT_RULES, FUNCTION, KIND, RULES

# Texts of which one is in the reason, for the game's own codes.
TEXTS = {
  action_results.TECH_REQUIREMENTS_NOT_MET: ["needs"],
  action_results.NOT_ENOUGH_MINERALS: ["more minerals"],
  action_results.NOT_ENOUGH_VESPENE: ["more vespene"],
  action_results.NOT_ENOUGH_FOOD: ["more supply"],
  action_results.NOT_ENOUGH_ENERGY: ["energy, has"],
  action_results.NOT_ENOUGH_CHARGES: ["a larva"],
  action_results.QUEUE_IS_FULL: [
    "the queue is full", "production must end first", "still under construction"],
  action_results.CANT_QUEUE_THAT_ORDER: ["research"],
  action_results.CANT_FIND_ENOUGH_TARGETS: ["is known"],
  action_results.CANT_FIND_CANCEL_ORDER: ["nothing is"],
  action_results.REQUIRES_REPAIR_TARGET: ["nothing to repair"]}


def _own_rows(seen, name):
  """Rows of own units of a type."""
  index = vocabulary.UNIT_TYPES.index(name)
  return np.flatnonzero((seen.entities[:, types.COLUMN["unit_type"]] == index) & (
    seen.entities[:, types.COLUMN["alliance"]] == types.ALLIANCE_SELF))


def _with(seen, minerals=50, used=4, cap=18, barracks=None):
  """An observation with other resources; an SCV becomes Barracks built to that percentage."""
  player = np.array(seen.player)
  for name, value in (("minerals", minerals), ("food_used", used), ("food_cap", cap)):
    player[types.PLAYER_COLUMNS.index(name)] = value
  entities = np.array(seen.entities)
  if barracks is not None:
    row = _own_rows(seen, "SCV")[0]
    entities[row, types.COLUMN["unit_type"]] = vocabulary.UNIT_TYPES.index("Barracks")
    entities[row, types.COLUMN["build_progress"]] = barracks
  return seen._replace(player=player, entities=entities)


@pytest.mark.parametrize(("function", "changes", "expected"), [
  ("Build_Barracks_pt", {}, "needs 100 more minerals"),
  ("Build_Factory_pt", {"minerals": 250}, "needs a Barracks"),
  ("Build_Factory_pt", {"barracks": 40, "minerals": 150},
   "needs the Barracks to be finished and 100 more minerals"),
  ("Build_Factory_pt", {"barracks": 100, "minerals": 249}, "needs 1 more minerals"),
  ("Train_SCV_quick", {"used": 18}, "needs 1 more supply"),
  ("Train_SCV_quick", {"minerals": 20, "used": 18}, "needs 30 more minerals and 1 more supply"),
  ("Train_Marine_quick", {"barracks": 40}, "still under construction"),
  ("Attack_unit", {}, "no enemy is known"),
  ("Harvest_Return_quick", {}, "no worker carries anything, or no town hall stands")])
def test_reason_names_what_is_missing(begun, function, changes, expected):
  seen = _with(begun[1], **changes)
  assert reasons.reason(RULES, seen, FUNCTION[function]) == expected


def test_reasons_are_sent_for_unavailable_orders_of_own_units(begun):
  frame = view.page_frame(RULES, _with(begun[1]))
  assert frame["reasons"][FUNCTION["Build_Barracks_pt"]] == "needs 100 more minerals"
  assert not set(frame["reasons"]) & set(frame["can"])
  for function in frame["reasons"]:
    assert RULES.functions.capable[function][[KIND["SCV"], KIND["CommandCenter"]]].any()


def test_sentries_need_energy_and_one_shield_at_a_time():
  observe = jax.jit(functools.partial(observation.observe, tech.RULES))
  for energy, loops, expected in (
      (60.0, 0, {"Effect_GuardianShield_quick": "needs 75 energy, has 60"}),
      (20.0, 0, {"Effect_ForceField_pt": "needs 50 energy, has 20"}),
      (80.0, 8, {"Effect_GuardianShield_quick": "every shield is on already"})):
    state = tech.with_sentry(energy)
    state.spell_loops[0, tech.FREE - tech.S] = loops
    seen = jax.tree.map(np.asarray, observe(state, jnp.int32(0))[0])
    found = reasons.unavailable(tech.RULES, seen)
    for name, reason in expected.items():
      assert found[tech.FUNCTION[name]] == reason


def test_warp_gates_need_research_power_and_an_end_of_the_cooldown():
  state = tech.start(tech.PROTOSS, {1: ("Gateway", 8.0, 0.0), 2: ("WarpGate", 14.0, 0.0)})
  observe = jax.jit(functools.partial(observation.observe, tech.RULES))

  def reason(function):
    seen = jax.tree.map(np.asarray, observe(state, jnp.int32(0))[0])
    return reasons.reason(tech.RULES, seen, tech.FUNCTION[function])

  assert reason("Morph_WarpGate_quick") == "needs Warp Gate Research"
  assert reason("TrainWarp_Zealot_pt") == "needs a finished Pylon"
  tech.put(state, 0, 3, "Pylon", *(state.x[0, 0], state.y[0, 0] + 8.0))
  assert reason("TrainWarp_Zealot_pt") == "every warp gate cools down"


def test_transports_need_passengers():
  state = tech.start(tech.PROTOSS, {})
  tech.put(state, 0, tech.S + 20, "WarpPrism", 0.0, 0.0)
  seen = jax.tree.map(np.asarray, observation.observe(
    tech.RULES, states.on_device(state), jnp.int32(0))[0])
  why = reasons.unavailable(tech.RULES, seen)
  assert why[tech.FUNCTION["UnloadAllAt_pt"]] == "nobody is aboard"
  assert tech.FUNCTION["Load_unit"] not in why  # a Probe can board


@pytest.mark.slow
@pytest.mark.parametrize("race", ["terran", "zerg"])
def test_reasons_agree_with_the_rules(race):
  """In a played game each reason names what the game's own code for the function does."""
  game = GAME_CONFIGS["default"]
  match_up = dm_environment.draw_match_up(
    np.random.default_rng(0), game.tier, (race, race), "ramps", False)
  scripts = [replays.scripted_player("L7", game) for _ in range(2)]
  played = live.LiveGame(game, live.with_controllers(match_up, scripts), 0)
  seats = [live.LivePlayer(script, game) for script in scripts]
  code_of = jax.jit(functools.partial(action_results.unavailable_reason, DEFAULT_RULES))
  checked = set()
  for step in range(240):
    if step % 40 == 0:
      seen = live.observe(played, 0)
      for function, text in reasons.unavailable(DEFAULT_RULES, seen).items():
        code = int(code_of(played.state, jnp.full(2, function))[0])
        name = DEFAULT_RULES.functions.names[function]
        assert any(expected in text for expected in TEXTS.get(code, [""])), (step, name, text)
        checked.add(code)
    played.step({i: seat.act(played, i) for i, seat in enumerate(seats) if played.due[i]})
  assert {action_results.TECH_REQUIREMENTS_NOT_MET, action_results.NOT_ENOUGH_MINERALS} <= checked
