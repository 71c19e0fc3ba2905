"""The maps: bases, resources, cliffs, and flow fields around them.

A map is a square of G x G cells of one map unit, symmetric under half a turn. Its tables are in a
player's own frame, with its home in the first corner; both players use the same tables. Distances
are those of a map of 48 units and scale with the map.

Ground units find their way by flow fields. A field has one goal, a block of cells, and gives for
each cell the direction to take, or STRAIGHT where nothing is in the way: one look-up a unit and
step.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

NAMES = ("open", "ramps", "river")
REFERENCE_SIZE = 48.0  # side of the map that the following distances are for
# Town hall sites of a player: home first, then the nearest.
BASES = ((-16.0, -16.0), (-17.0, -2.25), (-2.25, -17.0), (-17.5, 11.0))
PLATEAU = -8.0  # homes lie on high ground, up to here in both directions
RAMPS = ((-15.0, -11.0), (-15.0, -11.0))  # passable parts of the plateau's two edges
RIVER = 2.0  # distance of the banks from the middle line, in x + y
FORDS = ((-4.0, 4.0), (26.0, 34.0))  # passable parts of the river, in |x - y|
LOW, HIGH = 96, 160  # heights in observations
DIRECTIONS = tuple((round(np.cos(a)), round(np.sin(a))) for a in np.arange(8) * np.pi / 4)
STRAIGHT = 8  # in a field: walk directly to the goal
UNREACHABLE = -1
_PATCH_DISTANCE = 5.75  # of resources from the middle of their base, map units
_PATCH_ANGLE, _GEYSER_ANGLE = 0.24, 0.55  # radians: half between patches, and beyond them


@dataclasses.dataclass(frozen=True, eq=False)
class Terrain:
  """Maps [K] in a player's own frame; rows run downwards."""

  cells: int  # G
  block: int  # side in cells of the blocks that share a field
  passable: np.ndarray  # [K, G, G] bool, on the ground
  buildable: np.ndarray  # [K, G, G] bool
  high: np.ndarray  # [K, G, G] bool: invisible from below

  @functools.cached_property
  def fields(self) -> np.ndarray:
    """All flow fields, [K, blocks, G, G] int8; a server that loads its programs needs few."""
    blocks = range((self.cells // self.block) ** 2)
    return np.stack([np.stack([self.field(i, block) for block in blocks])
                     for i in range(len(self.passable))])

  def field(self, map_index: int, block: int) -> np.ndarray:
    """The flow field of a block: [G, G] int8, an index of DIRECTIONS, STRAIGHT or UNREACHABLE."""
    known = self._known.get((map_index, block))
    if known is None:
      known = self._known[map_index, block] = _field(self, map_index, block)
    return known

  @functools.cached_property
  def _known(self) -> dict[tuple[int, int], np.ndarray]:
    return {}

  @functools.cached_property
  def _ways(self) -> tuple["_Ways | None", ...]:
    """The ways on each map, None where nothing is in the way."""
    return tuple(None if cells.all() else _Ways.of(cells) for cells in self.passable)


class _Ways(NamedTuple):
  """What all flow fields of a map share."""

  graph: sparse.csr_matrix  # of steps between neighbouring passable cells
  roomy: np.ndarray  # [G, G] bool, cells whose neighbours are passable too
  can_step: list[np.ndarray]  # by DIRECTIONS: [G, G] bool
  cells: tuple[np.ndarray, np.ndarray]  # rows and columns of the passable cells

  @classmethod
  def of(cls, passable: np.ndarray) -> "_Ways":
    """The ways on a map of passable cells, [G, G] bool."""
    ys, xs = np.nonzero(passable)
    return cls(_graph(passable), ~_spread(~passable),
               [_can_step(passable, dx, dy) for dx, dy in DIRECTIONS], (ys, xs))


def _middles(cells: int) -> list[np.ndarray]:
  """The middles of cells as x and y [G, G], in units of the reference map."""
  middle = (np.arange(cells) - (cells - 1) / 2) * (REFERENCE_SIZE / cells)
  return np.meshgrid(middle, middle)


def _open(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Passable and high cells of a flat map without cliffs."""
  return np.ones_like(x, bool), np.zeros_like(x, bool)


def _ramps(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Passable and high cells of a map with each home on a plateau with two ramps."""
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
  """Passable and high cells of a map with a river: one ford in the middle, one near each end."""
  wet = np.abs(x + y) < RIVER
  across = np.abs(x - y)
  for low, high in FORDS:
    wet &= ~((low < across) & (across < high))
  return ~wet, np.zeros_like(x, bool)


_SHAPES: tuple[Callable, ...] = (_open, _ramps, _river)


def bases(map_size: float) -> np.ndarray:
  """The town hall sites of a player, home first: [4, 2], map units from the middle."""
  return np.array(BASES, np.float32) * np.float32(map_size / REFERENCE_SIZE)


def resources(map_size: float, patches: int, geysers: int) -> tuple[np.ndarray, np.ndarray]:
  """The resources around a half's bases, on the side away from the middle of the map.

  Args:
    map_size: side of the map.
    patches: mineral patches a base.
    geysers: vespene geysers a base.

  Returns:
    Positions [4 * (patches + geysers), 2] float32, and which are geysers, [...] bool.
  """
  places, gas = [], []
  for x, y in bases(map_size):
    away = np.arctan2(y, x) if abs(abs(x) - abs(y)) < 0.2 * map_size / REFERENCE_SIZE else (
      np.arctan2(0.0, x) if abs(x) > abs(y) else np.arctan2(y, 0.0))
    width = _PATCH_ANGLE * (patches - 1)
    angles = [*np.linspace(-width, width, patches), *(
      (width + _GEYSER_ANGLE) * (1 if i % 2 == 0 else -1) for i in range(geysers))]
    for i, angle in enumerate(angles):
      # Multiples of a quarter: half a turn is exact.
      places.append(np.round(4 * (np.array([x, y]) + _PATCH_DISTANCE * np.array(
        [np.cos(away + angle), np.sin(away + angle)]))) / 4)
      gas.append(i >= patches)
  return np.array(places, np.float32), np.array(gas)


def _shifted(table: np.ndarray, dx: int, dy: int, fill: bool | float) -> np.ndarray:
  """A table [G, G] at the neighbour of each cell, `fill` beyond the edge."""
  g = len(table)
  return np.pad(table, 1, constant_values=fill)[1 + dy:g + 1 + dy, 1 + dx:g + 1 + dx]


def _can_step(passable: np.ndarray, dx: int, dy: int) -> np.ndarray:
  """From which cells a step does not cut the corner of an impassable cell: [G, G] bool."""
  return _shifted(passable, dx, 0, False) & _shifted(passable, 0, dy, False)


def _graph(passable: np.ndarray) -> sparse.csr_matrix:
  """The graph of steps between neighbouring passable cells."""
  g = len(passable)
  index = np.arange(g * g).reshape(g, g)
  rows, columns, lengths = [], [], []
  for dx, dy in DIRECTIONS:
    can = passable & _shifted(passable, dx, dy, False) & _can_step(passable, dx, dy)
    rows.append(index[can])
    columns.append(index[can] + dy * g + dx)
    lengths.append(np.full(int(can.sum()), np.hypot(dx, dy)))
  return sparse.csr_matrix(
    (np.concatenate(lengths), (np.concatenate(rows), np.concatenate(columns))), (g * g, g * g))


def _in_line(roomy: np.ndarray, goal: tuple[int, int]) -> np.ndarray:
  """The cells from which the straight line to a goal is free: [G, G] bool.

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


def _field(terrain: Terrain, map_index: int, block: int) -> np.ndarray:
  """The flow field of a block of cells: [G, G] int8."""
  g, ways = terrain.cells, terrain._ways[map_index]
  if ways is None:
    return np.full((g, g), STRAIGHT, np.int8)
  row, column = divmod(block, g // terrain.block)
  # The goal is the passable cell nearest to the block's middle.
  middle = (row + 0.5) * terrain.block - 0.5, (column + 0.5) * terrain.block - 0.5
  ys, xs = ways.cells
  best = np.argmin((ys - middle[0]) ** 2 + (xs - middle[1]) ** 2)
  goal = int(ys[best]), int(xs[best])
  far = csgraph.dijkstra(ways.graph, indices=goal[0] * g + goal[1]).reshape(g, g)
  lengths = np.stack([
    np.where(can_step, _shifted(far, dx, dy, np.inf) + np.hypot(dx, dy), np.inf)
    for can_step, (dx, dy) in zip(ways.can_step, DIRECTIONS, strict=True)])
  field = np.where(np.isfinite(far), np.argmin(lengths, axis=0), UNREACHABLE)
  return np.where(_in_line(ways.roomy, goal), STRAIGHT, field).astype(np.int8)


@functools.cache
def make_terrain(cells: int, block: int) -> Terrain:
  """Makes the maps NAMES on a grid.

  Args:
    cells: G, a multiple of `block`.
    block: side in cells of the blocks that share a field.
  """
  x, y = _middles(cells)
  passable, high = (np.stack(parts) for parts in zip(*(shape(x, y) for shape in _SHAPES),
                                                      strict=True))
  # Cliffs and ramps are not buildable.
  near_cliff = np.stack([~p | (_spread(h) & _spread(~h)) for p, h in zip(
    passable, high, strict=True)])
  return Terrain(
    cells=cells, block=block, passable=passable, buildable=~near_cliff, high=high)


def _spread(cells: np.ndarray) -> np.ndarray:
  """Cells [G, G] bool and their eight neighbours."""
  padded = np.pad(cells, 1, mode="edge")
  g = len(cells)
  return np.any([padded[1 + dy:g + 1 + dy, 1 + dx:g + 1 + dx]
                 for dx in (-1, 0, 1) for dy in (-1, 0, 1)], axis=0)
