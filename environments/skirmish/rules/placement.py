"""The ground, and what structures fit on it."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules import constants, tables
from starleague.environments.skirmish.rules.arrays import flip, look_up
from starleague.environments.skirmish.rules.queries import (
  both_halves,
  finished_kind,
  is_geyser,
  resource_positions,
)
from starleague.environments.skirmish.rules.state import Array, State

ABSENT_RADIUS = -1e6  # the radius of what is not there


def cell_of(rules: tables.Rules, side: Array, x: Array, y: Array) -> tuple[Array, Array]:
  """Rows and columns of places in each player's own frame, for the tables of the terrain.

  Args:
    rules: the game's constants.
    side: [2], or [] of one player.
    x: [*side's, ...] float32.
    y: likewise.
  """
  assert rules.terrain is not None
  most = rules.terrain.cells - 1

  def index(values):
    own = jnp.expand_dims(side, range(side.ndim, values.ndim)) * values + rules.half
    return jnp.clip(jnp.floor(own).astype(jnp.int32), 0, most)

  return index(y), index(x)


def on_terrain(rules: tables.Rules, state: State, table: np.ndarray, x: Array, y: Array) -> Array:
  """A table [K, G, G] of the game's map at places [2, m]."""
  row, column = cell_of(rules, state.side, x, y)
  g = table.shape[1]
  flat = (state.match_up.map_index % len(table) * g + row) * g + column
  return jnp.take(jnp.asarray(table.reshape(-1)), flat, mode="clip")


def footprint(x: Array, y: Array, radius: Array) -> tuple[Array, Array]:
  """Places that a structure stands on: its middle, and eight around it, [..., 9] each.

  Args:
    x: [...] float32.
    y: [...].
    radius: [...] or [].
  """
  corners = 0.8 * np.array([(dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)], np.float32)
  return (x[..., None] + radius[..., None] * corners[:, 0],
          y[..., None] + radius[..., None] * corners[:, 1])


class Ground(NamedTuple):
  """What a structure may be in the way of; [2, ...]."""

  kind: Array  # [2, 2 S] int32: the player's own structures, then the enemy's, 0 for none
  x: Array  # [2, 2 S] float32
  y: Array
  patches: Array  # [2, R] int32: contents of resources


def known_enemies(rules: tables.Rules, state: State) -> tuple[Array, Array, Array, Array]:
  """The enemy's slots as a player knows them: local types, 0 for none, x, y, health; [2, n] each.

  What is in sight is where it is, structures else where they were last seen.
  """
  s, memory = rules.tier.structures, state.memory
  here = memory.seen[:, :s]

  def known(current, remembered):
    return current.at[:, :s].set(jnp.where(here, current[:, :s], remembered))

  kind = jnp.where(memory.seen, flip(state.kind), 0)
  return (known(kind, memory.kind), known(flip(state.x), memory.x), known(flip(state.y), memory.y),
          known(flip(state.health), memory.health))


def _with_own(rules: tables.Rules, state: State, kind: Array, x: Array, y: Array,
              patches: Array) -> Ground:
  s = rules.tier.structures

  def both(own, enemy):
    return jnp.concatenate([own[:, :s], enemy[:, :s]], axis=1)

  return Ground(both(state.kind, kind), both(state.x, x), both(state.y, y), patches)


def known_ground(rules: tables.Rules, state: State) -> Ground:
  """What a player can tell of the ground: on this an order is given."""
  return _with_own(rules, state, *known_enemies(rules, state)[:3], state.memory.patches)


def true_ground(rules: tables.Rules, state: State) -> Ground:
  """What is there, known or not: on this a builder meets what it was sent for."""
  return _with_own(rules, state, flip(state.kind), flip(state.x), flip(state.y),
                   both_halves(state.patches))


def free_geyser(rules: tables.Rules, state: State, ground: Ground, radius: float) -> Array:
  """Whether any geyser has room for a gas structure of a radius: [2] bool."""
  at = np.flatnonzero(is_geyser(rules))
  x, y = (values[:, at, None] for values in resource_positions(rules, state.side))
  apart = radius + look_up(rules.types.radius, ground.kind)[:, None]
  square = (x - ground.x[:, None]) ** 2 + (y - ground.y[:, None]) ** 2  # [2, geysers, 2 S]
  clear = jnp.all((ground.kind == 0)[:, None] | (square >= apart * apart), axis=2)
  return jnp.any(clear & (ground.patches[:, at] > 0), axis=1)


def placeable(rules: tables.Rules, state: State, ground: Ground, x: Array, y: Array,
              product: Array) -> Array:
  """Whether a structure fits: on the map, on ground to build on, clear of what stands. [2] bool.

  A gas structure goes exactly on a geyser, a Zerg one on creep.

  Args:
    rules: the game's constants.
    state: the game.
    ground: `known_ground` or `true_ground`.
    x: [2] float32, its middle.
    y: [2].
    product: [2] int32, local type.
  """
  types, s = rules.types, rules.tier.structures
  radius = look_up(types.radius, product)
  fits = jnp.maximum(jnp.abs(x), jnp.abs(y)) + radius <= rules.half
  patch_x, patch_y = resource_positions(rules, state.side)
  there = ground.patches > 0
  gas = look_up(types.gas, product)
  if rules.has_gas:
    fits |= gas
  # A gas structure's neighbours on the map are patches, which it need not keep clear of.
  radii = jnp.concatenate([
    jnp.where(ground.kind > 0, look_up(types.radius, ground.kind), ABSENT_RADIUS),
    jnp.where(there & ~gas[:, None], constants.PATCH_RADIUS, ABSENT_RADIUS)], axis=1)
  xs = jnp.concatenate([ground.x, patch_x], axis=1)
  ys = jnp.concatenate([ground.y, patch_y], axis=1)
  apart = jnp.maximum(radius[:, None] + radii, 0.0)
  square = (xs - x[:, None]) ** 2 + (ys - y[:, None]) ** 2
  fits &= jnp.all(square >= apart * apart, axis=1)
  if rules.terrain is not None:
    firm = on_terrain(rules, state, rules.terrain.buildable, *footprint(x, y, radius))
    fits &= jnp.all(firm, axis=1) | gas
  if rules.has_gas:
    on_geyser = jnp.any((square[:, 2 * s:] < 0.01) & is_geyser(rules) & there, axis=1)
    fits &= ~gas | on_geyser
  if rules.has_larvae:
    needs_creep = (types.race == constants.RACES.index("Zerg")) & ~types.gas & ~types.townhall
    hatchery = look_up(types.larvae, finished_kind(rules, state))
    creep = jnp.any(hatchery & (square[:, :s] < constants.CREEP_RADIUS ** 2), axis=1)
    fits &= ~look_up(needs_creep, product) | creep
  return fits
