"""Flat symbolic observations: one float32 vector of what a player may see.

It is made of the player's `types.Observation` alone, turned so that its own start is at the top
left. In order: scalars, counts by type, upgrades, a coarse map, then the rows of `entities`.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import types, vocabulary
from starleague.environments import base
from starleague.environments.skirmish.rules import environment
from starleague.environments.skirmish.rules.interface import entities, observation
from starleague.environments.skirmish.rules.state.arrays import look_up
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.tables import constants, tables

GRID = 8  # rows and columns of the coarse map
# Divisors that bring values near 1.
MONEY, UNITS, CONTENTS, ORDERS, SPEED, RANGE, DAMAGE = 500.0, 10.0, 900.0, 5.0, 1.0, 10.0, 20.0
_WORK, _FIGHT, _MOVE = ("Harvest_Gather_unit", "Harvest_Return_quick", "Effect_Repair_unit"), (
  "Attack_pt", "Attack_unit"), ("Move_pt", "Patrol_pt", "HoldPosition_quick")


def size(rules: tables.Rules) -> int:
  """Returns the length of the vector."""
  def first(key: jax.Array) -> Array:
    return features(rules, environment.reset(rules, key, base.make_match_up()), jnp.int32(0))

  return jax.eval_shape(first, jax.random.key(0)).shape[0]


def features(rules: tables.Rules, state: State, player: Array) -> Array:
  """Returns a player's flat observation, float32 [size(rules)].

  Args:
    rules: the game's constants.
    state: the game.
    player: [] int32, 0 or 1.
  """
  seen, _ = observation.observe(rules, state, player)
  side = jnp.where(player == 0, state.side[0], state.side[1])
  rows = _rows(rules, seen, side)
  return jnp.concatenate([
    _scalars(rules, seen), *_counts(rules, seen), _upgrades(rules, seen),
    _grid(rows), jnp.stack(list(rows.values()), axis=1).reshape(-1)])


def _scalars(rules: tables.Rules, seen: types.Observation) -> Array:
  food = float(rules.tier.food_cap)
  divisor = np.array([MONEY, MONEY, *[food] * 6, UNITS, UNITS], np.float32)
  races = [types.RACES.index(race.lower()) for race in constants.RACES]
  return jnp.concatenate([
    seen.player / divisor, jnp.stack([seen.game_loop / rules.tier.loop_limit]),
    seen.home_race == np.array(races), seen.away_race == np.array(races),
    jnp.stack([seen.action_result > 0])]).astype(jnp.float32)


def _column(rules: tables.Rules, seen: types.Observation, name: str) -> Array:
  """A column of the rows that the tier can fill."""
  most = 2 * rules.tier.slots + rules.tier.resources
  return seen.entities[:most, types.COLUMN[name]].astype(jnp.int32)


def _local_types(rules: tables.Rules) -> np.ndarray:
  """The local type of each dense one, 0 for those that the tier does not have."""
  local = np.zeros(vocabulary.NUM_UNIT_TYPES, np.int32)
  local[rules.types.index[1:]] = np.arange(1, len(rules.types.index))
  return local


def _is_of(rules: tables.Rules, seen: types.Observation, alliance: int) -> Array:
  return _column(rules, seen, "alliance") == alliance


def _counts(rules: tables.Rules, seen: types.Observation) -> tuple[Array, ...]:
  """Own types, products that are made, and the opponent's types that are known."""
  every = np.arange(1, len(rules.types.names))
  kind = look_up(_local_types(rules), _column(rules, seen, "unit_type"))
  enemy = _is_of(rules, seen, types.ALLIANCE_ENEMY)
  makes = rules.functions.index[np.flatnonzero(rules.functions.product)]
  own = _is_of(rules, seen, types.ALLIANCE_SELF)
  orders = jnp.stack([_column(rules, seen, f"order_id_{i}") for i in range(2)])
  made = jnp.sum(own[None, :, None] & (orders[:, :, None] == makes), axis=(0, 1))
  known = jnp.sum(enemy[:, None] & (kind[:, None] == every), axis=0)
  return (seen.unit_counts[rules.types.index[1:]].astype(jnp.float32) / UNITS,
          made.astype(jnp.float32) / UNITS, known.astype(jnp.float32) / UNITS)


def _upgrades(rules: tables.Rules, seen: types.Observation) -> Array:
  index = np.asarray(rules.upgrades.index, np.int32)
  return jnp.concatenate([seen.upgrades[index], seen.enemy_upgrades[index]]).astype(jnp.float32)


def _rows(rules: tables.Rules, seen: types.Observation, side: Array) -> dict[str, Array]:
  """Columns of the rows, float32 [rows]; all zero past the last row."""
  column: Callable[[str], Array] = functools.partial(_column, rules, seen)
  table, unit_type = rules.types, column("unit_type")
  kind = look_up(_local_types(rules), unit_type)
  order, last = column("order_id_0"), types.POSITION_GRID - 1

  def place(name: str) -> Array:
    return side * (2 * column(name) / last - 1)

  def doing(functions: tuple[str, ...]) -> Array:
    ids = [vocabulary.FUNCTIONS.index(name) for name in functions]
    return look_up(np.isin(np.arange(vocabulary.NUM_FUNCTIONS), ids), order)

  present = jnp.arange(len(kind)) < seen.entity_count
  columns = {
    "present": present, "own": _is_of(rules, seen, types.ALLIANCE_SELF),
    "enemy": _is_of(rules, seen, types.ALLIANCE_ENEMY),
    "minerals": unit_type == vocabulary.UNIT_TYPES.index("MineralField"),
    "gas": unit_type == vocabulary.UNIT_TYPES.index("VespeneGeyser"),
    **{name: look_up(getattr(table, name), kind)
       for name in ("worker", "fighter", "structure", "townhall", "flying")},
    "remembered": column("display_type") == entities.DISPLAY_SNAPSHOT,
    "x": place("x"), "y": place("y"), "health": column("health_ratio") / 255,
    "shield": column("shield_ratio") / 255, "energy": column("energy_ratio") / 255,
    "built": column("build_progress") / 100,
    "contents": (column("mineral_contents") + column("vespene_contents")) / CONTENTS,
    "value": look_up(table.value, kind) / MONEY, "speed": look_up(table.speed, kind) / SPEED,
    "range": look_up(table.ground.range, kind) / RANGE,
    "damage": look_up(table.ground.damage * table.ground.attacks, kind) / DAMAGE,
    "orders": column("order_length") / ORDERS, "works": doing(_WORK), "fights": doing(_FIGHT),
    "moves": doing(_MOVE), "reloads": column("weapon_cooldown") > 0}
  return {name: values.astype(jnp.float32) * present for name, values in columns.items()}


def _grid(rows: dict[str, Array]) -> Array:
  """Counts of workers, fighters and structures, own and the opponent's, and of resources."""
  cell = jnp.stack([
    jnp.clip(jnp.floor((rows[name] + 1) * GRID / 2), 0, GRID - 1).astype(jnp.int32)
    for name in ("y", "x")])
  places = jax.nn.one_hot(cell[0] * GRID + cell[1], GRID ** 2)  # [rows, cells]
  kinds = [rows[owner] * rows[kind] for owner in ("own", "enemy")
           for kind in ("worker", "fighter", "structure")]
  kinds.append(rows["minerals"] + rows["gas"])
  return (jnp.stack(kinds) @ places).reshape(-1) / ORDERS
