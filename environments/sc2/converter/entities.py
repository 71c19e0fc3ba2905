"""The entity rows of an observation: units, then passengers, then effects.

Rows are in the game's order. Ids are dense indices of `vocabulary`; unknown ids are 0.
"""

from typing import NamedTuple

import numpy as np

from starleague.agent import coordinates, types
from starleague.agent import vocabulary as v
from starleague.environments.sc2.converter import camera as cameras
from starleague.environments.sc2.converter.camera import Camera
from starleague.environments.sc2.converter.units import Effects, Units
from starleague.environments.sc2.protocol import raw_pb

# Configs of fewer entities than the published agent drop neutral units first.
_PUBLISHED_ENTITIES = 512
_COLUMN = types.COLUMN
# Columns that copy a field of the protocol: the field's names.
_SAME = {
  "alliance": "alliance", "health": "health", "shield": "shield", "energy": "energy",
  "cargo_space_taken": "cargo_space_taken", "display_type": "display_type", "owner": "owner",
  "facing": "facing", "cloak": "cloak", "is_selected": "is_selected", "is_blip": "is_blip",
  "is_powered": "is_powered", "mineral_contents": "mineral_contents",
  "vespene_contents": "vespene_contents", "cargo_space_max": "cargo_space_max",
  "assigned_harvesters": "assigned_harvesters", "ideal_harvesters": "ideal_harvesters",
  "weapon_cooldown": "weapon_cooldown", "hallucination": "is_hallucination",
  "active": "is_active", "buff_duration_remain": "buff_duration_remain",
  "buff_duration_max": "buff_duration_max", "attack_upgrade_level": "attack_upgrade_level",
  "armor_upgrade_level": "armor_upgrade_level", "shield_upgrade_level": "shield_upgrade_level"}
_RATIOS = ("health", "shield", "energy")
# Columns that a player sees of an enemy outside the camera (Vinyals et al. 2019, Methods;
# pysc2's converter). All other columns are zero.
_SEEN_FAR = ("unit_type", "alliance", "display_type", "owner", "x", "y", "radius", "is_selected",
             "is_blip", "tag", "is_on_screen", "was_selected", "was_targeted")
_HIDDEN_COLUMNS = np.array([i for i, name in enumerate(types.ENTITY_COLUMNS)
                            if name not in _SEEN_FAR])
# The function that causes each of the game's effects; an effect's row has it as its order.
_EFFECT_FUNCTIONS = {
  1: "Effect_PsiStorm_pt", 2: "Effect_GuardianShield_quick", 3: "Effect_TimeWarp_pt",
  4: "Effect_TimeWarp_pt", 5: "Attack_unit", 6: "Effect_Scan_pt", 7: "Effect_NukeCalldown_pt",
  8: "Morph_LiberatorAGMode_pt", 9: "Morph_LiberatorAGMode_pt", 10: "Effect_BlindingCloud_pt",
  11: "Effect_CorrosiveBile_pt", 12: "Attack_pt"}


class Entities(NamedTuple):
  """The entity rows of an observation, and the tags by which actions refer to them."""

  rows: np.ndarray  # [E, F] int16
  tags: np.ndarray  # [count] uint64: the game's tags; 0 for effects, which have none


def _ends_in_zero(lookup: np.ndarray) -> np.ndarray:
  """Returns a table for `take(mode="clip")`: ids past its end give 0."""
  return np.append(lookup, lookup.dtype.type(0))


_UNIT_TYPE, _BUFF = _ends_in_zero(v.UNIT_TYPES.lookup), _ends_in_zero(v.BUFFS.lookup)
_FUNCTION = _ends_in_zero(v.ABILITY_FUNCTIONS)
_EFFECT = np.zeros(max(_EFFECT_FUNCTIONS) + 2, np.int16)
_EFFECT[list(_EFFECT_FUNCTIONS)] = [v.FUNCTIONS.index(n) for n in _EFFECT_FUNCTIONS.values()]


def unit_types(units: Units) -> np.ndarray:
  """Returns the dense types of units: [n] int16."""
  return _UNIT_TYPE.take(units.number("unit_type"), mode="clip")


def own_units(units: Units) -> np.ndarray:
  """Returns which units the player has: [n] bool. Structures that are only ordered are not."""
  return ((units.number("alliance") == types.ALLIANCE_SELF)
          & (units.number("display_type") != types.DISPLAY_PLACEHOLDER))


def make_entities(units: Units, effects: Effects, max_entities: int, map_width: int,
                  map_height: int, camera: Camera | None, selected: np.ndarray,
                  targeted: int) -> Entities:
  """Makes the entity rows of an observation.

  Args:
    units: of the observation, with their passengers.
    effects: of the observation.
    max_entities: E; rows past it are dropped.
    map_width: in game units.
    map_height: in game units.
    camera: the virtual camera; None: the game's own flag says which units are on the screen, and
      enemies elsewhere are shown in full.
    selected: [m] uint64, tags of the units that the last command was given to.
    targeted: the tag of its target, 0 without one.
  """
  n, m = units.size, len(units.carriers)
  # One row a column, written in one operation. All numbers of the game fit 16 bits.
  table = np.zeros((types.NUM_ENTITY_COLUMNS, n + m + len(effects.x)), np.int16)
  tags = np.zeros(table.shape[1], np.uint64)
  tags[:n] = units.number("tag").view(np.uint64)
  tags[n:n + m] = units.passenger("tag").view(np.uint64)
  with np.errstate(invalid="ignore"):  # numbers that the game never gives
    _fill_units(table[:, :n], units, tags[:n])
    _fill_passengers(table, units)
    _fill_effects(table[:, n + m:], effects)
    _fill_cells(table, units, effects, map_width, map_height)
  if len(selected):
    table[_COLUMN["was_selected"], :n] = np.isin(tags[:n], selected)
  if targeted:
    table[_COLUMN["was_targeted"], :n] = tags[:n] == np.uint64(targeted)
  kept = np.ones(len(tags), bool)
  if camera is not None:
    kept[:n] = _hide(table[:, :n], camera, units)
  chosen = _chosen(kept, table[_COLUMN["alliance"]], max_entities)
  if len(chosen) < len(tags):
    table, tags = table[:, chosen], tags[chosen]
  table[_COLUMN["tag"]] = np.where(tags > 0, np.arange(1, len(tags) + 1), 0)
  rows = np.zeros((max_entities, types.NUM_ENTITY_COLUMNS), np.int16)
  rows[:len(tags)] = table.T
  return Entities(rows, tags)


def _fill_units(table: np.ndarray, units: Units, tags: np.ndarray) -> None:
  """Fills the columns of units, [F, n], except places and those that depend on the player."""
  for column, name in _SAME.items():
    if name in units.numbers:
      table[_COLUMN[column]] = units.numbers[name]
  for name in _RATIOS:
    table[_COLUMN[f"{name}_ratio"]] = _ratio(units.number(name), units.number(f"{name}_max"))
  table[_COLUMN["unit_type"]] = types_of = unit_types(units)
  table[_COLUMN["build_progress"]] = _percent(units.number("build_progress"))
  table[_COLUMN["is_on_screen"]] = units.number("is_on_screen")
  table[_COLUMN["order_length"]] = units.order_length
  for i, (orders, progress) in enumerate(zip(units.orders, units.progress, strict=True)):
    table[_COLUMN[f"order_id_{i}"]] = _FUNCTION.take(orders, mode="clip")
    if i < 2:
      table[_COLUMN[f"order_progress_{i}"]] = _percent(progress)
  for i, buffs in enumerate(units.buffs):
    table[_COLUMN[f"buff_id_{i}"]] = _BUFF.take(buffs, mode="clip")
  addon = units.numbers.get("add_on_tag")
  if addon is not None:
    table[_COLUMN["addon_unit_type"]] = _types_of_tags(addon.view(np.uint64), tags, types_of)


def _types_of_tags(wanted: np.ndarray, tags: np.ndarray, types_of: np.ndarray) -> np.ndarray:
  """Returns the types of the units with the wanted tags, 0 where there is none: [n] int16."""
  order = np.argsort(tags, kind="stable")
  place = order[np.searchsorted(tags, wanted, side="right", sorter=order) - 1]
  return np.where((wanted > 0) & (tags[place] == wanted), types_of[place], 0)


def _percent(share: np.ndarray) -> np.ndarray:
  return share.astype(np.float64) * 100


def _ratio(value: np.ndarray, most: np.ndarray) -> np.ndarray:
  """Returns 255 * value / most: [n] float64, 0 where `most` is 0."""
  share = np.zeros(len(value))
  np.divide(value, most, out=share, where=most > 0, dtype=np.float64)
  return share * 255


def _fill_passengers(table: np.ndarray, units: Units) -> None:
  """Fills the columns of passengers, the rows behind those of units."""
  n, m = units.size, len(units.carriers)
  if not m:
    return
  rows = table[:, n:n + m]
  for name in ("alliance", "owner"):
    rows[_COLUMN[name]] = table[_COLUMN[name], units.carriers]
  for name in _RATIOS:
    rows[_COLUMN[name]] = units.passenger(name)
    rows[_COLUMN[f"{name}_ratio"]] = _ratio(units.passenger(name), units.passenger(f"{name}_max"))
  rows[_COLUMN["unit_type"]] = _UNIT_TYPE.take(units.passenger("unit_type"), mode="clip")
  rows[_COLUMN["is_in_cargo"]] = 1


def _fill_effects(rows: np.ndarray, effects: Effects) -> None:
  """Fills the columns of effects, [F, m]."""
  rows[_COLUMN["unit_type"]] = v.EFFECT_TYPE
  rows[_COLUMN["alliance"]] = effects.alliance
  rows[_COLUMN["owner"]] = effects.owner
  rows[_COLUMN["radius"]] = effects.radius
  rows[_COLUMN["order_id_0"]] = _EFFECT.take(effects.effect, mode="clip")


def _fill_cells(table: np.ndarray, units: Units, effects: Effects, map_width: int,
                map_height: int) -> None:
  """Fills places on the 256 grid, and the radius of units."""
  x, y = units.x, units.y
  if table.shape[1] > units.size:
    x = np.concatenate([x, x[units.carriers], effects.x])
    y = np.concatenate([y, y[units.carriers], effects.y])
  table[_COLUMN["x"]], table[_COLUMN["y"]] = coordinates.to_grid(
    x.astype(np.float64), y.astype(np.float64), map_width, map_height)
  scale = types.POSITION_GRID / max(map_width, map_height)
  table[_COLUMN["radius"], :units.size] = units.number("radius").astype(np.float64) * scale


def _hide(rows: np.ndarray, camera: Camera, units: Units) -> np.ndarray:
  """Hides the details of enemies outside the camera, in place.

  Returns:
    [n] bool: the units that have a row. Cloaked enemies outside the camera have none.
  """
  on_screen = cameras.contains(camera, units.x, units.y)
  rows[_COLUMN["is_on_screen"]] = on_screen
  far = (rows[_COLUMN["alliance"]] == types.ALLIANCE_ENEMY) & ~on_screen
  hidden = (far & (rows[_COLUMN["display_type"]] == raw_pb.Visible)).nonzero()[0]
  if len(hidden):
    rows[_HIDDEN_COLUMNS[:, None], hidden] = 0
    rows[_COLUMN["unit_type"], hidden] = v.HIDDEN_TYPE
  return ~(far & (units.number("cloak") == raw_pb.Cloaked))


def _chosen(kept: np.ndarray, alliance: np.ndarray, max_entities: int) -> np.ndarray:
  """Returns the entities that have rows, in their order: at most E indices."""
  chosen = kept.nonzero()[0]
  if len(chosen) > max_entities and max_entities < _PUBLISHED_ENTITIES:
    neutral = alliance[chosen] == types.ALLIANCE_NEUTRAL
    chosen = np.sort(chosen[np.argsort(neutral, kind="stable")[:max_entities]])
  return chosen[:max_entities]
