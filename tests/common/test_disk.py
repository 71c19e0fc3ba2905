"""A full disk: whatever fails to write names the directory and the space."""

import errno
import sqlite3

import pytest

from starleague.common import disk, files, results
from starleague.common.errors import FinalError

FULL = OSError(errno.ENOSPC, "No space left on device")


def message(folder, what="", kept=""):
  return (rf"^{folder}: no space left{what}, \d+ MB are free{kept}: free some space, then start "
          "the same command again, which resumes$")


@pytest.mark.parametrize(("error", "expected"), [
  (FULL, True), (OSError(errno.EDQUOT, "Disk quota exceeded"), True),
  (ValueError("RESOURCE_EXHAUSTED: Error writing: No space left on device"), True),
  (sqlite3.OperationalError("database or disk is full"), True),
  (disk.DiskFullError("x"), True), (OSError(errno.EACCES, "Permission denied"), False),
  (sqlite3.OperationalError("database is locked"), False), (KeyError("space"), False)])
def test_errors_of_a_full_disk(tmp_path, error, expected):
  assert disk.is_full(error) is expected
  with pytest.raises(disk.DiskFullError if expected else type(error)) as raised:
    with disk.named(tmp_path):
      raise error
  if expected and not isinstance(error, disk.DiskFullError):
    assert raised.match(message(tmp_path)) and raised.value.__cause__ is error
  else:
    assert raised.value is error


def test_the_error_is_final_and_one_of_the_system(tmp_path):
  error = disk.full(tmp_path / "not" / "there", " to save a", "; b is kept")
  assert isinstance(error, FinalError) and isinstance(error, OSError)
  with pytest.raises(OSError, match=message(tmp_path / "not/there", " to save a", "; b is kept")):
    raise error


def test_has_space(tmp_path, monkeypatch):
  assert disk.has_space(tmp_path)
  monkeypatch.setattr(disk, "_LEAST", 2 ** 62)
  assert not disk.has_space(tmp_path)


def test_writers_name_the_directory(tmp_path, monkeypatch):
  def full(*arguments):
    raise FULL

  path = tmp_path / "results.csv"
  results.append(path, [results.Row(1.0, 1, "loss/a", 0.5)])
  with monkeypatch.context() as patched:
    patched.setattr(results.os, "write", full)
    with pytest.raises(disk.DiskFullError, match=message(tmp_path)):
      results.append(path, [results.Row(2.0, 2, "loss/a", 0.5)])
  assert [row.update for row in results.read(path)] == [1]
  with monkeypatch.context() as patched:
    patched.setattr(files.os, "fsync", full)
    with pytest.raises(disk.DiskFullError, match=message(tmp_path)):
      with files.replacing(path) as file:
        file.write("new")
    with pytest.raises(disk.DiskFullError, match=message(tmp_path)):
      with files.replacing_folder(tmp_path / "folder") as folder:
        (folder / "a").write_text("new")
  assert [file.name for file in tmp_path.iterdir()] == ["results.csv"]
  assert len(results.read(path)) == 1

