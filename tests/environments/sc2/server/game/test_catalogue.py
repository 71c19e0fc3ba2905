"""Ability ids of the real game name Skirmish's functions, and back."""

import numpy as np
import pytest

from starleague.environments.sc2.server.game import catalogue, engine
from starleague.environments.skirmish.rules.tables import constants

RULES = engine.rules_of("default")
ABILITIES = catalogue.make_catalogue(RULES)


@pytest.mark.parametrize("ability, point, unit, name", [
  (1, True, False, "Smart_pt"), (1, False, True, "Smart_unit"), (23, True, False, "Attack_pt"),
  (3674, False, True, "Attack_unit"), (16, True, False, "Move_pt"), (4, False, False, "Stop_quick"),
  (3665, False, False, "Stop_quick"), (295, False, True, "Harvest_Gather_unit"),
  (1183, False, True, "Harvest_Gather_unit"), (319, True, False, "Build_SupplyDepot_pt"),
  (320, False, True, "Build_Refinery_pt"), (882, False, True, "Build_Assimilator_unit"),
  (560, False, False, "Train_Marine_quick"), (1342, False, False, "Train_Drone_quick"),
  (653, False, False, "Research_TerranInfantryWeapons_quick"),
  (3698, False, False, "Research_TerranInfantryWeapons_quick"),
  (380, False, False, "Effect_Stim_quick"), (314, False, False, "Cancel_quick"),
  (203, True, False, "Rally_Workers_pt"), (23, False, False, "Attack_pt")])
def test_abilities_name_functions(ability, point, unit, name):
  assert RULES.functions.names[ABILITIES.pick(ability, point, unit)] == name


@pytest.mark.parametrize("ability", [0, -1, 623, 10 ** 6])  # 623: Battlecruiser
def test_abilities_that_skirmish_lacks(ability):
  assert ABILITIES.pick(ability, False, False) is None


@pytest.mark.parametrize("name, kind, level, ability", [
  ("Train_Marine_quick", "Barracks", 1, 560), ("Harvest_Gather_unit", "SCV", 1, 295),
  ("Harvest_Gather_unit", "Probe", 1, 298), ("Harvest_Return_quick", "Drone", 1, 1184),
  ("Attack_unit", "Marine", 1, 23), ("Effect_Stim_quick", "Marauder", 1, 253),
  ("Research_ZergMeleeWeapons_quick", "EvolutionChamber", 1, 1186),
  ("Research_ZergMeleeWeapons_quick", "EvolutionChamber", 3, 1188)])
def test_orders_show_the_specific_id(name, kind, level, ability):
  function = RULES.functions.names.index(name)
  assert ABILITIES.ability(function, RULES.types.local(kind), level) == ability


def test_the_id_of_each_order_names_its_function():
  functions = RULES.functions
  for function in range(1, len(functions.names)):
    for kind in np.flatnonzero(functions.capable[function]):
      for level in range(1, max(int(functions.levels[function]), 1) + 1):
        ability = ABILITIES.ability(function, int(kind), level)
        found = ABILITIES.pick(ability, bool(functions.takes_point[function]),
                               bool(functions.takes_unit[function]))
        assert functions.names[found] == functions.names[function], ability


def test_products_name_their_order():
  levels = RULES.products.level
  for product in range(1, len(levels)):
    if not RULES.products.function[product]:
      continue
    found = ABILITIES.functions[ABILITIES.product_ability(product)]
    assert RULES.products.function[product] in found
  assert constants.BUILDING in RULES.functions.kind
