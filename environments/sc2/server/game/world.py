"""Coordinates: Skirmish's plane and the game's world.

Skirmish has its origin in the middle of the map and y downwards; the game's world has it at the
bottom left and y upwards. Both use the same unit. A map of G cells has a `playable_area` of G x G.
Realistic maps of the tier `large` have a border of B = 8 cells around it, others of B = 0, so that
`map_size` is G + 2 B. With half = G / 2 + B,

  world x = x + half,   world y = half - y.

Sizes are multiples of 8 and positions are single precision, so that the conversion is exact for
the centres of location grids.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from starleague.environments.sc2.protocol import common_pb
from starleague.environments.sc2.server.game import ramps
from starleague.environments.skirmish.rules.interface import planes
from starleague.environments.skirmish.rules.tables import maps, tables

FLYING_HEIGHT = 3.75  # of flyers above the ground
_LOWEST, _HEIGHT_RANGE = -16.0, 32.0  # world heights of the height map's values 0 and 255


SHOWN_PATCH, SHOWN_GEYSER = 7.0, 7.75  # distances from the base on realistic maps, map units
BORDER = 8  # cells around the playable area of realistic maps: clients look beyond places
_SHOWN_START = 0.5  # of a starting town hall on realistic maps: towards the middle, in x and y


class World(NamedTuple):
  """The ground of a game in world coordinates, rows upwards from y = 0."""

  size: int  # G + 2 B, cells of a side with its borders
  passable: np.ndarray  # [size, size] bool
  buildable: np.ndarray  # [size, size] bool
  height: np.ndarray  # [size, size] uint8
  border: int = 0  # B

  @property
  def half(self) -> float:
    """Half the side of the map."""
    return self.size / 2

  @property
  def playable(self) -> int:
    """Cells of a side of the playable area."""
    return self.size - 2 * self.border

  def with_border(self, cells: int) -> "World":
    """Returns a world without a border with one, which nothing stands on."""
    passable, buildable = (np.pad(grid, cells) for grid in (self.passable, self.buildable))
    return World(self.size + 2 * cells, passable, buildable,
                 np.pad(self.height, cells, mode="edge"), cells)

  def to_world(self, x: Any, y: Any) -> tuple[Any, Any]:
    """World coordinates of places of Skirmish, numbers or numpy arrays."""
    return x + self.half, self.half - y

  def to_skirmish(self, x: Any, y: Any) -> tuple[Any, Any]:
    """Coordinates in Skirmish of world places."""
    return x - self.half, self.half - y

  def ground_below(self, x: float, y: float) -> float:
    """World height z of the ground at one place: `ground_at` without numpy's overhead."""
    most = self.size - 1
    row, column = (min(max(math.floor(value), 0), most) for value in (y, x))
    return _LOWEST + _HEIGHT_RANGE * self.height.item(row, column) / 255

  def ground_at(self, x: Any, y: Any) -> np.ndarray:
    """World heights z of the ground at world places [...], [...] float."""
    row, column = (np.clip(np.floor(values).astype(int), 0, self.size - 1) for values in (y, x))
    return _LOWEST + _HEIGHT_RANGE * self.height[row, column] / 255


@functools.cache
def make_world(rules: tables.Rules, map_index: int, realistic: bool = False) -> World:
  """Makes the ground of a map. Both players' frames agree, as the maps are symmetric.

  Args:
    rules: of the tier.
    map_index: of the map.
    realistic: whether there is a border, and ramps have the real game's shape, on maps with room
      for them.
  """
  size = int(rules.tier.map_size)
  if rules.terrain is None:
    flat = np.ones((size, size), bool)
    return World(size, flat, flat, np.full((size, size), planes.HEIGHT, np.uint8))
  terrain = rules.terrain
  passable, buildable = terrain.passable[map_index], terrain.buildable[map_index]
  height = np.where(terrain.high[map_index], maps.HIGH, maps.LOW).astype(np.uint8)
  border = 0
  if realistic and size == ramps.SIDE:
    passable, buildable, height = ramps.carve(passable, buildable, height)
    border = BORDER
  return World(size, passable[::-1], buildable[::-1], height[::-1]).with_border(border)


@functools.cache
def shown_resources(rules: tables.Rules, realistic: bool) -> np.ndarray:
  """Returns where the resources of one half are shown, in Skirmish: [2, R / 2] float32.

  Skirmish's resources lie 5.75 from the middle of their base. Clients compute where bases are from
  the real game's distances, which realistic maps show; gas structures are shown on their geyser.
  """
  places = np.array(rules.tier.patches, np.float32).T
  if not realistic or rules.terrain is None:
    return places
  homes = np.array(rules.tier.homes, np.float32).T
  apart = np.hypot(*(places[:, :, None] - homes[:, None]))
  base = homes[:, np.argmin(apart, axis=1)]
  wanted = np.where(rules.tier.geysers, SHOWN_GEYSER, SHOWN_PATCH)
  return (base + (places - base) * wanted / apart.min(axis=1)).astype(np.float32)


def shown_start(rules: tables.Rules, realistic: bool) -> np.ndarray:
  """Returns where the starting town hall of player 0 is shown, in Skirmish: [2] float32.

  The real game's town halls stand in the middle of a cell, where clients compute the bases. The
  town hall of player 1 is opposite.
  """
  home = np.array(rules.tier.home, np.float32)
  if not realistic or rules.terrain is None:
    return home
  return home - np.float32(_SHOWN_START) * np.sign(home)


def image(values: np.ndarray) -> common_pb.ImageData:
  """Returns an image of [rows, columns] bool (1 bit), uint8 or int32 values."""
  rows, columns = values.shape
  data = np.packbits(values) if values.dtype == bool else np.ascontiguousarray(values)
  bits = 1 if values.dtype == bool else 8 * values.dtype.itemsize
  return common_pb.ImageData(
    bits_per_pixel=bits, size=common_pb.Size2DI(x=columns, y=rows), data=data.tobytes())
