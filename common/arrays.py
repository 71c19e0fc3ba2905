"""Arrays from files: a checked reader of .npz files.

Names, dtypes and shapes of all arrays are checked in the headers before any data are read: a file
cannot make the reader allocate more than its specs allow. Nothing is unpickled.
"""

import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from starleague.common.errors import UserError

TEXT = "text"  # the dtype of a Spec whose array holds text
_MOST_CHARACTERS = 1024  # of a text
_MOST_HEADER = 10_000  # bytes
_SURROGATES = 0xD800, 0xDFFF  # code points of no character
_LAST_CHARACTER = 0x10FFFF
_LISTED = 160  # characters of names in a message, about
_NAMES = {np.dtype(code).str: np.dtype(code).name for code in "?bBhHiIlLefdFD"}
_HEADER = re.compile(r"\{'descr': (?P<descr>.{1,200}), 'fortran_order': (?P<fortran>True|False), "
                     r"'shape': \((?P<shape>[0-9, -]{0,200})\),? *\}\s*")
_ENTRY = b"PK\3\4"  # with which an entry of a zip file begins
# What zipfile raises for damaged files.
_UNREADABLE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError,
               ValueError, KeyError, IndexError, AttributeError, MemoryError, OverflowError)


class ArraysError(UserError, ValueError):
  """Arrays that are not the expected ones: names the file, the array, the expected and found."""


class Spec(NamedTuple):
  """What a file's array must be. Floats must also be finite, and text be characters."""

  dtype: npt.DTypeLike  # TEXT for text of any width
  shape: tuple[int | str, ...]  # a name stands for a length that all arrays with the name share
  low: float | None = None  # least value
  high: float | None = None  # greatest value


class _Member(NamedTuple):
  """An array's entry in the zip file, by its header."""

  info: zipfile.ZipInfo
  descr: str  # dtype, as in the header
  shape: tuple[int, ...]
  order: Any  # "C" or "F"
  start: int  # of the data, after the header


def read(path: str | os.PathLike[str], specs: Mapping[str, Spec],
         most: Mapping[str, int] | None = None, *, others: bool = False) -> dict[str, np.ndarray]:
  """Reads arrays of an .npz file, as `numpy.savez` writes them.

  Args:
    path: the file.
    specs: of the arrays, by name.
    most: the greatest length of each axis that has a name.
    others: whether the file may hold other arrays, which are not read.

  Raises:
    OSError: the file is missing or may not be read.
    ArraysError: the file is damaged, or its arrays are not those of `specs`.
  """
  with _opened(path) as file:
    try:
      archive = zipfile.ZipFile(file)
    except _UNREADABLE as error:
      raise ArraysError(_not_zip(path, file)) from error
    with archive:
      infos = _infos(path, archive, specs, others)
      # Before any is read: later versions of zipfile blame the entry in front of a wrong place.
      for name in specs:
        _check_place(path, file, name, infos[name])
      members = {name: _member(path, archive, name, infos[name]) for name in specs}
      _check_headers(path, members, specs, most or {})
      found = {name: _data(path, archive, name, member) for name, member in members.items()}
  for name, array in found.items():
    check_values(path, name, array, specs[name])
  return found


def check_values(path: str | os.PathLike[str], name: str, array: np.ndarray, spec: Spec) -> None:
  """Checks that values are finite, characters or truth values, and in the spec's range.

  Args:
    path: the file or folder of the array, for the message.
    name: of the array.
    array: of the spec's dtype and shape.
    spec: of the array.

  Raises:
    ArraysError: names the first value that is not.
  """
  wrong, expected = np.zeros(array.shape, bool), ""
  if array.dtype.kind == "U":
    points = np.ascontiguousarray(array).reshape(*array.shape, 1).view(np.uint32)
    wrong = ((points > _LAST_CHARACTER) | ((points >= _SURROGATES[0]) & (
      points <= _SURROGATES[1]))).any(-1)
    expected = "text of Unicode characters"
  elif array.dtype.kind == "b":
    wrong, expected = array.view(np.uint8) > 1, "bytes 0 or 1"
  elif array.dtype.kind in "fV":  # V: bfloat16 and its like
    numbers = array if array.dtype.kind == "f" else array.astype(np.float32)
    wrong, expected = ~np.isfinite(numbers), "finite numbers"
  if not wrong.any() and (spec.low is not None or spec.high is not None):
    low = -math.inf if spec.low is None else spec.low
    high = math.inf if spec.high is None else spec.high
    wrong, expected = (array < low) | (array > high), f"{low} to {high}"
  if wrong.any():
    place = tuple(np.argwhere(wrong)[0].tolist())
    value = "others" if array.dtype.kind == "U" else (
      array.view(np.uint8)[place] if array.dtype.kind == "b" else array[place])
    where = f"{name}{list(place)}" if place else name
    raise ArraysError(f"{path}: {where}: expected {expected}, found {value}")


def describe(dtype: npt.DTypeLike, shape: tuple[int | str, ...]) -> str:
  """Returns a dtype and a shape as `uint8[5, 256]`."""
  name = TEXT if dtype == TEXT else np.dtype(dtype).name
  return f"{name}[{', '.join(map(str, shape))}]"


def _opened(path: str | os.PathLike[str]) -> IO[bytes]:
  try:
    return open(path, "rb")
  except IsADirectoryError as error:
    raise ArraysError(f"{path}: expected an .npz file, found a folder") from error


def _not_zip(path: str | os.PathLike[str], file: IO[bytes]) -> str:
  """Returns the message about a file without a readable zip directory."""
  size = file.seek(0, os.SEEK_END)
  file.seek(0)
  return (f"{path}: expected an .npz file, found {size} bytes that begin with {file.read(4)!r} and "
          "have no sound zip directory at their end: truncated, damaged, or another kind of file")


def _infos(path: str | os.PathLike[str], archive: zipfile.ZipFile, specs: Mapping[str, Spec],
           others: bool) -> dict[str, zipfile.ZipInfo]:
  """Returns the entries of the arrays, by name; checks the names."""
  infos: dict[str, zipfile.ZipInfo] = {}
  for info in archive.infolist():
    name = info.filename.removesuffix(".npy")
    if name in infos:
      raise ArraysError(f"{path}: {_short(name)}: expected one array of this name, found more")
    infos[name] = info
  for name in specs:
    if name not in infos:
      raise ArraysError(
        f"{path}: {name}: expected an array of this name, found {_listed(infos) or 'no arrays'}")
  extra = [name for name in infos if name not in specs]
  if extra and not others:
    raise ArraysError(f"{path}: {_short(extra[0])}: expected no array of this name, only "
                      f"{_listed(specs)}, found {len(extra)} more")
  return infos


def _check_place(path: str | os.PathLike[str], file: IO[bytes], name: str,
                 info: zipfile.ZipInfo) -> None:
  """Checks that an entry begins where the zip directory says."""
  try:
    file.seek(info.header_offset)
    if file.read(len(_ENTRY)) != _ENTRY:
      raise ValueError
  except _UNREADABLE as error:
    raise ArraysError(_damaged(path, name)) from error


def _member(path: str | os.PathLike[str], archive: zipfile.ZipFile, name: str,
            info: zipfile.ZipInfo) -> _Member:
  """Reads the header of an array."""
  try:
    with archive.open(info) as stream:
      magic = stream.read(8)
      if len(magic) < 8 or magic[:6] != b"\x93NUMPY" or magic[6] not in (1, 2, 3):
        raise ValueError
      width = 2 if magic[6] == 1 else 4
      size = int.from_bytes(stream.read(width), "little")
      header = _HEADER.fullmatch(stream.read(min(size, _MOST_HEADER)).decode())
      if header is None:
        raise ValueError
      shape = tuple(int(length) for length in header["shape"].split(",") if length.strip())
  except _UNREADABLE as error:
    raise ArraysError(_damaged(path, name)) from error
  return _Member(info, header["descr"].strip("'"), shape,
                 "F" if header["fortran"] == "True" else "C", 8 + width + size)


def _check_headers(path: str | os.PathLike[str], members: Mapping[str, _Member],
                   specs: Mapping[str, Spec], most: Mapping[str, int]) -> None:
  """Checks dtypes, shapes and sizes of arrays by their headers."""
  lengths: dict[str, tuple[int, str]] = {}  # by the name of an axis: length, array that has it
  for name, spec in specs.items():
    member = members[name]
    found = f"{_dtype_name(member.descr)}[{', '.join(map(str, member.shape))}]"
    expected, sources = list(spec.shape), ""
    for axis, length in enumerate(spec.shape):
      if isinstance(length, str) and length in lengths:
        expected[axis], source = lengths[length]
        sources = f" as {source} has"
      elif isinstance(length, str) and len(member.shape) == len(spec.shape):
        if not 0 <= member.shape[axis] <= most[length]:
          raise ArraysError(f"{path}: {name}: expected 0 to {most[length]} along axis {axis}, "
                            f"found {found}")
        expected[axis] = member.shape[axis]
        lengths[length] = member.shape[axis], name
    width = re.fullmatch(r"<U([1-9]\d*)", member.descr)
    if spec.dtype == TEXT and width is not None and int(width[1]) > _MOST_CHARACTERS:
      raise ArraysError(f"{path}: {name}: expected text of at most {_MOST_CHARACTERS} characters, "
                        f"found {width[1]:.40}")
    is_dtype = width is not None if spec.dtype == TEXT else member.descr == np.dtype(spec.dtype).str
    if not is_dtype or list(member.shape) != expected:
      raise ArraysError(f"{path}: {name}: expected {describe(spec.dtype, tuple(expected))}"
                        f"{sources}, found {found}")
    size = member.start + math.prod(member.shape) * np.dtype(member.descr).itemsize
    if member.info.file_size != size:
      raise ArraysError(f"{path}: {name}: expected the {size} bytes of {found}, found "
                        f"{member.info.file_size}")


def _dtype_name(descr: str) -> str:
  """Returns a header's dtype in words."""
  return _NAMES.get(descr) or (TEXT if re.fullmatch(r"<U\d+", descr) else (
    "objects" if descr.strip("|<>=") == "O" else _short(descr)))


def _data(path: str | os.PathLike[str], archive: zipfile.ZipFile, name: str,
          member: _Member) -> np.ndarray:
  """Reads an array whose header is as expected, and its checksum."""
  size = member.info.file_size
  try:
    with archive.open(member.info) as stream:
      data = stream.read(size)
      if len(data) != size or stream.read(1):  # the end compares the checksum
        raise EOFError
  except _UNREADABLE as error:
    raise ArraysError(_damaged(path, name)) from error
  array = np.frombuffer(data, np.dtype(member.descr), offset=member.start)
  return array.reshape(member.shape, order=member.order).copy()


def _damaged(path: str | os.PathLike[str], name: str) -> str:
  return (f"{path}: {name}: expected an array in the .npy format with the checksum of the zip "
          "directory, found damaged data")


def _listed(names: Mapping[str, Any]) -> str:
  """Returns the first names, sorted, and the number of the others."""
  found = sorted(names)
  shown: list[str] = []
  while len(shown) < len(found) and sum(map(len, shown)) < _LISTED:
    shown.append(_short(found[len(shown)]))
  others = f" and {len(found) - len(shown)} others" if len(found) > len(shown) else ""
  return ", ".join(shown) + others


def _short(text: str) -> str:
  """Returns a name from a file as printable text of limited length."""
  shown = text if text.isprintable() else repr(text)
  return shown if len(shown) <= 80 else f"{shown[:80]}..."
