"""Which unit types players build, and which of them build orders hold."""

import numpy as np
import pytest

from starleague.agent import build_order
from starleague.agent import vocabulary as v


def has(mask, name):
  return bool(mask[v.UNIT_TYPES.index(name)])


@pytest.mark.parametrize(("name", "built", "in_build_order"), [
  ("Marine", True, True),
  ("Barracks", True, True),
  ("BarracksTechLab", True, True),  # an add-on, which no function is named after
  ("OrbitalCommand", True, True),  # morphs from a command center
  ("Archon", True, True),
  ("SCV", True, False), ("Probe", True, False), ("Drone", True, False),
  ("SupplyDepot", True, False), ("Pylon", True, False), ("Overlord", True, False),
  ("Overseer", True, True),
  ("Larva", False, False), ("AutoTurret", False, False), ("Broodling", False, False),
  ("StasisTrap", False, False),
  ("SiegeTankSieged", False, False), ("ZerglingBurrowed", False, False),
  ("BarracksFlying", False, False), ("MineralField", False, False)])
def test_types_that_are_built_and_those_in_build_orders(name, built, in_build_order):
  assert (has(build_order.BUILT, name), has(build_order.IN_BUILD_ORDER, name)) == (
    built, in_build_order)


def test_masks_cover_the_vocabulary_and_differ_by_workers_and_supply():
  for mask in (build_order.BUILT, build_order.IN_BUILD_ORDER):
    assert mask.shape == (v.NUM_UNIT_TYPES,) and mask.dtype == bool
    assert not mask[0]  # unknown or none
    assert not mask[len(v.UNIT_TYPES.names):].any()
  left_out = np.flatnonzero(build_order.BUILT & ~build_order.IN_BUILD_ORDER)
  assert {v.UNIT_TYPES.names[i] for i in left_out} == {
    "SCV", "Probe", "Drone", "SupplyDepot", "Pylon", "Overlord"}
  assert not (build_order.IN_BUILD_ORDER & ~build_order.BUILT).any()


@pytest.mark.parametrize(("name", "structure"), [
  ("Barracks", True), ("SupplyDepot", True), ("FactoryTechLab", True), ("Lair", True),
  ("OrbitalCommand", True), ("Marine", False), ("SCV", False), ("Archon", False),
  ("Overseer", False), ("Nuke", False), ("BarracksFlying", False)])
def test_structures(name, structure):
  assert has(build_order.STRUCTURES, name) == structure
  assert not (build_order.STRUCTURES & ~build_order.BUILT).any()


def test_types_that_train_and_build_functions_name_are_built():
  for name, category in zip(v.FUNCTIONS.names, v.CATEGORIES, strict=True):
    unit = name.split("_")[1] if category in ("train", "build") else ""
    if unit in v.UNIT_TYPES.names and unit != "StasisTrap":
      assert has(build_order.BUILT, unit), name


def test_every_race_builds_and_neutral_types_are_not_built():
  races = v.UNIT_RACES[np.flatnonzero(build_order.BUILT)]
  assert set(races) == {"Terran", "Zerg", "Protoss"}
