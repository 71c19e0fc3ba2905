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

from starleague.common import disk
from starleague.common.errors import UserError

BUSY_SECONDS = 60.0
_RETRY_SECONDS = 0.02
_IMMUTABLE = "&immutable=1"  # end of a URI
_PRIMARY = 0xFF  # bits of an error's code without its extension
_NO_ACCESS = sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY
_LAYOUT = "layout"  # the table of components and their versions


class DatabaseFileError(UserError, ValueError):
  """A file is not a database, is damaged, or has other tables or values than expected."""


def read_uri(path: str | os.PathLike) -> str:
  """Returns the URI with which SQLite opens an existing file without the right to change it.

  SQLite needs a log and shared memory beside the file, and creates them. In a folder where it
  cannot, a file without a log is opened as immutable: a connection does not notice later changes.
  """
  real = pathlib.Path(path).resolve()
  logged = real.with_name(f"{real.name}-wal").exists()
  immutable = not logged and not os.access(real.parent, os.W_OK)
  return f"{real.as_uri()}?mode=ro{_IMMUTABLE if immutable else ''}"


@contextlib.contextmanager
def access_named(path: pathlib.Path) -> Iterator[None]:
  """Turns SQLite's errors about the access to a file into a DatabaseFileError that names it."""
  try:
    yield
  except sqlite3.OperationalError as error:
    if getattr(error, "sqlite_errorcode", 0) & _PRIMARY not in _NO_ACCESS:
      raise
    found = "a folder" if path.is_dir() else f"that SQLite cannot: {error}"
    raise DatabaseFileError(
      f"{path}: expected a SQLite file that this user can open, found {found}. Check the path, and "
      "the rights to the file and its folder.") from error


@contextlib.contextmanager
def damage_named(path: pathlib.Path) -> Iterator[None]:
  """Turns SQLite's errors about a file into a DatabaseFileError that names it."""
  try:
    with access_named(path):
      yield
  except sqlite3.OperationalError:
    raise
  except sqlite3.DatabaseError as error:
    raise DatabaseFileError(f"{path} is not a SQLite database, or is damaged: {error}. "
                            "Move it away or restore it.") from error


class Database:
  """A connection to a SQLite file; a forked process opens its own.

  Attributes:
    path: the file.
    lock: held during each transaction and query.
  """

  def __init__(self, path: str | os.PathLike, component: str, version: int,
               tables: Sequence[str] = (), *, alone: bool = False, read_only: bool = False,
               busy_seconds: float = BUSY_SECONDS):
    """Opens the file, or creates it with its tables.

    Args:
      path: the file; its folder is created if missing.
      component: owner of the tables; several components may share a file.
      version: of the tables' layout.
      tables: statements that create the tables if they are missing.
      alone: whether to refuse a file with tables of other components.
      read_only: whether to open an existing file without the right to change it.
      busy_seconds: maximum wait for other processes.

    Raises:
      DatabaseFileError: the file is not a database, this user may not open it, its tables have
        another version, or it holds tables of another component and `alone` is set; or it is
        missing and `read_only` is set. It stays unchanged.
      DiskFullError: there is no space left.
      sqlite3.OperationalError: the lock is held for too long.
    """
    self.path = pathlib.Path(path)
    self._busy_seconds = busy_seconds
    self.lock = threading.RLock()
    self._process = -1
    self._opened, self._immutable = 0, False
    self._read_only = read_only
    if read_only:
      self._check_exists(component, version)
      return
    self.path.parent.mkdir(parents=True, exist_ok=True)
    with self.damage_named():
      self._check_size()
    with self.damage_named(), self.transaction() as connection:
      if alone:
        self._check_alone(connection, component)
      self._create(connection, component, version, tables)

  def add(self, component: str, version: int, tables: Sequence[str]) -> None:
    """Adds the tables of another component; arguments and errors are those of the constructor."""
    with self.damage_named(), self.transaction() as connection:
      self._create(connection, component, version, tables)

  def damage_named(self) -> contextlib.AbstractContextManager[None]:
    """Turns SQLite's errors about the file into a DatabaseFileError that names it."""
    return damage_named(self.path)

  def check(self) -> None:
    """Reads the whole file; raises DatabaseFileError if a part of it is damaged or missing."""
    with self.damage_named():
      found = self.rows("PRAGMA quick_check(1)")[0][0]
      if found != "ok":
        raise sqlite3.DatabaseError(" ".join(found.split()))

  def _check_size(self) -> None:
    """Refuses a file of one byte: SQLite takes it for an empty one, and would overwrite it."""
    if self.path.is_file() and self.path.stat().st_size == 1:
      raise sqlite3.DatabaseError("file is not a database")

  def _check_exists(self, component: str, version: int) -> None:
    if not self.path.is_file():
      there = "a folder" if self.path.is_dir() else "none"
      raise DatabaseFileError(f"{self.path}: expected a file with a {component}, found {there}.")
    with self.damage_named():
      found = None
      if self.rows("SELECT 1 FROM sqlite_master WHERE name = ?", (_LAYOUT,)):
        found = dict(self.rows(f"SELECT component, version FROM {_LAYOUT}")).get(component)
    if found is None:
      raise DatabaseFileError(f"{self.path}: expected tables of {component}, found none.")
    self._check_version(component, version, found)

  def _check_version(self, component: str, version: int, found: int) -> None:
    if found != version:
      raise DatabaseFileError(f"{self.path}: expected tables of {component} of version {version}, "
                              f"found version {found}. Start a new file.")

  def _check_alone(self, connection: sqlite3.Connection, component: str) -> None:
    tables = {row[0] for row in connection.execute(
      "SELECT name FROM sqlite_master WHERE type = 'table'")}
    found = set(tables)
    if _LAYOUT in tables:
      found = {row[0] for row in connection.execute(f"SELECT component FROM {_LAYOUT}")}
    if found - {component}:
      raise DatabaseFileError(f"{self.path}: expected a {component} alone, found {sorted(found)}. "
                              f"Give the {component} a file of its own.")

  def _create(self, connection: sqlite3.Connection, component: str, version: int,
              tables: Sequence[str]) -> None:
    connection.execute(f"CREATE TABLE IF NOT EXISTS {_LAYOUT} "
                       "(component TEXT PRIMARY KEY, version INTEGER NOT NULL)")
    connection.execute(f"INSERT OR IGNORE INTO {_LAYOUT} VALUES (?, ?)", (component, version))
    found = connection.execute(
      f"SELECT version FROM {_LAYOUT} WHERE component = ?", (component,)).fetchone()[0]
    self._check_version(component, version, found)
    for statement in tables:
      connection.execute(statement)

  def _connect(self) -> sqlite3.Connection:
    if self._immutable:
      self.close()  # the file may have changed
    if self._process != os.getpid():  # a fork must not use its parent's SQLite connection
      uri = (read_uri(self.path) if self._read_only
             else f"{self.path.absolute().as_uri()}?mode=rwc")
      connection = sqlite3.connect(uri, uri=True, timeout=self._busy_seconds,
                                   isolation_level=None, check_same_thread=False)
      self._opened, self._immutable = self._opened + 1, uri.endswith(_IMMUTABLE)
      if not self._read_only:
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
    """An exclusive transaction: committed at the end, rolled back if the block raises.

    Raises:
      DiskFullError: there is no space left.
    """
    with disk.named(self.path.parent), self.lock:
      connection = self._connect()
      connection.execute("BEGIN IMMEDIATE")
      try:
        yield connection
        connection.execute("COMMIT")
      except BaseException:
        if connection.in_transaction:  # SQLite itself rolls back after some errors
          connection.execute("ROLLBACK")
        raise

  def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple]:
    """Returns all rows of a query."""
    with self.lock:
      return self._connect().execute(statement, values).fetchall()

  def version(self) -> tuple[int, int]:
    """Returns numbers that differ if another connection may have changed the file meanwhile."""
    with self.lock:
      changes = self.rows("PRAGMA data_version")[0][0]
      return self._opened, changes

  def close(self) -> None:
    """Closes the connection of this process; the next use reopens it."""
    with self.lock:
      if self._process == os.getpid():
        self._connection.close()
      self._process = -1
