"""Feature layers of the minimap and of the screen, at any resolution.

Skirmish's planes are sampled at the centres of the layers' cells. At the planes' own resolution the
minimap equals them. Units on other layers are discs. Rows run downwards.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from starleague.agent import types
from starleague.environments.sc2.protocol import raw_pb, spatial_pb
from starleague.environments.sc2.server.game.game import Game
from starleague.environments.sc2.server.game.world import image
from starleague.environments.sc2.server.views.seats import ServerSeat
from starleague.environments.sc2.server.views.view import View

_PLANES = {name: i for i, name in enumerate(types.MINIMAP_PLANES)}
_BITS = ("creep", "pathable", "buildable")  # planes of one bit


class Disc(NamedTuple):
  """The cells of a grid that a unit covers."""

  rows: slice
  columns: slice
  inside: np.ndarray  # [rows, columns] bool


class Grid(NamedTuple):
  """The cells of a layer."""

  left: float  # world x of the left edge
  top: float  # world y of the top edge
  width: float  # world units
  height: float
  columns: int
  rows: int

  def middles(self) -> tuple[np.ndarray, np.ndarray]:
    """World x [columns] and y [rows] of the cells' middles."""
    return (self.left + (np.arange(self.columns) + 0.5) * self.width / self.columns,
            self.top - (np.arange(self.rows) + 0.5) * self.height / self.rows)

  def discs(self, places: Sequence[tuple[float, float, float]]) -> list[Disc]:
    """Returns the cells whose middles lie in discs; one cell at least, if it is on the grid.

    Args:
      places: world x, world y and radius of each.
    """
    if not (self.columns and self.rows):
      return [Disc(slice(0), slice(0), np.zeros((0, 0), bool)) for _ in places]
    xs, ys = self.middles()
    step_x, step_y = self.width / self.columns, self.height / self.rows
    found = []
    for x, y, radius in places:
      first_column = max(int((x - radius - self.left) / step_x), 0)
      last_column = min(int((x + radius - self.left) / step_x) + 1, self.columns)
      first_row = max(int((self.top - y - radius) / step_y), 0)
      last_row = min(int((self.top - y + radius) / step_y) + 1, self.rows)
      rows, columns = slice(first_row, last_row), slice(first_column, last_column)
      inside = (xs[columns] - x) ** 2 + (ys[rows, None] - y) ** 2 <= radius ** 2
      column, row = int((x - self.left) // step_x), int((self.top - y) // step_y)
      if first_row <= row < last_row and first_column <= column < last_column:
        inside[row - first_row, column - first_column] = True
      found.append(Disc(rows, columns, inside))
    return found


def minimap_grid(game: Game, seat: ServerSeat) -> Grid:
  """Returns the cells of a participant's minimap."""
  size, resolution = float(game.world.size), seat.options.feature_layer.minimap_resolution
  return Grid(0.0, size, size, size, resolution.x, resolution.y)


def screen_grid(seat: ServerSeat) -> Grid:
  """Returns the cells of a participant's screen."""
  left, bottom, right, top = seat.screen()
  resolution = seat.options.feature_layer.resolution
  return Grid(left, top, right - left, top - bottom, resolution.x, resolution.y)


def _planes(view: View, grid: Grid) -> dict[str, np.ndarray]:
  """Skirmish's planes on a grid, 0 off the playable area: [rows, columns] uint8 each."""
  planes, world = view.frame.report.planes[view.player], view.game.world
  cells = planes.shape[-1]
  xs, ys = grid.middles()
  column, row = (np.floor((values - world.border) * cells / world.playable).astype(int)
                 for values in (xs, world.size - ys))
  inside = ((row >= 0) & (row < cells))[:, None] & ((column >= 0) & (column < cells))
  picked = planes[:, np.clip(row, 0, cells - 1)[:, None], np.clip(column, 0, cells - 1)]
  return {name: np.where(inside, picked[i], 0).astype(np.uint8) for name, i in _PLANES.items()}


def _as_layers(planes: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
  return {name: values.astype(bool) if name in _BITS else values
          for name, values in planes.items()}


def _unit_discs(grid: Grid, units: Iterable[raw_pb.Unit]) -> list[Disc]:
  return grid.discs([(unit.pos.x, unit.pos.y, unit.radius) for unit in units])


def topmost(grid: Grid, discs: Iterable[Disc]) -> np.ndarray:
  """Returns the numbers, from 1, of the discs that cover cells, 0 for none: [rows, columns] int32.

  Later discs cover earlier ones.
  """
  top = np.zeros((grid.rows, grid.columns), np.int32)
  for number, disc in enumerate(discs, 1):
    top[disc.rows, disc.columns][disc.inside] = number
  return top


def draw(top: np.ndarray, units: Sequence[raw_pb.Unit],
         value: Callable[[raw_pb.Unit], int | float | bool], dtype: Any) -> np.ndarray:
  """Returns a value of the units that `topmost` has numbered: [rows, columns], 0 for none."""
  values: np.ndarray = np.zeros(len(units) + 1, dtype)
  for number in np.flatnonzero(np.bincount(top.ravel())[1:]).tolist():
    values[number + 1] = value(units[number])
  return values[top]


def minimap(view: View, seat: ServerSeat,
            units: list[raw_pb.Unit]) -> spatial_pb.FeatureLayersMinimap:
  """Returns the minimap's layers.

  Args:
    view: of the player.
    seat: of the player.
    units: its raw units.
  """
  grid = minimap_grid(view.game, seat)
  layers = _as_layers(_planes(view, grid))
  relative = layers["player_relative"]
  left, bottom, right, top = seat.screen()
  xs, ys = grid.middles()
  layers["camera"] = ((ys >= bottom) & (ys < top))[:, None] & ((xs >= left) & (xs < right))
  layers["player_id"] = _player_ids(view, relative)
  listed = units[::-1]
  drawn = draw(topmost(grid, _unit_discs(grid, listed)), listed,
               lambda unit: unit.unit_type, np.int32)
  layers["unit_type"] = np.where(layers["visibility"] > 0, drawn, 0).astype(np.int32)
  layers["selected"] = topmost(
    grid, _unit_discs(grid, (unit for unit in units if unit.is_selected))) > 0
  layers["visibility_map"] = layers.pop("visibility")
  return spatial_pb.FeatureLayersMinimap(
    **{name: image(values) for name, values in layers.items()})


def _player_ids(view: View, relative: np.ndarray) -> np.ndarray:
  """Owners of the cells of a layer of alliances: [rows, columns] uint8."""
  owners = np.zeros(types.ALLIANCE_ENEMY + 1, np.uint8)
  owners[types.ALLIANCE_SELF], owners[types.ALLIANCE_ENEMY] = view.player + 1, 2 - view.player
  owners[types.ALLIANCE_NEUTRAL] = 16
  return owners[relative]


def _share(part: float, whole: float) -> int:
  return int(255 * min(part / whole, 1.0)) if whole > 0 else 0


# Layers of the screen that show a property of the topmost unit: how, and their type.
_UNIT_LAYERS: dict[str, tuple[Callable[[raw_pb.Unit], int | float | bool], Any]] = {
  "player_relative": (lambda unit: unit.alliance, np.uint8),
  "player_id": (lambda unit: unit.owner, np.uint8),
  "unit_type": (lambda unit: unit.unit_type, np.int32),
  "selected": (lambda unit: unit.is_selected, bool),
  "unit_hit_points": (lambda unit: int(unit.health), np.int32),
  "unit_hit_points_ratio": (lambda unit: _share(unit.health, unit.health_max), np.uint8),
  "unit_energy": (lambda unit: int(unit.energy), np.int32),
  "unit_energy_ratio": (lambda unit: _share(unit.energy, unit.energy_max), np.uint8),
  "unit_shields": (lambda unit: int(unit.shield), np.int32),
  "unit_shields_ratio": (lambda unit: _share(unit.shield, unit.shield_max), np.uint8),
  "buffs": (lambda unit: unit.buff_ids[0] if unit.buff_ids else 0, np.int32),
  "buff_duration": (lambda unit: _share(unit.buff_duration_remain, unit.buff_duration_max),
                    np.uint8),
  "hallucinations": (lambda unit: unit.is_hallucination, bool),
  "active": (lambda unit: unit.is_active, bool),
  "build_progress": (lambda unit: int(100 * unit.build_progress), np.uint8),
}
_EMPTY_LAYERS = ("power", "cloaked", "blip", "placeholder")


def screen(view: View, seat: ServerSeat, units: list[raw_pb.Unit],
           effects: Iterable[raw_pb.Effect]) -> spatial_pb.FeatureLayers:
  """Returns the screen's layers.

  Args:
    view: of the player.
    seat: of the player.
    units: its raw units.
    effects: those it sees.
  """
  grid = screen_grid(seat)
  planes = _as_layers(_planes(view, grid))
  layers = {name: planes[name] for name in ("height_map", "creep", "pathable", "buildable")}
  layers["visibility_map"] = planes["visibility"]
  margin = max(unit.radius for unit in units) if units else 0.0
  left, bottom, right, top = seat.screen()
  near = [unit for unit in reversed(units) if left - margin <= unit.pos.x <= right + margin
          and bottom - margin <= unit.pos.y <= top + margin]
  discs = _unit_discs(grid, near)
  numbers = topmost(grid, discs)
  for name, (value, dtype) in _UNIT_LAYERS.items():
    layers[name] = draw(numbers, near, value, dtype)
  for name in _EMPTY_LAYERS:
    layers[name] = np.zeros((grid.rows, grid.columns), bool)
  density = np.zeros((grid.rows, grid.columns), np.uint8)
  for rows, columns, inside in discs:
    density[rows, columns] += inside & (density[rows, columns] < 255)
  layers["unit_density"], layers["unit_density_aa"] = density, np.minimum(density, 15) * 16
  shown = np.zeros((grid.rows, grid.columns), np.uint8)
  for effect in effects:
    for rows, columns, inside in grid.discs(
        [(place.x, place.y, effect.radius) for place in effect.pos]):
      shown[rows, columns][inside] = effect.effect_id
  layers["effects"] = shown
  return spatial_pb.FeatureLayers(**{name: image(values) for name, values in layers.items()})
