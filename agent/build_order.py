"""Unit types that players build, and those that a build order counts (Vinyals et al. 2019, Methods)."""

from collections.abc import Iterable

import numpy as np

from starleague.agent import vocabulary as v

# Units that come about by changing others, and buildings the functions' names do not spell.
_OTHERWISE_BUILT = (
  "Archon", "Mothership", "Lair", "Hive", "GreaterSpire", "LurkerDen", "BroodLord", "Lurker",
  "Ravager", "Overseer", "OverlordTransport", "OrbitalCommand", "PlanetaryFortress",
  "BarracksTechLab", "BarracksReactor", "FactoryTechLab", "FactoryReactor", "StarportTechLab",
  "StarportReactor", "NydusCanal", "CreepTumorQueen", "RefineryRich", "AssimilatorRich",
  "ExtractorRich")
_SPELLS = ("StasisTrap",)  # placed by a spell, as an auto-turret is: not built
_WORKERS = ("Probe", "SCV", "Drone")
_SUPPLY = ("Pylon", "SupplyDepot", "Overlord")


def _types(names: Iterable[str]) -> np.ndarray:
  mask = np.zeros(v.NUM_UNIT_TYPES, bool)
  mask[[v.UNIT_TYPES.index(name) for name in names]] = True
  return mask


def _built() -> np.ndarray:
  """Types that a train or build function names, and those of `_OTHERWISE_BUILT`."""
  known = set(v.UNIT_TYPES.names)
  named = {name.split("_")[1] for name, category in zip(v.FUNCTIONS.names, v.CATEGORIES,
                                                        strict=True)
           if category in ("train", "build")}
  return _types((named & known) | set(_OTHERWISE_BUILT)) & ~_types(_SPELLS)


# [N] bool: types that players build. Larvae, auto-turrets, broodlings, changed modes (sieged,
# burrowed, flying) and the map's own things are not.
BUILT = _built()
# [N] bool: types that enter a build order; workers and supply come anyway and say little.
IN_BUILD_ORDER = BUILT & ~_types(_WORKERS + _SUPPLY)
