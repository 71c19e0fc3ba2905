"""Reads a dataset of recorded games: whole games in order, and their z.

    games = joining.read("data/demonstrations")
    training, held_out = split(games, 0.1)
    for batch in in_order(games, training, batch_size=32, unroll_length=16, seed=0):
      trajectory = wire.unpack(batch.packed, games.config)
"""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.agent.config import AgentConfig
from starleague.common import manifests
from starleague.data import wire
from starleague.data.games import files, ordering
from starleague.data.games.files import GamesError
from starleague.data.z.statistics_library import PlayedGame, StatisticsLibrary

_OPEN_FILES = 16  # of one reader


class Episodes(NamedTuple):
  """Both players' sides of recorded games as columns, [N] each; see `files.Episode`."""

  game: np.ndarray  # int64
  player: np.ndarray  # uint8: 0 or 1
  name: np.ndarray  # str: of the player
  map_index: np.ndarray  # int32
  race: np.ndarray  # uint8, index of types.RACES
  away_race: np.ndarray  # uint8
  side: np.ndarray  # uint8: 0 or 1
  mmr: np.ndarray  # int16
  result: np.ndarray  # int8: 1 won, -1 lost, 0 drawn
  decisions: np.ndarray  # int32
  part: np.ndarray  # int32: index of GamesDataset.parts
  row: np.ndarray  # int32: of that part


class GamesDataset(NamedTuple):
  """A dataset of recorded games."""

  path: Path  # the folder; of several, the first
  config: AgentConfig  # of the steps
  tier: str
  maps: tuple[str, ...]
  parts: tuple[str, ...]  # files, relative to the path or absolute
  episodes: Episodes
  firsts: tuple[int, ...]  # number of each folder's first game; of one folder (0,)
  digest: str  # SHA-256 of the parts in order: another one is another order of other games


def read_folder(path: str | os.PathLike, preset: str | None = None) -> GamesDataset:
  """Opens the dataset of one folder; see `joining.read`."""
  found, digests = files.verify(path)
  parts = tuple(sorted(digests))
  if preset not in (None, found.preset):
    raise GamesError(f"{path} was recorded with another preset: expected {preset!r}, found "
                     f"{found.preset!r}; record games of preset {preset!r}.")
  tables = [_describe_part(Path(path) / name, part, len(found.maps))
            for part, name in enumerate(parts)]
  episodes = Episodes(*(np.concatenate(columns) for columns in zip(*tables, strict=True))
                      ) if tables else _no_episodes()
  if len(episodes.game) != found.episodes:
    raise GamesError(f"{path}: expected {found.episodes} episodes as in {files.MANIFEST}, "
                     f"found {len(episodes.game)}; copy the dataset again, or record again.")
  return GamesDataset(
    Path(path), agent_config.preset(found.preset), found.tier, found.maps, parts, episodes, (0,),
    manifests.manifest_digest([digests[name] for name in parts]))


def _no_episodes() -> Episodes:
  dtypes = {**files.NUMBERS, "name": np.str_, "part": np.int32, "row": np.int32}
  return Episodes(**{name: np.zeros(0, dtypes[name]) for name in Episodes._fields})


def _describe_part(file: Path, part: int, maps: int) -> Episodes:
  names = [name for name in Episodes._fields if name not in ("part", "row")]
  table = _table(file, names)
  columns = {name: table[name].to_numpy() for name in names if name != "name"}
  _check_numbers(file, columns, maps)
  rows = np.arange(len(table), dtype=np.int32)
  return Episodes(**columns, name=np.array(table["name"].to_pylist(), np.str_),
                  part=np.full(len(table), part, np.int32), row=rows)


def _check_numbers(file: Path, columns: Mapping[str, np.ndarray], maps: int) -> None:
  """Checks dtypes and ranges of a part's numbers.

  Raises:
    GamesError: names file, column and row, with the expected and the found value.
  """
  last_race = len(types.RACES) - 1
  ranges = {"player": (0, 1), "map_index": (0, maps - 1), "race": (0, last_race),
            "away_race": (0, last_race), "side": (0, 1), "result": (-1, 1),
            "decisions": (0, np.iinfo(np.int32).max)}
  for name, values in columns.items():
    dtype = np.dtype(files.NUMBERS[name])
    if values.dtype != dtype:  # also a column with nulls
      raise GamesError(f"{file}: column {name!r}: expected {dtype}, found {values.dtype}; "
                       "record again.")
    low, high = ranges.get(name, (None, None))
    if low is None:
      continue
    wrong = np.flatnonzero((values < low) | (values > high))
    if wrong.size:
      raise GamesError(f"{file}: column {name!r}, row {wrong[0]}: expected {low} to {high}, found "
                       f"{values[wrong[0]]}; record again.")


def _values(file: Path, name: str, row: int, scalar: Any, dtype: Any) -> np.ndarray:
  """Returns the numbers of a binary column in one row; GamesError if it has none of that dtype."""
  dtype = np.dtype(dtype)
  buffer = scalar.as_buffer() if hasattr(scalar, "as_buffer") else None
  if buffer is None:
    raise GamesError(f"{file}: column {name!r}, row {row}: expected bytes, found "
                     f"{scalar.type if scalar.is_valid else 'nothing'}; record again.")
  if buffer.size % dtype.itemsize:
    raise GamesError(f"{file}: column {name!r}, row {row}: expected a multiple of "
                     f"{dtype.itemsize} bytes, found {buffer.size}; record again.")
  return np.frombuffer(buffer, dtype)


def _table(file: Path, columns: Sequence[str]) -> Any:
  with _named(file):
    return files.parquet().read_table(file, columns=list(columns), use_threads=False)


@contextlib.contextmanager
def _named(file: Path) -> Iterator[None]:
  """Raises what pyarrow raises as a GamesError that names the file."""
  try:
    yield
  except (OSError, ValueError, LookupError) as error:  # pyarrow's errors are ValueErrors
    reason = " ".join(str(error).split())
    raise GamesError(f"{file} is not a part of a dataset of games: {reason}") from error


def split(games: GamesDataset, share: float) -> tuple[np.ndarray, np.ndarray]:
  """Splits a dataset by game: both sides of a game are on the same side of the split.

  The choice depends only on the numbers of the games in their folder. Each folder of a joined
  dataset is split as it is alone: games that initial weights have learnt from it stay learnt ones.

  Args:
    games: the dataset.
    share: of each folder's games that are held out, 0 to 1; at least one game of each if it is
      above 0.

  Returns:
    Training rows and held-out rows, indices of `games.episodes`.
  """
  if not 0.0 <= share <= 1.0:
    raise ValueError(f"share: expected 0 to 1, found {share}.")
  numbers = np.unique(games.episodes.game)
  folders = np.split(numbers, np.searchsorted(numbers, games.firsts[1:]))
  held_out = np.isin(games.episodes.game, np.concatenate(
    [first + _chosen(folder - first, share)
     for first, folder in zip(games.firsts, folders, strict=True)]))
  return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def _chosen(numbers: np.ndarray, share: float) -> np.ndarray:
  """Returns the numbers of the games that are held out."""
  count = max(round(share * len(numbers)), 1) if share > 0 else 0
  return numbers[np.argsort(_mixed(numbers), kind="stable")[:count]]


def _mixed(numbers: np.ndarray) -> np.ndarray:
  """Returns a hash of integers (SplitMix64, Steele et al. 2014): [N] uint64."""
  x = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
  x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
  x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
  return x ^ (x >> np.uint64(31))


def num_batches(games: GamesDataset, rows: np.ndarray, batch_size: int, unroll_length: int,
                seed: int) -> int:
  """Returns the number of batches of an epoch of `in_order`."""
  order = _shuffled(rows, seed)
  return ordering.schedule(games.episodes.decisions[order], batch_size, unroll_length).batches


def in_order(games: GamesDataset, rows: np.ndarray, batch_size: int, unroll_length: int, seed: int,
             start: int = 0) -> Iterator[ordering.OrderedBatch[np.ndarray]]:
  """Yields one epoch of batches in which games run in order, slot by slot.

  Slot b of the next batch continues the game of slot b, until that game is over. Every decision is
  among the first T steps of exactly one chunk, with weight 1; all padding has weight 0. Slots
  without a further game are empty until the epoch ends. Episodes are read when they are needed:
  `learner.prefetch` reads ahead in a thread.

  Args:
    games: the dataset.
    rows: indices of `games.episodes`.
    batch_size: B.
    unroll_length: T.
    seed: of the order of the episodes.
    start: number of batches to skip: continues an epoch.

  Yields:
    `OrderedBatch`: columns [T + 1, B, width], state [B, n] zeros, first [B].

  Raises:
    GamesError: an episode does not have the shapes of the preset.
    ValueError: a size below 1.
  """
  if batch_size < 1 or unroll_length < 1:
    raise ValueError(f"expected batch_size and unroll_length above 0, found {batch_size} and "
                     f"{unroll_length}.")
  order, reader = _shuffled(rows, seed), _Reader(games)
  return ordering.batches(
    games.episodes.decisions[order], lambda i: reader.steps(int(order[i])), games.config,
    batch_size, unroll_length, start)


def _shuffled(rows: np.ndarray, seed: int) -> np.ndarray:
  return np.random.default_rng(seed).permutation(rows)


def steps(games: GamesDataset, row: int) -> wire.Columns:
  """Returns the steps of an episode: [decisions + 1, width], integers as differences in time."""
  return _Reader(games).steps(row)


class _Reader:
  """Reads episodes; keeps some files open. For one thread."""

  def __init__(self, games: GamesDataset):
    self._games, self._open = games, dict[int, Any]()
    self._widths = wire.layout(games.config).widths
    self._dtypes = [spec.dtype for spec in wire.packed_spec(games.config, 1)[:-1]]

  def _file(self, part: int) -> Any:
    if part not in self._open:
      if len(self._open) >= _OPEN_FILES:
        self._open.pop(next(iter(self._open))).close()
      path = self._games.path / self._games.parts[part]
      opened = files.parquet().ParquetFile(path, memory_map=True)
      groups, rows = opened.metadata.num_row_groups, opened.metadata.num_rows
      if groups != rows:
        opened.close()
        raise GamesError(f"{path}: expected a row group for each of {rows} episodes, found "
                         f"{groups}; record again.")
      self._open[part] = opened
    return self._open[part]

  def _row(self, row: int, names: Sequence[str]) -> tuple[Path, int, Any]:
    """Returns the file of an episode, its row there, and a table of its columns."""
    episodes = self._games.episodes
    part, group = int(episodes.part[row]), int(episodes.row[row])
    file = self._games.path / self._games.parts[part]
    with _named(file):
      return file, group, self._file(part).read_row_group(
        group, columns=list(names), use_threads=False)

  def steps(self, row: int) -> wire.Columns:
    """Returns the steps of an episode; GamesError if they do not fit the preset."""
    file, group, table = self._row(row, files.STEPS)
    size, columns = int(self._games.episodes.decisions[row]) + 1, []
    for name, width, dtype in zip(files.STEPS, self._widths, self._dtypes, strict=True):
      found = _values(file, name, group, table[name][0], dtype)
      if found.size != size * width:
        raise GamesError(f"{file}: column {name!r}, row {group}: expected {size} steps of {width} "
                         f"values, found {found.size} values; record again.")
      columns.append(found.reshape(size, width))
    return wire.Columns(*columns)

  def z(self, row: int) -> types.Statistics:
    """Returns the z of an episode; GamesError if a field does not have its size."""
    file, group, table = self._row(row, files.STATISTICS)
    z = {}
    for name, leaf in types.statistics_spec()._asdict().items():
      found = _values(file, name, group, table[name][0], leaf.dtype)
      if found.size != np.prod(leaf.shape):
        raise GamesError(f"{file}: column {name!r}, row {group}: expected {np.prod(leaf.shape)} "
                         f"values, found {found.size}; record again.")
      z[name] = found.reshape(leaf.shape)
    return types.Statistics(**z)


def library(games: GamesDataset, rows: np.ndarray) -> StatisticsLibrary:
  """Returns the z of episodes, by map, races and starting side.

  Args:
    games: the dataset.
    rows: indices of `games.episodes`; the library has their order.

  Raises:
    GamesError: a z is damaged.
  """
  rows, episodes, reader = np.asarray(rows), games.episodes, _Reader(games)
  played: dict[int, PlayedGame] = {}
  for row in rows[np.argsort(episodes.part[rows], kind="stable")].tolist():  # one file at a time
    played[row] = PlayedGame(
      games.maps[episodes.map_index[row]], int(episodes.race[row]), int(episodes.away_race[row]),
      int(episodes.side[row]), reader.z(row))
  return StatisticsLibrary.from_games([played[int(row)] for row in rows])
