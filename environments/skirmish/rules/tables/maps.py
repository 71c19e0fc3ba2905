"""The maps: bases, resources, cliffs, and flow fields around them.

A map is a square of G x G cells of one map unit, symmetric under half a turn. Its tables are in a
player's own frame, with its home in the first corner; both players use the same tables. Distances
are those of a map of 48 units and scale with the map.

Ground units find their way by flow fields. A field has one goal, an area: a rectangle of passable
cells. It gives for each cell the direction to take, or STRAIGHT where the whole rectangle around
the cell and the area is passable. A line from a STRAIGHT cell to the area crosses only STRAIGHT
cells, and each other direction leads nearer to the area. Units therefore arrive.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy import ndimage, sparse
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


class Area(NamedTuple):
  """A rectangle of passable cells: the goal of a flow field."""

  map_index: int
  top: int
  left: int
  bottom: int  # the first row below
  right: int


@dataclasses.dataclass(frozen=True, eq=False)
class Terrain:
  """Maps [K] in a player's own frame; rows run downwards."""

  cells: int  # G
  block: int  # most cells of an area's side on a map with cliffs
  passable: np.ndarray  # [K, G, G] bool, on the ground
  buildable: np.ndarray  # [K, G, G] bool
  high: np.ndarray  # [K, G, G] bool: invisible from below

  @functools.cached_property
  def areas(self) -> tuple[Area, ...]:
    """The areas of all maps: each passable cell is in one."""
    return tuple(area for index, cells in enumerate(self.passable)
                 for area in _areas(index, cells, self.block))

  @functools.cached_property
  def nearest(self) -> np.ndarray:
    """The passable cell nearest to each cell, row * G + column: [K, G, G] int32."""
    rows, columns = np.moveaxis(np.array([
      ndimage.distance_transform_edt(~cells, return_distances=False, return_indices=True)
      for cells in self.passable]), 1, 0)
    return (rows * self.cells + columns).astype(np.int32)

  @functools.cached_property
  def area_of(self) -> np.ndarray:
    """The number of each cell's area, or of the nearest passable cell's: [K, G, G] int32."""
    of = np.zeros_like(self.nearest)
    for number, (index, top, left, bottom, right) in enumerate(self.areas):
      of[index, top:bottom, left:right] = number
    flat = of.reshape(len(of), -1)
    return np.take_along_axis(flat, self.nearest.reshape(flat.shape), axis=1).reshape(of.shape)

  @functools.cached_property
  def fields(self) -> np.ndarray:
    """All flow fields, [areas, G, G] int8; a server that loads its programs needs few."""
    return np.stack([self.field(number) for number in range(len(self.areas))])

  def field(self, number: int) -> np.ndarray:
    """The flow field of an area: [G, G] int8, an index of DIRECTIONS, STRAIGHT or UNREACHABLE."""
    known = self._known.get(number)
    if known is None:
      area = self.areas[number]
      known = self._known[number] = _field(self._ways[area.map_index], area)
    return known

  @functools.cached_property
  def _known(self) -> dict[int, np.ndarray]:
    return {}

  @functools.cached_property
  def _ways(self) -> tuple["_Ways", ...]:
    """The ways on each map."""
    return tuple(map(_Ways.of, self.passable))


class _Ways(NamedTuple):
  """What all flow fields of a map share."""

  graph: sparse.csr_matrix  # of steps between neighbouring passable cells
  can_step: list[np.ndarray]  # by DIRECTIONS: [G, G] bool
  walls: np.ndarray  # [G + 1, G + 1] int: impassable cells above and left of each corner

  @classmethod
  def of(cls, passable: np.ndarray) -> "_Ways":
    """The ways on a map of passable cells, [G, G] bool."""
    return cls(_graph(passable), [_can_step(passable, dx, dy) for dx, dy in DIRECTIONS],
               np.pad((~passable).cumsum(0).cumsum(1), ((1, 0), (1, 0))))


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


def _areas(map_index: int, passable: np.ndarray, block: int) -> Iterator[Area]:
  """Divides a map's passable cells [G, G] into rectangles, each within a block of cells."""
  side = len(passable) if passable.all() else block
  left = passable.copy()
  for row, column in np.argwhere(passable):
    if left[row, column]:
      ends = [(at // side + 1) * side for at in (row, column)]
      right = column + _run(left[row, column:ends[1]])
      bottom = row + _run(left[row:ends[0], column:right].all(axis=1))
      left[row:bottom, column:right] = False
      yield Area(map_index, int(row), int(column), int(bottom), int(right))


def _run(free: np.ndarray) -> int:
  """The number of True values before the first False one."""
  return len(free) if free.all() else int(np.argmin(free))


def _field(ways: _Ways, area: Area) -> np.ndarray:
  """The flow field of an area: [G, G] int8."""
  g = len(ways.walls) - 1
  index = np.arange(g * g).reshape(g, g)
  far = csgraph.dijkstra(
    ways.graph, indices=index[area.top:area.bottom, area.left:area.right].reshape(-1),
    min_only=True).reshape(g, g)
  lengths = np.stack([
    np.where(can_step, _shifted(far, dx, dy, np.inf) + np.hypot(dx, dy), np.inf)
    for can_step, (dx, dy) in zip(ways.can_step, DIRECTIONS, strict=True)])
  field = np.where(np.isfinite(far), np.argmin(lengths, axis=0), UNREACHABLE)
  # Impassable cells of the rectangle around each cell and the area.
  at = np.arange(g)
  top, bottom = np.minimum(at, area.top)[:, None], np.maximum(at + 1, area.bottom)[:, None]
  first, last = np.minimum(at, area.left), np.maximum(at + 1, area.right)
  walls = (ways.walls[bottom, last] - ways.walls[top, last]
           - ways.walls[bottom, first] + ways.walls[top, first])
  return np.where(walls == 0, STRAIGHT, field).astype(np.int8)


@functools.cache
def make_terrain(cells: int, block: int) -> Terrain:
  """Makes the maps NAMES on a grid.

  Args:
    cells: G, a multiple of `block`.
    block: most cells of an area's side on a map with cliffs.
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
