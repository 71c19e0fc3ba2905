"""Copies of a run at another place, such as a bucket: paths are those of etils (gs://BUCKET/NAME).

Checkpoints, snapshots and the parts of datasets never change and appear whole; manifests list them.
A manifest is copied after the files that it lists, so that a copy is complete as well, or has none.
A run's config is copied last of all: without it there is no run. A folder of copies has a mark that
names the run, so that no other folder is overwritten.
"""

import contextlib
import os
import pathlib
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from typing import Any

from starleague.common import disk, files, run_files
from starleague.common.errors import UserError
from starleague.data.checkpoints import checkpoint_manifest
from starleague.data.games import files as game_files
from starleague.data.replays import tables
from starleague.data.reverb import recordings

_MANIFESTS = frozenset((
  checkpoint_manifest.MANIFEST, game_files.MANIFEST, recordings.MANIFEST, tables.MANIFEST))
_DATABASE, _BESIDE_DATABASE = ".sqlite", ("-wal", "-shm", ".lock")
_MARK = ".mirror"  # in a folder of copies: the run's directory
_CHECKPOINT = re.compile(r"\d{12}")


class MirrorError(UserError, OSError):
  """A place cannot be read or written, or holds something else."""


def place(path: str) -> Any:
  """Returns a path of etils.

  Raises:
    MirrorError: it is empty, or this machine has no access to such places.
  """
  from etils import epath
  if not path:
    raise MirrorError("expected gs://BUCKET/NAME or a folder, found ''.")
  try:
    found = epath.Path(path)
    found.exists()
  except Exception as error:  # of TensorFlow or fsspec, which know the buckets
    raise MirrorError(f"{path} cannot be reached: {type(error).__name__}: {error}. A bucket needs "
                      "a service account, and TensorFlow or gcsfs.") from error
  return found


def claim(source: Any, target: Any) -> None:
  """Marks a folder as the place of a run's copies.

  Args:
    source: folder of the run, or of its copies in a restoration; a path of etils.
    target: folder of the copies, likewise.

  Raises:
    MirrorError: the target is the source, lies in it or contains it, or it has something else than
      copies of this run. Nothing is written then.
  """
  run, folder = _absolute(source), _absolute(target)
  if run == folder or run in folder.parents or folder in run.parents:
    raise MirrorError(f"{target}: expected a folder that neither contains {source} nor lies in "
                      f"it, found {folder}; choose another place.")
  _check_owner(run, folder)
  _make_folder(folder)
  if _remote(folder):
    (folder / _MARK).write_bytes(_owner(run))
    return
  with files.replacing(folder / _MARK, "wb") as file:
    file.write(_owner(run))


def _remote(path: Any) -> bool:
  return "://" in str(path)


def _absolute(path: Any) -> Any:
  """Returns a path of etils without links; a place in object storage has none."""
  return path if _remote(path) else place(str(pathlib.Path(str(path)).resolve()))


def _owner(run: Any) -> bytes:
  """Returns the content of a run's mark."""
  return os.fsencode(str(run))


def _check_owner(run: Any, folder: Any) -> None:
  """Raises MirrorError unless a folder is free, or has copies of a run.

  Copies of earlier versions have no mark: their config is that of the run.
  """
  if (folder / run_files.LOCK).exists():
    raise MirrorError(f"{folder} holds a run that has trained there: expected copies of {run}, or "
                      "an empty folder; choose another place.")
  if not folder.is_dir() or all(path.name.startswith(".") for path in folder.iterdir()):
    return  # names with a dot are never copied
  mark = folder / _MARK
  if mark.exists() and mark.read_bytes() == _owner(run):
    return
  configs = [path / run_files.CONFIG for path in (run, folder)]
  if not all(path.exists() for path in configs) or (
      configs[0].read_bytes() != configs[1].read_bytes()):
    raise MirrorError(f"{folder} holds something else: expected copies of {run}, or an empty "
                      "folder; choose another place.")


def restore(source: Any, run_dir: pathlib.Path) -> int:
  """Copies a mirrored run to a new directory; returns the number of files.

  Without its config, copied last, the directory has no run: a further call copies what is missing.
  Until then, a mark names the source. Nothing in the directory is removed.

  Raises:
    MirrorError: the directory has a run or something else, or the source has no run.
  """
  if (run_dir / run_files.CONFIG).exists():
    raise MirrorError(f"{run_dir} holds a run: restore to a directory that does not exist.")
  if not (source / run_files.CONFIG).exists():
    raise MirrorError(f"{source} holds no run: expected {run_files.CONFIG}.")
  target = place(str(run_dir))
  claim(source, target)
  copied = _copy_new(source, target)
  (target / _MARK).unlink()
  return copied


def copy(source: Any, target: Any) -> int:
  """Copies what is new in a run, and removes copies of checkpoints that are gone.

  Args:
    source: folder of the run, a path of etils.
    target: folder of the copy, likewise.

  Returns:
    The number of files that were copied.

  Raises:
    MirrorError: a folder of the target cannot be made, or a database cannot be read.
    DiskFullError: there is no space left; names the folder.
  """
  copied = _copy_new(source, target)
  _prune(source, target)
  return copied


def _copy_new(source: Any, target: Any) -> int:
  return sum(_copy_file(path, target / path.relative_to(source)) for path in _files(source))


def _prune(source: Any, target: Any) -> None:
  """Removes copies of checkpoints that a folder of the source no longer has."""
  for copied in target.iterdir() if target.exists() else ():
    path = source / copied.name
    if not copied.is_dir():
      continue
    if _CHECKPOINT.fullmatch(copied.name):
      if not path.exists():
        copied.rmtree()
    elif path.is_dir():  # a folder that the source lacks is not the run's
      _prune(path, copied)


def _files(folder: Any) -> Iterator[Any]:
  """Yields the files below a folder that are complete, in the order of `_order`.

  A manifest that is replaced meanwhile is left out: it may list a file that is not among them.
  """
  manifests = {path: _state(path) for path in folder.iterdir() if path.name in _MANIFESTS}
  for path in sorted(folder.iterdir(), key=_order):
    if path.name.startswith(".") or path.name.endswith(_BESIDE_DATABASE):
      continue
    if path.is_dir():
      yield from _files(path)
    elif path.name not in _MANIFESTS or manifests.get(path) == _state(path):
      yield path


def _state(path: Any) -> tuple[int, int] | None:
  """Returns the length and the time of a file, which a replaced one does not have; None: gone."""
  try:
    found = path.stat()
  except FileNotFoundError:  # of a checkpoint that was removed meanwhile
    return None
  return found.length, found.mtime


def _order(path: Any) -> tuple[bool, bool, str]:
  """Returns the sort key of a folder's entries: manifests, then the config, come last."""
  return path.name == run_files.CONFIG, path.name in _MANIFESTS, path.name


def _copy_file(path: Any, target: Any) -> int:
  """Copies a file if its copy is missing, partial or older; returns 1 if it did."""
  is_database = path.name.endswith(_DATABASE) and not str(path).startswith("gs://")
  try:
    if target.exists() and not (_newer(path, target) if is_database else _changed(path, target)):
      return 0
  except FileNotFoundError:  # of a checkpoint that was removed meanwhile
    return 0
  _make_folder(target.parent)
  with contextlib.suppress(FileNotFoundError):  # likewise
    if is_database:
      _copy_database(path, target)
    else:
      with disk.named(target.parent):  # the system's error names the source
        path.copy(target, overwrite=True)
    return 1
  return 0


def _make_folder(folder: Any) -> None:
  try:
    folder.mkdir(parents=True, exist_ok=True)
  except OSError as error:
    raise MirrorError(f"{folder} cannot be made: {error.strerror or error}; choose another "
                      "place.") from error


def _changed(path: Any, target: Any) -> bool:
  one, other = path.stat(), target.stat()
  return one.length != other.length or one.mtime > other.mtime


def _newer(path: Any, target: Any) -> bool:
  """Returns whether a SQLite file, or its log, is newer than its copy."""
  parts = [path, *(each for each in [path.with_name(f"{path.name}-wal")] if each.exists())]
  return max(part.stat().mtime for part in parts) >= target.stat().mtime  # whole seconds


def _copy_database(path: Any, target: Any) -> None:
  """Copies a SQLite file that may be in use.

  Raises:
    MirrorError: it cannot be read.
    DiskFullError: there is no space left.
  """
  with tempfile.TemporaryDirectory() as folder:
    name = pathlib.Path(folder) / path.name
    uri = f"{path.absolute().as_uri()}?mode=ro"
    try:
      with (disk.named(folder), contextlib.closing(sqlite3.connect(uri, uri=True)) as source,
            contextlib.closing(sqlite3.connect(name)) as backup):
        source.backup(backup)
    except sqlite3.Error as error:
      raise MirrorError(f"{path} cannot be copied: {error}. Expected a SQLite file, in a folder "
                        "that can be written: SQLite makes files beside it.") from error
    # A copy that a kill cuts short would be newer than the file, and stay.
    partial = target.with_name(f".{target.name}-partial")
    with disk.named(target.parent):
      partial.write_bytes(name.read_bytes())
      partial.replace(target)
