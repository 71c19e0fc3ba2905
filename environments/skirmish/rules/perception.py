"""Fog of war: what each player sees, and what it remembers. Once a step."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from starleague.environments.skirmish.rules import constants, placement, tables
from starleague.environments.skirmish.rules.arrays import flip, look_up
from starleague.environments.skirmish.rules.constants import SCAN_RADIUS
from starleague.environments.skirmish.rules.queries import both_halves, resource_positions
from starleague.environments.skirmish.rules.state import Array, State

ROUNDING = 0.01  # squares of distances in cells are integers, those of radii need not be


class Discs(NamedTuple):
  """Discs around the middles of cells of the planes."""

  column: Array  # [..., m] int32
  half: Array  # [..., m, H] float32: the ceiling is how far a row reaches, its own column counted


def cell_of(rules: tables.Rules, side: Array, x: Array, y: Array) -> tuple[Array, Array]:
  """Rows and columns of the planes' cells that places lie in, those off the map clipped.

  On the line between two cells it is side that decides: in a map turned by half a turn, the cells
  are those turned.

  Args:
    rules: the game's constants.
    side: [2] float32.
    x: [2, m] float32, map units from the middle.
    y: [2, m].
  """
  size, side = rules.map_size, side[:, None]

  def index(values):
    own = jnp.floor(side * values * (size / rules.tier.map_size)).astype(jnp.int32)
    return jnp.clip(jnp.where(side > 0, own, -1 - own) + size // 2, 0, size - 1)

  return index(y), index(x)


def square_of(rules: tables.Rules, radius: Array) -> Array:
  """Radii in map units to what squares of distances in cells, integers, are below if inside."""
  return jnp.square(radius * (rules.map_size / rules.tier.map_size)) + ROUNDING


def discs(rules: tables.Rules, side: Array, x: Array, y: Array, radius: Array) -> Discs:
  """Discs around the middles of the cells that places lie in.

  Args:
    rules: the game's constants.
    side: [2] float32.
    x: [2, m] float32.
    y: [2, m].
    radius: [2, m], map units.
  """
  row, column = cell_of(rules, side, x, y)
  apart = np.arange(rules.map_size) - row[..., None]
  # The root comes last: XLA keeps its values, and works out anew for each word what follows them.
  return Discs(column, jnp.sqrt(jnp.maximum(
    square_of(rules, radius)[..., None] - (apart * apart).astype(jnp.float32), 0.0)))


def union(discs: Discs, chosen: Array, but: Array | None = None) -> Array:
  """The cells in any of some discs, a bit each: one operation for 32 of a row.

  Args:
    discs: of m slots.
    chosen: [..., m] bool: which of them.
    but: [..., m, H, W / 32] uint32, cells that each disc leaves out.

  Returns:
    [..., H, W / 32] uint32; bit i of word w is the cell in column 32 w + i.
  """
  size, full = discs.half.shape[-1], jnp.uint32(0xFFFFFFFF)
  reach = jnp.where(chosen[..., None], jnp.ceil(discs.half), 0.0).astype(jnp.int32)[..., None, :]
  column = (discs.column[..., None] - np.arange(0, size, 32))[..., None]
  # All bits from a column on; none of a word if it lies beyond.
  first, end = (full << jnp.maximum(limit, 0).astype(jnp.uint32)
                for limit in (column + 1 - reach, column + reach))
  bits = first & ~end  # [..., m, W / 32, H]
  if but is not None:
    bits &= ~jnp.swapaxes(but, -1, -2)
  return jnp.swapaxes(lax.reduce(bits, np.uint32(0), lax.bitwise_or, (bits.ndim - 3,)), -1, -2)


class _Eyes(NamedTuple):
  """Who looks, and how far: [2, m] each."""

  x: Array
  y: Array
  sight: Array  # 0 or less for those who see nothing
  above: Array  # bool: sees high ground


def _high(rules: tables.Rules, state: State, x: Array, y: Array) -> Array:
  """Whether places [2, m] lie where those below see nothing."""
  if rules.terrain is None:
    return jnp.zeros(x.shape, bool)
  return placement.on_terrain(rules, state, rules.terrain.high, x, y)


def _eyes(rules: tables.Rules, state: State) -> _Eyes:
  """Everyone, and what is looked at from the orbit."""
  types = rules.types
  sight = jnp.where(state.kind > 0, look_up(types.sight, state.kind), 0.0)
  x, y = state.x, state.y
  above = look_up(types.flying, state.kind) | _high(rules, state, x, y)
  if rules.has(constants.SCAN):
    radius = jnp.where(state.scan_loops > 0, SCAN_RADIUS * rules.tier.sight_scale, 0.0)
    sight = jnp.concatenate([sight, radius[:, None]], axis=1)
    x = jnp.concatenate([x, state.scan_x[:, None]], axis=1)
    y = jnp.concatenate([y, state.scan_y[:, None]], axis=1)
    above = jnp.pad(above, ((0, 0), (0, 1)), constant_values=True)
  return _Eyes(x, y, sight, above)


def on_planes(rules: tables.Rules, table: np.ndarray) -> np.ndarray:
  """Tables of the terrain [K, G, G] at the middles of the planes' cells: [K, H, W].

  They are the same in both players' frames: a map turned by half a turn is the same map.
  """
  size, g = rules.map_size, table.shape[1]
  cell = np.minimum(((np.arange(size) + 0.5) * g / size).astype(int), g - 1)
  return table[:, cell[:, None], cell]


def terrain_bits(rules: tables.Rules, state: State, table: np.ndarray) -> Array:
  """A table [K, G, G] of the game's map on the planes, a bit a cell: [H, W / 32] uint32."""
  size, planes = rules.map_size, on_planes(rules, table)
  words = planes.reshape(len(planes), size, size // 32, 32)
  bits = np.sum(words.astype(np.uint64) << np.arange(32, dtype=np.uint64), axis=-1)
  return jnp.asarray(bits.astype(np.uint32))[state.match_up.map_index % len(planes)]


def perceive(rules: tables.Rules, state: State) -> State:
  """Renews what the players see and remember."""
  types, s, memory = rules.types, rules.tier.structures, state.memory
  eyes = _eyes(rules, state)
  radius = look_up(types.radius, state.kind)

  def in_sight(xs, ys, extra, hidden):
    """Whether any own slot sees places [2, m]; hidden ones only from above."""
    square = (xs[:, None] - eyes.x[:, :, None]) ** 2 + (ys[:, None] - eyes.y[:, :, None]) ** 2
    reach = eyes.sight[:, :, None] + extra[:, None]
    sees = (square <= reach * reach) & (eyes.sight > 0)[:, :, None]
    if rules.terrain is not None:
      sees &= eyes.above[:, :, None] | ~hidden[:, None]
    return jnp.any(sees, axis=1)

  kind, x, y, health = flip(state.kind), flip(state.x), flip(state.y), flip(state.health)
  # A flyer over a cliff is seen from below.
  hidden = _high(rules, state, x, y) & ~look_up(types.flying, kind)
  seen = in_sight(x, y, flip(radius), hidden) & (kind > 0)
  still = in_sight(memory.x, memory.y, look_up(types.radius, memory.kind),
                   _high(rules, state, memory.x, memory.y))
  now = seen[:, :s]
  around = discs(rules, state.side, eyes.x, eyes.y, eyes.sight)
  unseen = None
  if rules.terrain is not None:
    high = terrain_bits(rules, state, rules.terrain.high)
    unseen = jnp.where(eyes.above[:, :, None, None], jnp.uint32(0), high)
  visible = union(around, eyes.sight > 0, unseen)
  patch_x, patch_y = resource_positions(rules, state.side)
  patches_seen = in_sight(patch_x, patch_y, jnp.zeros_like(patch_x),
                          _high(rules, state, patch_x, patch_y))
  return state._replace(memory=memory._replace(
    seen=seen, visible=visible, explored=memory.explored | visible,
    # A remembered structure is forgotten when its place is seen without it.
    kind=jnp.where(now, kind[:, :s], jnp.where(still, 0, memory.kind)),
    x=jnp.where(now, x[:, :s], memory.x), y=jnp.where(now, y[:, :s], memory.y),
    health=jnp.where(now, health[:, :s], memory.health),
    patches=jnp.where(patches_seen, both_halves(state.patches), memory.patches),
    met=memory.met | jnp.any(seen, axis=1)))
