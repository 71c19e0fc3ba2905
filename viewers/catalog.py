"""Display names and attributes of Skirmish's unit types, functions and upgrades."""

import re
from typing import Any

from starleague.agent import types
from starleague.environments.skirmish.rules.tables import constants, tables

SECONDS_PER_STEP = constants.LOOPS_PER_STEP / types.GAME_LOOPS_PER_SECOND
_FUNCTION_NAMES = {
  "HoldPosition": "Hold position", "SiegeMode": "Siege mode", "Rally_Units": "Rally",
  "ChronoBoostEnergyCost": "Chrono boost", "InjectLarva": "Inject larvae",
  "Rally_Workers": "Rally workers", "Cancel_Last": "Cancel last", "Return": "Return cargo"}


def base_name(function: str) -> str:
  """Returns a function's name without its argument kind: `Smart_pt` is `Smart`."""
  return re.sub(r"_(pt|unit|quick|autocast)$", "", function)


def unit_name(name: str) -> str:
  """Returns a unit type's name with spaces: `CommandCenter` is `Command Center`."""
  return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name)


def function_name(name: str) -> str:
  """Returns a function's name as buttons and logs show it: `Effect_Stim_quick` is `Stim`."""
  name = re.sub(r"^(Harvest|Effect|Morph)_", "", base_name(name))
  return _FUNCTION_NAMES.get(name, unit_name(name))


def upgrade_name(name: str) -> str:
  """Returns an upgrade's name: `TerranInfantryWeaponsLevel1` is `Infantry Weapons 1`."""
  return unit_name(re.sub(r"^(Terran|Protoss|Zerg)", "", name)).replace(" Level", " ")


def product_names(rules: tables.Rules) -> list[str]:
  """Returns the names of all products, by local product: unit types, then upgrades."""
  return [*map(unit_name, rules.types.names), *map(upgrade_name, rules.upgrades.names)]


def initials(name: str) -> str:
  """Returns the short label of a unit type: `CommandCenter` is `CC`, `Barracks` is `Ba`."""
  parts = unit_name(name).split()
  return "".join(part[0] for part in parts) if len(parts) > 1 else parts[0][:2]


def clock(step: float) -> str:
  """Returns the game time of an environment step as `m:ss`."""
  seconds = int(step * constants.LOOPS_PER_STEP / types.GAME_LOOPS_PER_SECOND)
  return f"{seconds // 60}:{seconds % 60:02d}"


def unit_types(rules: tables.Rules) -> list[dict[str, Any]]:
  """Returns the attributes of each local unit type that the pages' scripts read."""
  of = rules.types
  return [{"name": unit_name(name), "shape": name, "structure": bool(of.structure[i]),
           "worker": bool(of.worker[i]), "fighter": bool(of.fighter[i]),
           "flying": bool(of.flying[i]), "race": int(of.race[i]), "radius": float(of.radius[i]),
           "health": float(of.health[i]), "shield": float(of.shield[i]),
           "creep": bool(of.larvae[i]), "reach": float(max(of.ground.range[i], of.air.range[i]))}
          for i, name in enumerate(of.names)]
