"""Warp gates: research, the Gateway's morph, and units that appear near Pylons after a cooldown."""

import dataclasses

import jax
import numpy as np
import pytest

from starleague.agent import build_order, types
from starleague.environments.skirmish.rules.interface import (
  action_results,
  entities,
  observation,
)
from starleague.environments.skirmish.rules.state import placement, queries, supply
from starleague.environments.skirmish.rules.tables import constants, tables
from tests.environments.skirmish import states
from tests.environments.skirmish import technology as tech
from tests.environments.skirmish.technology import LOCAL, PRODUCTS, RULES, TYPES, S

GATE, GATEWAY = LOCAL["WarpGate"], LOCAL["Gateway"]
RESEARCH = RULES.upgrades.names.index("WarpGateResearch")
BASE = {1: ("Gateway", 8.0, 0.0), 2: ("CyberneticsCore", 8.0, 6.0), 3: ("Pylon", 0.0, 8.0)}
GATES = {**BASE, 1: ("WarpGate", 8.0, 0.0), 4: ("WarpGate", 14.0, 0.0)}
ZEALOT_STEPS = 19  # 448 loops at tempo 3 are 150: 19 steps of 8


def near_pylon(state, dx=3.0, dy=2.0, player=0):
  """A place at an offset from the Pylon, towards the map's middle."""
  side = state.side[player]
  return float(state.x[player, 3] + side * dx), float(state.y[player, 3] + side * dy)


def warp(state, slots=(1,), name="Zealot", place=None, repeat=1):
  """The state after a command to warp in a unit."""
  place = near_pylon(state) if place is None else place
  return tech.play(tech.order(
    state, f"TrainWarp_{name}_pt", list(slots), repeat=repeat, place=place))


def zealots(state):
  return np.flatnonzero(state.kind[0] == LOCAL["Zealot"])


def test_prices_and_times_are_the_real_games():
  """At tempo 3: 2,240 loops of research, 160 of the morph, 448, 512 and 720 of cooldown."""
  upgrade = len(TYPES.names) + RESEARCH
  assert (PRODUCTS.minerals[upgrade], PRODUCTS.vespene[upgrade]) == (50, 50)
  assert tech.loops("WarpGateResearch") == 747 and tech.loops("WarpGate") == 54
  assert TYPES.names[PRODUCTS.producer[upgrade]] == "CyberneticsCore"
  assert (PRODUCTS.minerals[GATE], PRODUCTS.vespene[GATE], PRODUCTS.producer[GATE]) == (
    0, 0, GATEWAY)
  assert PRODUCTS.upgrade[GATE] == upgrade and np.flatnonzero(PRODUCTS.upgrade).tolist() == [GATE]
  cooldowns = {TYPES.names[i]: PRODUCTS.warp_cooldown[i]
               for i in np.flatnonzero(PRODUCTS.warp_cooldown)}
  assert cooldowns == {"Zealot": 150, "Stalker": 171, "DarkTemplar": 240, "Sentry": 171}
  assert not RULES.upgrades.effects[RESEARCH].any()
  assert TYPES.value[GATE] == TYPES.value[GATEWAY] == 150
  gate = [name for name, c in tech.FUNCTION.items() if RULES.functions.capable[c, GATE]]
  assert gate == ["Cancel_quick", "TrainWarp_Zealot_pt", "TrainWarp_Stalker_pt",
                  "TrainWarp_DarkTemplar_pt", "TrainWarp_Sentry_pt"]


def test_a_gateway_morphs_once_the_research_is_done():
  state = tech.start(tech.PROTOSS, BASE)
  assert not tech.can(state, "Morph_WarpGate_quick")
  refused = tech.play(tech.order(state, "Morph_WarpGate_quick", [1]))
  assert refused.refused[0] == action_results.TECH_REQUIREMENTS_NOT_MET
  state = tech.play(tech.order(state, "Research_WarpGate_quick", [2]))
  assert state.refused[0] == 0 and (state.minerals[0], state.vespene[0]) == (950, 950)
  state = tech.play(state, 93)  # 747 loops are 93.4 steps
  assert state.upgrades[0, RESEARCH] and not state.upgrades[1].any()
  assert not state.queue[0, 1].any()
  state.health[0, 1], state.shield[0, 1], state.rally[0, 1] = 321.0, 45.0, True
  state = tech.play(tech.order(state, "Morph_WarpGate_quick", [1]))
  assert state.queue[0, 1].tolist() == [GATE, 0, 0, 0, 0] and state.minerals[0] == 950
  assert not tech.can(state, "Train_Zealot_quick") and tech.can(state, "Cancel_Last_quick")
  refused = tech.play(tech.order(state, "Train_Zealot_quick", [1]))
  assert refused.refused[0] == action_results.QUEUE_IS_FULL and refused.minerals[0] == 950
  state = tech.play(state, 5)
  assert state.kind[0, 1] == GATEWAY and state.timers[0, 1, 0] == 54 - 6 * 8
  state = tech.play(state)  # 7 steps are 56 loops
  assert state.kind[0, 1] == GATE and not state.queue[0, 1].any()
  assert (state.health[0, 1], state.shield[0, 1], state.rally[0, 1]) == (321.0, 45.0, False)
  assert state.kind[1, 1] == GATEWAY


def test_idle_gateways_morph_by_themselves():
  """Others first make what is in their queue."""
  state = tech.start(tech.PROTOSS, {**BASE, 4: ("Gateway", 14.0, 0.0), 5: ("Gateway", 8.0, -6.0)})
  state.upgrades[0, RESEARCH] = True
  state.queue[0, 4, 0], state.timers[0, 4, 0] = LOCAL["Zealot"], 20
  state.unfinished[0, 5] = 16
  state = tech.play(state)
  assert state.queue[0, [1, 4, 5], 0].tolist() == [GATE, LOCAL["Zealot"], 0]
  assert state.timers[0, 1, 0] == 54 - 8 and not state.queue[1].any()
  state = tech.play(state, 3)
  assert state.queue[0, [1, 4, 5], 0].tolist() == [GATE] * 3


def test_a_warp_gate_counts_as_a_gateway():
  state = tech.start(tech.PROTOSS, GATES)
  found = queries.finished_types(RULES, state)
  assert {TYPES.names[i] for i in np.flatnonzero(found[0])} == {
    "Nexus", "Pylon", "CyberneticsCore", "Gateway", "WarpGate"}
  assert tech.can(state, "Build_CyberneticsCore_pt")
  for function in ("Train_Zealot_quick", "Morph_WarpGate_quick", "Rally_Units_pt"):
    assert not tech.can(state, function)
    given = tech.play(tech.order(state, function, [1], place=(0.0, 0.0)))
    assert given.refused[0] == action_results.YOU_CANT_ISSUE_COMMANDS_TO_THAT_UNIT
  assert not build_order.IN_BUILD_ORDER[TYPES.index[GATE]]  # it is not built


@pytest.mark.parametrize("name, price, cooldown", [
  ("Zealot", (100, 0), 150), ("Stalker", (125, 50), 171), ("DarkTemplar", (125, 125), 240)])
def test_a_unit_appears_after_its_warp_in_and_the_gate_cools_down(name, price, cooldown):
  structures = {**GATES, 5: ("DarkShrine", 0.0, 14.0)}
  first = tech.start(tech.PROTOSS, structures)
  used, _ = supply.food(RULES, first)
  state = warp(first, [1, 4], name, repeat=3)
  assert state.refused[0] == 0
  assert (1000 - state.minerals[0], 1000 - state.vespene[0]) == price
  # One of the two gates warps in one unit: 80 loops at tempo 3 are 27, the rest is its cooldown.
  assert state.queue[0, 1].tolist() == [LOCAL[name], GATE, 0, 0, 0] and not state.queue[0, 4].any()
  assert state.timers[0, 1].tolist() == [27 - 8, cooldown - 27, 0, 0, 0]
  assert supply.food(RULES, state)[0][0] == used[0] + 4  # in halves
  before = tech.play(state, 2)
  assert not (before.kind[0] == LOCAL[name]).any()
  after = tech.play(before)  # 32 loops: 5 more than the warp-in
  (slot,) = np.flatnonzero(after.kind[0] == LOCAL[name])
  assert (after.x[0, slot], after.y[0, slot]) == near_pylon(first)
  assert after.health[0, slot] == TYPES.health[LOCAL[name]]
  assert after.shield[0, slot] == TYPES.shield[LOCAL[name]]
  assert after.orders.verb[0, slot - S] == constants.IDLE
  assert after.queue[0, 1].tolist() == [GATE, 0, 0, 0, 0]
  assert after.timers[0, 1, 0] == cooldown - 32
  assert supply.food(RULES, after)[0][0] == used[0] + 4
  steps = -(-cooldown // 8)
  cooling = tech.play(after, steps - 5)
  assert cooling.queue[0, 1, 0] == GATE
  ready = tech.play(cooling)
  assert not ready.queue[0].any() and ready.kind[0, 1] == GATE
  assert (ready.kind[0, S:] == LOCAL[name]).sum() == 1
  assert ready.score.structures[0] == first.score.structures[0] - 150  # no step added its value


def test_a_gate_on_cooldown_makes_nothing():
  state = warp(tech.start(tech.PROTOSS, BASE | {1: GATES[1]}))
  assert not tech.can(state, "TrainWarp_Zealot_pt") and not tech.can(state, "Cancel_Last_quick")
  again = warp(state)
  assert again.refused[0] == action_results.COOLDOWN and again.minerals[0] == state.minerals[0]
  ready = tech.play(state, ZEALOT_STEPS - 1)
  assert tech.can(ready, "TrainWarp_Zealot_pt")
  assert warp(ready).refused[0] == 0
  # Another gate that is idle serves a command to both, not one to the first alone.
  two = warp(tech.start(tech.PROTOSS, GATES))
  assert warp(two, [1]).refused[0] == action_results.COOLDOWN
  both = warp(two, [1, 4])
  assert both.refused[0] == 0 and both.queue[0, 4, 0] == LOCAL["Zealot"]
  # Chrono boost shortens it: 12 instead of 8 loops a step.
  boosted = tech.start(tech.PROTOSS, GATES)
  boosted.boosted[0, 1] = 1000
  assert warp(boosted).timers[0, 1, 0] == 27 - 12


def test_places_have_power_and_room():
  """Power reaches 6.5: 6.4 and 6.6 are tried. The Zealot's radius is 0.5, the Pylon's 1.125."""
  state = tech.start(tech.PROTOSS, BASE | {1: GATES[1]})
  far = action_results.CANT_TRAIN_TOO_FAR_FROM_TRAIN_POWER_SOURCE
  blocked = action_results.CANT_BUILD_LOCATION_INVALID
  for dx, dy, expected in ((3.84, 5.12, 0), (3.96, 5.28, far), (0.0, 1.63, 0), (0.0, 1.6, blocked)):
    found = warp(state, place=near_pylon(state, dx, dy))
    assert found.refused[0] == expected, (dx, dy)
    assert found.minerals[0] == (900 if expected == 0 else 1000)
  state.unfinished[0, 3] = 8
  assert not tech.can(state, "TrainWarp_Zealot_pt")
  assert warp(state).refused[0] == far
  state = tech.start(tech.PROTOSS, BASE | {1: GATES[1]})
  state.kind[0, 3] = 0  # the opponent's Pylon gives no power
  state.x[1, 3], state.y[1, 3] = state.x[0, 3], state.y[0, 3]
  assert warp(state).refused[0] == far


def test_units_land_on_passable_ground_only():
  terrain, ground = RULES.terrain, tables.maps.NAMES.index("ramps")
  state = states.first(RULES, races=(tech.PROTOSS, tech.PROTOSS), ground=ground)
  cliff = np.argwhere(~terrain.passable[ground])[0]
  ramp = np.argwhere(terrain.passable[ground] & ~terrain.buildable[ground])
  middle = RULES.tier.map_size / 2
  for row, column, expected in ((*cliff, False), (*ramp[len(ramp) // 2], True)):
    x, y = state.side[0] * (column + 0.5 - middle), state.side[0] * (row + 0.5 - middle)
    tech.put(state, 0, 3, "Pylon", x + 4.0, y)
    both = [np.full(2, value, np.float32) for value in (x, y)]
    found = placement.fits(
      RULES, state, placement.known_ground(RULES, states.on_device(state)), *both,
      np.full(2, LOCAL["Zealot"]))
    assert bool(found[0]) == expected


def test_warp_ins_need_money_food_and_technology():
  state = tech.start(tech.PROTOSS, BASE | {1: GATES[1]})
  cases = [("minerals", 99, action_results.NOT_ENOUGH_MINERALS, "Zealot"),
           ("vespene", 49, action_results.NOT_ENOUGH_VESPENE, "Stalker")]
  for field, amount, expected, name in cases:
    poor = jax.tree.map(np.array, state)
    getattr(poor, field)[0] = amount
    assert warp(poor, name=name).refused[0] == expected
  assert warp(state, name="DarkTemplar").refused[0] == (
    action_results.TECH_REQUIREMENTS_NOT_MET)
  hungry = jax.tree.map(np.array, state)
  hungry.kind[0, S + 8:S + 24] = LOCAL["Immortal"]
  assert warp(hungry).refused[0] == action_results.NOT_ENOUGH_FOOD


def test_observations_count_ready_gates_and_hide_the_cooldown():
  """As the real game does: the queue of a warp gate is empty."""
  state = states.on_device(warp(tech.start(tech.PROTOSS, GATES)))
  player = observation.player_columns(RULES, state)
  column = types.PLAYER_COLUMNS.index("warp_gate_count")
  assert player[:, column].tolist() == [1, 2]
  own = entities.own_columns(RULES, state)
  assert not own["order_length"][0, :S].any() and not own["active"][0, :S].any()
  assert not own["order_id_0"][0, :S].any()


def test_other_tiers_have_no_warp_gates():
  rules = tables.make_rules(*tables.GAME_CONFIGS["default"])
  assert not rules.has_warp_gates and "WarpGateResearch" not in rules.upgrades.names
  assert not rules.products.upgrade.any() and not rules.products.warp_cooldown.any()
  assert constants.WARPING not in rules.functions.kind
  state = states.first(rules, races=(tech.PROTOSS, tech.PROTOSS))
  assert not queries.warp_gates(rules, state).any()
  assert {field.name for field in dataclasses.fields(rules.products)} >= {"upgrade"}
