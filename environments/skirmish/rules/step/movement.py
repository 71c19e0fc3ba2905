"""Movement: goals of orders, ways around cliffs, and separation of overlapping units."""

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules.state import placement
from starleague.environments.skirmish.rules.state.arrays import look_up, pick
from starleague.environments.skirmish.rules.state.queries import is_aboard, resource_positions
from starleague.environments.skirmish.rules.state.sentries import Barriers, keep_out
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.step import mining
from starleague.environments.skirmish.rules.tables import maps, tables
from starleague.environments.skirmish.rules.tables.constants import (
  ABOARD,
  ALL_PASSENGERS,
  ATTACK_UNIT,
  BOARD,
  CONSTRUCT,
  DROP_REACH,
  GATHER,
  HOLD,
  IDLE,
  LOAD,
  MINING_REACH,
  OFF_MAP,
  PHASE,
  REPAIR,
  RETURN,
  SIEGE,
  UNLOAD,
)

_MINING_STOP, _DROP_STOP = 0.8, 0.95  # shares of the reach at which miners stop
_GOLDEN_ANGLE = 2.4  # radians: neighbouring slots part in very different directions
_MAX_PUSH = 0.5  # map units a step


def goals(rules: tables.Rules, state: State) -> tuple[Array, Array, Array]:
  """Destinations of units that engage no enemy.

  Returns:
    x, y [2, M] float32: the goal of their order, for walkers on passable ground; and the distance
    from it at which they stop.
  """
  s = rules.tier.structures
  verb, target = state.orders.verb, state.orders.target
  patch_x, patch_y = resource_positions(rules, state.side)
  stays = (verb == IDLE) | (verb == HOLD) | (verb == CONSTRUCT) | (verb == ATTACK_UNIT)
  if rules.has_transports:
    stays |= (verb == ABOARD) | ((verb == UNLOAD) & (target != ALL_PASSENGERS))
  to_patch = (verb == GATHER) & (state.cargo == 0)
  to_hall = (verb == RETURN) | ((verb == GATHER) & (state.cargo > 0))
  # Miners stop beside their patch, not in it, and beside their town hall.
  stop = jnp.where(to_patch, _MINING_STOP * MINING_REACH, 0.0)
  stop = jnp.where(to_hall, _DROP_STOP * DROP_REACH, stop)

  def goal(resources, hall, point, here):
    there = jnp.where(to_hall, hall, jnp.where(stays | to_patch, here, point))
    return jnp.where(to_patch & (target >= 0), pick(resources, target), there)

  hall_x, hall_y, _ = mining.nearest_town_hall(rules, state)
  x = goal(patch_x, hall_x, state.orders.x, state.x[:, s:])
  y = goal(patch_y, hall_y, state.orders.y, state.y[:, s:])
  if rules.has_verb(REPAIR):
    follows = (verb == REPAIR) | (verb == BOARD) | (verb == LOAD)
    x = jnp.where(follows, pick(state.x, target), x)
    y = jnp.where(follows, pick(state.y, target), y)
  return *on_ground(rules, state, x, y), stop


def on_ground(rules: tables.Rules, state: State, x: Array, y: Array) -> tuple[Array, Array]:
  """Where walkers stop on their way to places on impassable cells.

  Args:
    rules: the game's constants.
    state: the game.
    x: [2, M] float32, a place for each unit.
    y: [2, M].

  Returns:
    x, y [2, M]: the places, or the middle of the nearest passable cell.
  """
  terrain = rules.terrain
  if terrain is None:
    return x, y
  row, column = placement.cell_of(rules, state.side, x, y)
  cell = row * terrain.cells + column
  nearest = placement.on_terrain(rules, state, terrain.nearest, x, y)
  moved = _walks(rules, state) & (nearest != cell)
  side = state.side[:, None]

  def middle(index, there):
    return jnp.where(moved, side * (index + 0.5 - rules.half), there)

  return middle(nearest % terrain.cells, x), middle(nearest // terrain.cells, y)


def around_cliffs(rules: tables.Rules, state: State, x: Array, y: Array
                  ) -> tuple[Array, Array, Array]:
  """The next cells on the ways of walkers to places, by the flow fields of the places' areas.

  Args:
    rules: the game's constants, with terrain.
    state: the game.
    x: [2, M] float32, a place for each unit.
    y: [2, M].

  Returns:
    Which units may not walk straight to their place, [2, M] bool; x, y [2, M] of the middle of
    their next cell, which keeps them off corners.
  """
  terrain, s, side = rules.terrain, rules.tier.structures, state.side[:, None]
  assert terrain is not None
  row, column = placement.cell_of(rules, state.side, state.x[:, s:], state.y[:, s:])
  area = placement.on_terrain(rules, state, terrain.area_of, x, y)
  way = jnp.take(jnp.asarray(terrain.fields.reshape(-1)),
                 (area * terrain.cells + row) * terrain.cells + column, mode="clip")
  way = way.astype(jnp.int32)
  led = _walks(rules, state) & (way >= 0) & (way < maps.STRAIGHT)
  direction = np.array([*maps.DIRECTIONS, (0, 0)], np.int32)
  dx, dy = (look_up(direction[:, i], jnp.clip(way, 0, maps.STRAIGHT)) for i in range(2))
  return (led, side * (column + dx + 0.5 - rules.half), side * (row + dy + 0.5 - rules.half))


def _walks(rules: tables.Rules, state: State) -> Array:
  """Units on the map that cliffs stop: [2, M] bool."""
  return ~ignores_cliffs(rules, state.kind[:, rules.tier.structures:]) & ~is_aboard(rules, state)


def ignores_cliffs(rules: tables.Rules, kind: Array) -> Array:
  """Whether local types [2, m] cross cliffs: flyers, and Reapers, which jump."""
  free = rules.types.flying.copy()
  free[rules.types.local("Reaper")] = True
  free[0] = False
  return look_up(free, kind)


def move(rules: tables.Rules, state: State, x: Array, y: Array, dx: Array, dy: Array,
         barrier: Barriers | None = None) -> tuple[Array, Array]:
  """Moves units [2, M] within the map, along cliffs and around Force Fields.

  Passengers stay off the map.

  Args:
    rules: the game's constants.
    state: the game.
    x: [2, M] float32.
    y: [2, M].
    dx: [2, M], the displacement.
    dy: [2, M].
    barrier: of the units; None without Force Fields.

  Returns:
    x, y [2, M].
  """
  edge: Array | float = rules.half - 0.5
  if rules.has_transports:
    edge = jnp.where(jnp.abs(x) >= OFF_MAP, OFF_MAP, edge)
  new_x, new_y = keep_out(barrier, x + dx, y + dy)
  new_x, new_y = jnp.clip(new_x, -edge, edge), jnp.clip(new_y, -edge, edge)
  terrain = rules.terrain
  if terrain is None:
    return new_x, new_y
  free = ignores_cliffs(rules, state.kind[:, rules.tier.structures:])

  def passable(to_x, to_y):
    return free | placement.on_terrain(rules, state, terrain.passable, to_x, to_y)

  both = passable(new_x, new_y)
  # Units that others pushed into a cliff may walk out of it.
  stuck = ~passable(x, y)
  only_x, only_y = passable(new_x, y), passable(x, new_y)
  go = both | stuck
  return jnp.where(go | only_x, new_x, x), jnp.where(go | (only_y & ~only_x), new_y, y)


def solid(rules: tables.Rules, state: State) -> Array:
  """Returns the units on the map through which others do not pass, all but miners: [2, M] bool."""
  verb = state.orders.verb
  return (state.kind[:, rules.tier.structures:] > 0) & (verb != GATHER) & (verb != RETURN) & (
    verb != ABOARD)


def separate_units(rules: tables.Rules, state: State, barrier: Barriers | None = None) -> State:
  """Pushes overlapping units of a side apart; miners pass through.

  Args:
    rules: the game's constants.
    state: the game.
    barrier: of the units; None without Force Fields.
  """
  s = rules.tier.structures
  x, y = state.x[:, s:], state.y[:, s:]
  kind = state.kind[:, s:]
  stands, radius = solid(rules, state), look_up(rules.types.radius, kind)
  # Two units at the same place part in a direction given by their slots.
  angle = np.arange(rules.tier.units, dtype=np.float32) * _GOLDEN_ANGLE
  shift = 1e-3 * state.side[:, None]
  shifted_x, shifted_y = x + shift * np.cos(angle), y + shift * np.sin(angle)
  dx = shifted_x[:, None] - shifted_x[:, :, None]
  dy = shifted_y[:, None] - shifted_y[:, :, None]
  distance = jnp.sqrt(dx * dx + dy * dy + 1e-12)
  overlap = jnp.maximum(radius[:, None] + radius[:, :, None] - distance, 0.0)
  pair = stands[:, None] & stands[:, :, None]
  if rules.has_flyers:
    flying = look_up(rules.types.flying, kind)
    pair &= flying[:, None] == flying[:, :, None]
  push = jnp.where(pair, 0.5 * overlap / distance, 0.0)
  anchored = kind == rules.types.local("SiegeTankSieged") if rules.has(SIEGE) else False
  if rules.has(PHASE):
    anchored |= kind == rules.types.local("WarpPrismPhasing")

  def total(parts):
    return jnp.where(anchored, 0.0, jnp.clip(jnp.sum(parts, axis=1), -_MAX_PUSH, _MAX_PUSH))

  new_x, new_y = move(rules, state, x, y, total(push * dx), total(push * dy), barrier)
  return state._replace(x=state.x.at[:, s:].set(new_x), y=state.y.at[:, s:].set(new_y))
