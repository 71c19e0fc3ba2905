"""The page's order buttons: names, hot keys, prices and the functions behind them."""

import re
import string
from typing import Any, NamedTuple

import numpy as np

from starleague.environments.skirmish.rules.tables import constants, tables
from starleague.viewers import catalog

QUICK, POINT, UNIT = "quick", "point", "unit"  # kinds of targets
RESERVED_KEYS = "qwz"  # keys of the page itself
_FIXED_KEYS = {
  "Attack": "a", "Move": "m", "Stop": "s", "HoldPosition": "h", "Patrol": "p",
  "Harvest_Gather": "g", "Harvest_Return": "c", "Effect_Repair": "r", "Effect_Stim": "t",
  "Morph_SiegeMode": "e", "Morph_Unsiege": "d", "Effect_Scan": "c", "Effect_InjectLarva": "v",
  "Effect_ChronoBoostEnergyCost": "c", "Rally_Units": "y", "Rally_Workers": "y", "Cancel": "x",
  "Cancel_Last": "l"}


class Command(NamedTuple):
  """A button: the functions that differ only in the kind of their target."""

  label: str
  key: str  # a letter; "" for the right mouse button
  functions: dict[str, int]  # local function by QUICK, POINT or UNIT
  capable: tuple[int, ...]  # local types that can execute it
  product: int  # local product, 0 for none
  kind: int  # as in `Functions.kind`


def commands(rules: tables.Rules) -> list[Command]:
  """Returns all commands of a tier; those of one unit type have different hot keys."""
  functions = rules.functions
  found: dict[str, Command] = {}
  for i, name in enumerate(functions.names[1:], 1):
    target = UNIT if functions.takes_unit[i] else POINT if functions.takes_point[i] else QUICK
    base = catalog.base_name(name)
    if base in found:
      found[base].functions[target] = i
      continue
    label = re.sub(r"^(Research) (Terran|Protoss|Zerg) ", r"\1 ", catalog.function_name(name))
    found[base] = Command(
      label, "", {target: i}, tuple(np.flatnonzero(functions.capable[i]).tolist()),
      int(functions.product[i]), int(functions.kind[i]))
  keys = _hot_keys(found)
  return [command._replace(key=keys.get(base, "")) for base, command in found.items()]


def _hot_keys(found: dict[str, Command]) -> dict[str, str]:
  """Chooses hot keys: fixed ones, else the first free letter of a command's name."""
  keys = {base: _FIXED_KEYS[base] for base in found if base in _FIXED_KEYS}
  for base, command in found.items():
    if base in keys or base == "Smart":
      continue
    taken = {keys[other] for other in keys if set(found[other].capable) & set(command.capable)}
    words = command.label.lower().split()
    wanted = "".join(word[0] for word in words[1:]) + "".join(words[1:]) + string.ascii_lowercase
    keys[base] = next(letter for letter in wanted if letter in string.ascii_lowercase
                      and letter not in taken and letter not in RESERVED_KEYS)
  return keys


def page_commands(rules: tables.Rules) -> list[dict[str, Any]]:
  """Returns the commands with their prices, as JSON types."""
  products, found = rules.products, []
  for command in commands(rules):
    building = command.kind == constants.BUILDING
    found.append({
      **command._asdict(), "minerals": int(products.minerals[command.product]),
      "vespene": int(products.vespene[command.product]),
      "food": int(products.takes_food[command.product]) / 2, "building": building,
      "gas": bool(building and rules.types.gas[command.product])})
  return found
