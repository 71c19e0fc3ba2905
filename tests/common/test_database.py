"""The SQLite file: all or nothing, checked when it is opened, safe over threads and forks."""

import os
import shutil
import sqlite3
import threading

import pytest

from starleague.common import disk
from starleague.common.database import Database, DatabaseFileError
from tests.processes import public_folder, returned_to_other_user

TABLES = ("CREATE TABLE IF NOT EXISTS counts (name TEXT PRIMARY KEY, value INTEGER NOT NULL)",)


def make(path, component="counter", version=1, **options):
  return Database(path, component, version, TABLES, **options)


def add(database, name="a"):
  with database.transaction() as connection:
    connection.execute("INSERT INTO counts VALUES (?, 1) "
                       "ON CONFLICT (name) DO UPDATE SET value = value + 1", (name,))


def counts(database):
  return dict(database.rows("SELECT name, value FROM counts"))


def test_a_database_keeps_its_rows_and_reopens_after_close(tmp_path):
  database = make(tmp_path / "new" / "file.sqlite")
  add(database)
  database.close()
  add(database)
  assert counts(database) == counts(make(database.path)) == {"a": 2}


def test_a_transaction_that_raises_changes_nothing(tmp_path):
  database = make(tmp_path / "file.sqlite")
  add(database)
  with pytest.raises(ZeroDivisionError), database.transaction() as connection:
    connection.execute("DELETE FROM counts")
    raise ZeroDivisionError
  assert counts(database) == {"a": 1}


def test_a_file_that_is_no_database_is_named(tmp_path):
  path = tmp_path / "text"
  path.write_text("this is no database, and long enough to be read as a header" * 20)
  with pytest.raises(ValueError, match="text is not a SQLite database, or is damaged"):
    make(path)


def test_tables_of_another_version_are_refused(tmp_path):
  make(tmp_path / "file.sqlite")
  with pytest.raises(ValueError, match="tables of counter of version 2, found version 1"):
    make(tmp_path / "file.sqlite", version=2)


def test_components_share_a_file_unless_one_wants_to_be_alone(tmp_path):
  path = tmp_path / "file.sqlite"
  make(path, "counter")
  make(path, "other", version=7)
  with pytest.raises(ValueError, match=r"expected a counter alone, found \['counter', 'other'\]"):
    make(path, "counter", alone=True)
  foreign = tmp_path / "foreign.sqlite"
  with sqlite3.connect(foreign) as connection:
    connection.execute("CREATE TABLE results (id TEXT)")
  with pytest.raises(ValueError, match=r"expected a counter alone, found \['results'\]"):
    make(foreign, alone=True)
  with sqlite3.connect(foreign) as connection:
    found = connection.execute("SELECT name FROM sqlite_master").fetchall()
  assert found == [("results",)]
  add(make(tmp_path / "alone.sqlite", alone=True))
  assert counts(make(tmp_path / "alone.sqlite", alone=True)) == {"a": 1}


def test_threads_share_a_database(tmp_path):
  database = make(tmp_path / "file.sqlite")
  threads = [threading.Thread(target=lambda: [add(database) for _ in range(20)]) for _ in range(4)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join(timeout=60)
  assert counts(database) == {"a": 80}


def test_a_fork_opens_its_own_connection(tmp_path):
  database = make(tmp_path / "file.sqlite")
  add(database)
  child = os.fork()
  if not child:
    status = 1
    try:
      add(database)
      status = 0
    finally:
      os._exit(status)
  assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
  add(database)
  assert counts(database) == {"a": 3}


def test_a_reader_sees_changes_and_makes_none(tmp_path):
  database = make(tmp_path / "file.sqlite")
  reader = Database(database.path, "counter", 1, read_only=True)
  add(database)
  assert counts(reader) == {"a": 1}
  with pytest.raises(sqlite3.OperationalError, match="readonly"):
    add(reader)
  assert counts(database) == {"a": 1}


@pytest.mark.parametrize("component, version, message", [
  ("counter", 2, "tables of counter of version 2, found version 1"),
  ("payoff", 1, "expected tables of payoff, found none"),
])
def test_a_reader_refuses_other_tables(tmp_path, component, version, message):
  make(tmp_path / "file.sqlite")
  with pytest.raises(DatabaseFileError, match=message):
    Database(tmp_path / "file.sqlite", component, version, read_only=True)


def test_a_reader_refuses_a_missing_or_foreign_file_and_creates_none(tmp_path):
  with pytest.raises(DatabaseFileError, match="nowhere.sqlite: expected a file .* found none"):
    Database(tmp_path / "nowhere.sqlite", "counter", 1, read_only=True)
  (tmp_path / "text").write_text("no database" * 200)
  with pytest.raises(DatabaseFileError, match="text is not a SQLite database"):
    Database(tmp_path / "text", "counter", 1, read_only=True)
  sqlite3.connect(tmp_path / "foreign").execute("CREATE TABLE other (x)")
  with pytest.raises(DatabaseFileError, match="expected tables of counter, found none"):
    Database(tmp_path / "foreign", "counter", 1, read_only=True)
  assert not (tmp_path / "nowhere.sqlite").exists()


def read_counts(path):
  return repr(counts(Database(path, "counter", 1, read_only=True)))


def test_a_reader_needs_no_right_to_write():
  with public_folder() as shared:
    database = make(shared / "file.sqlite")
    add(database)
    database.close()  # removes the log
    assert os.listdir(shared) == ["file.sqlite"]
    assert returned_to_other_user(shared, lambda: read_counts(database.path)) == "{'a': 1}"


def test_a_log_that_cannot_be_read_is_an_error_in_one_line():
  with public_folder() as shared:
    database = make(shared / "live.sqlite")
    add(database)
    for end in ("", "-wal"):  # without the shared memory, which a reader would create
      shutil.copy(f"{database.path}{end}", f"{shared}/copy.sqlite{end}")
    found = returned_to_other_user(shared, lambda: read_counts(shared / "copy.sqlite"))
    assert found == (
      f"DatabaseFileError {shared}/copy.sqlite: expected a SQLite file that this user can open, "
      "found that SQLite cannot: unable to open database file. Check the path, and the rights to "
      "the file and its folder.")


def test_a_reader_of_an_immutable_file_sees_later_changes(tmp_path, monkeypatch):
  database = make(tmp_path / "file.sqlite")
  add(database)
  database.close()
  monkeypatch.setattr(os, "access", lambda path, mode: False)
  reader = Database(database.path, "counter", 1, read_only=True)
  versions = {reader.version()}
  for count in (2, 3):
    add(database)
    database.close()
    assert counts(reader) == {"a": count}  # in the file, without a log
    versions.add(reader.version())
  add(database)
  assert counts(reader) == {"a": 4}  # in the log
  assert len({*versions, reader.version()}) == 4


def test_a_folder_is_named(tmp_path):
  with pytest.raises(DatabaseFileError, match=f"^{tmp_path}: expected a SQLite file .* a folder"):
    make(tmp_path)
  with pytest.raises(DatabaseFileError, match="expected a file with a counter, found a folder"):
    Database(tmp_path, "counter", 1, read_only=True)


@pytest.mark.parametrize("size", [1, 5])
def test_a_short_file_that_is_no_database_is_named_and_stays(tmp_path, size):
  path = tmp_path / "text"
  path.write_bytes(b"n" * size)
  with pytest.raises(DatabaseFileError, match="text is not a SQLite database, or is damaged: file"):
    make(path)
  assert path.read_bytes() == b"n" * size


def test_a_truncated_file_is_named(tmp_path):
  database = make(tmp_path / "file.sqlite")
  with database.transaction() as connection:
    connection.executemany("INSERT INTO counts VALUES (?, 1)",
                           [(f"name {i}" * 20,) for i in range(500)])
  database.close()  # moves the log into the file
  whole = database.path.read_bytes()
  database.check()
  database.close()
  database.path.write_bytes(whole[:len(whole) // 2])
  with pytest.raises(DatabaseFileError, match="file.sqlite is not a SQLite database, or is dam"):
    make(database.path).check()


def test_a_full_disk_changes_nothing_and_the_next_transaction_works(tmp_path):
  database = make(tmp_path / "file.sqlite")
  add(database)
  pages = database.rows("PRAGMA page_count")[0][0]
  database.rows(f"PRAGMA max_page_count = {pages + 4}")
  with (pytest.raises(disk.DiskFullError, match=f"^{tmp_path}: no space left, "),
        database.transaction() as connection):
    for i in range(10_000):
      connection.execute("INSERT INTO counts VALUES (?, 1)", (f"{i}" * 100,))
  assert counts(database) == {"a": 1}
  database.rows(f"PRAGMA max_page_count = {pages + 4000}")
  add(database)
  assert counts(database) == {"a": 2}


def test_a_commit_that_fails_is_rolled_back(tmp_path):
  """A deferred constraint fails only at the commit."""
  database = make(tmp_path / "file.sqlite")
  with database.transaction() as connection:
    connection.execute("CREATE TABLE refers (name TEXT REFERENCES counts (name) "
                       "DEFERRABLE INITIALLY DEFERRED)")
  database.rows("PRAGMA foreign_keys = ON")
  with pytest.raises(sqlite3.IntegrityError), database.transaction() as connection:
    connection.execute("INSERT INTO refers VALUES ('nobody')")
  add(database)
  assert counts(database) == {"a": 1} and database.rows("SELECT * FROM refers") == []
