"""The game's data against pysc2's functions, the real game's data and Skirmish's tables."""

import lzma

import pytest

from starleague.agent import vocabulary
from starleague.environments.sc2 import protocol
from starleague.environments.sc2.protocol import common_pb, data_pb, sc_pb
from starleague.environments.sc2.server.game import engine
from starleague.environments.sc2.server.views import gamedata
from tests.environments.sc2 import recorded

RULES = engine.rules_of("default")


def test_the_games_data_has_the_general_ability_of_each_of_pysc2s_functions():
  assert protocol  # makes pysc2 importable
  from pysc2.lib import actions
  data = gamedata.make_data(RULES, sc_pb.RequestData(ability_id=True))
  general = {ability.ability_id: ability.remaps_to_ability_id for ability in data.abilities}
  assert len(general) == len(data.abilities)
  functions = [*actions.FUNCTIONS, *actions.RAW_FUNCTIONS]
  assert len(functions) > 1000
  for function in functions:
    assert general[function.ability_id] == function.general_id, function.name


def tables_of(**names):
  return gamedata.make_data(RULES, sc_pb.RequestData(**names))


def test_a_request_names_its_tables():
  names = {"ability_id": "abilities", "unit_type_id": "units", "upgrade_id": "upgrades",
           "buff_id": "buffs", "effect_id": "effects"}
  for asked, filled in names.items():
    data = tables_of(**{asked: True})
    assert [name for name in names.values() if len(getattr(data, name))] == [filled]
  assert not tables_of().ListFields()


def test_units_have_the_costs_and_weapons_of_skirmish():
  units = {unit.unit_id: unit for unit in tables_of(unit_type_id=True).units}
  assert set(units) == set(vocabulary.UNIT_TYPES.ids[1:].tolist())
  marine, zergling, stalker = units[48], units[105], units[74]
  assert (marine.name, marine.mineral_cost, marine.vespene_cost, marine.food_required) == (
    "Marine", 50, 0, 1)
  assert (marine.ability_id, marine.race, marine.armor) == (560, common_pb.Terran, 0)
  assert [(weapon.type, weapon.damage, weapon.attacks, weapon.range) for weapon in marine.weapons
          ] == [(data_pb.Weapon.Ground, 6, 1, 5), (data_pb.Weapon.Air, 6, 1, 5)]
  assert list(marine.attributes) == [data_pb.Light, data_pb.Biological]
  assert (zergling.mineral_cost, zergling.food_required) == (25, 0.5)  # of one of a pair
  assert zergling.tech_requirement == 89  # SpawningPool
  (bonus,) = stalker.weapons[0].damage_bonus
  assert (bonus.attribute, bonus.bonus) == (data_pb.Armored, 5)


def test_morphs_include_what_they_come_from_and_count_as_it():
  units = {unit.unit_id: unit for unit in tables_of(unit_type_id=True).units}
  assert (units[132].mineral_cost, units[18].mineral_cost) == (550, 400)  # OrbitalCommand
  assert list(units[132].tech_alias) == [18] and units[32].unit_alias == 33  # SiegeTankSieged
  drone, hatchery = units[104].mineral_cost, units[86].mineral_cost
  assert (drone, hatchery) == (50, 350)
  large = gamedata.make_data(engine.rules_of("large"), sc_pb.RequestData(unit_type_id=True))
  (lair,) = (unit for unit in large.units if unit.name == "Lair")  # Drone, Hatchery, Lair
  assert (lair.mineral_cost, lair.vespene_cost) == (500, 100)


def test_types_that_skirmish_lacks_have_a_name_and_the_ability_that_makes_them():
  units = {unit.unit_id: unit for unit in tables_of(unit_type_id=True).units}
  baneling, larva, patch = units[9], units[151], units[341]
  assert (baneling.name, baneling.ability_id, baneling.mineral_cost) == ("Baneling", 80, 0)
  assert (larva.name, larva.race, larva.sight_range) == ("Larva", common_pb.Zerg, 5)
  assert patch.has_minerals and not patch.has_vespene and units[342].has_vespene


@pytest.mark.parametrize(("name", "ability"), [
  ("BarracksTechLab", 421), ("StarportTechLab", 487), ("StarportFlying", 518),
  ("SupplyDepotLowered", 556), ("SiegeTankSieged", 388), ("Lair", 1216)])
def test_modes_and_add_ons_name_the_ability_that_makes_them(name, ability):
  units = {unit.name: unit.ability_id for unit in tables_of(unit_type_id=True).units}
  assert units[name] == ability


@pytest.mark.parametrize(("name", "ability"), [
  ("WarpGateResearch", 1568), ("CloakingField", 790), ("AdrenalGlands", 1252), ("Burrow", 1225)])
def test_upgrades_that_skirmish_lacks_name_their_research(name, ability):
  upgrades = {upgrade.name: upgrade.ability_id for upgrade in tables_of(upgrade_id=True).upgrades}
  assert upgrades[name] == ability


@recorded.needs_data
def test_makers_equal_those_of_the_real_game():
  """python-sc2's bots look them up: without them `already_pending_upgrade` raises."""
  known = {row.ability_id for row in tables_of(ability_id=True).abilities}
  units = {unit.unit_id: unit for unit in tables_of(unit_type_id=True).units}
  upgrades = {upgrade.upgrade_id: upgrade for upgrade in tables_of(upgrade_id=True).upgrades}
  compared = set()
  for path in (recorded.DATA / "protos" / "data").glob("*.xz"):
    real = sc_pb.ResponseData.FromString(lzma.decompress(path.read_bytes()))
    for ours, theirs in ((units, {unit.unit_id: unit for unit in real.units}),
                         (upgrades, {upgrade.upgrade_id: upgrade for upgrade in real.upgrades})):
      for i in ours.keys() & theirs.keys():
        if theirs[i].ability_id in known - {0}:
          assert ours[i].ability_id == theirs[i].ability_id, theirs[i].name
          compared.add((i, theirs[i].name))
  assert len(compared) > 200


def test_abilities_state_their_target_and_general_ability():
  abilities = {ability.ability_id: ability for ability in tables_of(ability_id=True).abilities}
  target = data_pb.AbilityData.Target
  found = [abilities[i] for i in (23, 321, 560, 380)]
  assert [(ability.target, ability.remaps_to_ability_id) for ability in found] == [
    (target.PointOrUnit, 3674), (target.Point, 0), (target.Value("None"), 0),
    (target.Value("None"), 3675)]
  assert abilities[321].is_building and abilities[321].footprint_radius == 1.8125
  assert abilities[144].link_name == "PointDefenseDrone" and not abilities[144].available
  assert abilities[0].link_name == ""


def test_upgrades_have_the_costs_of_their_level():
  upgrades = {upgrade.upgrade_id: upgrade for upgrade in tables_of(upgrade_id=True).upgrades}
  assert [(upgrades[i].name, upgrades[i].mineral_cost, upgrades[i].ability_id) for i in (7, 8)] == [
    ("TerranInfantryWeaponsLevel1", 100, 652), ("TerranInfantryWeaponsLevel2", 175, 653)]
  _, scan = tables_of(effect_id=True).effects  # after the Guardian Shield
  assert (scan.effect_id, scan.name, scan.radius) == (6, "ScannerSweep", 13)
