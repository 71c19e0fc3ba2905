"""Where the games take place: bases, resources, cliffs, and the ways around them.

A map is a square of G x G cells of one map unit, the same after half a turn. It is given in a
player's own frame, in which its home lies in the first corner; as the map is symmetric, both
players use the same tables. Distances are those of a map of 48; larger ones are scaled.

On the ground, way is found by fields: for each block of cells that may be gone to, the direction to
take in each cell, or STRAIGHT where nothing is in the way. One look-up a unit and step.
"""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

NAMES = ("open", "ramps", "river")
REFERENCE_SIZE = 48.0  # the side of the map that places are given for
BASES = ((-16.0, -16.0), (-17.0, -2.25), (-2.25, -17.0), (-17.5, 11.0))  # home first, then by nearness
PLATEAU = -8.0  # a home lies higher than the rest: up to here in both directions
RAMPS = ((-15.0, -11.0), (-15.0, -11.0))  # where the two edges of a plateau can be passed
RIVER = 2.0  # of the middle line, in x + y: how far its banks are from it
FORDS = ((-4.0, 4.0), (26.0, 34.0))  # in |x - y|: where it can be passed
LOW, HIGH = 96, 160  # heights as observations show them
STRAIGHT = 8  # the direction that leads right to where a unit is going
DIRECTIONS = tuple((round(np.cos(a)), round(np.sin(a))) for a in np.arange(8) * np.pi / 4)
UNREACHABLE = -1


@dataclasses.dataclass(frozen=True, eq=False)
class Terrain:
  """Maps [K] as a player sees them from its own home; rows run downwards."""

  cells: int  # G
  block: int  # cells a side that share a field
  passable: np.ndarray  # [K, G, G] bool, on the ground
  buildable: np.ndarray  # [K, G, G] bool
  high: np.ndarray  # [K, G, G] bool: not to be looked up to from below
  fields: np.ndarray  # [K, blocks, G, G] int8: an index of DIRECTIONS, STRAIGHT or UNREACHABLE


def _middles(cells: int) -> tuple[np.ndarray, np.ndarray]:
  """The middles of cells [G, G] as x, y of a map of REFERENCE_SIZE."""
  middle = (np.arange(cells) - (cells - 1) / 2) * (REFERENCE_SIZE / cells)
  return np.meshgrid(middle, middle)


def _open(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  return np.ones_like(x, bool), np.zeros_like(x, bool)


def _ramps(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Each home on a plateau with two ramps."""
  passable, high = np.ones_like(x, bool), np.zeros_like(x, bool)
  for side in (1, -1):
    u, v = side * x, side * y
    inside = (u < PLATEAU) & (v < PLATEAU)
    edge = inside & ((u > PLATEAU - 1) | (v > PLATEAU - 1))
    gaps = [(RAMPS[0][0] < along) & (along < RAMPS[0][1]) for along in (u, v)]
    ramp = (gaps[0] & (v > PLATEAU - 1)) | (gaps[1] & (u > PLATEAU - 1))
    passable &= ~edge | ramp
    high |= inside
  return passable, high


def _river(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """A river through the middle, with a ford in it and one near either end."""
  wet = np.abs(x + y) < RIVER
  across = np.abs(x - y)
  for low, high in FORDS:
    wet &= ~((low < across) & (across < high))
  return ~wet, np.zeros_like(x, bool)


_SHAPES: tuple[Callable, ...] = (_open, _ramps, _river)


def bases(map_size: float) -> np.ndarray:
  """The places for a player's town halls, home first: [4, 2], map units from the middle."""
  return np.array(BASES, np.float32) * np.float32(map_size / REFERENCE_SIZE)


def resources(map_size: float, patches: int, geysers: int, distance: float = 5.75,
              ) -> tuple[np.ndarray, np.ndarray]:
  """Patches and geysers around a half's bases, on the side away from the middle of the map.

  Args:
    map_size: side of the map.
    patches: mineral patches a base.
    geysers: vespene geysers a base.
    distance: of a patch's middle from the base's, map units.

  Returns:
    Places [4 * (patches + geysers), 2] float32, and which are geysers, [...] bool.
  """
  places, gas = [], []
  for x, y in bases(map_size):
    away = np.arctan2(y, x) if abs(abs(x) - abs(y)) < 0.2 * map_size / REFERENCE_SIZE else (
      np.arctan2(0.0, x) if abs(x) > abs(y) else np.arctan2(y, 0.0))
    width = 0.24 * (patches - 1)
    angles = [*np.linspace(-width, width, patches), *(
      (width + 0.55) * (1 if i % 2 == 0 else -1) for i in range(geysers))]
    for i, angle in enumerate(angles):
      # On quarters: half a turn then changes signs only.
      places.append(np.round(4 * (np.array([x, y]) + distance * np.array(
        [np.cos(away + angle), np.sin(away + angle)]))) / 4)
      gas.append(i >= patches)
  return np.array(places, np.float32), np.array(gas)


def _graph(passable: np.ndarray) -> sparse.csr_matrix:
  """The steps between neighbouring passable cells, none across a corner of an impassable one."""
  g = len(passable)
  index = np.arange(g * g).reshape(g, g)
  padded = np.pad(passable, 1)
  rows, columns, lengths = [], [], []
  for dx, dy in DIRECTIONS:
    there = padded[1 + dy:g + 1 + dy, 1 + dx:g + 1 + dx]
    beside = padded[1:g + 1, 1 + dx:g + 1 + dx] & padded[1 + dy:g + 1 + dy, 1:g + 1]
    can = passable & there & beside
    rows.append(index[can])
    columns.append(index[can] + dy * g + dx)
    lengths.append(np.full(int(can.sum()), np.hypot(dx, dy)))
  return sparse.csr_matrix(
    (np.concatenate(lengths), (np.concatenate(rows), np.concatenate(columns))), (g * g, g * g))


def _in_line(roomy: np.ndarray, goal: tuple[int, int]) -> np.ndarray:
  """From which cells the straight way to a cell is free: [G, G] bool.

  Args:
    roomy: [G, G] bool, cells whose neighbours are passable too.
    goal: row and column.
  """
  g = len(roomy)
  free = np.ones((g, g), bool)
  every = np.arange(g)
  for part in np.linspace(0.0, 1.0, g):
    y = np.round(every + part * (goal[0] - every)).astype(int)
    x = np.round(every + part * (goal[1] - every)).astype(int)
    free &= roomy[np.ix_(y, x)]
  return free


def _fields(passable: np.ndarray, block: int) -> np.ndarray:
  """The field of each block of cells: [blocks, G, G] int8."""
  g = len(passable)
  count = g // block
  if passable.all():
    return np.full((count * count, g, g), STRAIGHT, np.int8)
  graph, roomy = _graph(passable), ~_spread(~passable)
  fields = []
  for row in range(count):
    for column in range(count):
      # The passable cell nearest to the block's middle stands for it.
      middle = (row + 0.5) * block - 0.5, (column + 0.5) * block - 0.5
      ys, xs = np.nonzero(passable)
      best = np.argmin((ys - middle[0]) ** 2 + (xs - middle[1]) ** 2)
      goal = int(ys[best]), int(xs[best])
      far = csgraph.dijkstra(graph, indices=goal[0] * g + goal[1]).reshape(g, g)
      padded = np.pad(far, 1, constant_values=np.inf)
      wide = np.pad(passable, 1)
      ways = np.stack([
        np.where(wide[1:g + 1, 1 + dx:g + 1 + dx] & wide[1 + dy:g + 1 + dy, 1:g + 1],
                 padded[1 + dy:g + 1 + dy, 1 + dx:g + 1 + dx] + np.hypot(dx, dy), np.inf)
        for dx, dy in DIRECTIONS])
      field = np.where(np.isfinite(far), np.argmin(ways, axis=0), UNREACHABLE)
      fields.append(np.where(_in_line(roomy, goal), STRAIGHT, field).astype(np.int8))
  return np.stack(fields)


@functools.cache
def make_terrain(cells: int, block: int) -> Terrain:
  """The maps NAMES on a grid.

  Args:
    cells: G, a multiple of `block`.
    block: cells a side of the squares that share a field.
  """
  x, y = _middles(cells)
  passable, high = (np.stack(parts) for parts in zip(*(shape(x, y) for shape in _SHAPES),
                                                      strict=True))
  # Ramps are neither high nor low ground to build on.
  near_cliff = np.stack([~p | (_spread(h) & _spread(~h)) for p, h in zip(
    passable, high, strict=True)])
  return Terrain(
    cells=cells, block=block, passable=passable, buildable=~near_cliff, high=high,
    fields=np.stack([_fields(p, block) for p in passable]))


def _spread(high: np.ndarray) -> np.ndarray:
  """High ground and the cells beside it."""
  padded = np.pad(high, 1, mode="edge")
  g = len(high)
  return np.any([padded[1 + dy:g + 1 + dy, 1 + dx:g + 1 + dx]
                 for dx in (-1, 0, 1) for dy in (-1, 0, 1)], axis=0)
