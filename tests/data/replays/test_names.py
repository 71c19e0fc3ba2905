"""Names in replays: aliases, links of builds, functions of commands."""

import pytest

from starleague.agent import vocabulary as v
from starleague.data.replays import names


@pytest.mark.parametrize("name, expected", [
  ("Marine", "Marine"), ("HellionTank", "Hellbat"), ("LurkerMP", "Lurker")])
def test_unit_types(name, expected):
  assert v.UNIT_TYPES.names[names.unit_type(name)] == expected


def test_upgrades_and_unknown_names():
  assert v.UPGRADES.names[names.upgrade("BansheeCloak")] == "CloakingField"
  assert names.upgrade("None of them") == names.unit_type("None of them") == 0


@pytest.mark.parametrize("build, table", [
  (34784, 34784), (44400, 34784), (44401, 44401), (75689, 70154), (99999, 80949)])
def test_a_build_without_a_table_has_the_last_one_before_it(build, table):
  assert names.links_of(build).build == table


def test_builds_before_legacy_of_the_void_have_no_table():
  assert names.links_of(34783) is None


def test_links_move_between_builds():
  """The first column of links.csv and the last one."""
  first, last = names.all_links()[0], names.all_links()[-1]
  assert (first.build, first.names[541]) == (34784, "AdeptPhaseShift")
  assert (last.build, last.names[610]) == (80949, "AdeptPhaseShift")


@pytest.mark.parametrize("name, index, target, expected", [
  ("attack", 0, names.POINT, "Attack_pt"), ("attack", 0, names.UNIT, "Attack_unit"),
  ("ProtossBuild", 1, names.POINT, "Build_Pylon_pt"),
  ("ProtossBuild", 1, names.UNIT, "Build_Pylon_pt"),  # at the unit's place
  ("ProtossBuild", 1, names.QUICK, None), ("attack", 99, names.POINT, None),
  ("None of them", 0, names.QUICK, None)])
def test_functions_of_commands(name, index, target, expected):
  found = names.function(name, index, target)
  assert (None if found is None else v.FUNCTIONS.names[found]) == expected


def test_units_that_can_execute_a_function():
  drone = v.FUNCTIONS.index("Train_Drone_quick")
  larva, marine = names.unit_type("Larva"), names.unit_type("Marine")
  assert names.capable(drone, {larva, marine}) and not names.capable(drone, {marine})
  assert names.SPECIFIC[drone] and not names.SPECIFIC[v.FUNCTIONS.index("no_op")]
