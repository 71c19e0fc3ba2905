"""Reads repeated messages of the protocol as columns, straight from their serialised bytes.

Reading each field of each unit through Python would take most of the time of an observation. Here
all messages are parsed in step: a few vectorised operations read a field of all of them. Protobuf
writes known fields in the order of their numbers and unknown ones last. Bytes behind the last
known field are therefore unknown fields, and ignored.
"""

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

_LENGTH, _FIXED = 2, 5  # wire types of messages and of 32-bit numbers
_PADDING = 16  # bytes behind the data, so that no read leaves them
_MOST_VARINT_BYTES = 10


class Buffer(NamedTuple):
  """Serialised bytes, and the numbers that begin at each of them."""

  bytes: np.ndarray  # [n] uint8
  pairs: np.ndarray  # [n] uint16
  floats: np.ndarray  # [n] float32


class Repeated(NamedTuple):
  """The values of a repeated field, or the messages of any field: [m] each."""

  owner: np.ndarray  # int64: index of the message that holds it
  rank: np.ndarray  # int64: its number among the owner's, from 0
  value: np.ndarray  # int64: the value, or where the message starts


class Columns(NamedTuple):
  """Fields of n messages; those that are absent and 0 in all of them are left out."""

  numbers: dict[str, np.ndarray]  # [n] float32 or int64, protobuf's default where absent
  repeated: dict[str, Repeated]


class _Field(NamedTuple):
  name: str
  tag: int  # as its bytes are read, the first one lowest
  tag_size: int
  wire: int
  small: bool  # a number of one byte
  repeated: bool
  default: int  # of an absent number; protobuf's default of an enumeration is its first value


@functools.cache
def _fields(descriptor: Any) -> tuple[_Field, ...]:
  found = []
  for field in sorted(descriptor.fields, key=lambda field: field.number):
    message = field.cpp_type in (field.CPPTYPE_MESSAGE, field.CPPTYPE_STRING)
    wire = _LENGTH if message else _FIXED if field.cpp_type == field.CPPTYPE_FLOAT else 0
    tag = field.number << 3 | wire
    tag_size = 1 if tag < 128 else 2
    if tag_size == 2:
      tag = tag & 127 | 128 | tag >> 7 << 8
    small = field.cpp_type in (field.CPPTYPE_BOOL, field.CPPTYPE_ENUM)
    enumerated = field.cpp_type == field.CPPTYPE_ENUM and not _is_repeated(field)
    found.append(_Field(field.name, tag, tag_size, wire, small, _is_repeated(field),
                        field.default_value if enumerated else 0))
  return tuple(found)


def _is_repeated(field: Any) -> bool:
  # protobuf 6 deprecates `label`; older versions have nothing else.
  newer = getattr(field, "is_repeated", None)
  return field.label == field.LABEL_REPEATED if newer is None else bool(newer)


def make_buffer(data: bytes) -> Buffer:
  """Makes a buffer of serialised bytes."""
  padded = data + bytes(_PADDING)
  size = len(data) + _PADDING // 2

  def window(dtype: str) -> np.ndarray:
    return np.ndarray((size,), dtype, buffer=padded, strides=(1,))

  return Buffer(window("u1"), window("<u2"), window("<f4"))


def starts(data: bytes, number: int) -> np.ndarray:
  """Returns where the messages of a field start.

  Args:
    data: a serialised message whose fields up to `number` are messages.
    number: of the field, below 16.
  """
  wanted, found, place, end = number << 3 | _LENGTH, [], 0, len(data)
  while place < end and data[place] <= wanted:  # fields are in the order of their numbers
    tag, length = data[place], data[place + 1]
    place += 2
    if length > 127:
      length, shift, byte = length & 127, 7, 128
      while byte > 127:
        byte = data[place]
        length |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
    if tag == wanted:
      found.append(place)
    place += length
  return np.array(found, np.int64)


class _Cursor:
  """A place in each of n messages."""

  def __init__(self, buffer: Buffer, place: np.ndarray):
    self.buffer, self.place = buffer, place.copy()
    self._pair = buffer.pairs[place]
    self._byte = self._pair.astype(np.uint8)

  def at(self, field: _Field) -> np.ndarray:
    """Returns the indices of the messages whose next field is this."""
    head = self._byte if field.tag_size == 1 else self._pair
    return (head == field.tag).nonzero()[0]

  def move(self, rows: np.ndarray, place: np.ndarray) -> None:
    """Moves the chosen messages on."""
    pair = self.buffer.pairs[place]
    if len(rows) == len(self.place):
      self.place, self._pair, self._byte = place, pair, pair.astype(np.uint8)
    else:
      self.place[rows], self._pair[rows] = place, pair
      self._byte[rows] = pair  # only its lower byte stays


def read(buffer: Buffer, first: np.ndarray, descriptor: Any) -> Columns:
  """Reads n messages of one type.

  Args:
    buffer: the bytes.
    first: [n] int64, where the messages start.
    descriptor: of the message type.
  """
  cursor, columns = _Cursor(buffer, first), Columns({}, {})
  for field in _fields(descriptor):
    rows = cursor.at(field)
    if not len(rows):
      if field.default:
        columns.numbers[field.name] = np.full(len(first), field.default)
      continue
    if field.repeated or field.wire == _LENGTH:
      columns.repeated[field.name] = Repeated(*map(np.concatenate, zip(
        *_each(cursor, field, rows), strict=True)))
      continue
    place = cursor.place[rows] + field.tag_size
    if field.wire == _FIXED:
      values, size = buffer.floats[place], 4
    elif field.small:
      values, size = buffer.bytes[place].astype(np.int64), 1
    else:
      values, size = _integers(buffer, place)
    cursor.move(rows, place + size)
    if len(rows) < len(first):
      column = np.full(len(first), field.default, values.dtype)
      column[rows] = values
      values = column
    columns.numbers[field.name] = values
  return columns


def _each(cursor: _Cursor, field: _Field, rows: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
  """Yields (owner, rank, value) of the first values of a field, then of the second ones."""
  rank = 0
  while len(rows):
    place = cursor.place[rows] + field.tag_size
    value, size = _integers(cursor.buffer, place)
    place += size
    length, value = (value, place) if field.wire == _LENGTH else (0, value)
    yield rows, np.full(len(rows), rank), value
    cursor.move(rows, place + length)
    if not field.repeated:
      return
    rows, rank = cursor.at(field), rank + 1


def _integers(buffer: Buffer, place: np.ndarray) -> tuple[np.ndarray, Any]:
  """Returns variable-length integers, [m] int64, and their sizes in bytes, [m] or one for all."""
  byte = buffer.bytes[place]
  more = byte > 127
  if not more.any():
    return byte.astype(np.int64), 1
  value = (byte & 127).astype(np.int64)
  size = more + np.int64(1)
  for i in range(1, _MOST_VARINT_BYTES):
    byte = buffer.bytes[place + i] * more
    value |= (byte & 127).astype(np.int64) << 7 * i
    more = byte > 127
    if not more.any():
      break
    size += more
  return value, size
