"""Programs that a folder keeps as StableHLO: later processes compile them without tracing.

Tracing and lowering takes most of a server's start, once XLA's executables are in JAX's compilation
cache. A kept program depends on no machine. Its file is named by a digest of the sources that make
it, and of the versions of JAX and numpy.
"""

import functools
import hashlib
import logging
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import export

import starleague
from starleague.agent import types
from starleague.common import files
from starleague.environments import base
from starleague.environments.skirmish.games import exact
from starleague.environments.skirmish.rules.state import state

_ROOMS = ("agent", "common", "environments")  # whose sources decide what a program does
_SOURCES = ("*.py", "*.csv")  # code, and tables of units, upgrades and functions
_DIGITS = 16  # of the digest of the sources
_HASH_BYTES = 32  # SHA-256 of the rest, at the start of a file
_folder: list[pathlib.Path] = []  # that keeps programs; empty: none is kept


def keep_in(folder: pathlib.Path | None) -> None:
  """Sets the folder of kept programs; None: none is kept. Only the user may write to it."""
  _folder[:] = [] if folder is None else [folder]


@functools.cache
def register(kind: type[NamedTuple]) -> None:
  """Lets programs take and return a NamedTuple."""
  export.register_namedtuple_serialization(kind, serialized_name=f"starleague.{kind.__name__}")


for _kind in (types.Statistics, base.MatchUp, state.Orders, state.Commands, state.Score,
              state.Memory, state.State):
  register(_kind)


class Exported:
  """A function of arrays that is loaded, or traced and kept, at its first call."""

  def __init__(self, name: str, make: Callable[[], Callable[..., Any]]):
    """Makes a program.

    Args:
      name: of its file, with all settings of `make`.
      make: returns the function, of which every call has arguments of the same shapes.
    """
    self._name, self._make = name, make
    self._program: Callable[..., Any] | None = None

  def __call__(self, *arguments: Any) -> Any:
    """Runs the program."""
    if self._program is None:
      self._program = self._load(arguments)
    return self._program(*arguments)

  def _load(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
    if not _folder:
      return exact.compiled(self._make())
    path = _folder[0] / f"{self._name}-{sources_digest()}.stablehlo"
    try:
      return exact.compiled(export.deserialize(_checked(path.read_bytes())).call)
    except FileNotFoundError:
      pass
    except Exception as error:  # a damaged file: it is replaced
      logging.warning("program=%s is made again: %s: %s", self._name, type(error).__name__, error)
    made = exact.compiled(self._make())
    try:
      found = export.export(made, platforms=["cpu"])(*arguments)
      with files.replacing(path, "wb") as file:
        data = found.serialize()
        file.write(hashlib.sha256(data).digest() + data)
    except (ImportError, OSError) as error:  # without flatbuffers, or without space
      logging.warning("program=%s is not kept: %s", self._name, error)
      return made
    # Of this program only: the names of others may begin with its own.
    for old in path.parent.glob(f"{self._name}-{'?' * _DIGITS}.stablehlo"):
      if old != path:
        old.unlink(missing_ok=True)
    # Later processes call the kept program: with the same call here they find its executable.
    return exact.compiled(found.call)


def _checked(data: bytes) -> bytearray:
  """Returns a file's program.

  Raises:
    ValueError: the bytes are not those that were written.
  """
  if hashlib.sha256(data[_HASH_BYTES:]).digest() != data[:_HASH_BYTES]:
    raise ValueError("wrong checksum")
  return bytearray(data[_HASH_BYTES:])


@functools.cache
def sources_digest() -> str:
  """Returns 16 hex digits that identify the sources of programs, JAX and numpy."""
  digest = hashlib.sha256(f"{jax.__version__} {jax.lib.__version__} {np.__version__}".encode())
  root = pathlib.Path(starleague.__file__).resolve().parent
  for room in _ROOMS:
    folder = (root / room).resolve()
    for path in sorted(path for pattern in _SOURCES for path in folder.rglob(pattern)):
      digest.update(f"{room} {path.relative_to(folder)}\n".encode())
      digest.update(path.read_bytes())
  return digest.hexdigest()[:_DIGITS]
