"""The committed tables against the technology tree, where it is available."""

import csv
import json
import lzma
import pathlib

import numpy as np
import pytest

from starleague.environments.skirmish.rules.tables import tables, tiers
from starleague.experiments.generate import skirmish_tables
from starleague.experiments.generate.vocabulary import write_csv
from tests.environments.skirmish.default_games import LOCAL, RULES, TYPES

TREE = pathlib.Path(__file__).resolve().parents[6] / "shared" / "data" / "techtree" / "data.json.xz"
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


def test_units_without_overrides_have_the_trees_numbers(tree):
  """Read from the source directly, without the functions that write the tables."""
  source = {unit["name"]: unit for unit in tree["Unit"]}
  with (FOLDER / "units.csv").open(newline="") as file:
    rows = {row["name"]: row for row in csv.DictReader(file)}
  assert len(rows) == 52
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


def test_tables_have_well_known_numbers():
  """Of patch 4.10."""
  cost = {name: (int(RULES.products.minerals[i]), int(RULES.products.vespene[i]))
          for name, i in LOCAL.items()}
  assert cost["Marine"] == (50, 0) and cost["SiegeTank"] == (150, 125)
  assert cost["Stalker"] == (125, 50) and cost["Immortal"] == (275, 100)
  assert cost["Zergling"] == (50, 0) and cost["Mutalisk"] == (100, 100)
  assert cost["Hatchery"] == (300, 0)  # plus the Drone
  assert cost["OrbitalCommand"] == (150, 0)  # the difference to its Command Center
  assert (TYPES.health[LOCAL["Zealot"]], TYPES.shield[LOCAL["Zealot"]]) == (100, 50)
  assert TYPES.takes_food[LOCAL["Zergling"]] == 1  # in halves
  zergling = LOCAL["Zergling"]
  assert RULES.products.takes_food[zergling] == 2 == RULES.products.brood[zergling]
  assert TYPES.gives_food[LOCAL["Pylon"]] == 16 and TYPES.gives_food[LOCAL["Hatchery"]] == 12
  assert RULES.products.loops[LOCAL["SupplyDepot"]] == 160  # 480 loops at tempo 3
  sieged = LOCAL["SiegeTankSieged"]
  assert (TYPES.ground.damage[sieged], TYPES.ground.range[sieged], TYPES.splash[sieged]) == (
    40, 13, 1.25)
  assert not TYPES.ground.damage[LOCAL["Phoenix"]] and TYPES.air.damage[LOCAL["Phoenix"]] == 5


def test_every_product_can_be_made():
  """Each has a function, a producer of its race, and requirements that can be met."""
  products, y = RULES.products, len(TYPES.names)
  known = {int(np.argmax((TYPES.race == race) & TYPES.townhall)) for race in range(3)} | {
    int(np.argmax((TYPES.race == race) & TYPES.worker)) for race in range(3)} | {0}
  for _ in range(12):
    known |= {i for i in range(1, y) if products.producer[i] in known
              and products.requirement[i] in known}
  assert known == set(range(y))
  assert set(products.requirement[y:]) <= known and set(products.producer[y:]) <= known
  for i in range(1, y):
    assert TYPES.race[products.producer[i]] == TYPES.race[i]
    instant = TYPES.names[i] == "SiegeTankSieged"
    assert (products.function[i] > 0) != instant
  assert (products.function[y:] > 0).all()


def test_tiers_have_slots_for_every_race():
  for name, sizes in tiers.TIERS.items():
    rows = 2 * sizes.slots + sizes.resources
    assert rows <= {"mini": 64, "default": 192, "large": 384}[name]
    assert sizes.slots == {"mini": 24, "default": 64, "large": 128}[name]
    # Zerglings take half a food each: `supply.free_unit_slots` limits those.
    assert sizes.units >= sizes.food_cap
