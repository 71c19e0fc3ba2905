"""Fog of war: what each player sees, and what it remembers. Once a step."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from starleague.actor.environments.skirmish import placement, tables
from starleague.actor.environments.skirmish.abilities import SCAN_RADIUS
from starleague.actor.environments.skirmish.state import (
  Array,
  State,
  both_halves,
  flip,
  look_up,
  resource_places,
)


def spans(rules: tables.Rules, x: Array, y: Array, radius: Array) -> list[Array]:
  """The cells of the map's planes whose middles lie in discs, a bit each.

  A row of 32 cells is one word, so that a disc costs one operation a row, not one a cell.

  Args:
    rules: the game's constants.
    x: [..., m] float32, map units from the middle.
    y: [..., m].
    radius: [..., m]; 0 or less for none.

  Returns:
    W / 32 words [..., m, H] uint32; bit i of word w is the cell in column 32 w + i.
  """
  size = rules.map_size
  cell = rules.tier.map_size / size
  middles = (np.arange(size, dtype=np.float32) - (size - 1) / 2) * cell
  height = middles - y[..., None]
  chord = radius[..., None] ** 2 - height * height
  half = jnp.sqrt(jnp.maximum(chord, 0.0))
  first = jnp.ceil((x[..., None] - half) / cell + (size - 1) / 2)
  last = jnp.floor((x[..., None] + half) / cell + (size - 1) / 2)
  crossed = (chord >= 0) & (radius > 0)[..., None] & (last >= first)

  def below(limit):  # bits under a limit, 0 to 32
    limit = jnp.clip(limit, 0, 32).astype(jnp.uint32)
    return jnp.where(limit >= 32, jnp.uint32(0xFFFFFFFF),
                     (jnp.uint32(1) << jnp.minimum(limit, 31)) - jnp.uint32(1))

  return [jnp.where(crossed, below(last + 1 - 32 * word) & ~below(first - 32 * word), jnp.uint32(0))
          for word in range(size // 32)]


def union(discs: list[Array], chosen: Array) -> Array:
  """The cells in any of the chosen discs.

  Args:
    discs: `spans`.
    chosen: [..., m] bool.

  Returns:
    [..., H, W / 32] uint32.
  """
  words = [lax.reduce(jnp.where(chosen[..., None], word, jnp.uint32(0)), np.uint32(0),
                      lax.bitwise_or, (word.ndim - 2,)) for word in discs]
  # Else XLA works the discs out again for each cell that is unpacked.
  return lax.optimization_barrier(jnp.stack(words, axis=-1))


def cells(rules: tables.Rules, bits: Array) -> Array:
  """Unpacks `union`: [..., H, W / 32] uint32 to [..., H, W] uint8, 0 or 1."""
  unpacked = (bits[..., None] >> jnp.arange(32, dtype=jnp.uint32)) & jnp.uint32(1)
  return unpacked.reshape(*bits.shape[:-1], rules.map_size).astype(jnp.uint8)


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
  if rules.has(tables.SCAN):
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


def high_ground(rules: tables.Rules, state: State) -> Array | None:
  """The cells of the planes that lie high, a bit each: [2, H, W / 32] uint32; None on flat maps."""
  if rules.terrain is None:
    return None
  size, planes = rules.map_size, on_planes(rules, rules.terrain.high)
  words = planes.reshape(len(planes), size, size // 32, 32)
  bits = np.sum(words.astype(np.uint64) << np.arange(32, dtype=np.uint64), axis=-1)
  chosen = jnp.asarray(bits.astype(np.uint32))[state.match_up.map_index % len(planes)]
  return jnp.broadcast_to(chosen, (2, *chosen.shape))


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
  high = high_ground(rules, state)
  around = spans(rules, eyes.x, eyes.y, eyes.sight)
  if high is None:
    visible = union(around, eyes.sight > 0)
  else:
    visible = union(around, eyes.above) | (union(around, ~eyes.above) & ~high)
  patch_x, patch_y = resource_places(rules, state.side)
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
