"""Transport: Medivacs and Warp Prisms take units in, carry them off the map and drop them."""

import jax
import numpy as np
import pytest

from starleague.environments.skirmish.rules.interface import (
  action_results,
  entities,
  perception,
  planes,
)
from starleague.environments.skirmish.rules.state import placement, queries, supply
from starleague.environments.skirmish.rules.tables import constants, tables
from tests.environments.skirmish import states
from tests.environments.skirmish import technology as tech
from tests.environments.skirmish.technology import LOCAL, PRODUCTS, RULES, TYPES, S

CARRIER, FIRST = S + 20, S + 30  # slots of the transport and of the first passenger
OFF = constants.OFF_MAP


def scene(*units, carrier="Medivac", place=(0.0, 0.0), race=tech.TERRAN, **more):
  """A game with a transport of player 0 in the middle, and units at (type, x, y)."""
  state = states.first(RULES, races=(race, race), **more)
  state.kind[0, S:S + 20] = 0  # no workers, and food for all
  tech.put(state, 0, CARRIER, carrier, *place)
  for i, (name, x, y) in enumerate(units):
    tech.put(state, 0, FIRST + i, name, x, y)
  return state


def unit(values, slot, player=0):
  return values[player, slot - S]


def aboard(state, player=0):
  """The slots of passengers."""
  return (S + np.flatnonzero(state.orders.verb[player] == constants.ABOARD)).tolist()


def load(state, slot=FIRST, steps=1, carrier=CARRIER):
  return tech.play_whole(tech.order(state, "Load_unit", [carrier], own=slot), steps)


def loaded(*names, carrier="Medivac", place=(0.0, 0.0), **more):
  """A game whose transport has passengers."""
  state = scene(*((name, *place) for name in names), carrier=carrier, place=place, **more)
  for i in range(len(names)):
    state = load(state, FIRST + i)
  assert aboard(state) == [FIRST + i for i in range(len(names))]
  return state


def test_prices_sizes_and_spaces_are_the_real_games():
  """At tempo 3: 800 loops of production are 267."""
  prism, phasing = LOCAL["WarpPrism"], LOCAL["WarpPrismPhasing"]
  assert (PRODUCTS.minerals[prism], PRODUCTS.vespene[prism], PRODUCTS.loops[prism]) == (250, 0, 267)
  assert TYPES.names[PRODUCTS.producer[prism]] == "RoboticsFacility"
  assert PRODUCTS.requirement[prism] == 0 and TYPES.takes_food[prism] == 4  # in halves
  for kind in (prism, phasing):
    assert (TYPES.health[kind], TYPES.shield[kind], TYPES.value[kind]) == (80, 100, 250)
    assert TYPES.flying[kind] and not TYPES.fighter[kind]
  assert TYPES.speed[prism] == pytest.approx(2.9531 / 4) and TYPES.speed[phasing] == 0
  assert {TYPES.names[i]: TYPES.cargo_space[i] for i in np.flatnonzero(TYPES.cargo_space)} == {
    "Medivac": 8, "WarpPrism": 8, "WarpPrismPhasing": 8}
  sizes = {name: int(TYPES.cargo_size[LOCAL[name]]) for name in LOCAL if name}
  assert [name for name in sizes if sizes[name] == 1] == [
    "SCV", "Marine", "Reaper", "Probe", "Drone", "Zergling"]
  assert [name for name in sizes if sizes[name] == 2] == [
    "Marauder", "Hellion", "Zealot", "Stalker", "DarkTemplar", "Sentry", "Roach", "Hydralisk",
    "Queen"]
  assert [name for name in sizes if sizes[name] == 4] == ["SiegeTank", "Immortal"]
  assert max(sizes.values()) == 4


def test_other_tiers_have_no_transports():
  rules = tables.make_rules(*tables.GAME_CONFIGS["default"])
  state = states.first(rules)
  assert not rules.has_transports and "WarpPrism" not in rules.types.names
  assert state.cargo_taken.shape == (2, 0)
  assert not {"Load_unit", "UnloadAllAt_pt", "UnloadUnit_quick"} & set(rules.functions.names)
  assert not set(rules.functions.verb) & {constants.LOAD, constants.UNLOAD}
  assert not queries.is_aboard(rules, state).any()


@pytest.mark.parametrize(("carrier", "name", "distance", "boards"), [
  # The unit walks 1.125 in a step. It reaches the Medivac at 1.125 from middle to middle, a Warp
  # Prism at 7.375.
  ("Medivac", "Marine", 2.2, True), ("Medivac", "Marine", 2.3, False),
  ("WarpPrism", "Zealot", 8.45, True), ("WarpPrism", "Zealot", 8.55, False),
  ("WarpPrismPhasing", "Zealot", 8.45, True)])
def test_units_board_within_reach(carrier, name, distance, boards):
  race = tech.TERRAN if carrier == "Medivac" else tech.PROTOSS
  state = scene((name, distance, 0.0), carrier=carrier, race=race)
  after = tech.play_whole(tech.order(state, "Smart_unit", [FIRST], own=CARRIER))
  assert after.refused[0] == 0
  assert unit(after.orders.verb, FIRST) == (constants.ABOARD if boards else constants.BOARD)
  assert unit(after.orders.target, FIRST) == CARRIER
  assert unit(after.cargo_taken, CARRIER) == boards * TYPES.cargo_size[LOCAL[name]]
  assert after.x[0, FIRST] == pytest.approx(
    OFF * state.side[0] if boards else distance - 1.125, abs=1e-4)
  assert aboard(tech.play_whole(after)) == [FIRST]


def test_a_transport_and_its_passenger_meet():
  """Load_unit and a smart command at a unit are one. The Medivac flies 1.25 a step.

  20 apart, it is at 18.75, within 1.25, after 15 steps, and in reach after 16.
  """
  for function in ("Load_unit", "Smart_unit"):
    state = scene(("Marine", 0.0, 20.0))
    assert tech.can(state, "Load_unit") and not tech.can(state, "UnloadAllAt_pt")
    after = tech.play_whole(tech.order(state, function, [CARRIER], own=FIRST), 15)
    assert after.refused[0] == 0 and aboard(after) == []
    assert (unit(after.orders.verb, CARRIER), unit(after.orders.verb, FIRST)) == (
      constants.LOAD, constants.IDLE)
    after = tech.play_whole(after)
    assert aboard(after) == [FIRST] and unit(after.orders.verb, CARRIER) == constants.IDLE
    assert unit(after.orders.target, FIRST) == CARRIER
    assert after.y[0, CARRIER] == pytest.approx(20, abs=0.01)
    assert tech.can(after, "UnloadAllAt_pt") and not tech.can(after, "Load_unit")


def test_orders_end_with_their_target():
  state = scene(("Marine", 0.0, 20.0), ("Marine", 0.0, 21.0))
  state = tech.play_whole(tech.order(load(state), "Smart_unit", [FIRST + 1], own=CARRIER))
  assert unit(state.orders.verb, FIRST + 1) == constants.BOARD
  state.health[0, [CARRIER, FIRST]] = 0.0
  after = tech.play_whole(state)
  assert unit(after.orders.verb, FIRST + 1) == constants.IDLE and aboard(after) == []
  state.health[0, CARRIER] = 150.0
  after = tech.play_whole(state)
  assert unit(after.orders.verb, CARRIER) == constants.IDLE
  # Another transport takes the passenger: the first one stops.
  state = load(scene(("Marine", 0.0, 20.0)))
  tech.put(state, 0, CARRIER + 1, "Medivac", 0.0, 20.0)
  state = load(state, carrier=CARRIER + 1)
  assert aboard(state) == [FIRST] and unit(state.orders.target, FIRST) == CARRIER + 1
  place = state.y[0, CARRIER]
  after = tech.play_whole(state)
  assert unit(after.orders.verb, CARRIER) == constants.IDLE
  assert after.y[0, CARRIER] == place


def test_a_queued_order_to_board_ends_if_its_transport_has_died():
  """The Marine reaches its goal, begins the next order, and goes nowhere."""
  state = scene(("Marine", 20.0, 20.0), place=(10.0, 10.0))
  for orders, verb in ((state.orders, constants.MOVE), (state.next_orders, constants.BOARD)):
    orders.verb[0, FIRST - S], orders.target[0, FIRST - S] = verb, CARRIER
    orders.x[0, FIRST - S] = orders.y[0, FIRST - S] = 20.0
  state.health[0, CARRIER] = 0.0
  after = tech.play_whole(state)
  assert after.kind[0, CARRIER] == 0 and unit(after.orders.verb, FIRST) == constants.BOARD
  after = tech.play_whole(after)
  assert unit(after.orders.verb, FIRST) == constants.IDLE
  place = after.x[0, FIRST], after.y[0, FIRST]
  assert np.hypot(20 - place[0], 20 - place[1]) < 1.2
  after = tech.play_whole(after, 3)
  assert (after.x[0, FIRST], after.y[0, FIRST]) == place


def test_transports_take_eight():
  """A Siege Tank and a Marauder take 4 and 2; another tank has no room, a Marauder has."""
  state = loaded("SiegeTank", "Marauder")
  assert unit(state.cargo_taken, CARRIER) == 6
  for slot, name in ((FIRST + 2, "SiegeTank"), (FIRST + 3, "Marauder"), (FIRST + 4, "Marine")):
    tech.put(state, 0, slot, name, 0.0, 0.0)
  full = action_results.NOT_ENOUGH_ROOM_TO_LOAD_UNIT
  assert load(state, FIRST + 2).refused[0] == full
  smart = tech.order(state, "Smart_unit", [FIRST + 2], own=CARRIER)
  assert tech.play_whole(smart).refused[0] == full
  # Both have room alone. The Marauder boards first; the Marine stays outside.
  both = tech.play_whole(tech.order(state, "Smart_unit", [FIRST + 3, FIRST + 4], own=CARRIER))
  assert both.refused[0] == 0 and unit(both.cargo_taken, CARRIER) == 8
  assert unit(both.orders.verb, FIRST + 4) == constants.BOARD
  both = tech.play_whole(both)
  assert unit(both.orders.verb, FIRST + 4) == constants.IDLE and len(aboard(both)) == 3
  assert not tech.can(both, "Load_unit")


def test_flyers_enemies_and_builders_do_not_board():
  cannot = action_results.CANT_LOAD_THAT_UNIT
  state = scene(("VikingFighter", 2.0, 0.0), ("SiegeTankSieged", 0.0, 2.0), ("SCV", 0.0, 1.0))
  state.orders.verb[0, FIRST + 2 - S] = constants.CONSTRUCT
  for slot in (FIRST, FIRST + 1, FIRST + 2, CARRIER, 0):
    assert load(state, slot).refused[0] == cannot, slot
  enemy = tech.order(state, "Load_unit", [CARRIER], own=S)
  enemy.commands.target_kind[0] = constants.ENEMY
  enemy.memory.seen[0, S] = True
  assert tech.play_whole(enemy).refused[0] == cannot


def test_passengers_keep_what_they_have_and_cost_food():
  state = scene(("Marine", 0.5, 0.0), ("SCV", -0.5, 0.0))
  state.health[0, FIRST], state.cargo[0, FIRST + 1 - S] = 21.0, 5
  after = load(load(state), FIRST + 1)
  assert aboard(after) == [FIRST, FIRST + 1]
  assert after.health[0, FIRST] == 21 and unit(after.cargo, FIRST + 1) == 5
  for before, now in zip(supply.food(RULES, state), supply.food(RULES, after), strict=True):
    np.testing.assert_array_equal(before, now)
  assert after.score.units[0] == state.score.units[0]
  assert after.score.idle_workers[0] == state.score.idle_workers[0] + 8  # of one step outside
  later = tech.play_whole(after, 5)
  assert later.score.idle_workers[0] == after.score.idle_workers[0]
  assert (later.x[0, FIRST], later.y[0, FIRST]) == (OFF * state.side[0],) * 2


def test_passengers_neither_see_nor_fight_nor_are_seen():
  state = scene(("Marine", 0.5, 0.0))
  tech.put(state, 1, S + 40, "Observer", 1.5, 0.0)  # sees both, and is seen by nobody
  tech.put(state, 1, S + 41, "Medivac", 3.0, 0.0)  # a target of the Marine, in range
  outside = tech.play_whole(state, 2)  # the first step shows the target
  assert outside.memory.seen[1, [CARRIER, FIRST]].all()
  assert outside.health[1, S + 41] < TYPES.health[LOCAL["Medivac"]]
  inside = load(state)
  health = inside.health[1, S + 41]
  inside = tech.play_whole(inside, 3)
  assert inside.memory.seen[1, CARRIER] and not inside.memory.seen[1, FIRST]
  assert inside.health[1, S + 41] == health
  viewers = perception._viewers(RULES, states.on_device(inside))
  assert viewers.sight[0, FIRST] == 0 and viewers.sight[0, CARRIER] == 11
  assert queries.ready_kind(RULES, inside)[0, FIRST] == 0


def test_passengers_take_no_commands_and_are_no_targets():
  state = loaded("Marine")
  state.health[0, FIRST] = 20.0
  assert not tech.can(state, "Effect_Stim_quick")
  after = tech.play_whole(tech.order(state, "Attack_pt", [FIRST], place=(5.0, 5.0)))
  assert after.refused[0] == action_results.YOU_CANT_ISSUE_COMMANDS_TO_THAT_UNIT
  after = tech.play_whole(tech.order(after, "Move_unit", [CARRIER], own=FIRST))
  assert after.refused[0] == action_results.CANT_TARGET_THAT_UNIT
  assert aboard(after) == [FIRST] and after.health[0, FIRST] == 20  # the Medivac does not heal it
  # Repair ends, too.
  state = scene(("SCV", 3.0, 0.0), ("Hellion", 3.0, 0.5))
  state.health[0, FIRST + 1] = 40.0
  state = tech.play_whole(tech.order(state, "Effect_Repair_unit", [FIRST], own=FIRST + 1))
  assert unit(state.orders.verb, FIRST) == constants.REPAIR
  after = load(state, FIRST + 1, 3)
  assert aboard(after) == [FIRST + 1] and unit(after.orders.verb, FIRST) == constants.GATHER


def test_passengers_die_with_their_transport():
  """200 for the Medivac, 50 and 125 for its passengers; another transport's stay."""
  state = loaded("Marine", "Marauder")
  tech.put(state, 0, CARRIER + 1, "Medivac", 0.0, 30.0)
  tech.put(state, 0, FIRST + 5, "Marine", 0.0, 30.0)
  state = load(state, FIRST + 5, carrier=CARRIER + 1)
  assert len(aboard(state)) == 3
  tech.put(state, 1, S + 40, "Marine", 1.0, 0.0)
  state.health[0, CARRIER] = 1.0
  used = supply.food(RULES, state)[0][0]
  after = tech.play_whole(state, 2)
  assert not after.kind[0, [CARRIER, FIRST, FIRST + 1]].any() and aboard(after) == [FIRST + 5]
  assert after.score.killed_units[1] - state.score.killed_units[1] == 200 + 50 + 125
  assert supply.food(RULES, after)[0][0] == used - 2 * (2 + 1 + 2)  # in halves
  assert unit(after.cargo_taken, CARRIER) == 0 and unit(after.cargo_taken, CARRIER + 1) == 1


def test_a_transport_drops_one_passenger_a_step():
  state = loaded("Marine", "Marauder", "Marine")
  state.health[0, FIRST + 1], state.energy[0, CARRIER] = 77.0, 0.0
  after = tech.play_whole(tech.order(state, "UnloadAll_quick", [CARRIER]))
  place = after.x[0, CARRIER], after.y[0, CARRIER]
  assert after.refused[0] == 0 and aboard(after) == [FIRST + 1, FIRST + 2]
  assert (after.x[0, FIRST], after.y[0, FIRST]) == place
  assert unit(after.orders.verb, FIRST) == constants.IDLE
  after = tech.play_whole(after, 2)
  assert aboard(after) == [] and unit(after.cargo_taken, CARRIER) == 0
  assert after.health[0, FIRST + 1] == 77
  there = np.hypot(after.x[0, FIRST:FIRST + 3] - place[0], after.y[0, FIRST:FIRST + 3] - place[1])
  assert (there < 1.5).all() and len(set(after.x[0, FIRST:FIRST + 3].tolist())) == 3
  assert unit(tech.play_whole(after).orders.verb, CARRIER) == constants.IDLE
  empty = tech.order(after, "UnloadAll_quick", [CARRIER])
  assert tech.play_whole(empty).refused[0] == action_results.NO_CARGO_TO_UNLOAD


def test_one_passenger_leaves_alone():
  state = loaded("Marine", "Marauder", "Marine")
  first = tech.play_whole(tech.order(state, "UnloadUnit_quick", [CARRIER]), 3)
  assert first.refused[0] == 0 and aboard(first) == [FIRST + 1, FIRST + 2]
  named = tech.order(state, "UnloadUnit_quick", [CARRIER])
  named.commands.target[0] = FIRST + 1  # without a kind of target, as the server's panel does
  named = tech.play_whole(named, 3)
  assert aboard(named) == [FIRST, FIRST + 2] and unit(named.cargo_taken, CARRIER) == 2
  assert unit(named.orders.verb, CARRIER) == constants.IDLE


def test_transports_cross_cliffs_and_drop_on_the_ground_only():
  """A cliff of the map "ramps" lies between the places that the test finds beside it."""
  ground = tables.maps.NAMES.index("ramps")
  passable, middle = RULES.terrain.passable[ground], RULES.tier.map_size / 2
  row, column = next(
    (r, c) for r in range(10, 86) for c in range(10, 86)
    if passable[r, c - 4] and not passable[r, c] and passable[r, c + 4])
  near, cliff, far = (
    (c + 0.5 - middle, row + 0.5 - middle) for c in (column - 4, column, column + 4))
  state = loaded("Marauder", place=near, ground=ground)
  over = tech.order(state, "UnloadAllAt_pt", [CARRIER], place=cliff)
  assert tech.play_whole(over).refused[0] == action_results.CANT_UNLOAD_UNITS_THERE
  there = tech.play_whole(tech.order(state, "UnloadAllAt_pt", [CARRIER], place=far), 6)
  assert there.refused[0] == 0 and aboard(there) == []
  assert np.hypot(there.x[0, FIRST] - far[0], there.y[0, FIRST] - far[1]) < 1.5
  # Above the cliff nobody can leave at once.
  state.x[0, CARRIER], state.y[0, CARRIER] = cliff
  here = tech.play_whole(tech.order(state, "UnloadAll_quick", [CARRIER]))
  assert here.refused[0] == action_results.CANT_UNLOAD_UNITS_THERE and aboard(here) == [FIRST]


def test_a_warp_prism_gives_power_in_phasing_mode():
  """Its radius is 3.75; the mode takes 24 loops, three steps."""
  state = scene(carrier="WarpPrism", race=tech.PROTOSS)

  def powered(state, distance):
    both = [np.full(2, value, np.float32) for value in (distance, 0.0)]
    return bool(placement.powered(RULES, states.on_device(state), *both)[0])

  assert tech.can(state, "Morph_WarpPrismPhasingMode_quick") and not powered(state, 1.0)
  assert not tech.can(state, "Morph_WarpPrismTransportMode_quick")
  state = tech.play_whole(tech.order(state, "Morph_WarpPrismPhasingMode_quick", [CARRIER]), 2)
  assert state.kind[0, CARRIER] == LOCAL["WarpPrismPhasing"] and not powered(state, 1.0)
  state = tech.play_whole(state)
  assert powered(state, 3.7) and not powered(state, 3.8)
  moved = tech.play_whole(tech.order(state, "Move_pt", [CARRIER], place=(9.0, 9.0)))
  assert moved.refused[0] == action_results.YOU_CANT_ISSUE_COMMANDS_TO_THAT_UNIT
  back = tech.play_whole(tech.order(state, "Morph_WarpPrismTransportMode_quick", [CARRIER]))
  assert back.kind[0, CARRIER] == LOCAL["WarpPrism"] and not powered(back, 1.0)


def test_units_warp_in_at_a_phasing_prism_away_from_pylons():
  far = action_results.CANT_TRAIN_TOO_FAR_FROM_TRAIN_POWER_SOURCE
  state = tech.start(tech.PROTOSS, {1: ("WarpGate", 8.0, 0.0), 2: ("CyberneticsCore", 8.0, 6.0)})
  tech.put(state, 0, CARRIER, "WarpPrism", 0.0, 0.0)

  def warp(state):
    return tech.play(tech.order(state, "TrainWarp_Zealot_pt", [1], place=(2.0, 2.0)))

  assert not tech.can(state, "TrainWarp_Zealot_pt") and warp(state).refused[0] == far
  state.kind[0, CARRIER] = LOCAL["WarpPrismPhasing"]
  assert tech.can(state, "TrainWarp_Zealot_pt")
  after = warp(state)
  assert after.refused[0] == 0 and after.minerals[0] == 900
  after = tech.play(after, 4)
  (slot,) = np.flatnonzero(after.kind[0] == LOCAL["Zealot"])
  assert (after.x[0, slot], after.y[0, slot]) == (2, 2)


def test_a_phasing_prism_loads_and_unloads_where_it_is():
  state = loaded("Zealot", carrier="WarpPrism", race=tech.PROTOSS)
  state = tech.play_whole(tech.order(state, "Morph_WarpPrismPhasingMode_quick", [CARRIER]))
  assert aboard(state) == [FIRST]
  after = tech.play_whole(tech.order(state, "UnloadAllAt_unit", [CARRIER], own=CARRIER))
  assert after.refused[0] == 0 and aboard(after) == []
  assert (after.x[0, FIRST], after.y[0, FIRST]) == (after.x[0, CARRIER], after.y[0, CARRIER])
  smart = tech.order(after, "Smart_unit", [CARRIER], own=FIRST)
  assert aboard(tech.play_whole(smart)) == [FIRST]
  # Others it does not follow.
  stays = tech.play_whole(tech.order(after, "Smart_unit", [CARRIER], own=0), 2)
  assert unit(stays.orders.verb, CARRIER) == constants.IDLE


def test_observations_show_passengers_with_their_transport():
  state = states.on_device(loaded("Marauder", "Marine", place=(10.0, -6.0)))
  own = entities.own_columns(RULES, state)
  assert own["cargo_space_taken"][0, CARRIER] == 3 and own["cargo_space_max"][0, CARRIER] == 8
  assert np.flatnonzero(own["is_in_cargo"][0]).tolist() == [FIRST, FIRST + 1]
  assert not own["order_length"][0, FIRST] and not own["active"][0, FIRST]
  place = entities._place_columns(RULES, state)
  for axis in ("x", "y"):
    assert place[axis][0, FIRST] == place[axis][0, CARRIER]
  before = jax.tree.map(np.array, state)
  before.kind[0, FIRST:FIRST + 2] = 0
  np.testing.assert_array_equal(  # nothing is drawn for passengers
    planes.bits(RULES, state)[0, 3], planes.bits(RULES, states.on_device(before))[0, 3])
