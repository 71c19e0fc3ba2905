"""Masks of the unit types that players build and of those in build orders.

Vinyals et al. 2019, Methods.
"""

from collections.abc import Iterable

import numpy as np

from starleague.agent import vocabulary as v

# Units that morph from others, and buildings that no function is named after.
_OTHERWISE_BUILT = (
  "Archon", "Mothership", "Lair", "Hive", "GreaterSpire", "LurkerDen", "BroodLord", "Lurker",
  "Ravager", "Overseer", "OverlordTransport", "OrbitalCommand", "PlanetaryFortress",
  "BarracksTechLab", "BarracksReactor", "FactoryTechLab", "FactoryReactor", "StarportTechLab",
  "StarportReactor", "NydusCanal", "CreepTumorQueen", "RefineryRich", "AssimilatorRich",
  "ExtractorRich")
_SPELLS = ("StasisTrap",)  # cast as a spell like an auto-turret, not built
_WORKERS = ("Probe", "SCV", "Drone")
_SUPPLY = ("Pylon", "SupplyDepot", "Overlord")


def _types(names: Iterable[str]) -> np.ndarray:
  mask = np.zeros(v.NUM_UNIT_TYPES, bool)
  mask[[v.UNIT_TYPES.index(name) for name in names]] = True
  return mask


def _built() -> np.ndarray:
  """Returns the types named in train and build functions, and `_OTHERWISE_BUILT`."""
  known = set(v.UNIT_TYPES.names)
  named = {name.split("_")[1] for name, category in zip(v.FUNCTIONS.names, v.CATEGORIES,
                                                        strict=True)
           if category in ("train", "build")}
  return _types((named & known) | set(_OTHERWISE_BUILT)) & ~_types(_SPELLS)


# [N] bool: types that players build. Excludes larvae, auto-turrets, broodlings, modes (sieged,
# burrowed, flying) and neutral units.
BUILT = _built()
# [N] bool: types in build orders. Workers and supply are left out: they carry little information.
IN_BUILD_ORDER = BUILT & ~_types(_WORKERS + _SUPPLY)
