"""Hallucinations neither carry nor are carried, and Sentries in transports have no effects."""

import numpy as np
import pytest

from starleague.environments.skirmish.rules.interface import action_results, entities
from starleague.environments.skirmish.rules.state import queries, sentries
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish import states
from tests.environments.skirmish import technology as tech
from tests.environments.skirmish.technology import LOCAL, RULES, S, place, with_sentry

FIRST, PRISM, ZEALOT = tech.FREE, tech.FREE + 10, tech.FREE + 11  # slots of units
REFUSED = action_results.YOU_CANT_ISSUE_COMMANDS_TO_THAT_UNIT


def scene(name, *units):
  """A game with hallucinations of a type, and units by slot. Returns their slots, too."""
  state = tech.play(tech.order(with_sentry(), f"Hallucination_{name}_quick", [FIRST]))
  unreal = S + np.flatnonzero(state.spell_loops[0] < 0)
  for slot, type_ in units:
    place(state, 0, slot, type_, 1.0, 0.0)
  return state, unreal


def verbs(state, slots):
  return state.orders.verb[0, np.asarray(slots) - S].tolist()


def test_hallucinations_do_not_board():
  state, unreal = scene("Zealot", (PRISM, "WarpPrism"), (ZEALOT, "Zealot"))
  load = tech.order(state, "Load_unit", [PRISM], own=unreal[0])
  assert tech.play(load).refused[0] == action_results.CANT_LOAD_THAT_UNIT
  smart = tech.play(tech.order(state, "Smart_unit", [*unreal, ZEALOT], own=PRISM))
  assert verbs(smart, [*unreal, ZEALOT]) == [constants.MOVE] * 2 + [constants.BOARD]
  smart = tech.play(tech.order(state, "Smart_unit", [PRISM], own=unreal[0]))
  assert verbs(smart, [PRISM]) == [constants.MOVE]
  assert tech.can(state, "Load_unit")
  others = np.arange(S, RULES.tier.slots)
  state.kind[0, others[~np.isin(others, [*unreal, PRISM])]] = 0
  assert not tech.can(state, "Load_unit")


def test_hallucinated_prisms_do_not_load():
  state, (unreal,) = scene("WarpPrism", (PRISM, "WarpPrism"), (ZEALOT, "Zealot"))
  assert state.kind[0, unreal] == LOCAL["WarpPrism"] and state.health[0, unreal] == 80
  for function in ("Load_unit", "UnloadAll_quick", "Morph_WarpPrismPhasingMode_quick"):
    assert tech.play(tech.order(state, function, [unreal], own=ZEALOT)).refused[0] == REFUSED
  smart = tech.play(tech.order(state, "Smart_unit", [unreal, PRISM], own=ZEALOT))
  assert verbs(smart, [unreal, PRISM]) == [constants.MOVE, constants.LOAD]
  smart = tech.play(tech.order(state, "Smart_unit", [ZEALOT], own=unreal))
  assert verbs(smart, [ZEALOT]) == [constants.MOVE]
  space = entities.own_columns(RULES, states.on_device(state))["cargo_space_max"]
  assert space[0, [unreal, PRISM]].tolist() == [0, 8]
  state.kind[0, PRISM] = 0
  assert not tech.can(state, "Load_unit")
  assert not tech.can(state, "Morph_WarpPrismPhasingMode_quick")


def boarded(loops=0, *more):
  """A game in which the Sentry and a Zealot are in a Warp Prism, and others are not."""
  state = with_sentry()
  state.spell_loops[0, FIRST - S] = loops
  for slot, name in ((PRISM, "WarpPrism"), (ZEALOT, "Zealot"), *more):
    place(state, 0, slot, name, 0.0, 0.0)
  for slot in (FIRST, ZEALOT):
    state = tech.play_whole(tech.order(state, "Load_unit", [PRISM], own=slot))
  assert verbs(state, [FIRST, ZEALOT]) == [constants.ABOARD] * 2
  assert state.cargo_taken[0, PRISM - S] == 4  # both take 2
  return state


def test_guardian_shields_end_at_the_door():
  """A Sentry aboard shields nobody, and passengers are not shielded."""
  state = boarded(100, (ZEALOT + 1, "Zealot"))
  assert state.spell_loops[0, FIRST - S] == 84  # two steps later
  assert not sentries.shielded(RULES, states.on_device(state)).any()
  place(state, 0, ZEALOT + 2, "Sentry", 0.0, 0.0)
  state.spell_loops[0, ZEALOT + 2 - S] = 100
  covered = np.flatnonzero(
    np.array(sentries.shielded(RULES, states.on_device(state)))[0] & (state.kind[0] > 0))
  assert covered.tolist() == [PRISM, ZEALOT + 1, ZEALOT + 2]


@pytest.mark.parametrize("function", [
  "Effect_GuardianShield_quick", "Effect_ForceField_pt", "Hallucination_Zealot_quick"])
def test_sentries_aboard_cast_nothing(function):
  state = boarded()
  assert not tech.can(state, function)
  assert tech.play(tech.order(state, function, [FIRST])).refused[0] == REFUSED


def test_force_fields_leave_passengers_aboard():
  state = boarded()
  state.field_x[1, 0], state.field_y[1, 0], state.field_loops[1, 0] = 0.5, 0.0, 100
  state = tech.play_whole(state, 2)
  off = constants.OFF_MAP * state.side[0]
  assert state.x[0, [FIRST, ZEALOT]].tolist() == state.y[0, [FIRST, ZEALOT]].tolist() == [off, off]
  state = tech.play_whole(tech.order(state, "UnloadAll_quick", [PRISM]), 4)
  assert not np.any(np.array(queries.is_aboard(RULES, state)))
  apart = np.hypot(state.x[0, [FIRST, ZEALOT]] - 0.5, state.y[0, [FIRST, ZEALOT]])
  assert (apart > 2.15).all()  # its radius and theirs are 2.2
