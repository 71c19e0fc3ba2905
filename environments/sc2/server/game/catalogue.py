"""The real game's ability ids, and the functions of Skirmish that they name.

Commands may use any id that the vocabulary knows, specific or general. Orders, ability lists and
data use the real game's specific ids, as its observations do: 560 trains a Marine, 23 attacks.
"""

import dataclasses
import functools

from starleague.agent import vocabulary
from starleague.environments.skirmish.rules.tables import constants, tables

# Ids that orders show, for all units, by race or by type.
_ORDER_IDS = {
  "Smart_pt": 1, "Smart_unit": 1, "Attack_pt": 23, "Attack_unit": 23, "Move_pt": 16,
  "Move_unit": 16, "Stop_quick": 4, "HoldPosition_quick": 18, "Patrol_pt": 17,
  "Effect_Repair_unit": 316, "Rally_Units_pt": 195, "Rally_Units_unit": 195,
  "Cancel_quick": 314, "Cancel_Last_quick": 304, "Behavior_CloakOn_quick": 392,
  "Behavior_CloakOff_quick": 393}
_GATHER_IDS = {"Terran": 295, "Protoss": 298, "Zerg": 1183}
_RETURN_IDS = {"Terran": 296, "Protoss": 299, "Zerg": 1184}
_WORKER_RALLY_IDS = {"Terran": 203, "Protoss": 207, "Zerg": 212}
_STIM_IDS = {"Marine": 380, "Marauder": 253}
# Ids of transports, by the first part of the function's name: those of Medivacs, of Warp Prisms.
_CARGO_IDS = {"Load": (394, 911), "UnloadAllAt": (396, 913), "UnloadUnit": (397, 914)}
LARVA = 151
LARVA_NAME = "Larva"


@dataclasses.dataclass(frozen=True, eq=False)
class Catalogue:
  """Abilities of a tier. Functions and types are local indices of its tables."""

  rules: tables.Rules
  functions: dict[int, tuple[int, ...]]  # ability id -> functions it may name

  def pick(self, ability: int, point: bool, unit: bool) -> int | None:
    """Returns the function that an ability names.

    Args:
      ability: id of the real game.
      point: whether the command has a target point.
      unit: whether it has a target unit.

    Returns:
      A local function; the one with a fitting target if there is one. None: not in this tier.
    """
    known, tables_ = self.functions.get(ability, ()), self.rules.functions
    if not known:
      return None

    def fits(function):
      return (bool(tables_.takes_point[function]) == point
              and bool(tables_.takes_unit[function]) == unit)

    return next((function for function in known if fits(function)), known[0])

  def ability(self, function: int, kind: int, level: int = 1) -> int:
    """Returns the specific ability id that orders show.

    Args:
      function: local.
      kind: local type of the unit that has the order.
      level: of an upgrade with several levels, from 1.
    """
    types, name = self.rules.types, self.rules.functions.names[function]
    race = constants.RACES[types.race[kind]]
    if name in _ORDER_IDS:
      return _ORDER_IDS[name]
    if name == "Harvest_Gather_unit":
      return _GATHER_IDS[race]
    if name == "Harvest_Return_quick":
      return _RETURN_IDS[race]
    if name == "Effect_Stim_quick":
      return _STIM_IDS.get(types.names[kind], _STIM_IDS["Marine"])
    if name.split("_")[0] in _CARGO_IDS:
      return _CARGO_IDS[name.split("_")[0]][race == "Protoss"]
    if name.startswith("Rally_Workers"):
      return _WORKER_RALLY_IDS[race]
    if self.rules.functions.kind[function] == constants.ATTACHING:
      hosts = self.rules.products.producer[self.rules.products.function == function]
      level = 1 + sorted(hosts.tolist()).index(kind)  # the order of the ids
    ids = sorted(ids_of(int(self.rules.functions.index[function])))
    return ids[max(0, min(level, len(ids)) - 1)]

  @functools.cache  # noqa: B019  lives as long as its catalogue, of which there is one a tier
  def product_ability(self, product: int) -> int:
    """Returns the id of the order that makes a product: a type or a level of an upgrade."""
    products = self.rules.products
    return self.ability(
      int(products.function[product]), int(products.producer[product]),
      int(products.level[product]))

  def needs_target(self, function: int) -> bool:
    """Whether a local function takes a point or a unit."""
    return bool(self.rules.functions.takes_point[function]
                or self.rules.functions.takes_unit[function])


@functools.cache
def _ids_by_function() -> dict[int, set[int]]:
  found: dict[int, set[int]] = {}
  for ability, functions in vocabulary.ABILITIES.items():
    for function in functions:
      found.setdefault(function, set()).add(ability)
  return found


def ids_of(function: int) -> set[int]:
  """Returns the ability ids of a dense function."""
  return _ids_by_function()[function]


@functools.cache
def make_catalogue(rules: tables.Rules) -> Catalogue:
  """Makes the abilities of a tier."""
  functions: dict[int, tuple[int, ...]] = {}
  for ability, dense in vocabulary.ABILITIES.items():
    local = tuple(sorted(int(rules.functions.local[i]) for i in dense if rules.functions.local[i]))
    if local:
      functions[ability] = local
  return Catalogue(rules, functions)
