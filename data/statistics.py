"""z: what games were about, and a library of it to draw from.

A z is the opening and the cumulative statistics of one player's game: the first twenty units and
buildings with their places, and which units, effects and upgrades occurred (Vinyals et al. 2019,
Methods). The environments record it as `executed`; a library keeps the z of many games by map and
match-up, and each training game draws its target from those that fit.
"""

import dataclasses
import os
import zipfile
import zlib
from collections.abc import Iterable
from typing import NamedTuple

import jax
import numpy as np

from starleague.agent import types
from starleague.agent import vocabulary as v
from starleague.agent.build_order import IN_BUILD_ORDER
from starleague.common import files

FORMAT = 1


def filter_build_order(build_order: np.ndarray, build_order_xy: np.ndarray,
                       counted: np.ndarray = IN_BUILD_ORDER) -> tuple[np.ndarray, np.ndarray]:
  """The first twenty entries that count, moved together, zeros after them.

  Args:
    build_order: [M] integer unit types in the order they were begun, any M.
    build_order_xy: [M, 2] where, on the 256 grid.
    counted: [N] bool, the unit types that enter.

  Returns:
    [20] uint8 and [20, 2] uint8.
  """
  build_order = np.asarray(build_order)
  rows = np.flatnonzero(counted[build_order] & (build_order != 0))[:types.BUILD_ORDER_LENGTH]
  order = np.zeros(types.BUILD_ORDER_LENGTH, np.uint8)
  places = np.zeros((types.BUILD_ORDER_LENGTH, 2), np.uint8)
  order[:len(rows)] = build_order[rows]
  places[:len(rows)] = np.asarray(build_order_xy)[rows]
  return order, places


class PlayedGame(NamedTuple):
  """One player's game, as the library takes it."""

  map_name: str
  home_race: int  # the player's own, an index of types.RACES
  away_race: int
  executed: types.Statistics  # unbatched, at the game's end


@dataclasses.dataclass(frozen=True)
class StatisticsLibrary:
  """The z of M games.

  Attributes:
    statistics: [M, ...].
    maps: names of maps.
    map_index: [M] int32, of `maps`.
    home_race: [M] uint8, of the player whose z it is; an index of types.RACES.
    away_race: [M] uint8.
  """

  statistics: types.Statistics
  maps: tuple[str, ...]
  map_index: np.ndarray
  home_race: np.ndarray
  away_race: np.ndarray

  def __len__(self) -> int:
    return len(self.map_index)

  @classmethod
  def from_games(cls, games: Iterable[PlayedGame]) -> "StatisticsLibrary":
    """A library of games' executed statistics; build orders are filtered.

    Raises:
      ValueError: for a game whose races or statistics are out of shape, naming it.
    """
    games = list(games)
    rows = [_checked(number, game) for number, game in enumerate(games)]
    maps = tuple(sorted({game.map_name for game in games}))
    empty = jax.tree.map(lambda s: np.zeros((0, *s.shape), s.dtype), types.statistics_spec())
    return cls(
      statistics=jax.tree.map(lambda *x: np.stack(x), *rows) if rows else empty,
      maps=maps,
      map_index=np.array([maps.index(game.map_name) for game in games], np.int32),
      home_race=np.array([game.home_race for game in games], np.uint8),
      away_race=np.array([game.away_race for game in games], np.uint8))

  def merge(self, other: "StatisticsLibrary") -> "StatisticsLibrary":
    """The games of both."""
    maps = tuple(sorted({*self.maps, *other.maps}))
    def place(library):
      table = np.array([maps.index(name) for name in library.maps], np.int32)
      return table[library.map_index] if len(library) else library.map_index
    def join(a, b):
      return np.concatenate([a, b])
    return StatisticsLibrary(
      statistics=jax.tree.map(join, self.statistics, other.statistics), maps=maps,
      map_index=join(place(self), place(other)),
      home_race=join(self.home_race, other.home_race),
      away_race=join(self.away_race, other.away_race))

  def rows(self, map_name: str | None = None, home_race: int | None = None,
           away_race: int | None = None) -> np.ndarray:
    """Indices of the games that fit; None fits any.

    Raises:
      KeyError: where no game fits, naming what was asked for.
    """
    fits = np.ones(len(self), bool)
    if map_name is not None:
      fits &= self.map_index == (self.maps.index(map_name) if map_name in self.maps else -1)
    for race, column in ((home_race, self.home_race), (away_race, self.away_race)):
      if race is not None:
        fits &= column == race
    if not fits.any():
      def name(race):
        return "any" if race is None else types.RACES[race]
      raise KeyError(
        f"No z for map {map_name or 'any'}, {name(home_race)} against {name(away_race)}, among "
        f"{len(self)} games on maps {', '.join(self.maps) or 'none'}. Add games of that match-up, "
        "or ask with None for what may differ.")
    return np.flatnonzero(fits)

  def select(self, map_name: str | None = None, home_race: int | None = None,
             away_race: int | None = None) -> types.Statistics:
    """All z that fit, [M', ...]: what a compiled batch of games draws from."""
    rows = self.rows(map_name, home_race, away_race)
    return jax.tree.map(lambda x: x[rows], self.statistics)

  def sample(self, key: jax.Array, map_name: str | None = None, home_race: int | None = None,
             away_race: int | None = None) -> types.Statistics:
    """One z that fits, all alike likely.

    Args:
      key: a JAX random key.
      map_name, home_race, away_race: see `rows`.

    Returns:
      Unbatched Statistics of numpy arrays.
    """
    rows = self.rows(map_name, home_race, away_race)
    row = rows[int(jax.random.randint(key, (), 0, len(rows)))]
    return jax.tree.map(lambda x: x[row], self.statistics)

  def save(self, path: str | os.PathLike) -> None:
    """Writes an .npz file, whole or not at all."""
    with files.replacing(path, "wb") as file:
      np.savez_compressed(
        file, format=np.array(FORMAT), vocabulary=np.array(v.digest()),
        maps=np.array(self.maps, dtype=np.str_), map_index=self.map_index,
        home_race=self.home_race, away_race=self.away_race, **self.statistics._asdict())

  @classmethod
  def load(cls, path: str | os.PathLike) -> "StatisticsLibrary":
    """Reads what `save` wrote.

    Raises:
      ValueError: for a file that is damaged, of another format, or whose unit types are numbered
        by another vocabulary; the message names the file and what differs.
    """
    try:
      with np.load(path, allow_pickle=False) as file:
        data = {name: file[name] for name in file.files}
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError) as error:
      if isinstance(error, FileNotFoundError):
        raise
      raise ValueError(f"{path} is not a readable z library: {error}. Make it again.") from error
    _check_file(path, data)
    return cls(
      statistics=types.Statistics(*(data[name] for name in types.Statistics._fields)),
      maps=tuple(str(name) for name in data["maps"]), map_index=data["map_index"],
      home_race=data["home_race"], away_race=data["away_race"])


def _checked(number: int, game: PlayedGame) -> types.Statistics:
  """A game's statistics with its build order filtered; ValueError where they do not fit."""
  for side, race in (("home", game.home_race), ("away", game.away_race)):
    if not 0 <= race < len(types.RACES):
      raise ValueError(f"Game {number} on {game.map_name}: {side}_race is {race}, expected an "
                       f"index of {types.RACES}.")
  spec = types.statistics_spec()
  values = {}
  for name, expected in spec._asdict().items():
    value = np.asarray(getattr(game.executed, name))
    if value.shape != expected.shape:
      raise ValueError(f"Game {number} on {game.map_name}: executed.{name} has shape "
                       f"{value.shape}, expected {expected.shape} (one game, unbatched).")
    values[name] = value.astype(expected.dtype)
  order, places = filter_build_order(values["build_order"], values["build_order_xy"])
  return types.Statistics(**values)._replace(build_order=order, build_order_xy=places)


def _check_file(path, data: dict[str, np.ndarray]) -> None:
  """ValueError unless a library file's arrays are all there, and of this program's shapes."""
  columns = ("map_index", "home_race", "away_race")
  missing = {"format", "vocabulary", "maps", *columns, *types.Statistics._fields} - data.keys()
  if missing:
    raise ValueError(f"{path} is not a z library: it lacks {', '.join(sorted(missing))}.")
  if int(data["format"]) != FORMAT:
    raise ValueError(f"{path} has format {int(data['format'])}, expected {FORMAT}. Make it again "
                     "with this version.")
  if str(data["vocabulary"]) != v.digest():
    raise ValueError(f"{path} numbers unit types by vocabulary {str(data['vocabulary'])[:12]}, "
                     f"this program by {v.digest()[:12]}. Make it again with this version.")
  size = len(np.atleast_1d(data["map_index"]))
  expected = {name: ((size, *spec.shape), spec.dtype)
              for name, spec in types.statistics_spec()._asdict().items()}
  expected["map_index"] = (size,), np.dtype(np.int32)
  expected["home_race"] = expected["away_race"] = (size,), np.dtype(np.uint8)
  for name, (shape, dtype) in expected.items():
    if data[name].shape != shape:
      raise ValueError(f"{path}: {name} has shape {data[name].shape}, expected {shape}.")
    if data[name].dtype != dtype:
      raise ValueError(f"{path}: {name} is {data[name].dtype}, expected {dtype}.")
  if size and not 0 <= data["map_index"].min() <= data["map_index"].max() < data["maps"].size:
    raise ValueError(f"{path}: map_index names map {data['map_index'].max()} of "
                     f"{data['maps'].size}.")


class Recent:
  """The newest z of a kind of games, by race and starting side: a source for rollouts' `targets`.

  Until a race has any on a side, its targets there are unconditional; until it is full, those it
  has repeat, so that the arrays keep their shape.
  """

  def __init__(self, size: int):
    """Holds the newest `size` of each race and side."""
    self._found: list[list[list[types.Statistics]]] = [[[], []] for _ in types.RACES]
    self._size = size

  def add(self, race: int, side: int, executed: types.Statistics) -> None:
    """Takes what a player did.

    Args:
      race: its index in types.RACES.
      side: 0 or 1, where it began.
      executed: numpy arrays, unbatched.
    """
    order, places = filter_build_order(executed.build_order, executed.build_order_xy)
    copied = types.Statistics(*(np.array(x) for x in executed))
    found = self._found[race][side]
    found.append(copied._replace(build_order=order, build_order_xy=places))
    del found[:-self._size]

  def targets(self) -> types.Statistics:
    """[races, 2, size, ...]."""
    empty = types.zeros(types.statistics_spec())

    def stack(trees):
      return jax.tree.map(lambda *x: np.stack(x), *trees)

    def repeated(found):
      held = found or [empty]
      return stack([held[i % len(held)] for i in range(self._size)])

    return stack([stack([repeated(found) for found in sides]) for sides in self._found])
