"""Skirmish's tables: what the lists here say, and the technology tree where it is available."""

import csv
import json
import lzma
import pathlib

import pytest

from starleague.agent import vocabulary
from starleague.environments.skirmish.rules.tables import tables
from starleague.experiments.generate import skirmish_tables
from starleague.experiments.generate.vocabulary import TechnologyTreeError, write_csv

TREE = pathlib.Path(__file__).resolve().parents[4] / "shared" / "data" / "techtree" / "data.json.xz"
FOLDER = pathlib.Path(tables.__file__).parent


@pytest.fixture(scope="module")
def tree():
  if not TREE.exists():
    pytest.skip(f"no technology tree at {TREE}: python-sc2's data.json is not part of the project")
  with lzma.open(TREE, "rt") as file:
    return json.load(file)


@pytest.mark.parametrize(("name", "columns", "rows"), [
  ("units.csv", skirmish_tables.UNIT_COLUMNS, skirmish_tables.unit_rows),
  ("upgrades.csv", skirmish_tables.UPGRADE_COLUMNS, skirmish_tables.upgrade_rows)])
def test_tables_match_the_technology_tree(tree, tmp_path, name, columns, rows):
  write_csv(tmp_path / name, columns, rows(tree))
  assert (FOLDER / name).read_text() == (tmp_path / name).read_text()


def committed(name):
  """Returns the rows of a committed table by their names, in order."""
  with (FOLDER / name).open(newline="") as file:
    return {row["name"]: row for row in csv.DictReader(file)}


def test_units_without_overrides_have_the_trees_numbers(tree):
  """Read from the source directly, without the functions that write the tables."""
  source = {unit["name"]: unit for unit in tree["Unit"]}
  rows = committed("units.csv")
  assert len(rows) == 67
  for name, row in rows.items():
    unit = source[name]
    assert int(row["id"]) == unit["id"]
    assert float(row["health"]) == unit["max_health"]
    assert float(row["shield"]) == unit.get("max_shield", 0)
    assert float(row["armor"]) == unit["armor"] and float(row["food"]) == unit["supply"]
    assert float(row["time"]) == round(unit["time"])
    drone = 50 if row["producer"] == str(source["Drone"]["id"]) else 0
    if "minerals" not in skirmish_tables.OVERRIDES.get(name, {}):
      assert int(row["minerals"]) + drone == unit["minerals"], name
    assert int(row["vespene"]) == unit["gas"]


def test_the_committed_units_are_those_listed():
  """By race, with the vocabulary's ids, and with the deviations that are listed."""
  rows = committed("units.csv")
  listed = {race: (*names, *skirmish_tables.TECHNOLOGY[race])
            for race, names in skirmish_tables.UNITS.items()}
  assert list(rows) == [name for names in listed.values() for name in names]
  ids = vocabulary.UNIT_TYPES
  for race, names in listed.items():
    for name in names:
      assert rows[name]["race"] == race
      assert rows[name]["technology"] == str(int(name in skirmish_tables.TECHNOLOGY[race]))
      assert int(rows[name]["id"]) == int(ids.ids[ids.index(name)])
  assert sorted(name for name in rows if rows[name]["larva"] == "1") == sorted(
    skirmish_tables.LARVAE_BECOME)
  spire, den, pool, lair = (
    rows[name] for name in ("Spire", "HydraliskDen", "SpawningPool", "Lair"))
  assert spire["requirement"] == den["requirement"] == lair["id"]
  assert spire["plain_requirement"] == den["id"] and den["plain_requirement"] == pool["id"]
  equipped = {name: row["add_on"] for name, row in rows.items() if row["add_on"] != "0"}
  assert equipped == {"Marauder": "37", "SiegeTank": "39", "Banshee": "41"}
  assert {name: row["upgrade"] for name, row in rows.items() if row["upgrade"] != "0"} == {
    "WarpGate": "84"}
  cooldowns = {name: int(row["warp_cooldown"]) / 16 for name, row in rows.items()}
  assert {name: seconds for name, seconds in cooldowns.items() if seconds} == {
    "Zealot": 28, "Stalker": 32, "DarkTemplar": 45, "Sentry": 32}
  assert (rows["Zergling"]["minerals"], rows["Zergling"]["brood"]) == ("50", "2")
  assert [rows["Bunker"][f"ground_{column}"] for column in (
    "damage", "attacks", "range", "cooldown")] == ["6", "3", "6", "0.86"]


def test_the_committed_upgrades_are_those_listed():
  rows, units = committed("upgrades.csv"), committed("units.csv")
  assert len(rows) == 3 * len(skirmish_tables.LEVELS) + len(skirmish_tables.SINGLE) == 54
  assert [(row["name"], row["producer"]) for row in rows.values()
          if row["plain_producer"] == "0"] == [("WarpGateResearch", "72")]
  for line, producer, requirement, effect, amounts in skirmish_tables.LEVELS:
    for level in (1, 2, 3):
      row = rows[f"{line}Level{level}"]
      assert (row["level"], row["effect"], row["amounts"]) == (str(level), effect, amounts)
      assert row["producer"] == row["plain_producer"] == units[producer]["id"]
      assert row["plain_requirement"] == (units[requirement]["id"] if level > 1 else "0")
      needed = "Lair" if line.startswith("Zerg") else requirement
      assert row["requirement"] == (units[needed]["id"] if level > 1 else "0")
      assert row["function"] in vocabulary.FUNCTIONS.names


@pytest.mark.parametrize("kind, target, expected", [
  ("Ground", "Ground", (8, 2, 4, "Armored", 5.1, 1.5)),
  ("Any", "Air", (8, 2, 4, "Armored", 5.1, 1.5)),
  ("Air", "Ground", (0, 0, 0, "", 0, 0))])
def test_weapons_by_target(kind, target, expected):
  weapon = {"target_type": kind, "damage_per_hit": 8, "attacks": 2, "range": 5.12,
            "cooldown": 1.504, "bonuses": [{"damage": 4, "against": "Armored"}]}
  assert skirmish_tables._weapon({"weapons": [weapon]}, target) == expected


def test_a_tree_without_a_unit_or_an_upgrade_is_refused():
  names = [name for race in skirmish_tables.UNITS
           for name in (*skirmish_tables.UNITS[race], *skirmish_tables.TECHNOLOGY[race])]
  tree = {"Ability": [1], "Upgrade": [{"name": "other"}],
          "Unit": [{"name": name, "id": 1} for name in names]}
  with pytest.raises(TechnologyTreeError, match=(
      "^technology tree: expected the unit 'Larva', found none; download python-sc2's data.json$")):
    skirmish_tables.unit_rows(tree)
  with pytest.raises(TechnologyTreeError, match=(
      "^technology tree: expected the upgrade 'TerranInfantryWeaponsLevel1', found none; ")):
    skirmish_tables.upgrade_rows(tree)
  tree["Unit"] = [{"name": name, "id": 1} for name in ("Larva", *names) if name != "Banshee"]
  with pytest.raises(TechnologyTreeError, match="expected the unit 'Banshee', found none"):
    skirmish_tables.unit_rows(tree)


def test_requirements_of_products():
  """The structure that the maker's ability for the product names; 0 without one."""
  tree = {
    "Ability": [{"id": 1, "target": {"Point": {"produces": 70}}},
                {"id": 2, "target": {"Point": {"produces": 71}}}, {"id": 3, "target": "None"}],
    "Unit": [{"name": "Probe", "abilities": [
      {"ability": 1, "requirements": [{"upgrade": 5}, {"building": 62}]}, {
        "ability": 2, "requirements": [{"addon": 5}]}]}]}
  assert skirmish_tables._required(tree, "Probe", 70, "building") == 62
  assert skirmish_tables._required(tree, "Probe", 71, "building") == 0
  assert skirmish_tables._required(tree, "Probe", 71, "addon") == 5
