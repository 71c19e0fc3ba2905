"""Fog of war: what each player sees, and what it remembers. Once a step."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from starleague.actor.environments.skirmish import tables
from starleague.actor.environments.skirmish.state import (
  Array,
  State,
  both_halves,
  flip,
  look_up,
  patch_places,
)


def discs(rules: tables.Rules, x: Array, y: Array, radius: Array) -> Array:
  """The cells of the map's planes whose middles lie in one of several discs, a bit a cell.

  A row of 32 cells is one word, so that a disc costs one operation a row, not one a cell.

  Args:
    rules: the game's constants.
    x: [..., m] float32, map units from the middle.
    y: [..., m].
    radius: [..., m]; 0 or less for none.

  Returns:
    [..., H, W / 32] uint32; bit i of word w is the cell in column 32 w + i.
  """
  size = rules.map_size
  cell = rules.tier.map_size / size
  middles = (np.arange(size, dtype=np.float32) - (size - 1) / 2) * cell
  height = middles[:, None] - y[..., None, :]  # [..., H, m]
  chord = radius[..., None, :] ** 2 - height * height
  half = jnp.sqrt(jnp.maximum(chord, 0.0))
  first = jnp.ceil((x[..., None, :] - half) / cell + (size - 1) / 2)
  last = jnp.floor((x[..., None, :] + half) / cell + (size - 1) / 2)
  crossed = (chord >= 0) & (radius > 0)[..., None, :]

  def below(limit):  # bits under a limit, 0 to 32
    limit = jnp.clip(limit, 0, 32).astype(jnp.uint32)
    return jnp.where(limit >= 32, jnp.uint32(0xFFFFFFFF),
                     (jnp.uint32(1) << jnp.minimum(limit, 31)) - jnp.uint32(1))

  words = []
  for word in range(size // 32):
    bits = below(last + 1 - 32 * word) & ~below(first - 32 * word)
    bits = jnp.where(crossed & (last >= first), bits, jnp.uint32(0))
    words.append(lax.reduce(bits, np.uint32(0), lax.bitwise_or, (bits.ndim - 1,)))
  return jnp.stack(words, axis=-1)


def cells(rules: tables.Rules, bits: Array) -> Array:
  """Unpacks `discs`: [..., H, W / 32] uint32 to [..., H, W] uint8, 0 or 1."""
  unpacked = (bits[..., None] >> jnp.arange(32, dtype=jnp.uint32)) & jnp.uint32(1)
  return unpacked.reshape(*bits.shape[:-1], rules.map_size).astype(jnp.uint8)


def perceive(rules: tables.Rules, state: State) -> State:
  """Renews what the players see and remember."""
  types, s, memory = rules.types, rules.tier.structures, state.memory
  sight = jnp.where(state.kind > 0, look_up(types.sight, state.kind), 0.0)
  radius = look_up(types.radius, state.kind)

  def in_sight(xs, ys, extra):
    """Whether any own slot sees places [2, m]."""
    square = (xs[:, :, None] - state.x[:, None]) ** 2 + (ys[:, :, None] - state.y[:, None]) ** 2
    reach = sight[:, None] + extra[:, :, None]
    return jnp.any((square <= reach * reach) & (sight > 0)[:, None], axis=2)

  kind, x, y, health = flip(state.kind), flip(state.x), flip(state.y), flip(state.health)
  seen = in_sight(x, y, flip(radius)) & (kind > 0)
  still = in_sight(memory.x, memory.y, look_up(types.radius, memory.kind))
  now = seen[:, :s]
  visible = discs(rules, state.x, state.y, sight)
  patch_x, patch_y = patch_places(rules, state.side)
  patches_seen = in_sight(patch_x, patch_y, jnp.zeros_like(patch_x))
  return state._replace(memory=memory._replace(
    seen=seen, visible=visible, explored=memory.explored | visible,
    # A remembered structure is forgotten when its place is seen without it.
    kind=jnp.where(now, kind[:, :s], jnp.where(still, 0, memory.kind)),
    x=jnp.where(now, x[:, :s], memory.x), y=jnp.where(now, y[:, :s], memory.y),
    health=jnp.where(now, health[:, :s], memory.health),
    patches=jnp.where(patches_seen, both_halves(state.patches), memory.patches),
    met=memory.met | jnp.any(seen, axis=1)))
