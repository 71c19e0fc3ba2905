"""Masks of the unit types that players build, of those in build orders, and of structures.

Vinyals et al. 2019, Methods.
"""

from collections.abc import Iterable

import numpy as np

from starleague.agent import vocabulary as v

# Units that morph from others, and structures that no function is named after.
_MORPHED = ("Archon", "Mothership", "BroodLord", "Lurker", "Ravager", "Overseer",
            "OverlordTransport")
_OTHER_STRUCTURES = (
  "Lair", "Hive", "GreaterSpire", "LurkerDen", "OrbitalCommand", "PlanetaryFortress",
  "BarracksTechLab", "BarracksReactor", "FactoryTechLab", "FactoryReactor", "StarportTechLab",
  "StarportReactor", "NydusCanal", "CreepTumorQueen", "RefineryRich", "AssimilatorRich",
  "ExtractorRich")
_WEAPONS = ("Nuke",)  # made by functions that build, like structures
_SPELLS = ("StasisTrap",)  # cast as a spell like an auto-turret, not built
_WORKERS = ("Probe", "SCV", "Drone")
_SUPPLY = ("Pylon", "SupplyDepot", "Overlord")


def _types(names: Iterable[str]) -> np.ndarray:
  mask = np.zeros(v.NUM_UNIT_TYPES, bool)
  mask[[v.UNIT_TYPES.index(name) for name in names]] = True
  return mask


def _named(*categories: str) -> set[str]:
  """Returns the types that functions of some categories are named after."""
  return set(v.UNIT_TYPES.names) & {
    name.split("_")[1] for name, category in zip(v.FUNCTIONS.names, v.CATEGORIES, strict=True)
    if category in categories}


def _built() -> np.ndarray:
  """Returns the types named in train and build functions, and those that none is named after."""
  return (_types(_named("train", "build") | {*_MORPHED, *_OTHER_STRUCTURES}) & ~_types(_SPELLS))


# [N] bool: types that players build. Excludes larvae, auto-turrets, broodlings, modes (sieged,
# burrowed, flying) and neutral units.
BUILT = _built()
# [N] bool: types in build orders. Workers and supply are left out: they carry little information.
IN_BUILD_ORDER = BUILT & ~_types(_WORKERS + _SUPPLY)
# [N] bool: structures among the types that players build.
STRUCTURES = BUILT & _types(_named("build") - set(_WEAPONS) | set(_OTHER_STRUCTURES))
