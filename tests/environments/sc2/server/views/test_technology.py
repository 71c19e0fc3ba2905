"""Add-ons and the Lair as clients see them: data, orders, tags and available abilities."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from starleague.environments.sc2.protocol import raw_pb, sc_pb
from starleague.environments.sc2.server.game import catalogue, roster, world
from starleague.environments.sc2.server.views import gamedata, possible, raw_units
from starleague.environments.skirmish.rules.interface import commands, entities
from starleague.environments.skirmish.rules.state import add_ons, queries
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
    max_health=np.asarray(queries.max_health(RULES, device, device.kind)), levels={},
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
  assert (lair.mineral_cost, lair.vespene_cost, lair.ability_id) == (450, 100, 1216)
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
