"""The committed tables are those of the technology tree, where it is at hand."""

import csv
import json
import lzma
import pathlib

import numpy as np
import pytest

from starleague.environments.skirmish.rules import tables, tiers
from starleague.experiments.generate import skirmish_tables
from starleague.experiments.generate.vocabulary import write_csv
from tests.environments.skirmish.default_games import LOCAL, RULES, TYPES

TREE = pathlib.Path(__file__).resolve().parents[5] / "shared" / "data" / "techtree" / "data.json.xz"
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
def test_tables_are_those_of_the_technology_tree(tree, tmp_path, name, columns, rows):
  write_csv(tmp_path / name, columns, rows(tree))
  assert (FOLDER / name).read_text() == (tmp_path / name).read_text()


def test_units_that_are_not_abridged_have_the_trees_own_numbers(tree):
  """Straight from the source, past the functions that write the tables."""
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


def test_tables_hold_numbers_known_by_heart():
  """Of patch 4.10, as every player knows them."""
  cost = {name: (int(RULES.products.minerals[i]), int(RULES.products.vespene[i]))
          for name, i in LOCAL.items()}
  assert cost["Marine"] == (50, 0) and cost["SiegeTank"] == (150, 125)
  assert cost["Stalker"] == (125, 50) and cost["Immortal"] == (275, 100)
  assert cost["Zergling"] == (50, 0) and cost["Mutalisk"] == (100, 100)
  assert cost["Hatchery"] == (300, 0)  # and a drone
  assert cost["OrbitalCommand"] == (150, 0)  # the difference
  assert (TYPES.health[LOCAL["Zealot"]], TYPES.shield[LOCAL["Zealot"]]) == (100, 50)
  assert TYPES.takes_food[LOCAL["Zergling"]] == 1  # in halves
  assert RULES.products.takes_food[LOCAL["Zergling"]] == 2 == RULES.products.brood[LOCAL["Zergling"]]
  assert TYPES.gives_food[LOCAL["Pylon"]] == 16 and TYPES.gives_food[LOCAL["Hatchery"]] == 12
  assert RULES.products.loops[LOCAL["SupplyDepot"]] == 160  # 480 loops at tempo 3
  sieged = LOCAL["SiegeTankSieged"]
  assert (TYPES.ground.damage[sieged], TYPES.ground.range[sieged], TYPES.splash[sieged]) == (
    40, 13, 1.25)
  assert not TYPES.ground.damage[LOCAL["Phoenix"]] and TYPES.air.damage[LOCAL["Phoenix"]] == 5


def test_every_product_can_come_to_be():
  """Each has a function, whoever makes it is of its race, and what it needs leads to the start."""
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
    made_at_once = TYPES.names[i] == "SiegeTankSieged"
    assert (products.function[i] > 0) != made_at_once
  assert (products.function[y:] > 0).all()


def test_tiers_leave_room_for_every_race():
  for name, sizes in tiers.TIERS.items():
    rows = 2 * sizes.slots + sizes.resources
    assert rows <= {"mini": 64, "default": 192, "large": 384}[name]
    assert sizes.slots == {"mini": 24, "default": 64, "large": 128}[name]
    # Units of half a food, two to a larva, cannot be more than slots by food alone: `room` guards.
    assert sizes.units >= sizes.food_cap
