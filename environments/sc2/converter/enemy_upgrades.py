"""Enemy upgrades, inferred from the upgrade levels of visible units."""

import numpy as np

from starleague.agent import types
from starleague.agent import vocabulary as v

_LEVELS = 3
_MECHANICAL = ("Hellion", "Hellbat", "WidowMine", "WidowMineBurrowed", "SiegeTank",
               "SiegeTankSieged", "Thor", "ThorHighImpactMode", "Cyclone")
_SHIPS = ("VikingAssault", "VikingFighter", "Banshee", "Battlecruiser", "Liberator", "LiberatorAG",
          "Medivac", "Raven")
_INFANTRY = ("Marine", "Marauder", "Reaper", "Ghost", "GhostAlternate", "GhostNova")
_PROTOSS_GROUND = ("Zealot", "Stalker", "Sentry", "Adept", "HighTemplar", "DarkTemplar", "Archon",
                   "Immortal", "Colossus", "Disruptor")
_PROTOSS_AIR = ("Phoenix", "VoidRay", "Oracle", "Carrier", "Interceptor", "Tempest", "Mothership",
                "Observer", "ObserverSurveillanceMode", "WarpPrism", "WarpPrismPhasing")
_ZERG_MELEE = ("Zergling", "ZerglingBurrowed", "Baneling", "BanelingBurrowed", "Ultralisk",
               "UltraliskBurrowed", "Broodling")
_ZERG_MISSILE = ("Queen", "QueenBurrowed", "Roach", "RoachBurrowed", "Ravager", "RavagerBurrowed",
                 "Hydralisk", "HydraliskBurrowed", "Lurker", "LurkerBurrowed", "Locust",
                 "InfestedTerran")
_ZERG_OTHER = ("SwarmHost", "SwarmHostBurrowed", "Infestor", "InfestorBurrowed")
_ZERG_AIR = ("Mutalisk", "Corruptor", "BroodLord", "Viper", "Overlord", "Overseer",
             "OverseerOversightMode", "OverlordTransport")
_SHIELDS = tuple(name for name, race in zip(v.UNIT_TYPES.names, v.UNIT_RACES, strict=True)
                 if race == "Protoss")
# The column of a unit's level, the upgrade that raises it, and the units that it is for.
_LINES = (
  ("attack", "TerranInfantryWeapons", _INFANTRY), ("armor", "TerranInfantryArmors", _INFANTRY),
  ("attack", "TerranVehicleWeapons", _MECHANICAL), ("attack", "TerranShipWeapons", _SHIPS),
  ("armor", "TerranVehicleAndShipArmors", _MECHANICAL + _SHIPS),
  ("attack", "ProtossGroundWeapons", _PROTOSS_GROUND),
  ("armor", "ProtossGroundArmors", _PROTOSS_GROUND),
  ("attack", "ProtossAirWeapons", _PROTOSS_AIR), ("armor", "ProtossAirArmors", _PROTOSS_AIR),
  ("shield", "ProtossShields", _SHIELDS),
  ("attack", "ZergMeleeWeapons", _ZERG_MELEE), ("attack", "ZergMissileWeapons", _ZERG_MISSILE),
  ("armor", "ZergGroundArmors", _ZERG_MELEE + _ZERG_MISSILE + _ZERG_OTHER),
  ("attack", "ZergFlyerWeapons", _ZERG_AIR), ("armor", "ZergFlyerArmors", _ZERG_AIR))
_COLUMNS = {kind: types.COLUMN[f"{kind}_upgrade_level"] for kind in ("attack", "armor", "shield")}


def _first_levels() -> dict[str, np.ndarray]:
  """Returns, for each kind, the first upgrade of the line of each unit type, 0 for none: [N]."""
  tables = {kind: np.zeros(v.NUM_UNIT_TYPES, np.int16) for kind in _COLUMNS}
  for kind, line, names in _LINES:
    tables[kind][[v.UNIT_TYPES.index(n) for n in names]] = v.UPGRADES.index(f"{line}Level1")
  return tables


_FIRST = _first_levels()


def shown(rows: np.ndarray) -> np.ndarray:
  """Returns the upgrades that the levels of enemies imply.

  Args:
    rows: [n, F], entities.

  Returns:
    [U] bool. A level implies those below it.
  """
  found = np.zeros(v.NUM_UPGRADES, bool)
  enemies = rows[rows[:, types.COLUMN["alliance"]] == types.ALLIANCE_ENEMY]
  if not len(enemies):
    return found
  kinds = enemies[:, types.COLUMN["unit_type"]]
  for kind, column in _COLUMNS.items():
    first, levels = _FIRST[kind][kinds], np.minimum(enemies[:, column], _LEVELS)
    for level in range(_LEVELS):
      found[first[(first > 0) & (levels > level)] + level] = True
  return found
