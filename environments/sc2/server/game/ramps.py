"""Ramps as realistic maps show them, in the shape of the real game's main ramps.

Clients find ramps in the grids of `game_info`: cells that are pathable, not placeable, and at
heights that differ around them. They build walls above ramps whose highest cells are two diagonal
neighbours. A shown ramp therefore runs diagonally, and its height falls from row to row. On the map
with ramps it lies within each passable part of a plateau's edge. On the others, which have no
cliffs, it is a low mound where that map's ramp would be. Every cell that is shown as pathable or
placeable is so; others of a cliff's margin are shown as cliffs.
"""

import numpy as np

from starleague.environments.skirmish.rules.tables import maps

SIDE = 96  # cells of a map that has room for ramps
_FIRST = (20, 28)  # column and row of the first of the highest cells, in a player's own frame
_ROWS = 9  # diagonal rows of a ramp, of two and three cells in turn
_STEP = (maps.HIGH - maps.LOW) // (_ROWS - 1)  # of heights between rows
_MOUND_STEP = 1


def ramp_cells() -> np.ndarray:
  """Columns, rows and depths of a ramp's cells, [3, k]: the highest have depth 0."""
  found = []
  for depth in range(_ROWS):
    for across in ((0, 2), (-1, 1, 3))[depth % 2]:
      column, row = (depth + across) // 2, (depth - across) // 2
      found.append((_FIRST[0] + column, _FIRST[1] + row, depth))
  return np.array(found).T


def carve(passable: np.ndarray, buildable: np.ndarray,
          height: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Returns the shown grids of a map [G, G], in a player's own frame.

  Args:
    passable: bool, on the ground.
    buildable: bool.
    height: uint8.
  """
  plateau = bool((height == maps.HIGH).any())
  column, row, depth = ramp_cells()
  shown_height = height.copy()
  ramp = np.zeros_like(passable)
  top = maps.HIGH if plateau else maps.LOW + _MOUND_STEP * (_ROWS - 1)
  heights = top - (_STEP if plateau else _MOUND_STEP) * depth
  # A plateau has a ramp in each of its two edges.
  for first, second in ((row, column), (column, row))[:2 if plateau else 1]:
    for i, j in ((first, second), (-1 - first, -1 - second)):  # and so has the opponent's
      ramp[i, j], shown_height[i, j] = True, heights
  return ramp | (passable & buildable), buildable & ~ramp, shown_height
