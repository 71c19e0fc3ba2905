"""Entity fields: the columns of an entity as 36 classes, ratios and position bits.

Vinyals et al. 2019, detailed architecture ("entity_list"). A value outside a field's range gets the
nearest class. Square-root fields have `floor(sqrt(cap)) + 1` classes.
"""

import csv
import math
import pathlib
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import types
from starleague.agent import vocabulary as v
from starleague.agent.types import Array

_DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
NUM_ATTRIBUTES = 13
POSITION_BITS = 8


def _type_table() -> np.ndarray:
  table = np.zeros((v.NUM_UNIT_TYPES, NUM_ATTRIBUTES + 2), np.int32)
  with (_DATA / "attributes.csv").open(newline="") as file:
    for index, *values in list(csv.reader(file))[1:]:
      table[int(index)] = [int(value) for value in values]
  return table


def _lookup(size: int, names: tuple[str, ...], table: v.Table) -> np.ndarray:
  """Returns [size] int32: 1, 2, ... at the indices of the names, 0 elsewhere."""
  lookup = np.zeros(size, np.int32)
  for i, name in enumerate(names):
    lookup[table.index(name)] = i + 1
  return lookup


_TYPE_TABLE = _type_table()
ATTRIBUTES = _TYPE_TABLE[:, :NUM_ATTRIBUTES].astype(np.float32)  # [N, 13] of 0 and 1
INITIAL_MINERALS = _TYPE_TABLE[:, NUM_ATTRIBUTES]  # [N] int32
INITIAL_VESPENE = _TYPE_TABLE[:, NUM_ATTRIBUTES + 1]  # [N] int32

ADDONS = ("BarracksTechLab", "BarracksReactor", "FactoryTechLab", "FactoryReactor",
          "StarportTechLab", "StarportReactor")
_ADDON_CLASS = _lookup(v.NUM_UNIT_TYPES, ADDONS, v.UNIT_TYPES)
_TRAINING_CLASS = np.zeros(v.NUM_FUNCTIONS, np.int32)
_TRAINING_CLASS[v.TRAINING_FUNCTIONS] = np.arange(len(v.TRAINING_FUNCTIONS))


def square_root_class(x: Array, cap: int) -> jax.Array:
  """Computes floor(sqrt(x)) of x clipped to [0, cap].

  The small addend corrects devices whose square root of a square is slightly too low. It is small
  enough to be exact up to 2 ** 16.
  """
  clipped = jnp.clip(x, 0, cap).astype(jnp.float32)
  return jnp.floor(jnp.sqrt(clipped) + 1e-3).astype(jnp.int32)


def position_bits(x: Array) -> jax.Array:
  """[...] integers on the 256 grid -> [..., 8] float32 bits, lowest first."""
  x = jnp.clip(x, 0, types.POSITION_GRID - 1).astype(jnp.int32)
  return ((x[..., None] >> np.arange(POSITION_BITS)) & 1).astype(jnp.float32)


def _column(entities: Array, name: str) -> Array:
  return entities[..., types.COLUMN[name]].astype(jnp.int32)


def _unit_type(entities: Array) -> jax.Array:
  return jnp.clip(_column(entities, "unit_type"), 0, v.NUM_UNIT_TYPES - 1)


class EntityField(NamedTuple):
  """A column of an entity, encoded as one of several classes."""

  name: str
  classes: int
  index: Callable  # [E, F] int16 entities -> [E] int32 in [0, classes)
  shares: str = ""  # the field whose embedding it shares


def _clipped(name: str, column: str, classes: int, divisor: int = 1,
             shares: str = "") -> EntityField:
  return EntityField(name, classes, lambda entities: jnp.clip(
    _column(entities, column) // divisor, 0, classes - 1), shares)


def _square_root(name: str, column: str, cap: int) -> EntityField:
  return EntityField(name, math.isqrt(cap) + 1,
                     lambda entities: square_root_class(_column(entities, column), cap))


def _mined(name: str, column: str, initial: np.ndarray, cap: int) -> EntityField:
  return EntityField(name, math.isqrt(cap) + 1, lambda entities: square_root_class(
    jnp.asarray(initial)[_unit_type(entities)] - _column(entities, column), cap))


def _looked_up(name: str, column: str, table: np.ndarray) -> EntityField:
  return EntityField(name, int(table.max()) + 1, lambda entities: jnp.asarray(table)[
    jnp.clip(_column(entities, column), 0, len(table) - 1)])


FIELDS = (
  EntityField("unit_type", v.NUM_UNIT_TYPES, _unit_type),
  _clipped("alliance", "alliance", 5),
  _square_root("current_health", "health", 1500),
  _square_root("current_shields", "shield", 1000),
  _square_root("current_energy", "energy", 200),
  _clipped("cargo_space_used", "cargo_space_taken", 9),
  _clipped("cargo_space_maximum", "cargo_space_max", 9),
  _clipped("display_type", "display_type", 5),
  _clipped("is_cloaked", "cloak", 5),
  _clipped("is_powered", "is_powered", 2),
  _clipped("is_hallucination", "hallucination", 2),
  _clipped("is_active", "active", 2),
  _clipped("is_on_screen", "is_on_screen", 2),
  _clipped("is_in_cargo", "is_in_cargo", 2),
  _clipped("current_minerals", "mineral_contents", 19, divisor=100),
  _clipped("current_vespene", "vespene_contents", 26, divisor=100),
  _mined("mined_minerals", "mineral_contents", INITIAL_MINERALS, 1800),
  _mined("mined_vespene", "vespene_contents", INITIAL_VESPENE, 2500),
  _clipped("assigned_harvesters", "assigned_harvesters", 25),  # 24 is reached in play
  _clipped("ideal_harvesters", "ideal_harvesters", 17),
  _clipped("weapon_cooldown", "weapon_cooldown", 32),
  _clipped("order_queue_length", "order_length", 9),
  _clipped("order_1", "order_id_0", v.NUM_FUNCTIONS),
  _looked_up("order_2", "order_id_1", _TRAINING_CLASS),
  _looked_up("order_3", "order_id_2", _TRAINING_CLASS),
  _looked_up("order_4", "order_id_3", _TRAINING_CLASS),
  _clipped("buffs", "buff_id_0", v.NUM_BUFFS),
  _clipped("buffs_second", "buff_id_1", v.NUM_BUFFS, shares="buffs"),
  _looked_up("addon_type", "addon_unit_type", _ADDON_CLASS),
  _clipped("order_progress_1", "order_progress_0", 10, divisor=10),
  _clipped("order_progress_2", "order_progress_1", 10, divisor=10),
  _clipped("weapon_upgrades", "attack_upgrade_level", 4),
  _clipped("armor_upgrades", "armor_upgrade_level", 4),
  _clipped("shield_upgrades", "shield_upgrade_level", 4),
  _clipped("was_selected", "was_selected", 2),
  _clipped("was_targeted", "was_targeted", 2),
)


def _offsets() -> tuple[dict[str, int], int]:
  offsets: dict[str, int] = {}
  end = 0
  for field in FIELDS:
    if field.shares:
      offsets[field.name] = offsets[field.shares]
    else:
      offsets[field.name], end = end, end + field.classes
  return offsets, end


OFFSETS, NUM_CLASSES = _offsets()  # first row of each field in the table of all classes; its size

# Numbers in [0, 1]: columns and their divisors. Game clients report percentages and 255ths.
RATIOS = (("build_progress", 100), ("health_ratio", 255), ("shield_ratio", 255),
          ("energy_ratio", 255), ("order_progress_0", 100), ("order_progress_1", 100))
NUM_NUMBERS = len(RATIOS) + 2 * POSITION_BITS


def indices(entities: Array) -> jax.Array:
  """Returns the class of each field: [E, F] int16 -> [E, len(FIELDS)] int32."""
  return jnp.stack([field.index(entities) for field in FIELDS], axis=-1)


def numbers(entities: Array) -> jax.Array:
  """Returns ratios and position bits: [E, F] int16 -> [E, NUM_NUMBERS] float32 in [0, 1]."""
  ratios = jnp.stack([jnp.clip(_column(entities, name) / divisor, 0.0, 1.0)
                      for name, divisor in RATIOS], axis=-1)
  bits = (position_bits(_column(entities, name)) for name in ("x", "y"))
  return jnp.concatenate([ratios, *bits], axis=-1)
