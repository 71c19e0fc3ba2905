"""Display names."""

import pytest

from starleague.viewers import catalog


@pytest.mark.parametrize(("name", "expected"), [
  ("Effect_Stim_quick", "Stim"), ("Train_SCV_quick", "Train SCV"), ("Smart_unit", "Smart"),
  ("Effect_ChronoBoostEnergyCost_unit", "Chrono boost"), ("Harvest_Gather_unit", "Gather"),
  ("Cancel_Last_quick", "Cancel last"), ("Morph_OrbitalCommand_quick", "Orbital Command")])
def test_function_name(name, expected):
  assert catalog.function_name(name) == expected


@pytest.mark.parametrize(("name", "expected"), [
  ("TerranInfantryWeaponsLevel1", "Infantry Weapons 1"), ("Stimpack", "Stimpack")])
def test_upgrade_name(name, expected):
  assert catalog.upgrade_name(name) == expected


@pytest.mark.parametrize(("name", "expected"), [("CommandCenter", "CC"), ("Barracks", "Ba")])
def test_initials(name, expected):
  assert catalog.initials(name) == expected
