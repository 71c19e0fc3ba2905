"""Cloaked units: who sees them, the Banshee's cloak and its energy, and how they are shown."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import types
from starleague.environments.skirmish.rules.interface import (
  action_results,
  availability,
  entities,
  perception,
)
from starleague.environments.skirmish.rules.state import slots
from starleague.environments.skirmish.rules.step import combat, recovery
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish import states
from tests.environments.skirmish import technology as tech
from tests.environments.skirmish.technology import FUNCTION, LOCAL, RULES, TYPES, S

PROTOSS = types.RACES.index("protoss")
CANNON = RULES.tier.unarmed  # the first slot of structures that shoot
FIRST, SECOND = S + 20, S + 21  # slots of units beside the workers
FIELD = RULES.upgrades.names.index("CloakingField")
STEP = constants.LOOPS_PER_STEP


def place(state, player, slot, name, x, y, energy=0.0):
  """Puts a unit or a finished structure into a slot."""
  tech.put(state, player, slot, name, x, y)
  state.energy[player, slot], state.shield[player, slot] = energy, TYPES.shield[LOCAL[name]]


def sees(state, slot=FIRST):
  """Whether player 1 sees a slot of player 0 after a step."""
  return bool(perception.perceive(RULES, states.on_device(state)).memory.seen[1, slot])


def meeting(name="DarkTemplar"):
  """A unit of player 0 beside a Zealot of player 1, in the middle of the map."""
  state = states.first(RULES, races=(PROTOSS, PROTOSS))
  place(state, 0, FIRST, name, 0.0, 0.0)
  place(state, 1, FIRST, "Zealot", 0.9, 0.0)
  return state


@pytest.mark.parametrize("name, visible", [
  ("DarkTemplar", False), ("Observer", False), ("Stalker", True), ("Banshee", True)])
def test_only_cloaked_units_are_hidden(name, visible):
  assert sees(meeting(name)) == visible


@pytest.mark.parametrize("name, slot, away, visible", [
  ("PhotonCannon", CANNON, 11.3, True), ("PhotonCannon", CANNON, 11.5, False),
  ("Observer", SECOND, 11.3, True), ("Observer", SECOND, 11.5, False),
  ("MissileTurret", CANNON, 5.0, True), ("SporeCrawler", CANNON, 5.0, True),
  ("SpineCrawler", CANNON, 5.0, False), ("Nexus", 5, 5.0, False)])
def test_detectors_see_them_as_far_as_they_see(name, slot, away, visible):
  """The radius of the Dark Templar, 0.375, is added to a sight of 11."""
  state = meeting()
  place(state, 1, slot, name, 0.0, away)
  assert sees(state) == visible
  if slot == CANNON:
    state.unfinished[1, slot] = 8
    assert not sees(state)


def test_a_scan_detects():
  state = meeting()
  state.scan_x[1], state.scan_y[1], state.scan_loops[1] = 5.0, 0.0, 20
  assert sees(state)
  state.scan_loops[1] = 0
  assert not sees(state)


def test_nobody_shoots_at_what_is_not_detected():
  plan = jax.jit(functools.partial(combat.plan, RULES))
  tick = jax.jit(functools.partial(combat.tick, RULES))
  state = meeting()
  for detected in (False, True):
    if detected:
      place(state, 1, SECOND, "Observer", 3.0, 0.0)
    seen = perception.perceive(RULES, states.on_device(state))
    after = tick(seen, plan(seen))
    assert (after.health[0, FIRST] + after.shield[0, FIRST] < 120) == detected
    # The Dark Templar, which has no orders, strikes first in either case.
    assert after.shield[1, FIRST] < 50


def cloaked_banshee(energy=50.0, researched=True):
  """A Banshee of player 0 beside a Marine of player 1."""
  state = states.first(RULES, races=(tech.TERRAN, tech.TERRAN))
  place(state, 0, FIRST, "Banshee", 0.0, 0.0, energy)
  place(state, 1, FIRST, "Marine", 3.0, 0.0)
  state.upgrades[0, FIELD] = researched
  return state


def test_the_banshees_cloak_costs_energy():
  state = tech.play(tech.order(cloaked_banshee(), "Behavior_CloakOn_quick", [FIRST]))
  assert state.refused[0] == 0 and state.energy[0, FIRST] == 25
  assert state.cloaked[0].tolist() == [i == FIRST - S for i in range(RULES.tier.units)]
  assert not sees(state)
  again = tech.play(tech.order(state, "Behavior_CloakOn_quick", [FIRST]))
  assert again.refused[0] and again.energy[0, FIRST] == 25
  state = tech.play(tech.order(state, "Behavior_CloakOff_quick", [FIRST]))
  assert state.refused[0] == 0 and not state.cloaked.any() and sees(state)
  assert not tech.can(state, "Behavior_CloakOff_quick")


@pytest.mark.parametrize("energy, researched, reason", [
  (24.9, True, action_results.NOT_ENOUGH_ENERGY),
  (50.0, False, action_results.TECH_REQUIREMENTS_NOT_MET)])
def test_a_cloak_needs_energy_and_research(energy, researched, reason):
  state = cloaked_banshee(energy, researched)
  assert not tech.can(state, "Behavior_CloakOn_quick")
  state = tech.play(tech.order(state, "Behavior_CloakOn_quick", [FIRST]))
  assert state.refused[0] == reason and not state.cloaked.any()


def test_a_cloak_ends_with_the_energy():
  recover = jax.jit(functools.partial(recovery.recover, RULES))
  state = cloaked_banshee(energy=1.0)
  state.cloaked[0, FIRST - S] = True
  place(state, 0, SECOND, "Banshee", 9.0, 9.0, 1.0)
  drained = STEP * 0.9 / 16
  for steps in (1, 2):
    state = recover(states.on_device(state))
    np.testing.assert_allclose(state.energy[0, FIRST], 1.0 - steps * drained, rtol=1e-6)
    np.testing.assert_allclose(state.energy[0, SECOND], 1.0 + steps * STEP * 0.5625 / 16, rtol=1e-6)
  assert state.cloaked[0, FIRST - S]
  state = recover(state)
  assert state.energy[0, FIRST] == 0 and not state.cloaked.any()


def test_a_unit_in_a_freed_slot_is_not_cloaked():
  state = cloaked_banshee()
  state.cloaked[0, :] = True
  state.kind[0, FIRST] = 0
  one = np.array([[LOCAL["Marine"]], [0]])
  nowhere = jnp.zeros((2, 1))
  state = slots.spawn(RULES, states.on_device(state), slots.Spawns(one, nowhere, nowhere),
                      slots.RallyPoints(nowhere > 0, nowhere, nowhere))
  born = int(np.flatnonzero(np.asarray(state.kind[0, S:]) == LOCAL["Marine"])[0])
  assert not state.cloaked[0, born] and state.cloaked[0, FIRST - S] == (born != FIRST - S)


def test_observations_show_cloaks_to_owners_and_detectors():
  state = meeting()
  place(state, 1, SECOND, "Observer", 3.0, 0.0)
  state = perception.perceive(RULES, states.on_device(state))
  rows, count = entities.entities(RULES, state)
  unit_type, cloak = (types.COLUMN[name] for name in ("unit_type", "cloak"))
  templar, observer = (int(TYPES.index[LOCAL[name]]) for name in ("DarkTemplar", "Observer"))
  for player, expected in ((0, {templar: 4}), (1, {templar: 2, observer: 4})):
    shown = np.asarray(rows[player, :int(count[player])])
    assert {int(row[unit_type]): int(row[cloak]) for row in shown if row[cloak]} == expected


def test_the_way_to_dark_templar():
  structures = {1: ("Pylon", 6.0, 0.0), 2: ("Gateway", 6.0, 6.0), 3: ("RoboticsFacility", 0.0, 6.0)}
  state = tech.start(PROTOSS, structures)
  assert tech.can(state, "Train_Observer_quick")
  chain = (("CyberneticsCore", "Build_TwilightCouncil_pt"),
           ("TwilightCouncil", "Build_DarkShrine_pt"), ("DarkShrine", "Train_DarkTemplar_quick"))
  for slot, (name, function) in enumerate(chain, 4):
    assert not tech.can(state, function)
    tech.put(state, 0, slot, name, -20.0 - 4 * slot, 0.0)
    assert tech.can(state, function)


def test_only_banshees_switch_their_cloak():
  for function in ("Behavior_CloakOn_quick", "Behavior_CloakOff_quick"):
    capable = RULES.functions.capable[FUNCTION[function]]
    assert [TYPES.names[i] for i in np.flatnonzero(capable)] == ["Banshee"]
  assert availability.available(RULES, states.on_device(cloaked_banshee()))[0, FUNCTION[
    "Behavior_CloakOn_quick"]]
