"""Conversion between game coordinates and the agent's grids.

The game has y upwards and maps of many sizes. A grid is square, covers the longer side of the map
and has y downwards (pysc2's raw interface; Vinyals et al. 2019, detailed architecture). NumPy in,
NumPy out; JAX in, JAX out.
"""

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent.types import POSITION_GRID, Array


def to_grid(x: Array, y: Array, map_width: int, map_height: int,
            grid: int = POSITION_GRID) -> tuple[Array, Array]:
  """Returns the grid cell of a game position.

  Args:
    x: [...] float, 0 to map_width.
    y: [...] float, 0 to map_height, upwards.
    map_width: width of the map in game units.
    map_height: height of the map in game units.
    grid: rows and columns of the grid: 256 for positions in observations, L for locations.

  Returns:
    [...] int32 column and row, row downwards; positions off the grid give the nearest cell.
  """
  scale = grid / max(map_width, map_height)

  def cell(position: Array) -> Array:
    numpy = jnp if isinstance(position, jax.Array) else np
    return numpy.clip(numpy.floor(scale * position), 0, grid - 1).astype(np.int32)

  return cell(x), cell(map_height - y)


def to_game(column: Array, row: Array, map_width: int, map_height: int,
            grid: int = POSITION_GRID) -> tuple[Array, Array]:
  """Returns the game position of a grid cell's centre.

  Args:
    column: [...] integer, 0 to grid - 1.
    row: [...] integer, 0 to grid - 1, downwards.
    map_width: width of the map in game units.
    map_height: height of the map in game units.
    grid: rows and columns of the grid.

  Returns:
    [...] float x and y. Cells beyond the shorter side of the map give positions off the map.
  """
  scale = grid / max(map_width, map_height)
  return (column + 0.5) / scale, map_height - (row + 0.5) / scale


def shown(camera: Array, size: int) -> Array:
  """Returns the mask of grid cells whose centres are in the camera's view.

  Args:
    camera: [4] integers: left, top, right, bottom on the 256 grid; right and bottom are exclusive.
    size: rows and columns of the grid.

  Returns:
    [size, size] bool.
  """
  middles = (np.arange(size) + 0.5) * (POSITION_GRID / size)
  left, top, right, bottom = camera.astype(np.float32)
  columns = (left <= middles) & (middles < right)
  rows = (top <= middles) & (middles < bottom)
  return rows[:, None] & columns
