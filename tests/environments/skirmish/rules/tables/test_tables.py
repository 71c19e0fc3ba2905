"""The committed tables against the technology tree, where it is available."""

import csv
import json
import lzma
import pathlib

import pytest

from starleague.environments.skirmish.rules.tables import tables
from starleague.experiments.generate import skirmish_tables
from starleague.experiments.generate.vocabulary import write_csv

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
