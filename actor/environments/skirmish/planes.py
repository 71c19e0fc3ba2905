"""The planes of the map that a player is shown."""

import jax.numpy as jnp
import numpy as np

from starleague.actor.environments.skirmish import maps, placement, tables
from starleague.actor.environments.skirmish.perception import (
  cells,
  high_ground,
  on_planes,
  spans,
  union,
)
from starleague.actor.environments.skirmish.state import Array, State, finished_kind, flip, look_up
from starleague.agent import types

HEIGHT = 128  # of a map that is flat
FULL_VIEW = 2  # visibility of a cell in sight; 1 is explored, 0 hidden


def minimap(rules: tables.Rules, state: State) -> Array:
  """Both players' planes: [2, 7, H, W] uint8, MINIMAP_PLANES."""
  memory = state.memory
  visible = cells(rules, memory.visible)
  explored = cells(rules, memory.explored)
  enough = 0.75 * rules.tier.map_size / rules.map_size  # so that every unit covers a cell's middle
  radius = jnp.maximum(look_up(rules.types.radius, state.kind), enough) * (state.kind > 0)
  remembered = jnp.maximum(look_up(rules.types.radius, memory.kind), enough) * (memory.kind > 0)
  slots = spans(rules, state.x, state.y, radius)
  own = cells(rules, union(slots, state.kind > 0))
  alerts = cells(rules, union(slots, state.hurt))
  enemy = flip(union(slots, flip(memory.seen)))
  enemy |= union(spans(rules, memory.x, memory.y, remembered), memory.kind > 0)
  enemy = cells(rules, enemy)
  patches = _patch_plane(rules, state)
  relative = jnp.where(
    own > 0, types.ALLIANCE_SELF, jnp.where(
      enemy > 0, types.ALLIANCE_ENEMY, types.ALLIANCE_NEUTRAL * patches)).astype(jnp.uint8)
  shape = relative.shape
  creep, passable, buildable = jnp.zeros(shape, jnp.uint8), jnp.ones(shape, jnp.uint8), 1 - patches
  height = jnp.full(shape, HEIGHT, jnp.uint8)
  if rules.has_larvae:
    creep = _creep(rules, state, visible)
  if rules.terrain is not None:
    height = jnp.where(cells(rules, high_ground(rules, state)) > 0, maps.HIGH, maps.LOW).astype(
      jnp.uint8)
    passable = _terrain_plane(rules, state, rules.terrain.passable)
    buildable = buildable & _terrain_plane(rules, state, rules.terrain.buildable)
  planes = {
    "height_map": height,
    "visibility": jnp.where(visible > 0, FULL_VIEW, explored).astype(jnp.uint8),
    "creep": creep,
    "player_relative": relative,
    "alerts": alerts,
    "pathable": passable,
    "buildable": buildable,
  }
  return jnp.stack([planes[name] for name in types.MINIMAP_PLANES], axis=1)


def _creep(rules: tables.Rules, state: State, visible: Array) -> Array:
  """Creep as a player sees it: its own, and the enemy's in sight. [2, H, W] uint8."""
  s = rules.tier.structures
  spreads = look_up(rules.types.larvae, finished_kind(rules, state))
  radius = jnp.where(spreads, placement.CREEP_RADIUS, 0.0)
  creep = cells(rules, union(spans(rules, state.x[:, :s], state.y[:, :s], radius), spreads))
  return creep | (flip(creep) * (visible > 0)).astype(jnp.uint8)


def _patch_plane(rules: tables.Rules, state: State) -> Array:
  """The resources that are remembered to hold something: [2, H, W] uint8, 0 or 1."""
  tier, size = rules.tier, rules.map_size
  middles = (np.arange(size) - (size - 1) / 2) * (tier.map_size / size)
  half = np.array(tier.patches)
  x, y = np.concatenate([half, -half]).T
  square = (middles - x[:, None, None]) ** 2 + (middles[:, None] - y[:, None, None]) ** 2
  inside = square <= tables.PATCH_RADIUS ** 2  # [R, H, W]
  index = np.where(inside.any(axis=0), inside.argmax(axis=0), tier.resources)
  # Whoever began in the second place counts the other half's first.
  there = state.memory.patches > 0
  there = jnp.where((state.side > 0)[:, None], there, jnp.roll(there, tier.resources // 2, axis=1))
  there = jnp.pad(there, ((0, 0), (0, 1))).astype(jnp.uint8)
  return jnp.take(there, index.reshape(-1), axis=1).reshape(2, size, size)


def _terrain_plane(rules: tables.Rules, state: State, table: np.ndarray) -> Array:
  """A table [K, G, G] of the game's map as a plane for both players: [2, H, W] uint8."""
  planes = jnp.asarray(on_planes(rules, table).astype(np.uint8))
  chosen = planes[state.match_up.map_index % len(table)]
  return jnp.broadcast_to(chosen, (2, *chosen.shape))
