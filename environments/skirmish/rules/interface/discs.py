"""Discs on the planes, as bits: 32 cells a word, so that one operation handles 32 cells."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.tables import tables

_ROUNDING = 0.01  # squared distances in cells are integers, squared radii need not be


class Discs(NamedTuple):
  """Discs around the middles of cells of the planes."""

  column: Array  # [..., m] int32
  half: Array  # [..., m, H] float32: half the width of each row; its ceiling counts the own column


def plane_cell(rules: tables.Rules, side: Array, x: Array, y: Array) -> tuple[Array, Array]:
  """Rows and columns of the planes' cells that contain places; places off the map are clipped.

  On the line between two cells the player's side decides: a rotated game has rotated cells.

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


def squared_cells(rules: tables.Rules, radius: Array) -> Array:
  """Squared radii in cells, from map units: larger than the squared distance of cells inside."""
  return jnp.square(radius * (rules.map_size / rules.tier.map_size)) + _ROUNDING


def discs(rules: tables.Rules, side: Array, x: Array, y: Array, radius: Array) -> Discs:
  """Discs around the middles of the cells that contain places.

  Args:
    rules: the game's constants.
    side: [2] float32.
    x: [2, m] float32.
    y: [2, m].
    radius: [2, m], map units.
  """
  row, column = plane_cell(rules, side, x, y)
  apart = np.arange(rules.map_size) - row[..., None]
  # The root comes last: XLA stores its values and recomputes all later operations for each word.
  return Discs(column, jnp.sqrt(jnp.maximum(
    squared_cells(rules, radius)[..., None] - (apart * apart).astype(jnp.float32), 0.0)))


def union(discs: Discs, chosen: Array, excluded: Array | None = None) -> Array:
  """The union of discs.

  Args:
    discs: of m slots.
    chosen: [..., m] bool: which of them.
    excluded: [..., m, H, W / 32] uint32, cells that each disc leaves out.

  Returns:
    [..., H, W / 32] uint32; bit i of word w is the cell in column 32 w + i.
  """
  size, full = discs.half.shape[-1], jnp.uint32(0xFFFFFFFF)
  reach = jnp.where(chosen[..., None], jnp.ceil(discs.half), 0.0).astype(jnp.int32)[..., None, :]
  column = (discs.column[..., None] - np.arange(0, size, 32))[..., None]
  # All bits from a column on; none if the word ends before it.
  first, end = (full << jnp.maximum(limit, 0).astype(jnp.uint32)
                for limit in (column + 1 - reach, column + reach))
  bits = first & ~end  # [..., m, W / 32, H]
  if excluded is not None:
    bits &= ~jnp.swapaxes(excluded, -1, -2)
  return jnp.swapaxes(lax.reduce(bits, np.uint32(0), lax.bitwise_or, (bits.ndim - 3,)), -1, -2)


def on_planes(rules: tables.Rules, table: np.ndarray) -> np.ndarray:
  """Terrain tables [K, G, G] at the middles of the planes' cells: [K, H, W].

  Both players have the same planes, because the maps are symmetric under half a turn.
  """
  size, g = rules.map_size, table.shape[1]
  cell = np.minimum(((np.arange(size) + 0.5) * g / size).astype(int), g - 1)
  return table[:, cell[:, None], cell]


def terrain_bits(rules: tables.Rules, state: State, table: np.ndarray) -> Array:
  """A table [K, G, G] of the game's map on the planes: [H, W / 32] uint32, one bit a cell."""
  size, planes = rules.map_size, on_planes(rules, table)
  words = planes.reshape(len(planes), size, size // 32, 32)
  bits = np.sum(words.astype(np.uint64) << np.arange(32, dtype=np.uint64), axis=-1)
  return jnp.asarray(bits.astype(np.uint32))[state.match_up.map_index % len(planes)]
