"""One SQLite file, shared by threads and by several processes of one machine.

Every change is one transaction that is on disk when it returns: a process that is killed loses at
most the transaction it was in, and the file is never half written. SQLite's write-ahead log needs
shared memory, so the file must not lie on a network file system.
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


class Database:
  """A connection to a file, made anew after a fork."""

  def __init__(self, path: str | os.PathLike, component: str, version: int,
               tables: Sequence[str], busy_seconds: float = BUSY_SECONDS):
    """Opens or makes the file.

    Args:
      path: of the file; its folder is made.
      component: whose tables these are; several components may share a file.
      version: of the tables' layout.
      tables: statements that make the tables where they are missing.
      busy_seconds: how long to wait for other processes.

    Raises:
      ValueError: where the file is no database, or its tables are of another version.
    """
    self.path = pathlib.Path(path)
    self._busy_seconds = busy_seconds
    self._lock = threading.RLock()
    self._process = -1
    self.path.parent.mkdir(parents=True, exist_ok=True)
    try:
      with self.transaction() as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS layout "
                           "(component TEXT PRIMARY KEY, version INTEGER NOT NULL)")
        connection.execute("INSERT OR IGNORE INTO layout VALUES (?, ?)", (component, version))
        found = connection.execute(
          "SELECT version FROM layout WHERE component = ?", (component,)).fetchone()[0]
        if found != version:
          raise ValueError(f"{self.path}: the tables of {component} are of version {found}, "
                           f"expected {version}. Start a new file.")
        for statement in tables:
          connection.execute(statement)
    except sqlite3.OperationalError:
      raise  # a disk that is full, a lock that is held: says so itself
    except sqlite3.DatabaseError as error:
      raise ValueError(f"{self.path} is not a SQLite database, or is damaged: {error}. Move it away "
                       "or restore it.") from error

  def _connect(self) -> sqlite3.Connection:
    if self._process != os.getpid():  # SQLite's connections must not be carried over a fork
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
        # Changing the mode does not wait for others, whatever the connection's timeout is.
        if "locked" not in str(error) or time.monotonic() > deadline:
          raise
        time.sleep(_RETRY_SECONDS)

  @contextlib.contextmanager
  def transaction(self) -> Iterator[sqlite3.Connection]:
    """A change: all of it or, where the body raises, nothing. Others wait."""
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
    """All rows of a query."""
    with self._lock:
      return self._connect().execute(statement, values).fetchall()

  def close(self) -> None:
    """Closes the connection of this process; it is opened again when needed."""
    with self._lock:
      if self._process == os.getpid():
        self._connection.close()
      self._process = -1
