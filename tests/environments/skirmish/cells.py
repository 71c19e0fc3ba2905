"""Cells of the planes, computed one by one."""

import numpy as np


def cell_of(rules, side, value):
  """The row or column of a coordinate; on a boundary, the player's own frame decides."""
  size = rules.map_size
  own = int(np.floor(np.float32(side * value) * np.float32(size / rules.tier.map_size)))
  return min(max((own if side > 0 else -1 - own) + size // 2, 0), size - 1)


def disc(rules, side, x, y, radius):
  """The cells within a radius of a place's cell, between middles: [H, W] bool."""
  row, column = cell_of(rules, side, y), cell_of(rules, side, x)
  rows, columns = np.indices((rules.map_size,) * 2)
  square = (rows - row) ** 2 + (columns - column) ** 2
  return square <= (radius * rules.map_size / rules.tier.map_size) ** 2 + 1e-3


def bits(words):
  """[..., H, W / 32] uint32 to [..., H, W] bool."""
  words = np.ascontiguousarray(words)
  return np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little").astype(bool)
