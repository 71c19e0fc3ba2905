"""Writing a file whole or not at all: for whatever actors and launch files leave on disk."""

import contextlib
import os
import pathlib
import tempfile
from collections.abc import Iterator
from typing import IO, Any


@contextlib.contextmanager
def replacing(path: str | os.PathLike, mode: str = "w") -> Iterator[IO[Any]]:
  """A file to write, which takes the place of `path` when the block ends without an exception.

  Args:
    path: the file; its folder is made if need be. What stood there stays until the end, and for
      good where the block raises.
    mode: "w" for UTF-8 text, "wb" for bytes.
  """
  path = pathlib.Path(path)
  path.parent.mkdir(parents=True, exist_ok=True)
  descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
  try:
    with os.fdopen(descriptor, mode, encoding=None if "b" in mode else "utf-8") as file:
      yield file
      file.flush()
      os.fsync(file.fileno())
    os.chmod(temporary, 0o644)  # made for its owner's eyes only
    os.replace(temporary, path)
  except BaseException:
    with contextlib.suppress(FileNotFoundError):
      os.unlink(temporary)
    raise
