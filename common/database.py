"""A SQLite file that threads and processes of one machine share.

Every change is one transaction, on disk when it returns: a killed process loses at most the
transaction in progress, and the file is never half written. SQLite's write-ahead log needs shared
memory: the file must not lie on a network file system.
"""

import contextlib
import os
import pathlib
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

BUSY_SECONDS = 60.0
_RETRY_SECONDS = 0.02
_LAYOUT = "layout"  # the table of components and their versions


class Database:
  """A connection to a SQLite file; a forked process opens its own."""

  def __init__(self, path: str | os.PathLike, component: str, version: int,
               tables: Sequence[str], *, alone: bool = False,
               busy_seconds: float = BUSY_SECONDS):
    """Opens the file, or creates it with its tables.

    Args:
      path: the file; its folder is created if missing.
      component: owner of the tables; several components may share a file.
      version: of the tables' layout.
      tables: statements that create the tables if they are missing.
      alone: whether to refuse a file with tables of other components.
      busy_seconds: maximum wait for other processes.

    Raises:
      ValueError: the file is not a database, its tables have another version, or it holds tables
        of another component and `alone` is set. It stays unchanged.
      sqlite3.OperationalError: the disk is full, or the lock is held for too long.
    """
    self.path = pathlib.Path(path)
    self._busy_seconds = busy_seconds
    self._lock = threading.RLock()
    self._process = -1
    self.path.parent.mkdir(parents=True, exist_ok=True)
    try:
      with self.transaction() as connection:
        if alone:
          self._check_alone(connection, component)
        self._create(connection, component, version, tables)
    except sqlite3.OperationalError:
      raise
    except sqlite3.DatabaseError as error:
      raise ValueError(f"{self.path} is not a SQLite database, or is damaged: {error}. Move it "
                       "away or restore it.") from error

  def _check_alone(self, connection: sqlite3.Connection, component: str) -> None:
    tables = {row[0] for row in connection.execute(
      "SELECT name FROM sqlite_master WHERE type = 'table'")}
    found = set(tables)
    if _LAYOUT in tables:
      found = {row[0] for row in connection.execute(f"SELECT component FROM {_LAYOUT}")}
    if found - {component}:
      raise ValueError(f"{self.path}: expected a {component} alone, found {sorted(found)}. Give "
                       f"the {component} a file of its own.")

  def _create(self, connection: sqlite3.Connection, component: str, version: int,
              tables: Sequence[str]) -> None:
    connection.execute(f"CREATE TABLE IF NOT EXISTS {_LAYOUT} "
                       "(component TEXT PRIMARY KEY, version INTEGER NOT NULL)")
    connection.execute(f"INSERT OR IGNORE INTO {_LAYOUT} VALUES (?, ?)", (component, version))
    found = connection.execute(
      f"SELECT version FROM {_LAYOUT} WHERE component = ?", (component,)).fetchone()[0]
    if found != version:
      raise ValueError(f"{self.path}: expected tables of {component} of version {version}, found "
                       f"version {found}. Start a new file.")
    for statement in tables:
      connection.execute(statement)

  def _connect(self) -> sqlite3.Connection:
    if self._process != os.getpid():  # a fork must not use its parent's SQLite connection
      connection = sqlite3.connect(
        self.path, timeout=self._busy_seconds, isolation_level=None, check_same_thread=False)
      self._use_write_ahead_log(connection)
      connection.execute("PRAGMA synchronous = FULL")
      self._connection, self._process = connection, os.getpid()
    return self._connection

  def _use_write_ahead_log(self, connection: sqlite3.Connection) -> None:
    deadline = time.monotonic() + self._busy_seconds
    while True:
      try:
        connection.execute("PRAGMA journal_mode = WAL")
        return
      except sqlite3.OperationalError as error:
        # A change of the mode ignores the connection's timeout.
        if "locked" not in str(error) or time.monotonic() > deadline:
          raise
        time.sleep(_RETRY_SECONDS)

  @contextlib.contextmanager
  def transaction(self) -> Iterator[sqlite3.Connection]:
    """An exclusive transaction: committed at the end, rolled back if the block raises."""
    with self._lock:
      connection = self._connect()
      connection.execute("BEGIN IMMEDIATE")
      try:
        yield connection
      except BaseException:
        connection.execute("ROLLBACK")
        raise
      connection.execute("COMMIT")

  def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple]:
    """Returns all rows of a query."""
    with self._lock:
      return self._connect().execute(statement, values).fetchall()

  def close(self) -> None:
    """Closes the connection of this process; the next use reopens it."""
    with self._lock:
      if self._process == os.getpid():
        self._connection.close()
      self._process = -1
