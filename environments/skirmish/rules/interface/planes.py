"""The minimap planes of an observation.

They are assembled as bits, 32 cells a word, and become bytes at the very end: handling bytes costs
several times as much.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax

from starleague.agent import types
from starleague.environments.skirmish.rules.interface.discs import (
  discs,
  plane_cell,
  squared_cells,
  terrain_bits,
  union,
)
from starleague.environments.skirmish.rules.state.arrays import flip, look_up, squared_distance
from starleague.environments.skirmish.rules.state.queries import finished_kind, on_map
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.tables import maps, tables
from starleague.environments.skirmish.rules.tables.constants import CREEP_RADIUS, PATCH_RADIUS

HEIGHT = 128  # of flat maps
# The base value of each plane, and the increments of its two layers of bits. Visibility is 1 for
# explored cells and 2 for cells in sight; an enemy's 4 is the sum of self and neutral.
_VALUES = {
  "height_map": (maps.LOW, maps.HIGH - maps.LOW, 0),
  "visibility": (0, 1, 1),
  "creep": (0, 1, 0),
  "player_relative": (0, types.ALLIANCE_SELF, types.ALLIANCE_NEUTRAL),
  "alerts": (0, 1, 0),
  "pathable": (0, 1, 0),
  "buildable": (0, 1, 0),
}
_ENEMY, _OWN, _HURT = 1, 2, 3  # cell codes; where slots overlap, the largest code is drawn


def bits(rules: tables.Rules, state: State) -> Array:
  """Both players' planes as two layers of bits each: [2, 7, 2, H, W / 32] uint32."""
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
  """A player's planes: layers [7, 2, H, W / 32] of `bits` to [7, H, W] uint8, MINIMAP_PLANES."""
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
  """Rows and columns, relative to a cell, of the cells that a disc around it can cover: [2, k]."""
  cells = radius * rules.map_size / rules.tier.map_size
  around = np.arange(-int(cells), int(cells) + 1)
  rows, columns = (values.reshape(-1) for values in np.meshgrid(around, around, indexing="ij"))
  inside = rows ** 2 + columns ** 2 <= cells ** 2
  return np.stack([rows[inside], columns[inside]])


def _drawn(rules: tables.Rules, state: State) -> tuple[Array, Array, Array]:
  """The cells of known enemies, of own slots, and of own slots that are hurt.

  Each slot is a disc around its cell, one cell at least; own slots cover the enemy's.

  Returns:
    Three arrays [2, H, W / 32] uint32.
  """
  size, s, memory, structure = rules.map_size, rules.tier.structures, state.memory, (
    rules.types.structure)
  own = jnp.where(state.kind > 0, jnp.where(state.hurt, _HURT, _OWN), 0)
  if rules.has_transports:
    own = jnp.where(on_map(state), own, 0)
  seen = jnp.where(memory.seen, _ENEMY, 0)
  remembered = jnp.where(memory.kind > 0, _ENEMY, 0)
  their_kind, their_x, their_y = flip(state.kind), flip(state.x), flip(state.y)
  drawn = jnp.zeros(2 * size * size, jnp.uint8)
  for kind, x, y, code, among in (
      (state.kind[:, :s], state.x[:, :s], state.y[:, :s], own[:, :s], structure),
      (state.kind[:, s:], state.x[:, s:], state.y[:, s:], own[:, s:], ~structure),
      (memory.kind, memory.x, memory.y, remembered, structure),
      (their_kind[:, s:], their_x[:, s:], their_y[:, s:], seen[:, s:], ~structure)):
    drawn = _draw(rules, state.side, drawn, kind, x, y, code, rules.types.radius[among].max())
  drawn = drawn.reshape(2, 32, size, size // 32)
  place = np.arange(32, dtype=np.uint32)[:, None, None]

  def pack(there):
    return lax.reduce(there.astype(jnp.uint32) << place, np.uint32(0), lax.bitwise_or, (1,))

  return pack(drawn == _ENEMY), pack(drawn >= _OWN), pack(drawn == _HURT)


def _draw(rules: tables.Rules, side: Array, drawn: Array, kind: Array, x: Array, y: Array,
          code: Array, most: float) -> Array:
  """Draws discs of slots into both players' cells.

  Args:
    rules: the game's constants.
    side: [2] float32.
    drawn: [2 * H * W] uint8: bits of a word lie apart, so that whole rows of memory become words.
    kind: [2, m] int32, local types.
    x: [2, m] float32.
    y: [2, m].
    code: [2, m] int32, cell codes, 0 for slots that are not drawn.
    most: the largest radius of these types.
  """
  size = rules.map_size
  words, start = size // 32, np.array([[[0]], [[size * size]]])
  rows, columns = _offsets(rules, most)
  row, column = plane_cell(rules, side, x, y)
  radius = look_up(rules.types.radius, kind)
  inside = rows ** 2 + columns ** 2 < squared_cells(rules, radius)[:, :, None]
  row, column = row[:, :, None] + rows, column[:, :, None] + columns
  inside &= (row >= 0) & (row < size) & (column >= 0) & (column < size)
  place = ((column & 31) * size + row) * words + (column >> 5)
  return drawn.at[jnp.where(inside, place + start, drawn.size)].max(
    code.astype(jnp.uint8)[:, :, None], mode="drop")


def _creep(rules: tables.Rules, state: State) -> Array:
  """A player's own creep, and the opponent's in sight: [2, H, W / 32] uint32."""
  s = rules.tier.structures
  spreads = look_up(rules.types.larvae, finished_kind(rules, state))
  radius = jnp.full(spreads.shape, CREEP_RADIUS, jnp.float32)
  creep = union(discs(rules, state.side, state.x[:, :s], state.y[:, :s], radius), spreads)
  return creep | (flip(creep) & state.memory.visible)


def _patches(rules: tables.Rules, state: State) -> Array:
  """The resources that hold something as last seen: [2, H, W / 32] uint32."""
  tier, size = rules.tier, rules.map_size
  middles = (np.arange(size) - (size - 1) / 2) * (tier.map_size / size)
  half = np.array(tier.patches)
  x, y = np.concatenate([half, -half]).T
  square = squared_distance(x[:, None, None], y[:, None, None], middles, middles[:, None])
  inside = square <= PATCH_RADIUS ** 2  # [R, H, W]
  inside &= np.cumsum(inside, axis=0) == 1  # one patch a cell, so that bits can be added
  masks = np.sum(inside.reshape(len(x), -1, 32).astype(np.uint64) << np.arange(
    32, dtype=np.uint64), axis=-1).astype(np.uint32)  # [R, H W / 32]
  patch, word = np.nonzero(masks)
  # A player that started on the second side counts the other half's resources first.
  there = state.memory.patches > 0
  there = jnp.where((state.side > 0)[:, None], there, jnp.roll(there, tier.resources // 2, axis=1))
  masks = jnp.where(there[:, patch], jnp.asarray(masks[patch, word]), jnp.uint32(0))
  flat = jnp.zeros((2, size * size // 32), jnp.uint32).at[:, word].add(masks)
  return flat.reshape(2, size, size // 32)
