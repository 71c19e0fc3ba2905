"""The tables of decoded replays: Parquet files, written part by part.

    parts/00000/  games.parquet, players.parquet, ..., part.json   a batch of replays
    games.parquet, players.parquet, builds.parquet, commands.parquet, refused.parquet

A part appears complete, so that a killed run continues after its last one. The tables beside them
are all parts in one; docs/replays.md describes their columns, which are those of `records`.
"""

import contextlib
import os
import shutil
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from starleague.agent import vocabulary as v
from starleague.common import files, manifests
from starleague.common.errors import UserError
from starleague.data.replays import records

SCHEMA = 1
ROWS: Mapping[str, type] = {
  "games": records.GameRow, "players": records.PlayerRow, "builds": records.BuildRow,
  "commands": records.CommandRow, "refused": records.RefusalRow}
PARTS, MANIFEST = "parts", "part.json"
_LOCK = ".lock"  # in the folder, held by a store
_TYPES = {"schema": int, "vocabulary": str}
_LEVEL = 3  # of zstd


class TablesError(UserError):
  """A folder that does not hold tables of replays of this version; says why."""


class Part(NamedTuple):
  """The rows of a batch of replays."""

  games: list[records.GameRow]
  players: list[records.PlayerRow]
  builds: list[records.BuildRow]
  commands: list[records.CommandRow]
  refused: list[records.RefusalRow]


def empty_part() -> Part:
  """Returns a part without rows."""
  return Part([], [], [], [], [])


def schema(table: str) -> Any:
  """Returns the pyarrow schema of a table."""
  import pyarrow
  kinds = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(),
           bool: pyarrow.bool_(), list[int]: pyarrow.list_(pyarrow.int64()),
           list[str]: pyarrow.list_(pyarrow.string())}
  fields = []
  for name, hint in typing.get_type_hints(ROWS[table]).items():
    options = [kind for kind in typing.get_args(hint) if kind is not type(None)]
    nullable = type(None) in typing.get_args(hint)
    fields.append(pyarrow.field(name, kinds[options[0] if nullable else hint], nullable=nullable))
  return pyarrow.schema(fields)


def to_arrow(table: str, rows: Sequence[tuple]) -> Any:
  """Returns rows as a pyarrow table."""
  import pyarrow
  fields = schema(table)
  columns = list(zip(*rows, strict=True)) if rows else [()] * len(fields)
  arrays = [pyarrow.array(column, field.type)
            for column, field in zip(columns, fields, strict=True)]
  return pyarrow.Table.from_arrays(arrays, schema=fields)


def read(folder: str | os.PathLike, table: str, columns: Sequence[str] | None = None) -> Any:
  """Returns a table, or some of its columns, of a folder or of a part as a pyarrow table.

  Raises:
    TablesError: there is no such table, or it is damaged.
  """
  import pyarrow
  import pyarrow.parquet
  path = Path(folder) / f"{table}.parquet"
  try:
    return pyarrow.parquet.read_table(path, columns=columns, schema=None)
  except FileNotFoundError as error:
    raise TablesError(f"{path} is missing: make it with starleague.experiments.replays") from error
  except (pyarrow.ArrowException, OSError, ValueError) as error:
    raise TablesError(f"{path} is damaged: {error}; remove the folder and read the replays "
                      "again") from error


class Store:
  """The parts of a folder, for one process at a time; a context manager, whose end frees it."""

  def __init__(self, folder: str | os.PathLike):
    """Opens a folder, new or with parts, and removes what a killed run left half written.

    Raises:
      TablesError: it holds something else, or parts that are damaged or of another version, or
        another process writes to it.
    """
    self.folder = Path(folder)
    others = [name for name in sorted(os.listdir(self.folder))
              if not name.startswith(".")] if self.folder.is_dir() else []
    if others and not (self.folder / PARTS).is_dir():
      raise TablesError(f"{self.folder} holds {others[0]!r} and no folder {PARTS!r}: choose a new "
                        "--out")
    (self.folder / PARTS).mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
      stack.enter_context(files.locked(self.folder / _LOCK, TablesError(
        f"{self.folder} is written by another process: wait until that ends, or choose another "
        "--out")))
      self._parts = sorted(path for path in (self.folder / PARTS).iterdir()
                           if not path.name.startswith("."))
      for part in self._parts:
        _check(part)
      self._remove_leftovers()
      self._lock = stack.pop_all()

  def _remove_leftovers(self) -> None:
    for left in (self.folder / PARTS).glob(f"{files.PARTIAL}*"):
      shutil.rmtree(left)
    for table in ROWS:
      for left in self.folder.glob(f".{table}.parquet-*"):
        left.unlink()

  def __enter__(self) -> "Store":
    return self

  def __exit__(self, *error: object) -> None:
    self._lock.close()

  def column(self, table: str, name: str) -> Iterator[Any]:
    """Yields the values of a column over all parts."""
    for part in self._parts:
      yield from read(part, table, [name])[name].to_pylist()

  def add(self, part: Part) -> None:
    """Writes a part, complete or not at all."""
    import pyarrow.parquet
    number = 1 + int(self._parts[-1].name) if self._parts else 0
    path = self.folder / PARTS / f"{number:05d}"
    with files.replacing_folder(path) as partial:
      for table in ROWS:
        pyarrow.parquet.write_table(
          to_arrow(table, getattr(part, table)), partial / f"{table}.parquet",
          compression="zstd", compression_level=_LEVEL)
      manifests.write(partial / MANIFEST, {"schema": SCHEMA, "vocabulary": v.digest()})
    self._parts.append(path)

  def merge(self, refused: Sequence[records.RefusalRow] = ()) -> None:
    """Writes the tables of all parts.

    Args:
      refused: files that no part has: those that a further run tries again.
    """
    import pyarrow.parquet
    for table in ROWS:
      with contextlib.ExitStack() as stack:
        file = stack.enter_context(files.replacing(self.folder / f"{table}.parquet", "wb"))
        writer = stack.enter_context(pyarrow.parquet.ParquetWriter(
          file, schema(table), compression="zstd", compression_level=_LEVEL))
        for part in self._parts:
          writer.write_table(read(part, table).cast(schema(table)))
        if table == "refused" and refused:
          writer.write_table(to_arrow(table, refused))


def _check(part: Path) -> None:
  """Raises TablesError unless a part is whole and of this version."""
  try:
    manifest = manifests.read(part / MANIFEST)
    manifests.check_types(part / MANIFEST, manifest, _TYPES)
    manifests.check_files(part / MANIFEST, manifest)
  except manifests.ManifestError as error:
    raise TablesError(f"{error} Remove {part}: its replays are read again.") from error
  for name, expected in (("schema", SCHEMA), ("vocabulary", v.digest())):
    if manifest[name] != expected:
      raise TablesError(f"{part}: expected {name} {expected}, found {manifest[name]}; choose a new "
                        "--out")
