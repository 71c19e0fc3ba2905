"""The schema of a league's file: its tables, valid values, and the migration of older files.

Each column has a condition. New files hold it as a CHECK constraint; existing content is checked
before a league is served, because a file may have been edited by hand.
"""

import contextlib
import os
import pathlib
import sqlite3
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from starleague.common.database import (
  BUSY_SECONDS,
  DatabaseFileError,
  access_named,
  damage_named,
  read_uri,
)
from starleague.league.leases import MOST_GAMES
from starleague.league.players import HISTORICAL, KINDS, LEARNING_KINDS, MOST_STEPS
from starleague.league.ratings.archive import AXES, Cell

PAYOFF, COORDINATOR, BEHAVIOURS = "payoff", "coordinator", "behaviours"  # components
# A file from before a component existed lacks its tables; they are added when it is served.
VERSIONS = {PAYOFF: 2, COORDINATOR: 3, BEHAVIOURS: 1}
_OLDER = {PAYOFF: 1, COORDINATOR: 2}  # the same columns without constraints
_REMEDY = "Restore the file from a mirror, or correct it."


class Column(NamedTuple):
  """A column: its declared type, the SQL condition of its values, and the same in words."""

  name: str
  declared: str
  condition: str
  expected: str


class Table(NamedTuple):
  """A table: its columns, its key, and the clauses after its columns and after the table."""

  name: str
  columns: tuple[Column, ...]
  key: tuple[str, ...]
  clause: str
  options: str = ""

  @property
  def statement(self) -> str:
    """The statement that creates it if it is missing."""
    columns = ", ".join(f"{each.name} {each.declared} CHECK ({each.condition})"
                        for each in self.columns)
    return f"CREATE TABLE IF NOT EXISTS {self.name} ({columns}, {self.clause}){self.options}"


def _text(name: str) -> Column:
  return Column(name, "TEXT NOT NULL", f"typeof({name}) = 'text' AND length({name}) > 0",
                "a text that is not empty")


def _integer(name: str, low: int, high: int, declared: str = "INTEGER NOT NULL") -> Column:
  return Column(name, declared, f"typeof({name}) = 'integer' AND {name} BETWEEN {low} AND {high}",
                f"an integer from {low} to {high}")


def _real(name: str, condition: str, expected: str) -> Column:
  return Column(name, "REAL NOT NULL", f"typeof({name}) = 'real' AND {condition}", expected)


def _one_of(name: str, values: Iterable[str], declared: str = "TEXT NOT NULL",
            unless: str = "") -> Column:
  values = tuple(values)
  return Column(name, declared, f"{unless}{name} IN {values}", f"one of {', '.join(values)}")


def _count(name: str) -> Column:
  return _integer(name, 0, 2 ** 63 - 1)


def _steps(name: str) -> Column:
  return _integer(name, 0, MOST_STEPS)


_LARGEST = "1.7976931348623157e308"  # of a float
_RESULT = _integer("result", -1, 1)
_TIME = _real("time", f"abs(time) <= {_LARGEST}", "Unix seconds")
_COUNTS = tuple(_real(name, f"{name} BETWEEN 0 AND {_LARGEST}", "a number from 0")
                for name in ("wins", "draws", "losses"))
_UNLESS = f"kind <> '{HISTORICAL}' OR "
_NO_ROWID = " WITHOUT ROWID"

TABLES = {
  PAYOFF: (
    Table("results", (_text("id"), _text("home"), _text("away"), _RESULT, _TIME), ("id",),
          "PRIMARY KEY (id)", _NO_ROWID),
    # `first` < `second`: the counts of the other direction are these with wins and losses
    # exchanged.
    Table("pairs", (_text("first"), _text("second"),
                    _real("games", f"games > 0 AND games <= {_LARGEST}", "a positive number"),
                    *_COUNTS), ("first", "second"), "PRIMARY KEY (first, second)", _NO_ROWID)),
  COORDINATOR: (
    Table("players", (
      _integer("number", -2 ** 63, 2 ** 63 - 1, "INTEGER PRIMARY KEY"), _text("name"),
      _one_of("kind", KINDS),
      Column("race", "TEXT NOT NULL", "typeof(race) = 'text'", "a text"),
      Column("parent", "TEXT", f"{_UNLESS}(typeof(parent) = 'text' AND length(parent) > 0)",
             "the name of a historical player's parent"),
      _one_of("parent_kind", LEARNING_KINDS, "TEXT", _UNLESS),
      _steps("steps")), ("name",), "UNIQUE (name)"),
    Table("progress", (_text("name"), _steps("steps"), _steps("snapshot_steps"),
                       _count("snapshots")), ("name",), "PRIMARY KEY (name)", _NO_ROWID),
    Table("orders", (
      _integer("id", 1, 2 ** 63 - 1, "INTEGER PRIMARY KEY"), _text("player"), _text("snapshot"),
      _steps("steps"), _integer("reset", 0, 1), _integer("done", 0, 1)), ("id",), "UNIQUE (id)"),
    Table("counters", (_text("name"), _count("value")), ("name",), "PRIMARY KEY (name)"),
    Table("paused", (_text("name"),), ("name",), "PRIMARY KEY (name)", _NO_ROWID),
    Table("assignments", (
      _text("id"), _text("home"), _text("away"), _text("branch"), _integer("both_learn", 0, 1),
      _integer("games", 1, MOST_GAMES)), ("id",), "PRIMARY KEY (id)"),
    Table("branches", (_text("player"), _text("branch"), _count("assignments"), _count("games")),
          ("player", "branch"), "PRIMARY KEY (player, branch)", _NO_ROWID),
    Table("replays", (
      _text("id"), _text("home"), _text("away"), _RESULT, _TIME, _integer("loops", 0, 2 ** 31 - 1),
      _text("reasons"),
      Column("path", "TEXT", "path IS NULL OR typeof(path) = 'text'", "a text or nothing")),
      ("id",), "PRIMARY KEY (id)")),
  # The games of a player by cell of the archive; the bins of a version's axes never change.
  BEHAVIOURS: (
    Table("behaviours", (
      _text("player"), _count("snapshots"),
      *(_integer(name, 0, len(axis.labels) - 1)
        for name, axis in zip(Cell._fields, AXES, strict=True)),
      _integer("games", 1, 2 ** 63 - 1), _count("steps")),
          ("player", "snapshots", *Cell._fields),
          "PRIMARY KEY (player, snapshots, opening, army, attack)", _NO_ROWID),),
}
_INDICES = {
  PAYOFF: (
    "CREATE INDEX IF NOT EXISTS results_by_pair ON results (home, away, time)",
    "CREATE INDEX IF NOT EXISTS results_by_time ON results (time)",
    "CREATE INDEX IF NOT EXISTS pairs_by_second ON pairs (second)"),
  COORDINATOR: (), BEHAVIOURS: (),
}


def statements(component: str) -> tuple[str, ...]:
  """Returns the statements that create the tables and indices of a component."""
  return (*(table.statement for table in TABLES[component]), *_INDICES[component])


@contextlib.contextmanager
def _opened(path: pathlib.Path, uri: str) -> Iterator[sqlite3.Connection]:
  """A connection to an existing file; damage found in the block is left to `Database` to name."""
  with access_named(path), contextlib.closing(sqlite3.connect(
      uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)) as connection:
    try:
      yield connection
    except sqlite3.OperationalError:
      raise
    except sqlite3.DatabaseError:
      pass


def _versions(connection: sqlite3.Connection) -> dict[str, int]:
  """Returns the versions of the components of a file that this program can read."""
  if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'layout'").fetchone():
    return {}
  found = dict(connection.execute("SELECT component, version FROM layout"))
  return {component: found[component] for component, version in VERSIONS.items()
          if found.get(component) in (version, _OLDER.get(component, version))}


def components(path: pathlib.Path) -> frozenset[str]:
  """Returns the components whose tables an existing file has, of any version.

  Raises:
    DatabaseFileError: the file is not a database, or is damaged.
  """
  found: set[str] = set()
  with damage_named(path), contextlib.closing(sqlite3.connect(
      read_uri(path), uri=True, timeout=BUSY_SECONDS)) as connection:
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'layout'").fetchone():
      found.update(name for name, in connection.execute("SELECT component FROM layout"))
  return frozenset(found)


def readable_version(path: str | os.PathLike, component: str) -> int:
  """Returns the version under which a reader opens a file: an older one has the same columns.

  Raises:
    DatabaseFileError: a table or column is missing, or a value is invalid.
  """
  path, versions = pathlib.Path(path), {}
  if path.is_file():
    with _opened(path, read_uri(path)) as connection:
      versions = _versions(connection)
      for table in TABLES[component] if component in versions else ():
        _check(connection, path, table)
  return versions.get(component, VERSIONS[component])


def prepare(path: str | os.PathLike) -> None:
  """Checks the content of an existing file, and migrates the tables of an older one.

  Args:
    path: the file; a missing or empty one is left as it is.

  Raises:
    DatabaseFileError: a table or column is missing, or a value is invalid. Nothing is changed.
    DiskFullError: there is no space left.
    sqlite3.OperationalError: the lock is held for too long.
  """
  path = pathlib.Path(path)
  if not path.is_file() or not path.stat().st_size:
    return
  with _opened(path, f"{path.absolute().as_uri()}?mode=rw") as connection:
    connection.execute("PRAGMA ignore_check_constraints = ON")  # `_check` names the values
    if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
      return  # `Database.check` names the damage
    versions = _versions(connection)
    for component in versions:
      for table in TABLES[component]:
        _check(connection, path, table)
    for component, version in versions.items():
      if version != VERSIONS[component]:
        _migrate(connection, path, component)


def _check(connection: sqlite3.Connection, path: pathlib.Path, table: Table) -> None:
  """Raises DatabaseFileError if a table or column is missing, or a value is invalid."""
  names = [column.name for column in table.columns]
  found = [row[1] for row in connection.execute(f"PRAGMA table_info({table.name})")]
  if found != names:
    raise DatabaseFileError(f"{path}: table {table.name}: expected columns {', '.join(names)}, "
                            f"found {', '.join(found) or 'no table'}. {_REMEDY}")
  for column in table.columns:
    row = connection.execute(
      f"SELECT {column.name}, {', '.join(table.key)} FROM {table.name} "
      f"WHERE ({column.condition}) IS NOT 1 LIMIT 1").fetchone()
    if row:
      key = ", ".join(f"{name}={value!r:.80}" for name, value in zip(table.key, row[1:],
                                                                     strict=True))
      raise DatabaseFileError(f"{path}: table {table.name}, row {key}, column {column.name}: "
                              f"expected {column.expected}, found {row[0]!r:.80}. {_REMEDY}")


def _migrate(connection: sqlite3.Connection, path: pathlib.Path, component: str) -> None:
  """Copies the rows of an older file to tables with constraints, in one transaction."""
  connection.execute("PRAGMA ignore_check_constraints = OFF")
  connection.execute("BEGIN IMMEDIATE")
  try:
    if _versions(connection).get(component) == _OLDER[component]:  # no other process did it
      for table in TABLES[component]:
        _check(connection, path, table)
        connection.execute(f"ALTER TABLE {table.name} RENAME TO {table.name}_older")
        connection.execute(table.statement)
        order = "" if table.options else " ORDER BY rowid"
        connection.execute(f"INSERT INTO {table.name} SELECT * FROM {table.name}_older{order}")
        connection.execute(f"DROP TABLE {table.name}_older")  # with its indices
      for statement in _INDICES[component]:
        connection.execute(statement)
      connection.execute("UPDATE layout SET version = ? WHERE component = ?",
                         (VERSIONS[component], component))
    connection.execute("COMMIT")
  except BaseException:
    if connection.in_transaction:
      connection.execute("ROLLBACK")
    raise
