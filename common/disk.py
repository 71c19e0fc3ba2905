"""A full disk: errors of writing that name the directory and the space."""

import contextlib
import errno
import os
import pathlib
import shutil
from collections.abc import Iterator

from starleague.common.errors import FinalError

_CODES = (errno.ENOSPC, errno.EDQUOT)
# Of libraries that keep the text of the system's error only, and of SQLite.
_TEXTS = (*map(os.strerror, _CODES), "database or disk is full")
_LEAST = 2 ** 20  # bytes: a disk with fewer is full


class DiskFullError(FinalError, OSError):
  """There is no space left to write; names the directory and the free space."""


def is_full(error: BaseException) -> bool:
  """Returns whether an error is that of a full disk or an exhausted quota."""
  return (isinstance(error, DiskFullError) or getattr(error, "errno", None) in _CODES
          or any(text in str(error) for text in _TEXTS))


def full(directory: str | os.PathLike[str], what: str = "", kept: str = "") -> DiskFullError:
  """Returns the error of a full disk.

  Args:
    directory: where there is no space.
    what: could not be written, such as " to save the checkpoint of step 3".
    kept: what is kept, such as "; step 2 is kept".
  """
  existing = pathlib.Path(directory).absolute()
  while not existing.exists():
    existing = existing.parent
  free = shutil.disk_usage(existing).free / 1e6
  return DiskFullError(f"{directory}: no space left{what}, {free:.0f} MB are free{kept}: free some "
                       "space, then start the same command again, which resumes")


def has_space(directory: str | os.PathLike[str]) -> bool:
  """Returns whether a log can still be written in a directory."""
  return shutil.disk_usage(directory).free > _LEAST


@contextlib.contextmanager
def named(directory: str | os.PathLike[str]) -> Iterator[None]:
  """Turns errors of a full disk during a block into a DiskFullError that names a directory."""
  try:
    yield
  except DiskFullError:
    raise
  except Exception as error:
    if not is_full(error):
      raise
    raise full(directory) from error
