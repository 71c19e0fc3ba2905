"""The virtual camera: the part of the map that a player sees in detail.

It covers 32 x 20 game units and moves only by the camera function (Vinyals et al. 2019, Methods).
Its extents are those of pysc2's converter: the bottom edge is farther from the centre than the top.
"""

from typing import NamedTuple

import numpy as np

from starleague.agent import types

LEFT = RIGHT = 16.0  # game units
BELOW, ABOVE = 13.0, 7.0  # towards lower and higher y of the game
WHOLE_MAP = np.array([0, 0, types.POSITION_GRID, types.POSITION_GRID], np.int16)


class Camera(NamedTuple):
  """The camera's centre in game coordinates."""

  x: float
  y: float


def contains(camera: Camera, x: np.ndarray, y: np.ndarray) -> np.ndarray:
  """Returns which places, [n] in game coordinates, are in view: [n] bool. Edges are in view."""
  return (x >= camera.x - LEFT) & (x <= camera.x + RIGHT) & (
    y >= camera.y - BELOW) & (y <= camera.y + ABOVE)


def rectangle(camera: Camera, map_width: int, map_height: int) -> np.ndarray:
  """Returns `Observation.camera`: all cells of the 256 grid that the view touches, [4] int16."""
  scale = np.float32(types.POSITION_GRID / max(map_width, map_height))
  x = np.array([camera.x - LEFT, camera.x + RIGHT], np.float32)
  y = np.float32(map_height) - np.array([camera.y + ABOVE, camera.y - BELOW], np.float32)
  (left, right), (top, bottom) = np.floor(x * scale), np.floor(y * scale)
  edges = np.array([left, top, right + 1, bottom + 1])
  return np.clip(edges, 0, types.POSITION_GRID).astype(np.int16)
