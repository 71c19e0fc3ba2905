"""The ground, and where structures fit."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules.state.arrays import (
  flip,
  look_up,
  pairwise_squared_distance,
  squared_distance,
)
from starleague.environments.skirmish.rules.state.queries import (
  both_halves,
  finished_kind,
  is_geyser,
  powers,
  resource_positions,
)
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import (
  CREEP_RADIUS,
  PATCH_RADIUS,
  POWER_RADIUS,
  PRISM_POWER_RADIUS,
  RACES,
)

ABSENT_RADIUS = -1e6  # of absent obstacles
_ON_GEYSER = 0.01  # squared distance below which a structure stands exactly on a geyser


class Ground(NamedTuple):
  """Obstacles for structures."""

  kind: Array  # [2, 2 S] int32: own structures, then the opponent's, 0 for none
  x: Array  # [2, 2 S] float32
  y: Array
  patches: Array  # [2, R] int32: contents of resources


def cell_of(rules: tables.Rules, side: Array, x: Array, y: Array) -> tuple[Array, Array]:
  """Rows and columns of places in each player's own frame, for the terrain tables.

  Args:
    rules: the game's constants.
    side: [2], or [] for one player.
    x: [*side.shape, ...] float32.
    y: like x.
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
  """The nine places that a structure stands on: its middle and eight around it, [..., 9] each.

  Args:
    x: [...] float32.
    y: [...].
    radius: [...] or [].
  """
  corners = 0.8 * np.array([(dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)], np.float32)
  return (x[..., None] + radius[..., None] * corners[:, 0],
          y[..., None] + radius[..., None] * corners[:, 1])


def known_enemies(rules: tables.Rules, state: State) -> tuple[Array, Array, Array, Array]:
  """The opponent's slots as a player knows them: in sight, or structures as last seen.

  Returns:
    Local types, 0 for none, x, y and health; [2, n] each.
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
  """The ground with own structures and the opponent's slots [2, n] given."""
  s = rules.tier.structures

  def both(own, enemy):
    return jnp.concatenate([own[:, :s], enemy[:, :s]], axis=1)

  return Ground(both(state.kind, kind), both(state.x, x), both(state.y, y), patches)


def known_ground(rules: tables.Rules, state: State) -> Ground:
  """The obstacles that a player knows of; orders are checked against these."""
  return _with_own(rules, state, *known_enemies(rules, state)[:3], state.memory.patches)


def true_ground(rules: tables.Rules, state: State) -> Ground:
  """All obstacles, known or not; these decide when a builder arrives."""
  return _with_own(rules, state, flip(state.kind), flip(state.x), flip(state.y),
                   both_halves(state.patches))


def free_geyser(rules: tables.Rules, state: State, ground: Ground, radius: float) -> Array:
  """Whether any geyser has room for a gas structure of a radius: [2] bool."""
  at = np.flatnonzero(is_geyser(rules))
  x, y = (values[:, at] for values in resource_positions(rules, state.side))
  apart = radius + look_up(rules.types.radius, ground.kind)[:, None]
  square = pairwise_squared_distance(x, y, ground.x, ground.y)  # [2, geysers, 2 S]
  clear = jnp.all((ground.kind == 0)[:, None] | (square >= apart * apart), axis=2)
  return jnp.any(clear & (ground.patches[:, at] > 0), axis=1)


def placeable(rules: tables.Rules, state: State, ground: Ground, x: Array, y: Array,
              product: Array) -> Array:
  """Whether structures fit: on the map, on buildable ground, clear of obstacles. [2] bool.

  Gas structures must stand exactly on a geyser, Zerg structures on creep.

  Args:
    rules: the game's constants.
    state: the game.
    ground: `known_ground` or `true_ground`.
    x: [2] float32, the structure's middle.
    y: [2].
    product: [2] int32, local type.
  """
  types = rules.types
  radius, gas = look_up(types.radius, product), look_up(types.gas, product)
  fits = jnp.maximum(jnp.abs(x), jnp.abs(y)) + radius <= rules.half
  if rules.has_gas:
    fits |= gas
  fits &= _clear(rules, state, ground, x, y, product)
  if rules.terrain is not None:
    firm = on_terrain(rules, state, rules.terrain.buildable, *footprint(x, y, radius))
    fits &= jnp.all(firm, axis=1) | gas
  if rules.has_gas:
    patch_x, patch_y = resource_positions(rules, state.side)
    square = squared_distance(x[:, None], y[:, None], patch_x, patch_y)
    usable = is_geyser(rules) & (ground.patches > 0)
    fits &= ~gas | jnp.any((square < _ON_GEYSER) & usable, axis=1)
  if rules.has_larvae:
    needs_creep = (types.race == RACES.index("Zerg")) & ~types.gas & ~types.townhall
    fits &= ~look_up(needs_creep, product) | _on_creep(rules, state, x, y)
  return fits


def fits(rules: tables.Rules, state: State, ground: Ground, x: Array, y: Array,
         product: Array) -> Array:
  """Whether structures are placeable and units can be warped in: [2] bool.

  Units need passable ground that no obstacle covers, and power.

  Args:
    rules: the game's constants.
    state: the game.
    ground: `known_ground` or `true_ground`.
    x: [2] float32, the middle.
    y: [2].
    product: [2] int32, local type.
  """
  built = placeable(rules, state, ground, x, y, product)
  if not rules.has_warp_gates:
    return built
  radius = look_up(rules.types.radius, product)
  lands = jnp.maximum(jnp.abs(x), jnp.abs(y)) + radius <= rules.half
  lands &= _clear(rules, state, ground, x, y, product) & powered(rules, state, x, y)
  if rules.terrain is not None:
    lands &= on_terrain(rules, state, rules.terrain.passable, x[:, None], y[:, None])[:, 0]
  return jnp.where(look_up(rules.types.structure, product), built, lands)


def powered(rules: tables.Rules, state: State, x: Array, y: Array) -> Array:
  """Whether places [2] have the power of an own finished Pylon or phasing Prism: [2] bool."""
  pylon = finished_kind(rules, state) == rules.types.local("Pylon")
  reach = jnp.concatenate([
    jnp.where(pylon, POWER_RADIUS ** 2, -1.0),
    jnp.where(powers(rules, state), PRISM_POWER_RADIUS ** 2, -1.0)], axis=1)
  square = squared_distance(x[:, None], y[:, None], state.x, state.y)
  return jnp.any(square <= reach, axis=1)


def _clear(rules: tables.Rules, state: State, ground: Ground, x: Array, y: Array,
           product: Array) -> Array:
  """Whether structures overlap no other structure or patch: [2] bool."""
  types = rules.types
  patch_x, patch_y = resource_positions(rules, state.side)
  # Gas structures may touch the patches beside their geyser.
  gas = look_up(types.gas, product)[:, None]
  radii = jnp.concatenate([
    jnp.where(ground.kind > 0, look_up(types.radius, ground.kind), ABSENT_RADIUS),
    jnp.where((ground.patches > 0) & ~gas, PATCH_RADIUS, ABSENT_RADIUS)], axis=1)
  xs = jnp.concatenate([ground.x, patch_x], axis=1)
  ys = jnp.concatenate([ground.y, patch_y], axis=1)
  apart = jnp.maximum(look_up(types.radius, product)[:, None] + radii, 0.0)
  square = squared_distance(x[:, None], y[:, None], xs, ys)
  return jnp.all(square >= apart * apart, axis=1)


def _on_creep(rules: tables.Rules, state: State, x: Array, y: Array) -> Array:
  """Whether places [2] are on a player's own creep: [2] bool."""
  s = rules.tier.structures
  hatchery = look_up(rules.types.larvae, finished_kind(rules, state))
  square = squared_distance(x[:, None], y[:, None], state.x[:, :s], state.y[:, :s])
  return jnp.any(hatchery & (square < CREEP_RADIUS ** 2), axis=1)
