"""Datasets of recorded games on disk: Parquet files of episodes with a manifest.

An episode is one player's side of one game: one row of a Parquet file. Its decisions and its
terminal step are in five binary columns, those of `wire.Columns`: rows [decisions + 1, width],
integers as differences between consecutive steps. The other columns describe the game; z is the
player's own executed statistics at the end of the game.

A folder holds `part-00000.parquet`, `part-00001.parquet`, ... and `games.json`, a manifest with the
SHA-256 of every part. A part appears under its name complete, and is read only if it is listed.
"""

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from starleague.agent import config as agent_config
from starleague.agent import types, vocabulary
from starleague.agent.config import AgentConfig
from starleague.common import files, manifests
from starleague.common.errors import UserError
from starleague.data import wire

MANIFEST = "games.json"
STUDENT = "student"  # name of an agent whose games are recorded
LOCK = ".lock"  # held by the writer of the folder
_LEFTOVERS = (".part-", f".{MANIFEST}-")  # prefixes of files that a killed writer leaves
SCHEMA = 1
PART_DECISIONS = 2**16  # a part is closed with the game that reaches this number of decisions
COMPRESSION_LEVEL = 3  # of zstd
_TYPES = {"schema": int, "preset": str, "tier": str, "maps": list, "origin": str,
          "vocabulary": str, "games": int, "episodes": int, "decisions": int}
# Columns of an episode beside texts, z and steps.
NUMBERS: dict[str, DTypeLike] = {
  "game": np.int64, "player": np.uint8, "map_index": np.int32, "race": np.uint8,
  "away_race": np.uint8, "side": np.uint8, "mmr": np.int16, "result": np.int8,
  "decisions": np.int32}
TEXTS = ("name", "map")
STATISTICS = types.Statistics._fields
STEPS = wire.Columns._fields


class GamesError(UserError, ValueError):
  """A folder is not a dataset of games, is damaged, or was made otherwise; says which."""


class Description(NamedTuple):
  """Description of a dataset of games.

  Attributes:
    preset: of the agent whose shapes the steps have.
    tier: of the environment.
    maps: names of its maps; `map_index` of an episode is an index of these.
    origin: free text: who played, with which seed.
    vocabulary: digest of the vocabulary that the steps use.
    games: number of games.
    episodes: number of rows.
    decisions: of all episodes.
    schema: version of the format.
  """

  preset: str
  tier: str
  maps: tuple[str, ...]
  origin: str
  vocabulary: str
  games: int = 0
  episodes: int = 0
  decisions: int = 0
  schema: int = SCHEMA


class Episode(NamedTuple):
  """One player's side of a finished game."""

  game: int  # number of the game, unique in the dataset
  player: int  # 0 or 1
  name: str  # of the player
  map_index: int
  race: int  # index of types.RACES
  away_race: int
  side: int  # 0 or 1: the starting position
  mmr: int
  result: int  # 1 won, -1 lost, 0 drawn
  z: types.Statistics  # executed at the end of the game
  steps: wire.Columns  # [decisions + 1, width], integers as differences in time


def parquet() -> Any:
  """Imports pyarrow's Parquet module, which takes a while, when it is first needed."""
  import pyarrow.parquet
  return pyarrow.parquet


def describe(path: str | os.PathLike) -> tuple[Description, Mapping[str, str]]:
  """Reads the description of a dataset and the SHA-256 of its parts, without checking them.

  Raises:
    GamesError: the folder is not a dataset, its manifest is damaged, or it has another schema,
      another vocabulary or an unknown preset.
  """
  file = Path(path) / MANIFEST
  if not os.path.lexists(file):
    raise GamesError(f"{path} is not a dataset of games: expected a file {MANIFEST}, found none; "
                     "record one with starleague.experiments.demonstrate.")
  try:
    manifest = manifests.read(file)
    manifests.check_types(file, manifest, _TYPES)
  except manifests.ManifestError as error:
    raise GamesError(f"{error} Copy the dataset again, or record again.") from error
  values = {key: manifest[key] for key in _TYPES}
  found = Description(**values | {"maps": tuple(str(name) for name in manifest["maps"])})
  for name, expected in (("schema", SCHEMA), ("vocabulary", vocabulary.digest())):
    if getattr(found, name) != expected:
      raise GamesError(f"{file}: recorded with another {name}: expected {expected!r}, found "
                       f"{getattr(found, name)!r}; record it again with this version.")
  try:
    agent_config.preset(found.preset)
  except ValueError as error:
    raise GamesError(f"{file}: preset: {error}") from error
  return found, manifest["files"]


def verify(path: str | os.PathLike) -> tuple[Description, Mapping[str, str]]:
  """Does what `describe` does, and checks the SHA-256 of the parts.

  Files that the manifest does not list, such as a part that a killed writer left, are ignored.

  Raises:
    GamesError: as `describe`, or a part is missing or damaged.
  """
  found, digests = describe(path)
  try:
    manifests.check_files(Path(path) / MANIFEST, {"files": digests}, others=True)
  except manifests.ManifestError as error:
    raise GamesError(f"{error} Copy the dataset again, or record again.") from error
  return found, digests


def check_path(path: str | os.PathLike) -> None:
  """Raises GamesError if a folder cannot be written because `joining.read` takes it as several."""
  if "," in str(path):
    raise GamesError(f"dataset {str(path)!r}: expected a folder without ',', which separates "
                     "folders; choose another folder.")


class GamesWriter:
  """Appends finished games to a dataset; a killed writer loses at most the unfinished part.

  Use it as a context manager: without an exception, its end completes the last part. Until then no
  other process writes to the folder.
  """

  def __init__(self, path: str | os.PathLike, config: AgentConfig, tier: str,
               maps: Sequence[str], origin: str, *, part_decisions: int = PART_DECISIONS):
    """Opens a dataset, or starts one in a new or empty folder.

    Args:
      path: the folder.
      config: the AgentConfig of the steps, a preset.
      tier: of the environment.
      maps: names of its maps.
      origin: who plays, with which seed: everything that must not differ when a writer continues.
      part_decisions: a part is closed with the game that reaches this number of decisions.

    Raises:
      GamesError: the folder's path has a comma, or the folder holds something else, or a dataset
        that is damaged or of other arguments, or another process writes to it.
    """
    check_path(path)
    self._path, self._config, self._part_decisions = Path(path), config, part_decisions
    self._found = Description(config.name, tier, tuple(maps), origin, vocabulary.digest())
    self._digests: dict[str, str] = {}
    self._part: contextlib.ExitStack | None = None
    self._table: Any = None  # pyarrow's writer of the open part
    self._last_game = -1
    self._require_own()  # a folder of something else gets no lock
    self._path.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
      stack.enter_context(files.locked(self._path / LOCK, GamesError(
        f"{self._path} is written by another process: wait until that ends, or choose another "
        "folder.")))
      if os.path.lexists(self._path / MANIFEST):
        self._continue()
      for leftover in self._path.iterdir():
        if leftover.name.startswith(_LEFTOVERS):
          leftover.unlink()
      self._lock = stack.pop_all()
    self._written = self._found  # with the open part

  def _continue(self) -> None:
    existing, digests = verify(self._path)
    for name in ("preset", "tier", "maps", "origin"):
      wanted, found = getattr(self._found, name), getattr(existing, name)
      if wanted != found:
        raise GamesError(f"{self._path} was recorded with another {name}: expected {wanted!r}, "
                         f"found {found!r}; choose another folder.")
    self._found, self._digests = existing, dict(digests)
    for name in digests:
      numbers = parquet().read_table(self._path / name, columns=["game"])["game"].to_pylist()
      self._last_game = max(self._last_game, *numbers)

  def _require_own(self) -> None:
    others = [name for name in os.listdir(self._path) if name != LOCK
              and not name.startswith((*_LEFTOVERS, "part-"))] if self._path.exists() else []
    if others and MANIFEST not in others:
      raise GamesError(f"{self._path} holds {sorted(others)[0]!r} and no {MANIFEST}: choose a new "
                       "folder.")

  @property
  def complete(self) -> Description:
    """The description of what is complete on disk."""
    return self._found

  @property
  def written(self) -> Description:
    """The description of what is written, with the open part."""
    return self._written

  @property
  def last_game(self) -> int:
    """The highest number of a game in a complete part; -1 if there is none."""
    return self._last_game

  @property
  def parts(self) -> int:
    """Number of complete parts."""
    return len(self._digests)

  def add(self, episodes: Sequence[Episode]) -> None:
    """Appends the episodes of a finished game.

    Raises:
      ValueError: an episode's columns do not have the widths of the config.
    """
    if self._table is None:
      self._open()
    for episode in episodes:
      self._table.write_table(_row(episode, self._found.maps, self._config))
    decisions = sum(len(episode.steps.float32) - 1 for episode in episodes)
    self._written = self._written._replace(
      games=self._written.games + 1, episodes=self._written.episodes + len(episodes),
      decisions=self._written.decisions + decisions)
    if self._written.decisions - self._found.decisions >= self._part_decisions:
      self.flush()

  def _open(self) -> None:
    self._part = contextlib.ExitStack()
    file = self._part.enter_context(files.replacing(self._path / self._name(), "wb"))
    self._table = self._part.enter_context(parquet().ParquetWriter(
      file, _schema(), compression="zstd", compression_level=COMPRESSION_LEVEL,
      use_dictionary=False, write_statistics=False))

  def _name(self) -> str:
    return f"part-{len(self._digests):05d}.parquet"

  def flush(self) -> None:
    """Completes the open part, if there is one; without any game, writes an empty dataset."""
    if self._part is not None:
      self._part.close()
      self._part = self._table = None
      self._digests[self._name()] = manifests.file_digest(self._path / self._name())
    self._found = self._written
    manifests.replace(self._path / MANIFEST, self._found._asdict(), self._digests)

  def __enter__(self) -> "GamesWriter":
    return self

  def __exit__(self, error: type[BaseException] | None, value: BaseException | None,
               traceback: TracebackType | None) -> None:
    with self._lock:
      if error is None:
        self.flush()
      elif self._part is not None:
        self._part.__exit__(error, value, traceback)


def _schema() -> Any:
  import pyarrow
  numbers = [(name, pyarrow.from_numpy_dtype(dtype)) for name, dtype in NUMBERS.items()]
  texts = [(name, pyarrow.string()) for name in TEXTS]
  return pyarrow.schema(
    [*numbers, *texts, *((name, pyarrow.binary()) for name in (*STATISTICS, *STEPS))])


def _row(episode: Episode, maps: Sequence[str], config: AgentConfig) -> Any:
  """Returns an episode as a table of one row."""
  import pyarrow
  widths = wire.layout(config).widths
  size = len(episode.steps.float32)
  for name, width, column in zip(STEPS, widths, episode.steps, strict=True):
    if column.shape != (size, width):
      raise ValueError(f"column {name!r} of game {episode.game}: expected {[size, width]}, found "
                       f"{list(column.shape)}; write steps of preset {config.name!r}.")
  values = {name: getattr(episode, name) for name in NUMBERS if name != "decisions"}
  values |= {"decisions": size - 1, "name": episode.name, "map": maps[episode.map_index]}
  values |= {name: np.ascontiguousarray(value).tobytes() for name, value in (
    *episode.z._asdict().items(), *episode.steps._asdict().items())}
  schema = _schema()
  return pyarrow.Table.from_arrays(
    [pyarrow.array([values[field.name]], field.type) for field in schema], schema=schema)
