"""The strategy statistics z of games, and a library to sample them from.

A z is the build order and the cumulative statistics of one player's game: the first twenty units
and buildings with their positions, and the units, effects and upgrades that occurred (Vinyals et
al. 2019, Methods). Environments record it as `executed`. A library stores the z of many games by
map and match-up; each training game samples its z from the games that match.
"""

import collections
import dataclasses
import os
from collections.abc import Iterable
from typing import NamedTuple

import jax
import numpy as np

from starleague.agent import types
from starleague.agent import vocabulary as v
from starleague.agent.build_order import IN_BUILD_ORDER
from starleague.common import arrays, files

FORMAT = 2
SIDES = 2
MOST_GAMES = 2 ** 21  # both players of more replays than the paper's 971,000
MOST_MAPS = 2 ** 14
_HEAD = {"format": arrays.Spec(np.int64, ()), "vocabulary": arrays.Spec(arrays.TEXT, ())}


def filter_build_order(build_order: np.ndarray, build_order_xy: np.ndarray,
                       counted: np.ndarray = IN_BUILD_ORDER) -> tuple[np.ndarray, np.ndarray]:
  """Returns the first twenty counted entries of a build order, without gaps, padded with zeros.

  Args:
    build_order: [M] integer unit types in the order in which they were started, any M.
    build_order_xy: [M, 2] their positions on the 256 grid.
    counted: [N] bool, the unit types that count.

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
  """A game of one player, for a library."""

  map_name: str
  home_race: int  # the player's own, an index of types.RACES
  away_race: int
  side: int  # 0 or 1: the starting position, see `StatisticsLibrary.side`
  executed: types.Statistics  # unbatched, at the game's end


@dataclasses.dataclass(frozen=True)
class StatisticsLibrary:
  """The z of M games.

  Attributes:
    z: [M, ...].
    maps: names of the maps.
    map_index: [M] int32, index of `maps`.
    home_race: [M] uint8, race of the player with this z; an index of types.RACES.
    away_race: [M] uint8, race of its opponent.
    side: [M] uint8, 0 or 1: the starting position. Build order positions depend on it. In Skirmish
      it is the game's own side; in StarCraft II it is 0 if the player's starting position comes
      before its opponent's in the order of (x, y).
  """

  z: types.Statistics
  maps: tuple[str, ...]
  map_index: np.ndarray
  home_race: np.ndarray
  away_race: np.ndarray
  side: np.ndarray

  def __len__(self) -> int:
    return len(self.map_index)

  @classmethod
  def from_games(cls, games: Iterable[PlayedGame]) -> "StatisticsLibrary":
    """Builds a library from the executed statistics of games; build orders are filtered.

    Raises:
      ValueError: a game has an invalid race or side, or statistics of another shape; names it.
    """
    games = list(games)
    rows = [_checked(number, game) for number, game in enumerate(games)]
    maps = tuple(sorted({game.map_name for game in games}))
    empty = jax.tree.map(lambda s: np.zeros((0, *s.shape), s.dtype), types.statistics_spec())
    return cls(
      z=jax.tree.map(lambda *x: np.stack(x), *rows) if rows else empty,
      maps=maps,
      map_index=np.array([maps.index(game.map_name) for game in games], np.int32),
      home_race=np.array([game.home_race for game in games], np.uint8),
      away_race=np.array([game.away_race for game in games], np.uint8),
      side=np.array([game.side for game in games], np.uint8))

  def merge(self, other: "StatisticsLibrary") -> "StatisticsLibrary":
    """Returns a library of the games of both."""
    maps = tuple(sorted({*self.maps, *other.maps}))

    def place(library: "StatisticsLibrary") -> np.ndarray:
      table = np.array([maps.index(name) for name in library.maps], np.int32)
      return table[library.map_index] if len(library) else library.map_index

    def join(a: np.ndarray, b: np.ndarray) -> np.ndarray:
      return np.concatenate([a, b])

    return StatisticsLibrary(
      z=jax.tree.map(join, self.z, other.z), maps=maps,
      map_index=join(place(self), place(other)),
      home_race=join(self.home_race, other.home_race),
      away_race=join(self.away_race, other.away_race), side=join(self.side, other.side))

  def rows(self, map_name: str | None = None, home_race: int | None = None,
           away_race: int | None = None, side: int | None = None) -> np.ndarray:
    """Returns the indices of the games that match; None matches all.

    Raises:
      KeyError: no game matches; names the arguments.
    """
    fits = np.ones(len(self), bool)
    if map_name is not None:
      fits &= self.map_index == (self.maps.index(map_name) if map_name in self.maps else -1)
    for wanted, column in ((home_race, self.home_race), (away_race, self.away_race),
                           (side, self.side)):
      if wanted is not None:
        fits &= column == wanted
    if not fits.any():
      def name(race: int | None) -> str:
        return "any" if race is None else types.RACES[race]

      raise KeyError(
        f"No z for map {map_name or 'any'}, {name(home_race)} against {name(away_race)}, side "
        f"{'any' if side is None else side}, among {len(self)} games on maps "
        f"{', '.join(self.maps) or 'none'}. Add games of that match-up, or pass None to match all.")
    return np.flatnonzero(fits)

  def select(self, map_name: str | None = None, home_race: int | None = None,
             away_race: int | None = None, side: int | None = None) -> types.Statistics:
    """Returns all z that match, [M', ...], for a compiled batch of games to sample from."""
    rows = self.rows(map_name, home_race, away_race, side)
    return jax.tree.map(lambda x: x[rows], self.z)

  def sample(self, key: jax.Array, map_name: str | None = None, home_race: int | None = None,
             away_race: int | None = None, side: int | None = None) -> types.Statistics:
    """Samples one z uniformly from those that match.

    Args:
      key: a JAX random key.
      map_name, home_race, away_race, side: see `rows`.

    Returns:
      Unbatched Statistics of numpy arrays.
    """
    rows = self.rows(map_name, home_race, away_race, side)
    row = rows[int(jax.random.randint(key, (), 0, len(rows)))]
    return jax.tree.map(lambda x: x[row], self.z)

  def save(self, path: str | os.PathLike) -> None:
    """Writes an .npz file atomically."""
    with files.replacing(path, "wb") as file:
      np.savez_compressed(
        file, format=np.array(FORMAT), vocabulary=np.array(v.digest()),
        maps=np.array(self.maps, dtype=np.str_), map_index=self.map_index,
        home_race=self.home_race, away_race=self.away_race, side=self.side,
        **self.z._asdict())

  @classmethod
  def load(cls, path: str | os.PathLike) -> "StatisticsLibrary":
    """Reads a file written by `save`.

    Raises:
      ArraysError: the file is damaged, or has another format or vocabulary; names the file, the
        array and the difference.
      FileNotFoundError: there is no such file.
    """
    head = arrays.read(path, _HEAD, others=True)
    for name, expected in (("format", FORMAT), ("vocabulary", v.digest())):
      if head[name] != expected:
        raise arrays.ArraysError(f"{path}: {name}: expected {expected!r}, found "
                                 f"{head[name].item()!r:.80}; make it again with this version")
    data = arrays.read(path, _specs(), {"games": MOST_GAMES, "maps": MOST_MAPS})
    maps = [str(name) for name in data["maps"]]
    for name, count in collections.Counter(maps).items():
      if count > 1:
        raise arrays.ArraysError(
          f"{path}: maps: expected each name once, found {name!r} {count} times")
    arrays.check_values(path, "map_index", data["map_index"],
                        arrays.Spec(np.int32, ("games",), 0, len(maps) - 1))
    return cls(
      z=types.Statistics(*(data[name] for name in types.Statistics._fields)),
      maps=tuple(maps), map_index=data["map_index"], home_race=data["home_race"],
      away_race=data["away_race"], side=data["side"])


def _checked(number: int, game: PlayedGame) -> types.Statistics:
  """Returns a game's statistics with a filtered build order; ValueError if they are invalid."""
  for player, race in (("home", game.home_race), ("away", game.away_race)):
    if not 0 <= race < len(types.RACES):
      raise ValueError(f"Game {number} on {game.map_name}: {player}_race is {race}, expected an "
                       f"index of {types.RACES}.")
  if not 0 <= game.side < SIDES:
    raise ValueError(f"Game {number} on {game.map_name}: side is {game.side}, expected 0 or 1.")
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


def _specs() -> dict[str, arrays.Spec]:
  """Returns what the arrays of a library's file must be."""
  unit_type = 0, len(v.UNIT_TYPES.names) - 1
  race = 0, len(types.RACES) - 1
  columns = {
    name: arrays.Spec(spec.dtype, ("games", *spec.shape),
                      *(unit_type if name == "build_order" else ()))
    for name, spec in types.statistics_spec()._asdict().items()}
  return {
    **_HEAD, "maps": arrays.Spec(arrays.TEXT, ("maps",)),
    "map_index": arrays.Spec(np.int32, ("games",)), **columns,
    "home_race": arrays.Spec(np.uint8, ("games",), *race),
    "away_race": arrays.Spec(np.uint8, ("games",), *race),
    "side": arrays.Spec(np.uint8, ("games",), 0, SIDES - 1)}
