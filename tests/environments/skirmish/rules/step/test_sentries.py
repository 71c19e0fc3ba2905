"""Sentries: Guardian Shield, Force Fields and hallucinations, with numbers worked by hand."""

import functools

import jax
import numpy as np
import pytest

from starleague.agent import types, vocabulary
from starleague.environments.skirmish.rules import environment
from starleague.environments.skirmish.rules.interface import (
  action_results,
  availability,
  entities,
  observation,
  perception,
)
from starleague.environments.skirmish.rules.state import queries, sentries, supply
from starleague.environments.skirmish.rules.step import accounting, arrival, combat, recovery
from starleague.environments.skirmish.rules.tables import constants, tables
from tests.environments.skirmish import states
from tests.environments.skirmish import technology as tech
from tests.environments.skirmish.technology import (
  FUNCTION,
  LOCAL,
  PRODUCTS,
  RULES,
  TYPES,
  S,
  place,
  with_sentry,
)

FIRST, SECOND, THIRD = tech.FREE, tech.FREE + 1, tech.FREE + 2  # slots of units
GUARD, FIELD = "Effect_GuardianShield_quick", "Effect_ForceField_pt"
ZEALOTS = "Hallucination_Zealot_quick"


def unreal(state, player=0):
  """The slots of a player's hallucinations."""
  return S + np.flatnonzero(state.spell_loops[player] < 0)


def hallucinate(name="Zealot", energy=200.0):
  """The state after a command to make hallucinations, and their slots."""
  state = tech.play(tech.order(with_sentry(energy), f"Hallucination_{name}_quick", [FIRST]))
  return state, unreal(state)


@functools.cache
def compiled(function):
  return jax.jit(functools.partial(function, RULES))


def fought(state):
  """The state after a tick of combat."""
  return jax.tree.map(np.array, compiled(_tick)(state))


def _tick(rules, state):
  return combat.tick(rules, state, combat.plan(rules, state))


def facing(attacker, target, x=3.0):
  """A target of player 0 in the middle of the map, in sight of an attacker of player 1."""
  state = states.first(RULES, races=(tech.PROTOSS, tech.PROTOSS))
  place(state, 0, SECOND, target, 0.0, 0.0)
  place(state, 1, SECOND, attacker, x, 0.0)
  state.memory.seen[:] = True
  return state


def lost(before, after, player=0, slot=SECOND):
  """Hit points and shields that a slot has lost."""
  return float((before.health + before.shield - after.health - after.shield)[player, slot])


def test_prices_and_times_are_the_real_games():
  """At tempo 3: 512 loops of production and of a warp gate's cooldown. Spells keep their times."""
  sentry = LOCAL["Sentry"]
  assert (PRODUCTS.minerals[sentry], PRODUCTS.vespene[sentry]) == (50, 100)
  assert TYPES.takes_food[sentry] == 4  # in halves
  assert (TYPES.health[sentry], TYPES.shield[sentry], TYPES.energy[sentry]) == (40, 40, 200)
  for weapon in (TYPES.ground, TYPES.air):
    assert (weapon.damage[sentry], weapon.attacks[sentry], weapon.range[sentry]) == (6, 1, 5)
    assert weapon.cooldown[sentry] == 16
  assert TYPES.names[PRODUCTS.producer[sentry]] == "Gateway"
  assert TYPES.names[PRODUCTS.requirement[sentry]] == "CyberneticsCore"
  assert tech.loops("Sentry") == PRODUCTS.warp_cooldown[sentry] == 171
  assert constants.GUARD_LOOPS / 22.4 == pytest.approx(10.7, abs=0.1)
  assert constants.FORCE_FIELD_LOOPS / 22.4 == pytest.approx(10.7, abs=0.1)
  assert constants.HALLUCINATION_LOOPS / 22.4 == pytest.approx(42.9, abs=0.1)
  names = [name for name, c in FUNCTION.items() if RULES.functions.ability[c] in (
    availability.SENTRIES_ABILITIES)]
  assert all(RULES.functions.capable[FUNCTION[name]].nonzero()[0].tolist() == [sentry]
             for name in names)
  made = {TYPES.names[kind]: int(TYPES.hallucinations[kind])
          for kind in RULES.functions.hallucination[RULES.functions.hallucination > 0]}
  assert made.items() >= {"Probe": 4, "Zealot": 2, "Stalker": 2, "Immortal": 1, "Phoenix": 1,
                          "VoidRay": 1, "WarpPrism": 1}.items()


@pytest.mark.parametrize("function, energy", [(GUARD, 75), (FIELD, 50), (ZEALOTS, 75)])
def test_spells_take_energy_of_one_sentry(function, energy):
  state = with_sentry(energy - 0.5)
  assert not tech.can(state, function)
  refused = tech.play(tech.order(state, function, [FIRST]))
  assert refused.refused[0] == action_results.NOT_ENOUGH_ENERGY
  assert refused.energy[0, FIRST] == energy - 0.5
  state = with_sentry(energy)
  place(state, 0, SECOND, "Sentry", 1.0, 0.0, 200.0)
  assert tech.can(state, function)
  cast = tech.play(tech.order(state, function, [FIRST, SECOND]))
  assert cast.refused[0] == 0
  assert cast.energy[0, [FIRST, SECOND]].tolist() == [0.0, 200.0]


def test_z_has_the_effects_but_not_hallucinations():
  effects = {}
  for function in (GUARD, FIELD, ZEALOTS):
    state = tech.play(tech.order(with_sentry(), function, [FIRST]))
    (effects[function],) = (vocabulary.EFFECT_FUNCTIONS[np.flatnonzero(effect)].tolist()
                            for effect in state.executed.effects[:1])
    assert not state.executed.effects[1].any()
    assert not state.executed.units[0].any() and not state.executed.build_order[0].any()
  assert effects == {GUARD: [vocabulary.FUNCTIONS.index(GUARD)],
                     FIELD: [vocabulary.FUNCTIONS.index(FIELD)], ZEALOTS: []}


@pytest.mark.parametrize("attacker, target, x, plain, guarded", [
  ("Stalker", "Zealot", 3.0, 12, 10),  # 13, minus armour 1; bonus against armoured does not count
  ("Stalker", "Stalker", 3.0, 17, 15),  # 13 + 5 - 1
  ("Stalker", "Phoenix", 3.0, 13, 11),  # against air
  ("Zealot", "Stalker", 1.1, 14, 14),  # melee: twice 8 - 1
  ("DarkTemplar", "Stalker", 1.1, 44, 44),
  ("Phoenix", "Phoenix", 3.0, 20, 16)])  # twice 5 + 5
def test_guardian_shields_weaken_ranged_attacks(attacker, target, x, plain, guarded):
  state = facing(attacker, target, x)
  assert lost(state, fought(state)) == plain
  place(state, 0, FIRST, "Sentry", 0.0, 4.4, 0.0)
  state.spell_loops[0, FIRST - S] = 8
  assert lost(state, fought(state)) == guarded
  state.y[0, FIRST] = 4.6  # it reaches 4.5
  assert lost(state, fought(state)) == plain
  state.y[0, FIRST], state.spell_loops[0, FIRST - S] = 4.4, 0
  state.spell_loops[1, SECOND - S] = 0
  place(state, 1, FIRST, "Sentry", 0.0, 4.4, 0.0)
  state.spell_loops[1, FIRST - S] = 8  # the opponent's shield protects its own units only
  assert fought(state).health[0, SECOND] + fought(state).shield[0, SECOND] < (
    state.health[0, SECOND] + state.shield[0, SECOND] - plain + 0.1)


def test_a_shielded_hit_deals_half_a_point_at_least():
  state = facing("Sentry", "Stalker")
  place(state, 0, FIRST, "Sentry", 0.0, 2.0)
  state.spell_loops[0, FIRST - S] = 8
  armours = [u for u, name in enumerate(RULES.upgrades.names) if "GroundArmors" in name
             and name.startswith("Protoss")]
  state.upgrades[0, armours] = True
  state.shield[0, SECOND] = 0.0
  assert lost(state, fought(state)) == 0.5  # 6 - 1 - 3 - 2 is 0


def test_a_guardian_shield_lasts_and_is_not_renewed_before():
  state = tech.play(tech.order(with_sentry(), GUARD, [FIRST]))
  assert state.spell_loops[0, FIRST - S] == 240 and not tech.can(state, GUARD)
  again = tech.play(tech.order(state, GUARD, [FIRST]))
  assert again.refused[0] == action_results.COOLDOWN
  place(state, 0, SECOND, "Sentry", 1.0, 0.0, 100.0)
  other = tech.play(tech.order(state, GUARD, [FIRST, SECOND]))
  assert other.energy[0, [FIRST, SECOND]].tolist() == [125.0, 25.0]
  for _ in range(30):
    assert sentries.shielded(RULES, states.on_device(state))[0, FIRST]
    state = jax.tree.map(np.array, compiled(recovery.recover)(state))
  assert state.spell_loops[0, FIRST - S] == 0  # 240 loops are 30 steps
  assert not sentries.shielded(RULES, states.on_device(state)).any()


def test_force_fields_end_and_a_fifth_replaces_the_oldest():
  state = with_sentry()
  for i in range(4):
    state = tech.play(tech.order(state, FIELD, [FIRST], place=(float(i), 0.0)))
    state.field_loops[0] -= 8 * (state.field_loops[0] > 0)
  assert state.energy[0, FIRST] == 0 and state.field_x[0].tolist() == [0, 1, 2, 3]
  assert state.field_loops[0].tolist() == [208, 216, 224, 232]
  state.energy[0, FIRST] = 50
  state = tech.play(tech.order(state, FIELD, [FIRST], place=(5.0, 0.0)))
  assert state.field_x[0].tolist() == [5, 1, 2, 3]
  assert state.field_loops[0].tolist() == [240, 216, 224, 232]
  for _ in range(30):
    state = jax.tree.map(np.array, compiled(recovery.recover)(state))
  assert not state.field_loops.any()


@pytest.mark.parametrize("x, expected", [
  (8.9, 0), (9.1, action_results.TARGET_IS_OUT_OF_RANGE)])
def test_force_fields_have_a_range(x, expected):
  state = with_sentry()
  place(state, 0, SECOND, "Sentry", 0.0, 9.0, 200.0)
  found = tech.play(tech.order(state, FIELD, [FIRST, SECOND], place=(x, 0.0)))
  assert found.refused[0] == expected
  assert found.energy[0, FIRST] == (150.0 if expected == 0 else 200.0)
  state.energy[0, FIRST] = 0.0  # the other is too far away
  assert tech.play(tech.order(state, FIELD, [FIRST, SECOND], place=(x, 0.0))).refused[0] in (
    expected, action_results.NOT_ENOUGH_ENERGY)


@pytest.mark.parametrize("name, count", [
  ("Probe", 4), ("Zealot", 2), ("Stalker", 2), ("Immortal", 1), ("Phoenix", 1),
  ("VoidRay", 1), ("WarpPrism", 1)])
def test_hallucinations_appear_beside_their_sentry(name, count):
  before = with_sentry()
  state, slots = hallucinate(name)
  kind = LOCAL[name]
  assert len(slots) == count and (state.kind[0, slots] == kind).all()
  assert (state.health[0, slots] == TYPES.health[kind]).all()
  assert (state.shield[0, slots] == TYPES.shield[kind]).all()
  assert not state.x[0, slots].any() and not state.y[0, slots].any()
  assert (state.orders.verb[0, slots - S] == constants.IDLE).all()
  assert not (state.spell_loops[1] < 0).any()
  for state_ in (before, state):  # food, army and score do not change
    found = supply.food(RULES, states.on_device(state_))
    assert [int(values[0]) for values in found] == [6 * 2 + 4, 2 * 15]
  columns = dict(zip(types.PLAYER_COLUMNS, np.array(
    observation.player_columns(RULES, states.on_device(state)))[0], strict=True))
  assert (columns["army_count"], columns["food_army"], columns["idle_worker_count"]) == (1, 2, 0)
  np.testing.assert_array_equal(state.score.units, before.score.units)
  idle = accounting.count_idle_time(RULES, states.on_device(state))
  assert not np.any(idle.score.idle_workers)


def test_hallucinations_need_free_slots():
  state = with_sentry()
  state.kind[0, S:] = np.where(state.kind[0, S:] == 0, LOCAL["Probe"], state.kind[0, S:])
  state.kind[0, S + 30:S + 33] = 0
  assert tech.can(state, ZEALOTS) and not tech.can(state, "Hallucination_Probe_quick")
  refused = tech.play(tech.order(state, "Hallucination_Probe_quick", [FIRST]))
  assert refused.refused[0] == action_results.COULDNT_ALLOCATE_UNIT
  made = tech.play(tech.order(state, ZEALOTS, [FIRST]))
  assert unreal(made).tolist() == [S + 30, S + 31]


def test_hallucinations_deal_no_damage_and_take_twice_as_much():
  state = facing("Stalker", "Stalker")
  assert [lost(state, fought(state), player) for player in (0, 1)] == [17, 17]
  state.spell_loops[0, SECOND - S] = -100
  assert [lost(state, fought(state), player) for player in (0, 1)] == [34, 0]
  assert (fought(state).cooldown[0, SECOND - RULES.tier.unarmed]
          == fought(state).cooldown[1, SECOND - RULES.tier.unarmed] > 0)  # it seems to shoot
  place(state, 0, FIRST, "Sentry", 0.0, 2.0)
  state.spell_loops[0, FIRST - S] = 100
  assert lost(state, fought(state)) == 30  # twice 15


def test_the_death_of_a_hallucination_is_no_kill():
  state = facing("Stalker", "Immortal")
  state.health[0, SECOND] = 0.0
  killed = compiled(combat.remove_dead)(state)
  assert killed.score.killed_units.tolist() == [0, 375] and not killed.kind[0, SECOND]
  state.spell_loops[0, SECOND - S] = -100
  unreal_ = compiled(combat.remove_dead)(state)
  assert unreal_.score.killed_units.tolist() == [0, 0] and not unreal_.kind[0, SECOND]
  assert not unreal_.spell_loops.any()


def test_hallucinations_end():
  state, slots = hallucinate()
  assert (state.spell_loops[0, slots - S] == -960).all()
  state.spell_loops[0, slots - S] = -16
  step = compiled(environment.step)
  state = jax.tree.map(np.array, step(state))
  assert (state.kind[0, slots] == LOCAL["Zealot"]).all()
  state = jax.tree.map(np.array, step(state))
  assert not state.kind[0, slots].any() and not state.spell_loops.any()
  assert not state.score.killed_units.any() and state.kind[0, FIRST] == LOCAL["Sentry"]


def test_hallucinations_move_and_attack_only():
  state, slots = hallucinate("Probe")
  refused = action_results.YOU_CANT_ISSUE_COMMANDS_TO_THAT_UNIT
  for function in ("Build_Pylon_pt", "Harvest_Gather_unit"):
    given = tech.order(state, function, slots, place=(0.0, 0.0))
    given.commands.target_kind[0] = constants.RESOURCE
    assert tech.play(given).refused[0] == refused
  for function, verb in (("Move_pt", constants.MOVE), ("Attack_pt", constants.ATTACK),
                         ("HoldPosition_quick", constants.HOLD)):
    given = tech.play(tech.order(state, function, slots, place=(5.0, 5.0)))
    assert given.refused[0] == 0 and (given.orders.verb[0, slots - S] == verb).all()
  given = tech.order(state, "Smart_unit", slots)
  given.commands.target_kind[0], given.commands.target[0] = constants.RESOURCE, 0
  given = tech.play(given)
  assert (given.orders.verb[0, slots - S] == constants.MOVE).all()
  # A Probe that arrives would mine.
  given.orders.x[0], given.orders.y[0] = given.x[0, S:], given.y[0, S:]
  plan = combat.plan(RULES, states.on_device(given))
  done = arrival.complete_orders(RULES, states.on_device(given), plan)
  assert (np.array(done.orders.verb)[0, slots - S] == constants.IDLE).all()
  given.kind[0, S:S + 6] = 0  # nothing but hallucinations
  assert not tech.can(given, "Harvest_Gather_unit") and not tech.can(given, "Build_Pylon_pt")
  assert tech.can(given, "Move_pt")


def test_a_player_with_nothing_but_hallucinations_has_lost():
  state, slots = hallucinate()
  state.kind[0, :S] = 0
  assert int(accounting.winner(RULES, states.on_device(state))) == 1


@pytest.mark.parametrize("detector, shown", [("Observer", 1), ("Zealot", 0)])
def test_detectors_tell_hallucinations_from_real_units(detector, shown):
  state, slots = hallucinate("Stalker")
  place(state, 1, FIRST, detector, 3.0, 0.0)
  state = perception.perceive(RULES, states.on_device(state))
  assert state.memory.seen[1, slots].all()
  columns = entities._columns(RULES, state)
  n, found = RULES.tier.slots, np.array(columns["hallucination"])
  assert found[0, slots].tolist() == [1, 1] and not found[0, FIRST]
  assert found[1, n + slots].tolist() == [shown, shown] and found.sum() == 2 + 2 * shown
  assert (columns["health"][1, n + slots] == 80).all()
  own = entities.own_columns(RULES, state)
  assert own["buff_duration_remain"][0, slots].tolist() == [960, 960]
  assert own["buff_duration_max"][0, slots].tolist() == [960, 960]


def test_shielded_units_have_the_buff():
  state = tech.play(tech.order(with_sentry(), GUARD, [FIRST]))
  place(state, 0, SECOND, "Stalker", 4.4, 0.0)
  place(state, 0, THIRD, "Stalker", 4.6, 0.0)
  own = entities.own_columns(RULES, states.on_device(state))
  shield = vocabulary.BUFFS.index("GuardianShield")
  assert own["buff_id_0"][0, [FIRST, SECOND, THIRD]].tolist() == [shield, shield, 0]
  assert own["buff_duration_remain"][0, [FIRST, SECOND]].tolist() == [240, 0]


def test_other_tiers_have_no_sentries():
  rules = tables.make_rules(*tables.GAME_CONFIGS["default"])
  assert not rules.has_sentries and not rules.types.local("Sentry")
  assert not rules.types.hallucinations.any() and not rules.functions.hallucination.any()
  assert not any(name.startswith("Hallucination") for name in rules.functions.names)
  state = states.first(rules, races=(tech.PROTOSS, tech.PROTOSS))
  for values in (state.spell_loops, state.field_x, state.field_y, state.field_loops,
                 state.memory.detected):
    assert values.shape == (2, 0)
  assert sentries.barriers(rules, state) is None
  assert not np.any(queries.is_hallucination(rules, state))
