"""The planes of the map that a player is shown.

They are put together as bits, 32 cells a word, and become bytes at the very end: to handle bytes
costs several times as much.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax

from starleague.agent import types
from starleague.environments.skirmish.rules import constants, maps, tables
from starleague.environments.skirmish.rules.arrays import flip, look_up
from starleague.environments.skirmish.rules.perception import (
  cell_of,
  discs,
  square_of,
  terrain_bits,
  union,
)
from starleague.environments.skirmish.rules.queries import finished_kind
from starleague.environments.skirmish.rules.state import Array, State

HEIGHT = 128  # of a map that is flat
# What a plane holds where nothing is set, and what its two layers of bits add. Visibility is 1 where
# a cell was explored and 2 in sight; an enemy's 4 is what self and neutral add up to.
_VALUES = {
  "height_map": (maps.LOW, maps.HIGH - maps.LOW, 0),
  "visibility": (0, 1, 1),
  "creep": (0, 1, 0),
  "player_relative": (0, types.ALLIANCE_SELF, types.ALLIANCE_NEUTRAL),
  "alerts": (0, 1, 0),
  "pathable": (0, 1, 0),
  "buildable": (0, 1, 0),
}
_ENEMY, _OWN, _HURT = 1, 2, 3  # what is drawn; the greater covers the less


def bits(rules: tables.Rules, state: State) -> Array:
  """Both players' planes: [2, 7, 2, H, W / 32] uint32, two layers of bits of each."""
  none = jnp.zeros_like(state.memory.visible)
  every = ~none
  patches = _patches(rules, state)
  enemy, own, hurt = _drawn(rules, state)
  neutral = patches & ~own & ~enemy
  high, passable, buildable = none, every, every
  if rules.terrain is not None:
    high, passable, buildable = (
      jnp.broadcast_to(terrain_bits(rules, state, table), none.shape)
      for table in (rules.terrain.high, rules.terrain.passable, rules.terrain.buildable))
  layers = {
    "height_map": (high, none),
    "visibility": (state.memory.explored, state.memory.visible),
    "creep": (_creep(rules, state) if rules.has_larvae else none, none),
    "player_relative": (own | enemy, enemy | neutral),
    "alerts": (hurt, none),
    "pathable": (passable, none),
    "buildable": (buildable & ~patches, none),
  }
  return jnp.stack([jnp.stack(layers[name], axis=1) for name in types.MINIMAP_PLANES], axis=1)


def unpack(rules: tables.Rules, layers: Array) -> Array:
  """A player's planes: [7, 2, H, W / 32] uint32, of `bits`, to [7, H, W] uint8, MINIMAP_PLANES."""
  values = dict(_VALUES)
  if rules.terrain is None:
    values["height_map"] = (HEIGHT, 0, 0)
  base, *steps = np.array(
    [values[name] for name in types.MINIMAP_PLANES], np.uint8).T[..., None, None, None]
  there = [(layers[:, i, :, :, None] >> np.arange(32, dtype=np.uint32)).astype(jnp.uint8) & 1
           for i in range(2)]
  planes = base + there[0] * steps[0] + there[1] * steps[1]
  return planes.reshape(-1, rules.map_size, rules.map_size)


def _offsets(rules: tables.Rules, radius: float) -> np.ndarray:
  """Rows and columns from a cell to those that a disc around it may hold: [2, k]."""
  cells = radius * rules.map_size / rules.tier.map_size
  around = np.arange(-int(cells), int(cells) + 1)
  rows, columns = (values.reshape(-1) for values in np.meshgrid(around, around, indexing="ij"))
  inside = rows ** 2 + columns ** 2 <= cells ** 2
  return np.stack([rows[inside], columns[inside]])


def _drawn(rules: tables.Rules, state: State) -> tuple[Array, Array, Array]:
  """The cells of the enemy as far as it is known, of own slots and of those hurt.

  Each slot is a disc around its cell, of its own cell at least; own ones cover the enemy's.

  Returns:
    Three times [2, H, W / 32] uint32.
  """
  size, s, memory, radii = rules.map_size, rules.tier.structures, state.memory, rules.types.radius
  words = size // 32
  own = jnp.where(state.kind > 0, jnp.where(state.hurt, _HURT, _OWN), 0)
  seen = jnp.where(memory.seen, _ENEMY, 0)
  drawn = jnp.zeros(2 * size * size, jnp.uint8)
  start = np.array([[[0]], [[size * size]]])
  for kind, x, y, code, among in (
      (state.kind[:, :s], state.x[:, :s], state.y[:, :s], own[:, :s], rules.types.structure),
      (state.kind[:, s:], state.x[:, s:], state.y[:, s:], own[:, s:], ~rules.types.structure),
      (memory.kind, memory.x, memory.y, jnp.where(memory.kind > 0, _ENEMY, 0),
       rules.types.structure),
      (flip(state.kind)[:, s:], flip(state.x)[:, s:], flip(state.y)[:, s:], seen[:, s:],
       ~rules.types.structure)):
    rows, columns = _offsets(rules, radii[among].max())
    row, column = cell_of(rules, state.side, x, y)
    inside = rows ** 2 + columns ** 2 < square_of(rules, look_up(radii, kind))[:, :, None]
    row, column = row[:, :, None] + rows, column[:, :, None] + columns
    inside &= (row >= 0) & (row < size) & (column >= 0) & (column < size)
    # Bits of a word lie apart, so that words are put together by whole rows of memory.
    place = ((column & 31) * size + row) * words + (column >> 5)
    drawn = drawn.at[jnp.where(inside, place + start, drawn.size)].max(
      code.astype(jnp.uint8)[:, :, None], mode="drop")
  drawn = drawn.reshape(2, 32, size, words)
  place = np.arange(32, dtype=np.uint32)[:, None, None]

  def pack(there):
    return lax.reduce(there.astype(jnp.uint32) << place, np.uint32(0), lax.bitwise_or, (1,))

  return pack(drawn == _ENEMY), pack(drawn >= _OWN), pack(drawn == _HURT)


def _creep(rules: tables.Rules, state: State) -> Array:
  """Creep as a player sees it: its own, and the enemy's in sight. [2, H, W / 32] uint32."""
  s = rules.tier.structures
  spreads = look_up(rules.types.larvae, finished_kind(rules, state))
  radius = jnp.full(spreads.shape, constants.CREEP_RADIUS, jnp.float32)
  creep = union(discs(rules, state.side, state.x[:, :s], state.y[:, :s], radius), spreads)
  return creep | (flip(creep) & state.memory.visible)


def _patches(rules: tables.Rules, state: State) -> Array:
  """The resources that are remembered to hold something: [2, H, W / 32] uint32."""
  tier, size = rules.tier, rules.map_size
  middles = (np.arange(size) - (size - 1) / 2) * (tier.map_size / size)
  half = np.array(tier.patches)
  x, y = np.concatenate([half, -half]).T
  square = (middles - x[:, None, None]) ** 2 + (middles[:, None] - y[:, None, None]) ** 2
  inside = square <= constants.PATCH_RADIUS ** 2  # [R, H, W]
  inside &= np.cumsum(inside, axis=0) == 1  # a cell is of one patch, so that bits can be added
  masks = np.sum(inside.reshape(len(x), -1, 32).astype(np.uint64) << np.arange(
    32, dtype=np.uint64), axis=-1).astype(np.uint32)  # [R, H W / 32]
  patch, word = np.nonzero(masks)
  # Whoever began in the second place counts the other half's first.
  there = state.memory.patches > 0
  there = jnp.where((state.side > 0)[:, None], there, jnp.roll(there, tier.resources // 2, axis=1))
  masks = jnp.where(there[:, patch], jnp.asarray(masks[patch, word]), jnp.uint32(0))
  flat = jnp.zeros((2, size * size // 32), jnp.uint32).at[:, word].add(masks)
  return flat.reshape(2, size, size // 32)
