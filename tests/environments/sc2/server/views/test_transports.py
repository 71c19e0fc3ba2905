"""Transports as clients see them: data, passengers, orders, abilities, the panel, power sources."""

from types import SimpleNamespace

import numpy as np

from starleague.environments.sc2.protocol import sc_pb, ui_pb
from starleague.environments.sc2.server.game import catalogue, client_commands, debugging
from starleague.environments.sc2.server.views import (
  gamedata,
  interface_actions,
  raw_units,
  response_observation,
)
from starleague.environments.skirmish.rules.interface import action_results
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.sc2.server.views.test_technology import listed, shown
from tests.environments.skirmish import states
from tests.environments.skirmish import technology as tech
from tests.environments.skirmish.technology import FUNCTION, LOCAL, RULES, TYPES, S

CARRIER, FIRST = S + 20, S + 30  # slots of the transport and of the first passenger
LOAD_MEDIVAC, UNLOAD_AT_MEDIVAC, LOAD_PRISM, UNLOAD_AT_PRISM = 394, 396, 911, 913
PHASING_MODE, TRANSPORT_MODE = 1528, 1530


def carried(carrier="Medivac", names=("Marine", "Marauder"), race=tech.TERRAN):
  """A game whose transport in the middle has passengers."""
  state = states.first(RULES, races=(race, race))
  tech.put(state, 0, CARRIER, carrier, 2.0, 0.0)
  for slot, name in enumerate(names, FIRST):
    tech.put(state, 0, slot, name, *[constants.OFF_MAP * state.side[0]] * 2)
    state.orders.verb[0, slot - S], state.orders.target[0, slot - S] = constants.ABOARD, CARRIER
    state.cargo_taken[0, CARRIER - S] += TYPES.cargo_size[LOCAL[name]]
  state.health[0, FIRST] = 33.0
  return state


def view_of(game, player=0):
  frame = game.frame()
  frame.known_tags = frame.tags[::-1]
  return raw_units.View(game, frame, player, (), (0.0, 0.0, 1.0, 1.0))


def test_the_data_of_transports_is_the_real_games():
  data = gamedata.make_data(RULES, sc_pb.RequestData(unit_type_id=True))
  units = {unit.name: unit for unit in data.units}
  prism, phasing = units["WarpPrism"], units["WarpPrismPhasing"]
  assert (prism.unit_id, prism.mineral_cost, prism.vespene_cost, prism.ability_id) == (
    81, 250, 0, 976)
  assert (phasing.unit_id, phasing.unit_alias, phasing.ability_id) == (136, 81, PHASING_MODE)
  assert [units[name].cargo_size for name in ("Marine", "Zealot", "Immortal", "Medivac")] == [
    1, 2, 4, 0]


def test_abilities_have_the_ids_of_their_transport():
  abilities = catalogue.make_catalogue(RULES)
  for name, medivac, prism in (("Load_unit", 394, 911), ("UnloadAllAt_pt", 396, 913),
                               ("UnloadAllAt_unit", 396, 913), ("UnloadUnit_quick", 397, 914)):
    for kind, ability in (("Medivac", medivac), ("WarpPrism", prism), ("WarpPrismPhasing", prism)):
      assert abilities.ability(FUNCTION[name], LOCAL[kind]) == ability
  assert abilities.pick(UNLOAD_AT_PRISM, True, False) == FUNCTION["UnloadAllAt_pt"]
  assert abilities.pick(UNLOAD_AT_PRISM, False, True) == FUNCTION["UnloadAllAt_unit"]
  assert abilities.pick(LOAD_MEDIVAC, False, True) == FUNCTION["Load_unit"]
  game = shown(carried())
  assert {LOAD_MEDIVAC, UNLOAD_AT_MEDIVAC} <= listed(game, CARRIER)
  assert not listed(game, FIRST)  # a passenger
  game = shown(carried("WarpPrism", ["Immortal"] * 2, tech.PROTOSS))
  found = listed(game, CARRIER)
  assert {UNLOAD_AT_PRISM, PHASING_MODE} <= found and LOAD_PRISM not in found  # full
  game = shown(carried("WarpPrismPhasing", [], tech.PROTOSS))
  found = listed(game, CARRIER)
  assert {LOAD_PRISM, TRANSPORT_MODE} <= found and not {UNLOAD_AT_PRISM, PHASING_MODE} & found


def test_passengers_are_shown_in_their_transport_alone():
  game = shown(carried())
  units = {unit.tag: unit for unit in raw_units._own(view_of(game))}
  tags = game.tags[0]
  assert int(tags[FIRST]) not in units and int(tags[FIRST + 1]) not in units
  medivac = units[int(tags[CARRIER])]
  assert (medivac.cargo_space_taken, medivac.cargo_space_max) == (3, 8)
  marine, marauder = medivac.passengers
  assert (marine.tag, marine.unit_type, marine.health, marine.health_max) == (
    tags[FIRST], 48, 33, 45)
  assert (marauder.tag, marauder.unit_type, marauder.health) == (tags[FIRST + 1], 51, 125)
  # Without fog of war the opponent sees them there no more than with it.
  game.state.memory.seen[1] = True
  enemies = [unit.tag for unit in raw_units._enemies(view_of(game, 1))]
  assert int(tags[CARRIER]) in enemies and int(tags[FIRST]) not in enemies
  game.known_tags = game.tags[::-1]
  target = client_commands.Target(tag=int(tags[FIRST]))
  assert client_commands._aim(game, 0, target) is None


def test_orders_of_transports_and_passengers_have_targets():
  state = carried()
  tech.put(state, 0, FIRST + 3, "Marine", 20.0, 0.0)
  orders = state.orders
  orders.verb[0, FIRST + 3 - S], orders.target[0, FIRST + 3 - S] = constants.BOARD, CARRIER
  for verb, target, ability in ((constants.LOAD, FIRST + 3, 394), (constants.UNLOAD, -1, 396)):
    orders.verb[0, CARRIER - S], orders.target[0, CARRIER - S] = verb, target
    game = shown(state)
    view = view_of(game)
    medivac, marine = raw_units._possessions(view, np.array([CARRIER, FIRST + 3]))
    (order,), (smart,) = medivac["orders"], marine["orders"]
    assert order.ability_id == ability and smart.ability_id == 1
    assert smart.target_unit_tag == game.tags[0, CARRIER]
    place = view.point(orders.x[0, CARRIER - S], orders.y[0, CARRIER - S])
    if verb == constants.LOAD:
      assert order.target_unit_tag == game.tags[0, FIRST + 3]
    else:
      assert order.target_world_space_pos == place


def test_the_panel_lists_and_unloads_passengers():
  game = shown(carried())
  (medivac,) = (unit for unit in raw_units._own(view_of(game))
                if unit.tag == game.tags[0, CARRIER])
  seat = SimpleNamespace(player=0, groups={}, selected=[medivac.tag])
  panel = response_observation._panels(seat, {medivac.tag: medivac}, game).cargo
  assert panel.unit.unit_type == 54 and panel.slots_available == 5
  assert [(unit.unit_type, unit.transport_slots_taken) for unit in panel.passengers] == [
    (48, 1), (51, 2)]
  given = []
  game.command = lambda player, commands: given.append(commands) or 0
  game.winner, seat.screen = -1, lambda: (0.0, 0.0, 1.0, 1.0)
  frame = game.frame()
  frame.known_tags = frame.tags[::-1]

  def unload(index):
    action = sc_pb.Action(action_ui={"cargo_panel": ui_pb.ActionCargoPanelUnload(unit_index=index)})
    return interface_actions.perform(game, seat, action)[0]

  assert unload(1) == client_commands.SUCCESS
  (command,) = given
  assert command.function[0] == FUNCTION["UnloadUnit_quick"] and command.target[0] == FIRST + 1
  assert np.flatnonzero(command.selected[0]).tolist() == [CARRIER]
  assert unload(2) == action_results.NO_CARGO_TO_UNLOAD and len(given) == 1


def test_phasing_prisms_are_power_sources():
  state = carried("WarpPrismPhasing", [], tech.PROTOSS)
  tech.put(state, 0, 3, "Pylon", 10.0, 0.0)
  view = view_of(shown(state))
  pylon, prism = response_observation._power_sources(view)
  assert (pylon.radius, prism.radius) == (6.5, 3.75)
  assert prism.tag == view.frame.tags[0, CARRIER]
  state.cooldown[0, RULES.tier.armed + CARRIER - S] = 8.0  # it changes its mode
  assert len(list(response_observation._power_sources(view_of(shown(state))))) == 1


def test_killed_transports_take_their_passengers_along():
  state = states.on_device(carried())
  gone = np.zeros((2, RULES.tier.slots), bool)
  gone[0, FIRST] = True  # not alone
  assert debugging.kill(RULES, state, gone).kind[0, FIRST] == LOCAL["Marine"]
  gone[0, CARRIER] = True
  assert not debugging.kill(RULES, state, gone).kind[0, [CARRIER, FIRST, FIRST + 1]].any()
