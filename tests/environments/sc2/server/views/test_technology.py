"""Add-ons, the Lair and warp gates as clients see them: data, orders, tags, abilities."""

import functools
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from starleague.environments.sc2.protocol import data_pb, query_pb, raw_pb, sc_pb
from starleague.environments.sc2.server.game import (
  catalogue,
  client_commands,
  engine,
  roster,
  world,
)
from starleague.environments.sc2.server.views import (
  gamedata,
  interface_actions,
  possible,
  queries,
  raw_units,
)
from starleague.environments.sc2.server.views.seats import ServerSeat
from starleague.environments.skirmish.rules.interface import action_results, commands, entities
from starleague.environments.skirmish.rules.state import add_ons
from starleague.environments.skirmish.rules.state.queries import max_health
from tests.environments.skirmish import states
from tests.environments.skirmish import technology as tech
from tests.environments.skirmish.technology import LOCAL, RULES, S

TECH_LABS, REACTORS = (421, 454, 487), (422, 455, 488)
TRAIN_MARINE, TRAIN_MARAUDER, STIMPACK, CANCEL_LAST = 560, 563, 730, 304
CLOAK_ON, CLOAK_OFF = 392, 393
PRODUCERS = ("Barracks", "Factory", "Starport")


def shown(state):
  """A stand-in for the game, in which a state is shown and commanded."""
  tags = roster.Roster(RULES)
  tags.update(state.kind)
  device = states.on_device(state)
  report = SimpleNamespace(
    add_ons=jax.tree.map(np.asarray, add_ons.add_ons_of(RULES, device)),
    products=np.asarray(commands.next_products(RULES, device)),
    own=jax.tree.map(np.asarray, entities.own_columns(RULES, device)),
    max_health=np.asarray(max_health(RULES, device, device.kind)), levels={},
    player=np.array([[0, 0, 10, 60, 0, 0, 0, 0, 0, 0]] * 2))
  frame = SimpleNamespace(
    state=state, tags=tags.tags(), report=report, facing=np.zeros((2, RULES.tier.slots)))
  return SimpleNamespace(
    rules=RULES, state=state, tags=frame.tags, frame=lambda: frame,
    world=world.make_world(RULES, 0), battlefield=SimpleNamespace(realistic=True))


def listed(game, slot):
  (found,) = possible.unit_abilities(game, 0, [int(game.tags[0, slot])])
  return {ability.ability_id for ability in found}


def test_the_data_of_add_ons_is_the_real_games():
  data = gamedata.make_data(RULES, sc_pb.RequestData(unit_type_id=True, upgrade_id=True))
  units = {unit.name: unit for unit in data.units}
  for producer, lab, reactor in zip(PRODUCERS, TECH_LABS, REACTORS, strict=True):
    for kind, ability, vespene, alias in (("TechLab", lab, 25, 5), ("Reactor", reactor, 50, 6)):
      found = units[f"{producer}{kind}"]
      assert (found.mineral_cost, found.vespene_cost, found.ability_id) == (50, vespene, ability)
      assert list(found.tech_alias) == [alias]
  marauder, marine, lair = units["Marauder"], units["Marine"], units["Lair"]
  assert (marauder.tech_requirement, marauder.require_attached) == (37, True)
  assert (marine.tech_requirement, marine.require_attached) == (0, False)
  assert (lair.mineral_cost, lair.vespene_cost, lair.ability_id) == (500, 100, 1216)
  assert list(lair.tech_alias) == [86] and units["HydraliskDen"].tech_requirement == 100
  stim = next(upgrade for upgrade in data.upgrades if upgrade.name == "Stimpack")
  assert stim.ability_id == STIMPACK


@pytest.mark.parametrize("function, ids", [
  ("Build_TechLab_quick", TECH_LABS), ("Build_Reactor_quick", REACTORS)])
def test_orders_name_the_add_on_of_their_structure(function, ids):
  abilities = catalogue.make_catalogue(RULES)
  local = RULES.functions.names.index(function)
  for producer, ability in zip(PRODUCERS, ids, strict=True):
    assert abilities.ability(local, LOCAL[producer]) == ability
    assert abilities.pick(ability, False, False) == local
    assert abilities.product_ability(LOCAL[f"{producer}{function.split('_')[1]}"]) == ability


def test_abilities_and_tags_during_and_after_construction():
  state = tech.start(tech.TERRAN, {1: ("Barracks", 8.0, 0.0), 2: ("Factory", 8.0, 6.0),
                                   3: ("SupplyDepot", 0.0, 8.0)})
  before = shown(state)
  assert {421, 422, TRAIN_MARINE} <= listed(before, 1) and 563 not in listed(before, 1)
  assert {454, 455} <= listed(before, 2)
  state = tech.play(tech.order(state, "Build_TechLab_quick", [1]))
  (slot,) = np.flatnonzero(state.kind[0, :S] == LOCAL["BarracksTechLab"])
  state = tech.play(state)
  during = shown(state)
  assert not listed(during, 1) & {421, 422, TRAIN_MARINE, TRAIN_MARAUDER, CANCEL_LAST}
  view = raw_units.View(during, during.frame(), 0, (), (0.0, 0.0, 1.0, 1.0))
  barracks, factory = raw_units._possessions(view, np.array([1, 2]))
  assert barracks["add_on_tag"] == during.tags[0, slot] and "add_on_tag" not in factory
  (order,) = barracks["orders"]
  assert order.ability_id == 421 and 0 < order.progress < 0.1
  after = shown(tech.play(state, tech.steps("BarracksTechLab")))
  assert {TRAIN_MARINE, TRAIN_MARAUDER} <= listed(after, 1)
  assert not listed(after, 1) & {421, 422}
  assert STIMPACK in listed(after, slot)


def test_cloaked_units_are_shown_to_their_owner_and_to_detectors():
  state = tech.start(tech.TERRAN, {})
  slot = S + 20
  tech.put(state, 0, slot, "Banshee", 0.0, 0.0)
  state.energy[0, slot], state.upgrades[0] = 100.0, True
  before = shown(state)
  assert CLOAK_ON in listed(before, slot) and CLOAK_OFF not in listed(before, slot)
  state = tech.play(tech.order(state, "Behavior_CloakOn_quick", [slot]))
  after = shown(state)
  assert CLOAK_OFF in listed(after, slot) and CLOAK_ON not in listed(after, slot)
  for player, cloak in ((0, raw_pb.CloakedAllied), (1, raw_pb.CloakedDetected)):
    view = raw_units.View(after, after.frame(), player, (), (0.0, 0.0, 1.0, 1.0))
    banshee, worker = raw_units._in_sight(view, 0, np.array([slot, S]), after.tags[0])
    assert (banshee["cloak"], worker["cloak"]) == (cloak, raw_pb.NotCloaked)


GATES = {1: ("WarpGate", 8.0, 0.0), 2: ("CyberneticsCore", 8.0, 6.0), 3: ("Pylon", 0.0, 8.0),
         4: ("Gateway", 14.0, 0.0)}
WARP_ZEALOT, WARP_STALKER, WARP_DARK_TEMPLAR, WARP_SENTRY = 1413, 1414, 1417, 1418
MORPH_GATE, TRAIN_ZEALOT = 1518, 916


def test_the_data_of_warp_gates_is_the_real_games():
  data = gamedata.make_data(
    RULES, sc_pb.RequestData(unit_type_id=True, upgrade_id=True, ability_id=True))
  units = {unit.name: unit for unit in data.units}
  gate = units["WarpGate"]
  assert (gate.unit_id, gate.ability_id, gate.mineral_cost, gate.vespene_cost) == (
    133, MORPH_GATE, 150, 0)
  assert list(gate.tech_alias) == [62] and units["Zealot"].ability_id == TRAIN_ZEALOT
  research = next(upgrade for upgrade in data.upgrades if upgrade.name == "WarpGateResearch")
  assert (research.upgrade_id, research.ability_id) == (84, 1568)
  assert (research.mineral_cost, research.vespene_cost, research.research_time) == (50, 50, 747)
  target = next(a for a in data.abilities if a.ability_id == WARP_ZEALOT).target
  assert target == data_pb.AbilityData.Point


@pytest.mark.parametrize("ability, function", [
  (WARP_ZEALOT, "TrainWarp_Zealot_pt"), (WARP_STALKER, "TrainWarp_Stalker_pt"),
  (WARP_DARK_TEMPLAR, "TrainWarp_DarkTemplar_pt")])
def test_abilities_of_warp_gates_name_functions_at_a_point(ability, function):
  abilities = catalogue.make_catalogue(RULES)
  local = RULES.functions.names.index(function)
  assert abilities.pick(ability, True, False) == local
  assert abilities.ability(local, LOCAL["WarpGate"]) == ability
  assert abilities.needs_target(local)


@pytest.mark.parametrize("race, structure, in_work, morph, listed_", [
  (tech.TERRAN, "Barracks", None, 1516, True), (tech.TERRAN, "Barracks", "SCV", 1516, False),
  (tech.ZERG, "SpawningPool", "Drone", 1216, True),  # larvae hatch beside a morph
  (tech.ZERG, "SpawningPool", "Queen", 1216, False)])
def test_a_town_hall_in_work_does_not_morph(race, structure, in_work, morph, listed_):
  """The list of abilities and the rules agree: an Orbital Command is 1516, a Lair is 1216."""
  state = tech.start(race, {1: (structure, 8.0, 0.0)})
  if in_work:
    state.queue[0, 0, 0] = LOCAL[in_work]
  assert (morph in listed(shown(state), 0)) == listed_
  (function,) = catalogue.make_catalogue(RULES).functions[morph]
  assert tech.can(state, RULES.functions.names[function]) == listed_


@pytest.mark.parametrize("eggs", (4, 5))
def test_larvae_hatch_while_the_queue_of_their_hatchery_has_room(eggs):
  """With five eggs the rules refuse another one, and no ability is listed. Drones are 1342."""
  state = tech.start(tech.ZERG, {})
  state.queue[0, 0, :eggs], state.larvae[0, 0] = LOCAL["Drone"], 2
  state.timers[0, 0, :eggs] = 99
  game, (tag, _) = shown(state), roster.larva_tags(RULES, 0, 0, 2)
  (found,) = possible.unit_abilities(game, 0, [tag])
  assert (1342 in {ability.ability_id for ability in found}) == (eggs < 5) == bool(found)
  game.placeable = lambda player, places, products: np.zeros(len(places), bool)
  answer = queries.answer(game, 0, query_pb.RequestQuery(abilities=[{"unit_tag": tag}]))
  assert answer.abilities[0].unit_type_id == catalogue.LARVA


def test_abilities_of_gates_and_gateways():
  state = tech.start(tech.PROTOSS, GATES)
  before = shown(state)
  assert listed(before, 1) == {WARP_ZEALOT, WARP_STALKER, WARP_SENTRY}  # no Dark Shrine
  assert MORPH_GATE not in listed(before, 4) and TRAIN_ZEALOT in listed(before, 4)
  state.upgrades[0, RULES.upgrades.names.index("WarpGateResearch")] = True
  assert MORPH_GATE in listed(shown(state), 4)
  state = tech.play(state)
  assert not listed(shown(state), 4) & {MORPH_GATE, TRAIN_ZEALOT}  # it morphs by itself
  place = float(state.x[0, 3]) + 3.0, float(state.y[0, 3])
  state = tech.play(tech.order(state, "TrainWarp_Stalker_pt", [1], place=place))
  during = shown(state)
  assert not listed(during, 1)
  view = raw_units.View(during, during.frame(), 0, (), (0.0, 0.0, 1.0, 1.0))
  gate, gateway = raw_units._possessions(view, np.array([1, 4]))
  assert "orders" not in gate and not gate["is_active"] and "rally_targets" not in gate
  assert [order.ability_id for order in gateway["orders"]] == [MORPH_GATE]
  tag = during.tags[0, 4]
  after = shown(tech.play(state, tech.steps("WarpGate")))
  assert after.state.kind[0, 4] == LOCAL["WarpGate"] and after.tags[0, 4] == tag
  assert WARP_ZEALOT in listed(after, 4)


def test_the_interface_selects_all_warp_gates():
  game = shown(tech.start(tech.PROTOSS, {**GATES, 5: ("WarpGate", 14.0, 6.0)}))
  first, gateway, second = (int(game.tags[0, slot]) for slot in (1, 4, 5))
  seat = ServerSeat(0, sc_pb.InterfaceOptions(raw=True))

  def select(game, add):
    action = sc_pb.Action()
    action.action_ui.select_warp_gates.selection_add = add
    return interface_actions.perform(game, seat, action)

  seat.selected = [gateway]
  assert select(game, True) == (client_commands.SUCCESS, 0)
  assert seat.selected == [gateway, first, second]
  assert select(game, False) == (client_commands.SUCCESS, 0) and seat.selected == [first, second]
  without = shown(tech.start(tech.PROTOSS, {4: GATES[4]}))
  assert select(without, False) == (action_results.ERROR, 0) and seat.selected == [first, second]


@pytest.mark.parametrize("realistic", (True, False))
def test_gas_structures_have_their_geysers_vespene_on_realistic_maps(realistic):
  state = tech.start(tech.PROTOSS, {})
  geyser = int(np.argmax(RULES.tier.geysers))
  x, y = (state.side[0] * place for place in RULES.tier.patches[geyser])
  tech.put(state, 0, 5, "Assimilator", x, y)
  state.memory.patches[0, geyser] = 1234
  game = shown(state)
  game.battlefield.realistic = realistic
  view = raw_units.View(game, game.frame(), 0, (), (0.0, 0.0, 1.0, 1.0))
  nexus, assimilator = raw_units._in_sight(view, 0, np.array([0, 5]), game.tags[0])
  assert assimilator.get("vespene_contents") == (1234 if realistic else None)
  assert "vespene_contents" not in nexus


@pytest.fixture(scope="module")
def execute():
  return jax.jit(functools.partial(engine.execute, RULES))


def commanded(execute, state):
  """A stand-in that executes commands and answers placement queries."""
  game = shown(state)

  def command(player, given):
    game.state = jax.tree.map(np.array, execute(game.state, given))
    return int(game.state.refused[player])

  def placeable(player, places, products):
    x, y = places.T
    return np.asarray(engine._placeable(
      RULES, states.on_device(game.state), player, x, y, products))

  game.winner, game.command, game.placeable = -1, command, placeable
  return game


def test_warp_ins_are_commands_at_a_point(execute):
  """Results: 6 cooldown, 9 not enough minerals, 44 obstacle, 52 no power."""
  state = tech.start(tech.PROTOSS, {**GATES, 5: ("WarpGate", 14.0, 6.0)})
  state.minerals[0] = 225
  game = commanded(execute, state)
  first, second = (int(game.tags[0, slot]) for slot in (1, 5))
  pylon = state.x[0, 3], state.y[0, 3]

  def warp_in(ability, tags, dx):
    x, y = game.world.to_world(float(pylon[0]) + dx, float(pylon[1]))
    return client_commands.issue(game, 0, ability, tags, client_commands.Target(x, y, 0, True))

  assert warp_in(WARP_ZEALOT, [first], 7.0) == 52
  assert warp_in(WARP_ZEALOT, [first], 1.0) == 44
  assert game.state.minerals[0] == 225
  assert warp_in(WARP_STALKER, [first, second], 3.0) == client_commands.SUCCESS
  assert game.state.minerals[0] == 100
  assert game.state.queue[0, 1, :2].tolist() == [LOCAL["Stalker"], LOCAL["WarpGate"]]
  assert not game.state.queue[0, 5].any()
  assert warp_in(WARP_ZEALOT, [first], 3.0) == 6
  assert warp_in(WARP_STALKER, [second], 3.0) == 9
  assert warp_in(WARP_ZEALOT, [second], 3.0) == client_commands.SUCCESS
  assert client_commands.issue(
    game, 0, WARP_ZEALOT, [first], client_commands.Target()) != client_commands.SUCCESS


def test_placement_queries_answer_for_warp_ins(execute):
  state = tech.start(tech.PROTOSS, GATES)
  game, asked = commanded(execute, state), []
  for ability, dx in ((WARP_STALKER, 3.0), (WARP_STALKER, 7.0), (WARP_STALKER, 1.0),
                      (TRAIN_ZEALOT, 3.0)):
    x, y = game.world.to_world(float(state.x[0, 3]) + dx, float(state.y[0, 3]))
    asked.append(query_pb.RequestQueryBuildingPlacement(
      ability_id=ability, target_pos={"x": x, "y": y}))
  assert queries._placements(game, 0, asked) == [1, 44, 44, 2]
