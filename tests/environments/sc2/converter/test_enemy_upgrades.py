"""Enemy upgrades from levels: lines, levels below, own units."""

import numpy as np
import pytest

from starleague.agent import types
from starleague.agent import vocabulary as v
from starleague.environments.sc2.converter import enemy_upgrades

COLUMN = types.COLUMN


def row(name, alliance=types.ALLIANCE_ENEMY, **levels):
  found = np.zeros(types.NUM_ENTITY_COLUMNS, np.int16)
  found[COLUMN["unit_type"]] = v.UNIT_TYPES.index(name)
  found[COLUMN["alliance"]] = alliance
  for kind, level in levels.items():
    found[COLUMN[f"{kind}_upgrade_level"]] = level
  return found


def names(*rows):
  shown = enemy_upgrades.shown(np.array(rows, np.int16).reshape(-1, types.NUM_ENTITY_COLUMNS))
  assert shown.shape == (v.NUM_UPGRADES,) and shown.dtype == bool
  return [v.UPGRADES.names[i] for i in shown.nonzero()[0]]


@pytest.mark.parametrize("unit, levels, expected", [
  ("Marine", {"attack": 2}, ["TerranInfantryWeaponsLevel1", "TerranInfantryWeaponsLevel2"]),
  ("Marine", {"armor": 1}, ["TerranInfantryArmorsLevel1"]),
  ("SiegeTank", {"attack": 1, "armor": 1},
   ["TerranVehicleAndShipArmorsLevel1", "TerranVehicleWeaponsLevel1"]),
  ("Battlecruiser", {"attack": 1}, ["TerranShipWeaponsLevel1"]),
  ("Zealot", {"shield": 1}, ["ProtossShieldsLevel1"]),
  ("Phoenix", {"armor": 1}, ["ProtossAirArmorsLevel1"]),
  ("Ultralisk", {"attack": 1, "armor": 1}, ["ZergGroundArmorsLevel1", "ZergMeleeWeaponsLevel1"]),
  ("Hydralisk", {"attack": 1}, ["ZergMissileWeaponsLevel1"]),
  ("Overlord", {"armor": 1}, ["ZergFlyerArmorsLevel1"]),
  ("SCV", {"attack": 3, "armor": 3, "shield": 3}, [])])
def test_a_level_names_the_upgrade_of_the_units_line(unit, levels, expected):
  assert sorted(names(row(unit, **levels))) == expected


def test_levels_past_the_last_count_as_the_last():
  assert names(row("Marine", attack=300)) == [
    f"TerranInfantryWeaponsLevel{level}" for level in (1, 2, 3)]


def test_only_enemies_count_and_the_highest_level_wins():
  assert names() == []
  assert names(row("Marine", types.ALLIANCE_SELF, attack=3)) == []
  assert names(row("Marine", attack=1), row("Marine", attack=0), row("Reaper", attack=2)) == [
    "TerranInfantryWeaponsLevel1", "TerranInfantryWeaponsLevel2"]


def test_the_three_levels_of_each_line_are_neighbours():
  for _, line, _ in enemy_upgrades._LINES:
    first = v.UPGRADES.index(f"{line}Level1")
    assert [v.UPGRADES.names[first + i] for i in range(3)] == [
      f"{line}Level{level}" for level in (1, 2, 3)]
