"""Files of a run that its coordinator has and other nodes need: copied in pieces, installed whole.

A copy of a file or folder grows in a partial one beside it, whose name has the digest of the files
that it shall hold. After a restart of either side it continues where it was. It gets its name when
all files have their SHA-256.
"""

import functools
import glob
import hashlib
import json
import os
import pathlib
import re
import shutil
import threading
from collections.abc import Sequence
from typing import NamedTuple

from starleague.common import files, manifests, run_files
from starleague.league.players import LeagueError

PIECE_BYTES = 4 * 2**20
# Names that a node may read, and those that it may write: paths in the run's directory.
_ENTRY = r"[^/.][^/]*"
_READ = re.compile("|".join((
  run_files.CONFIG.replace(".", r"\."), run_files.LIBRARY.replace(".", r"\."), run_files.INITIAL,
  f"{run_files.PLAYERS}/{_ENTRY}")))
_WRITTEN = re.compile("|".join((
  run_files.INITIAL, f"{run_files.PLAYERS}/{_ENTRY}", f"{run_files.REPLAYS}/{_ENTRY}")))


class FileEntry(NamedTuple):
  """A file that is shared."""

  path: str  # within its folder; empty if the file itself is shared
  size: int  # bytes
  sha256: str  # hexadecimal


def listing(path: pathlib.Path) -> list[FileEntry] | None:
  """Returns the files of a folder, or the file itself; None if there is nothing."""
  if path.is_dir():
    found = sorted(each for each in path.rglob("*") if each.is_file())
    return [_entry(each, each.relative_to(path).as_posix()) for each in found]
  return [_entry(path, "")] if path.is_file() else None


def _entry(file: pathlib.Path, name: str) -> FileEntry:
  state = file.stat()
  return FileEntry(name, state.st_size, _digest(file, state.st_size, state.st_mtime_ns))


@functools.lru_cache(4096)
def _digest(file: pathlib.Path, size: int, modified: int) -> str:
  del size, modified  # of the file, so that another one is read again
  return manifests.file_digest(file)


def digest(entries: Sequence[FileEntry]) -> str:
  """Returns the SHA-256 of a listing, in hexadecimal digits."""
  return hashlib.sha256(json.dumps([list(each) for each in entries]).encode()).hexdigest()


def read_piece(path: pathlib.Path, entry: str, offset: int) -> bytes:
  """Returns at most `PIECE_BYTES` of a shared file from an offset; empty behind its end.

  Args:
    path: the shared file or folder.
    entry: path of the file within the folder.
    offset: in bytes.

  Raises:
    LeagueError: there is no such file, or it is outside the folder.
  """
  file = _inside(path, entry)
  try:
    with open(file, "rb") as source:
      source.seek(offset)
      return source.read(PIECE_BYTES)
  except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
    raise LeagueError(f"{file}: expected a file of the run, found none.") from error


def _inside(path: pathlib.Path, entry: str) -> pathlib.Path:
  """Returns the path of a file of a folder; refuses paths that lead out of it."""
  parts = pathlib.PurePosixPath(entry).parts
  if entry.startswith("/") or ".." in parts or "\0" in entry:
    raise LeagueError(f"{path}: expected the path of a file within it, found {entry!r}.")
  return path / entry


class Incoming:
  """A partial copy of a shared file or folder, on disk."""

  def __init__(self, path: pathlib.Path, key: str):
    """Names the copy; creates nothing.

    Args:
      path: where the copy shall be.
      key: the `digest` of its files.
    """
    self.path = path
    self._partial = path.with_name(f"{files.PARTIAL}{path.name}-{key}")

  def sizes(self, entries: Sequence[FileEntry]) -> list[int]:
    """Returns the bytes of each file that are there, in order of the entries."""
    found = []
    for entry in entries:
      file = _inside(self._partial, entry.path)
      found.append(file.stat().st_size if file.is_file() else 0)
    return found

  def write(self, entry: str, offset: int, data: bytes) -> None:
    """Writes a piece of a file; a repeated piece changes nothing.

    Raises:
      LeagueError: bytes before it are missing.
    """
    file = _inside(self._partial, entry)
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "r+b" if file.exists() else "w+b") as target:
      size = target.seek(0, os.SEEK_END)
      if offset > size:
        raise LeagueError(f"{file} has {size} bytes: expected its next piece, found one of offset "
                          f"{offset}.")
      target.seek(offset)
      target.write(data)

  def install(self, entries: Sequence[FileEntry], replaces: bool = False) -> bool:
    """Gives a complete copy its name; returns whether it is complete.

    Files that differ from their entries are removed, to be copied again.

    Args:
      entries: of all files.
      replaces: whether what has the name already gives way; otherwise it stays, and the copy is
        dropped.
    """
    # On a directory that is mounted, a file of the coordinator may be seen late.
    if self.path.exists() and (not replaces or listing(self.path) == list(entries)):
      self._drop()
      return True
    sound = True
    for entry in entries:
      file = _inside(self._partial, entry.path)
      if not entry.size and not file.exists():
        self.write(entry.path, 0, b"")
      if not file.is_file() or file.stat().st_size < entry.size:
        sound = False
      elif manifests.file_digest(file) != entry.sha256:
        file.unlink()
        sound = False
    if sound:
      files.sync_tree(self._partial)
      if self.path.is_dir():  # a folder cannot be replaced at once
        os.rename(self.path, f"{self._partial}-replaced")
      os.replace(self._partial, self.path)
      files.sync(self.path.parent)
      self._drop()
    return sound

  def _drop(self) -> None:
    """Removes partial copies, also those of other files under the same name."""
    for left in self.path.parent.glob(f"{files.PARTIAL}{glob.escape(self.path.name)}-*"):
      if left.is_dir():
        shutil.rmtree(left, ignore_errors=True)
      else:
        left.unlink(missing_ok=True)


class SharedFiles:
  """The files of a run at its coordinator. Threads share it."""

  def __init__(self, run_dir: pathlib.Path):
    """Takes the run's directory."""
    self._run_dir, self._lock = run_dir, threading.Lock()

  def list_files(self, name: str) -> list[FileEntry] | None:
    """Returns the files of a shared folder, or the file itself; None if the run has none.

    Args:
      name: path in the run's directory.

    Raises:
      LeagueError: the run does not share it.
    """
    return listing(self._path(name, _READ))

  def read_file(self, name: str, path: str, offset: int) -> bytes:
    """Returns a piece of a shared file; see `read_piece`."""
    return read_piece(self._path(name, _READ), path, offset)

  def offer_files(self, name: str, files: list[FileEntry]) -> list[int] | None:
    """Returns how many bytes of each file are here; None: all are, the copy has its name.

    What has the name already is kept, whatever is offered.

    Raises:
      LeagueError: the run does not take it.
    """
    path = self._path(name, _WRITTEN)
    incoming = Incoming(path, digest(files))
    with self._lock:
      return None if incoming.install(files) else incoming.sizes(files)

  def write_file(self, name: str, key: str, path: str, offset: int, data: bytes) -> None:
    """Writes a piece of an offered file; see `Incoming.write`. `key` is the offer's `digest`."""
    incoming = Incoming(self._path(name, _WRITTEN), key)
    with self._lock:
      if not incoming.path.exists():
        incoming.write(path, offset, data)

  def _path(self, name: str, pattern: re.Pattern[str]) -> pathlib.Path:
    if not pattern.fullmatch(name) or not name.isprintable():
      raise LeagueError(f"File {name!r} is not shared by the run, expected {pattern.pattern}.")
    return self._run_dir / name
