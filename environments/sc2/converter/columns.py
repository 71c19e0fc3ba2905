"""Reads repeated messages of the protocol as columns, straight from their serialised bytes.

Reading each field of each unit through Python would take most of the time of an observation. Here
all messages are parsed together: a few vectorised operations read one field of all of them.
Protobuf writes known fields in the order of their numbers, and unknown ones last. Bytes behind the
last known field are therefore unknown fields, and ignored.
"""

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

_LENGTH, _FIXED = 2, 5  # wire types of messages and of 32-bit numbers
_PADDING = 16  # bytes behind the messages, so that no read leaves the buffer
_MOST_VARINT_BYTES = 10
# numpy compares an array with a scalar of its own type in a third of the time of a Python int.
_LOW_BITS = np.uint8(127)


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

  numbers: dict[str, np.ndarray]  # [n] float32, int64 or uint8, protobuf's default where absent
  repeated: dict[str, Repeated]


class _Field(NamedTuple):
  name: str
  tag: np.integer  # as its bytes are read, the first one lowest; uint8 or uint16
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
    key = field.number << 3 | wire
    tag_size = 1 if key < 128 else 2
    tag = np.uint8(key) if tag_size == 1 else np.uint16(key & 127 | 128 | key >> 7 << 8)
    small = field.cpp_type in (field.CPPTYPE_BOOL, field.CPPTYPE_ENUM)
    enumerated = field.cpp_type == field.CPPTYPE_ENUM and not _is_repeated(field)
    found.append(_Field(field.name, tag, tag_size, wire, small, _is_repeated(field),
                        field.default_value if enumerated else 0))
  return tuple(found)


def _is_repeated(field: Any) -> bool:
  # protobuf 6 deprecates `label`; older versions have nothing else.
  newer = getattr(field, "is_repeated", None)
  return field.label == field.LABEL_REPEATED if newer is None else bool(newer)


def make_buffer(data: bytes, end: int) -> Buffer:
  """Makes a buffer of serialised bytes up to an end."""
  size = end + _PADDING // 2
  size += size & 1
  padded = data if len(data) >= end + _PADDING else data + bytes(_PADDING)
  pairs = np.empty(size, np.uint16)  # aligned: gathers from it are faster
  pairs[0::2] = np.frombuffer(padded, "<u2", size // 2)
  pairs[1::2] = np.frombuffer(padded, "<u2", size // 2, 1)
  return Buffer(np.frombuffer(padded, np.uint8), pairs,
                np.ndarray((size,), "<f4", buffer=padded, strides=(1,)))


def starts(data: bytes, number: int) -> tuple[np.ndarray, int]:
  """Returns where the messages of a field start.

  Args:
    data: a serialised message whose fields up to `number` are messages.
    number: of the field, below 16.

  Returns:
    [n] int64, and the end of the last one.
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
  return np.array(found, np.int64), place


class _Cursor:
  """A place in each of n messages."""

  def __init__(self, buffer: Buffer, place: np.ndarray):
    self.place = place
    self._all_rows = np.arange(len(place))
    self._buffer, self._heads = buffer, buffer.bytes
    self._head = self._heads[place]

  def at(self, field: _Field) -> np.ndarray:
    """Returns the indices of the messages whose next field is this; fields must ascend."""
    if field.tag_size == 2 and self._heads is self._buffer.bytes:
      self._heads = self._buffer.pairs
      self._head = self._heads[self.place]
    hit = self._head == field.tag
    found = np.count_nonzero(hit)
    return self._all_rows if found == len(hit) else hit.nonzero()[0] if found else _NO_ROWS

  def of(self, rows: np.ndarray) -> np.ndarray:
    """Returns the places of the chosen messages."""
    return self.place if rows is self._all_rows else self.place[rows]

  def move(self, rows: np.ndarray, place: np.ndarray) -> None:
    """Moves the chosen messages on."""
    if rows is self._all_rows:
      self.place, self._head = place, self._heads[place]
    else:
      self.place[rows], self._head[rows] = place, self._heads[place]

  def column(self, rows: np.ndarray, values: np.ndarray, default: int) -> np.ndarray:
    """Returns the values of all messages, the default where a message has none."""
    if rows is self._all_rows:
      return values
    found = np.zeros(len(self.place), values.dtype)
    if default:
      found += default
    found[rows] = values
    return found


_NO_ROWS = np.zeros(0, np.int64)


def read(buffer: Buffer, first: np.ndarray, descriptor: Any) -> Columns:
  """Reads n messages of one type.

  Args:
    buffer: the bytes.
    first: [n] int64, where the messages start.
    descriptor: of the message type.
  """
  cursor, columns = _Cursor(buffer, first.copy()), Columns({}, {})
  for field in _fields(descriptor):
    rows = cursor.at(field)
    if not len(rows):
      if field.default:
        columns.numbers[field.name] = np.full(len(first), field.default)
      continue
    if field.repeated or field.wire == _LENGTH:
      columns.repeated[field.name] = _join(list(_each(cursor, buffer.bytes, field, rows)))
      continue
    # Slices shift the numbers by the tag: cheaper than adding its size to the places.
    place, tag_size = cursor.of(rows), field.tag_size
    if field.wire == _FIXED:
      values, size = buffer.floats[tag_size:][place], 4
    elif field.small:
      values, size = buffer.bytes[tag_size:][place], 1
    else:
      values, size = _integers(buffer.bytes[tag_size:], place)
    cursor.move(rows, place + (size + tag_size))
    columns.numbers[field.name] = cursor.column(rows, values, field.default)
  return columns


def _join(parts: list[tuple[np.ndarray, ...]]) -> Repeated:
  return Repeated(*parts[0]) if len(parts) == 1 else Repeated(
    *map(np.concatenate, zip(*parts, strict=True)))


def _each(cursor: _Cursor, data: np.ndarray, field: _Field,
          rows: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
  """Yields (owner, rank, value) of the first values of a field, then of the second ones."""
  rank = 0
  while len(rows):
    place = cursor.of(rows)
    value, size = _integers(data[field.tag_size:], place)
    place = place + (size + field.tag_size)
    ranks = np.zeros(len(rows), np.int64) + rank
    if field.wire == _LENGTH:
      yield rows, ranks, place
      place = place + value
    else:
      yield rows, ranks, value
    cursor.move(rows, place)
    if not field.repeated:
      return
    rows, rank = cursor.at(field), rank + 1


def _integers(data: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, Any]:
  """Returns variable-length integers, [m] int64, and their sizes in bytes, [m] or one for all."""
  byte = data[place]
  more = byte > _LOW_BITS
  going = np.count_nonzero(more)
  if not going:
    return byte.astype(np.int64), 1
  value, size = (byte & _LOW_BITS).astype(np.int64), more.astype(np.int64)
  for i in range(1, _MOST_VARINT_BYTES):
    byte = data[i:][place]
    if going < len(byte):
      byte *= more
    value |= (byte & _LOW_BITS).astype(np.int64) << np.int64(7 * i)
    more = byte > _LOW_BITS
    going = np.count_nonzero(more)
    if not going:
      break
    size += more
  return value, size + 1
