"""Atomic writes: a file or folder appears under its name complete and on disk, or not at all."""

import contextlib
import errno
import fcntl
import os
import pathlib
import shutil
import stat
import uuid
from collections.abc import Iterator
from typing import IO, Any

from starleague.common import disk

PARTIAL = ".partial-"  # prefix of a folder in progress, also of one that a killed process left


@contextlib.contextmanager
def replacing(path: str | os.PathLike, mode: str = "w") -> Iterator[IO[Any]]:
  """A file to write, which replaces `path` when the block ends without an exception.

  Args:
    path: the file; its folder is created if missing. An existing file stays until the block ends,
      and stays for good if the block raises. The new file takes its mode. A symbolic link stays,
      and its target is replaced.
    mode: "w" for UTF-8 text, "wb" for bytes.

  Raises:
    DiskFullError: there is no space left; names the folder.
    OSError: the file cannot be written, or is a folder, pipe or device; names the file. Raised
      before the block runs for a wrong kind of file.
  """
  path = pathlib.Path(path)
  permissions = _permissions(path)
  # A rename would replace the link itself.
  target = pathlib.Path(os.path.realpath(path)) if path.is_symlink() else path
  temporary = target.with_name(f".{target.name}-{uuid.uuid4().hex[:12]}")
  with disk.named(target.parent):
    target.parent.mkdir(parents=True, exist_ok=True)
    with _naming(path):
      # The system applies the umask to a new file. A replacement of a private file must not be
      # readable before it has the mode of that file.
      descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL,
                           0o666 if permissions is None else 0o600)
  try:
    encoding = None if "b" in mode else "utf-8"
    with disk.named(target.parent), os.fdopen(descriptor, mode, encoding=encoding) as file:
      if permissions is not None:
        os.fchmod(descriptor, permissions)
      yield file
      file.flush()
      os.fsync(file.fileno())
    with _naming(path):
      os.replace(temporary, target)
      sync(target.parent)
  except BaseException:
    with contextlib.suppress(FileNotFoundError):
      os.unlink(temporary)
    raise


def _permissions(path: pathlib.Path) -> int | None:
  """Returns the permission bits of an existing regular file, or None where there is no file."""
  try:
    found = os.stat(path).st_mode
  except (FileNotFoundError, NotADirectoryError):
    return None
  if stat.S_ISDIR(found):
    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
  if not stat.S_ISREG(found):
    raise OSError(errno.EINVAL, f"expected a regular file, found a {_kind(found)}", str(path))
  return stat.S_IMODE(found) & 0o777


def _kind(mode: int) -> str:
  """Returns the kind of a file that is neither regular nor a folder."""
  return "pipe" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"


@contextlib.contextmanager
def _naming(path: pathlib.Path) -> Iterator[None]:
  """Raises the system's errors about a temporary file as those of the file that it becomes."""
  try:
    yield
  except OSError as error:
    raise OSError(error.errno, error.strerror, str(path)) from error


@contextlib.contextmanager
def locked(path: str | os.PathLike, refusal: Exception | None = None) -> Iterator[None]:
  """A lock between processes, held during the block; the file stays. Released also by a crash.

  Args:
    path: the lock's file.
    refusal: raised if another process holds it; None: waits for that process.
  """
  descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
  try:
    try:
      fcntl.flock(descriptor, fcntl.LOCK_EX | (fcntl.LOCK_NB if refusal else 0))
    except BlockingIOError:
      assert refusal is not None
      raise refusal from None
    yield
  finally:
    os.close(descriptor)


@contextlib.contextmanager
def replacing_folder(path: str | os.PathLike,
                     aside: str | os.PathLike | None = None) -> Iterator[pathlib.Path]:
  """A folder to fill, renamed to `path` when the block ends without an exception.

  The folder lies beside `path` under a name that begins with `PARTIAL`; a process that is killed
  leaves it there. All its files are on disk before the rename.

  Args:
    path: the folder; its parent is created if missing.
    aside: the name that an existing folder at `path` gets just before the rename; the caller
      removes it. None: `path` must not exist.

  Raises:
    FileExistsError: `path` exists and `aside` is None; raised before the block runs, and again at
      its end.
    DiskFullError: there is no space left; the partial folder is removed.
  """
  path = pathlib.Path(path).absolute()
  _require_new(path, aside)
  partial = path.with_name(f"{PARTIAL}{path.name}-{uuid.uuid4().hex[:12]}")
  try:
    with disk.named(path.parent):
      partial.mkdir(parents=True)
      yield partial
      sync_tree(partial)
      _require_new(path, aside)
      if aside is not None and path.exists():
        os.rename(path, aside)
      os.rename(partial, path)
      sync(path.parent)
  except BaseException:
    shutil.rmtree(partial, ignore_errors=True)
    raise


def _require_new(path: pathlib.Path, aside: str | os.PathLike | None) -> None:
  if aside is None and path.exists():
    raise FileExistsError(f"{path} exists and is never overwritten: choose another name.")


def sync_tree(folder: str | os.PathLike) -> None:
  """Waits until all files of a folder, and their names, are on disk."""
  for path in (*pathlib.Path(folder).rglob("*"), pathlib.Path(folder)):
    sync(path)


def sync(path: str | os.PathLike) -> None:
  """Waits until a file, or the names in a folder, are on disk."""
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)
