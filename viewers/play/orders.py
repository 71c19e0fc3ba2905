"""A person's side of a game of Skirmish: what is shown of an observation, and orders as actions.

Pure functions of an observation; nothing here knows the game's state.
"""

import re
import string
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from starleague.agent import types, vocabulary
from starleague.environments.skirmish.rules import (
  action_results,
  constants,
  tables,
)
from starleague.viewers.watch import frames as watch_frames

MINERALS, GEYSER = -1, -2  # in place of a local type
QUICK, POINT, UNIT = "quick", "point", "unit"  # what a command's functions take
_FIXED = {
  "Attack": "a", "Move": "m", "Stop": "s", "HoldPosition": "h", "Patrol": "p",
  "Harvest_Gather": "g", "Harvest_Return": "c", "Effect_Repair": "r", "Effect_Stim": "t",
  "Morph_SiegeMode": "e", "Morph_Unsiege": "d", "Effect_Scan": "c", "Effect_InjectLarva": "v",
  "Effect_ChronoBoostEnergyCost": "c", "Rally_Units": "y", "Rally_Workers": "y", "Cancel": "x",
  "Cancel_Last": "l"}
_RESERVED = "qwz"  # the page's own
_BUFFS = {"Stimpack": "stimmed", "StimpackMarauder": "stimmed", "ChronoBoostEnergyCost": "boosted",
          "QueenSpawnLarvaTimer": "injected", "CarryMineralFieldMinerals": "minerals",
          "CarryHarvestableVespeneGeyserGas": "vespene",
          "CarryHarvestableVespeneGeyserGasProtoss": "vespene",
          "CarryHarvestableVespeneGeyserGasZerg": "vespene"}


class OrderError(ValueError):
  """An order that cannot be carried out: says why, in words for the person."""


class Command(NamedTuple):
  """A button: functions that differ in what they point at only."""

  label: str
  key: str  # a letter, "" for the right mouse button
  functions: dict[str, int]  # QUICK, POINT or UNIT: local function
  capable: tuple[int, ...]  # local types
  product: int  # local product, 0 for none
  kind: int  # as in function_tables.Functions


def _base(name: str) -> str:
  return re.sub(r"_(pt|unit|quick|autocast)$", "", name)


def commands(rules: tables.Rules) -> list[Command]:
  """All commands of a tier, with hot keys that differ among those of any one type."""
  functions, found = rules.functions, {}
  for i, name in enumerate(functions.names[1:], 1):
    takes = UNIT if functions.takes_unit[i] else POINT if functions.takes_point[i] else QUICK
    if _base(name) in found:
      found[_base(name)].functions[takes] = i
      continue
    label = watch_frames.function_words(name)
    label = re.sub(r"^(Research) (Terran|Protoss|Zerg) ", r"\1 ", label)
    found[_base(name)] = Command(
      label, "", {takes: i}, tuple(np.flatnonzero(functions.capable[i]).tolist()),
      int(functions.product[i]), int(functions.kind[i]))
  keys = {base: _FIXED[base] for base in found if base in _FIXED}
  for base, command in found.items():
    if base in keys or base == "Smart":
      continue
    taken = {keys[other] for other in keys if set(found[other].capable) & set(command.capable)}
    words = command.label.lower().split()
    wanted = "".join(word[0] for word in words[1:]) + "".join(words[1:]) + string.ascii_lowercase
    keys[base] = next(letter for letter in wanted if letter in string.ascii_lowercase
                      and letter not in taken and letter not in _RESERVED)
  return [command._replace(key=keys.get(base, "")) for base, command in found.items()]


def _local_types(rules: tables.Rules) -> np.ndarray:
  """Local types by dense index; MINERALS and GEYSER for resources."""
  local = np.zeros(vocabulary.NUM_UNIT_TYPES, int)
  local[rules.types.index] = np.arange(len(rules.types.index))
  local[vocabulary.UNIT_TYPES.index("MineralField")] = MINERALS
  local[vocabulary.UNIT_TYPES.index("VespeneGeyser")] = GEYSER
  local[0] = 0
  return local


def page_setup(rules: tables.Rules, observation: types.Observation,
               names: tuple[str, str]) -> dict[str, Any]:
  """What a page needs to know once, as JSON holds it.

  Args:
    rules: the game's constants.
    observation: the person's first one: the ground is shown from the start.
    names: the person's and the opponent's.
  """
  products, planes = rules.products, dict(zip(
    types.MINIMAP_PLANES, observation.minimap, strict=True))
  ground = None
  if rules.terrain is not None:
    ground = {"passable": _rows(planes["pathable"]),
              "high": _rows(planes["height_map"] > planes["height_map"].min()),
              "buildable": _rows(planes["buildable"])}
  return {
    "names": names, "race": types.RACES[int(observation.home_race)],
    "mapSize": rules.tier.map_size, "most": rules.max_selected, "terrain": ground,
    "secondsPerStep": constants.LOOPS_PER_STEP / types.GAME_LOOPS_PER_SECOND,
    "patchMinerals": rules.tier.patch_minerals, "geyserVespene": rules.tier.geyser_vespene,
    "types": watch_frames.page_types(rules), "products": watch_frames.product_words(rules),
    "commands": [
      {**command._asdict(), "minerals": int(products.minerals[command.product]),
       "vespene": int(products.vespene[command.product]),
       "food": int(products.takes_food[command.product]) / 2,
       "building": command.kind == constants.BUILDING, "gas": bool(
         command.kind == constants.BUILDING and rules.types.gas[command.product])}
      for command in commands(rules)],
    "orders": {int(dense): watch_frames.function_words(name) for dense, name in zip(
      rules.functions.index, rules.functions.names, strict=True)}}


def _rows(plane: np.ndarray) -> list[str]:
  return ["".join(map(str, row)) for row in np.asarray(plane, np.uint8)]


def page_frame(rules: tables.Rules, observation: types.Observation) -> dict[str, Any]:
  """What the person sees now, as JSON holds it: from the observation and nothing else."""
  count = int(observation.entity_count)
  column = {name: observation.entities[:count, i].astype(int)
            for name, i in types.COLUMN.items()}
  local = _local_types(rules)[column["unit_type"]]
  buffs = [_BUFFS.get(vocabulary.BUFFS.names[i], "") for i in column["buff_id_0"]]
  rows = []
  for i in range(count):
    contents = column["mineral_contents"][i] + column["vespene_contents"][i]
    orders = [int(column[f"order_id_{k}"][i]) for k in range(4)]
    rows.append({
      "tag": int(column["tag"][i]), "type": int(local[i]), "side": int(column["alliance"][i]),
      "x": (column["x"][i] + 0.5) / types.POSITION_GRID,
      "y": (column["y"][i] + 0.5) / types.POSITION_GRID,
      "health": int(column["health"][i]), "ratio": int(column["health_ratio"][i]),
      "shield": int(column["shield"][i]), "energy": int(column["energy"][i]),
      "built": int(column["build_progress"][i]), "ghost": int(column["display_type"][i]) == 2,
      "orders": [order for order in orders if order], "length": int(column["order_length"][i]),
      "progress": int(column["order_progress_0"][i]), "contents": int(contents),
      "cooldown": int(column["weapon_cooldown"][i]), "buff": buffs[i],
      "workers": [int(column["assigned_harvesters"][i]), int(column["ideal_harvesters"][i])]})
  planes = dict(zip(types.MINIMAP_PLANES, observation.minimap, strict=True))
  can = np.flatnonzero(observation.available_actions[rules.functions.index])
  return {
    "loop": int(observation.game_loop),
    "clock": watch_frames.clock(int(observation.game_loop) / constants.LOOPS_PER_STEP),
    "player": dict(zip(types.PLAYER_COLUMNS, observation.player.tolist(), strict=True)),
    "upgrades": [watch_frames.upgrade_words(vocabulary.UPGRADES.names[i])
                 for i in np.flatnonzero(observation.upgrades)],
    "rows": rows, "can": can.tolist(), "visibility": _rows(planes["visibility"]),
    "creep": _rows(planes["creep"]) if planes["creep"].any() else []}


def check_order(order: Any, rules: tables.Rules) -> dict[str, Any]:
  """An order as it came from a page, complete and of the right types.

  Raises:
    ValueError: names the key, what was expected and what was found.
  """
  if not isinstance(order, Mapping):
    raise ValueError(f"order: expected an object, found {type(order).__name__}")
  known = {"function": 0, "units": [], "target": 0, "x": 0.0, "y": 0.0, "queued": False,
           "repeat": 1}
  for key in order:
    if key not in known:
      raise ValueError(f"order: unknown key {key!r}; expected {', '.join(known)}")
  order = {**known, **order}
  for key, low, high in (("function", 1, len(rules.functions.names) - 1), ("target", 0, 2 ** 15),
                         ("repeat", 1, 3)):
    value = order[key]
    if type(value) is not int or not low <= value <= high:
      raise ValueError(f"order.{key}: expected an integer from {low} to {high}, found {value!r}")
  for key in ("x", "y"):
    value = order[key]
    if type(value) not in (int, float) or not 0 <= value <= 1:
      raise ValueError(f"order.{key}: expected a number from 0 to 1, found {value!r}")
  if type(order["queued"]) is not bool:
    raise ValueError(f"order.queued: expected true or false, found {order['queued']!r}")
  units = order["units"]
  if not isinstance(units, list) or any(type(tag) is not int for tag in units):
    raise ValueError(f"order.units: expected a list of tags, found {units!r}")
  if not 1 <= len(units) <= rules.max_selected:
    raise ValueError(f"order.units: expected 1 to {rules.max_selected} tags, found {len(units)}")
  return order


def to_action(rules: tables.Rules, observation: types.Observation,
              order: Mapping[str, Any] | None) -> types.Action:
  """An order as an action on what is seen now; the person is asked again a step later.

  Args:
    rules: the game's constants.
    observation: the person's, of this step.
    order: of `check_order`; None: nothing.

  Raises:
    OrderError: it cannot be carried out (any more).
  """
  none = types.zeros(types.action_spec(rules.max_selected))
  none = none._replace(delay=np.int16(1),
                       units=np.full(rules.max_selected, rules.max_entities, np.int16))
  if order is None:
    return none
  function = order["function"]
  functions, dense = rules.functions, int(rules.functions.index[function])
  what = watch_frames.function_words(functions.names[function])
  if not observation.available_actions[dense]:
    raise OrderError(f"{what}: {_why_not(rules, observation, function)}")
  count = int(observation.entity_count)
  tags = observation.entities[:count, types.COLUMN["tag"]]
  mine = observation.entities[:count, types.COLUMN["alliance"]] == types.ALLIANCE_SELF
  local = _local_types(rules)[observation.entities[:count, types.COLUMN["unit_type"]]]
  able = mine & functions.capable[function][np.maximum(local, 0)]
  if functions.ability[function] == constants.CANCEL:
    able = mine & (observation.entities[:count, types.COLUMN["build_progress"]] < 100)
  # In the order in which they were picked.
  rows = [int(row) for tag in order["units"] for row in np.flatnonzero((tags == tag) & able)]
  if not rows:
    raise OrderError(f"{what}: nobody selected can do that")
  units = none.units.copy()
  units[:len(rows)] = rows
  target, location = 0, 0
  if functions.takes_unit[function]:
    found = np.flatnonzero(tags == order["target"])
    if not found.size:
      raise OrderError(f"{what}: the target is out of sight")
    target = int(found[0])
  if functions.takes_point[function]:
    size = rules.location_size
    column, row = (min(size - 1, int(order[axis] * size)) for axis in ("x", "y"))
    location = row * size + column
  repeats = vocabulary.ARGUMENT_TABLE[dense, 3]
  return types.Action(
    function=np.int16(dense), delay=np.int16(1), queued=np.uint8(order["queued"]),
    repeat=np.uint8(order["repeat"] - 1 if repeats else 0), units=units,
    target_unit=np.int16(target), location=np.int32(location))


def told(observation: types.Observation) -> str:
  """What the game says of the last order if it was refused, else nothing."""
  if not observation.action_result:
    return ""
  what = watch_frames.function_words(vocabulary.FUNCTIONS.names[int(observation.last_function)])
  return f"{what}: {action_results.MESSAGES[int(observation.action_result)]}"


def _why_not(rules: tables.Rules, observation: types.Observation, function: int) -> str:
  """Why a function is not available, as far as the observation tells."""
  player = dict(zip(types.PLAYER_COLUMNS, observation.player.tolist(), strict=True))
  product, products = int(rules.functions.product[function]), rules.products
  if product:
    needed = int(products.requirement[product])
    if needed and not observation.unit_counts[rules.types.index[needed]]:
      return f"needs a {watch_frames.words(rules.types.names[needed])}"
    for name in ("minerals", "vespene"):
      price = int(getattr(products, name)[product])
      if player[name] < price:
        return f"costs {price} {name}"
    eats = int(products.takes_food[product])
    if eats and 2 * player["food_used"] + eats > 2 * player["food_cap"]:
      return "more supply is needed"
  return "not possible now"
