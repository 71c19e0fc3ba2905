"""Readers of the two encodings of a replay's files, driven by the type tables of s2protocol.

s2protocol's own decoders read bit by bit and take seconds for a game. These read the same tables
(`typeinfos` of a protocol module) with whole integers at a time. Bit-packed are the lobby and the
game events; versioned are the header, the details and the tracker events.
"""

from collections.abc import Callable
from typing import Any

Value = Any  # of a type table: None, bool, int, bytes, a list, or a dict by field name

_MOST_INTEGER_BITS = 63  # tables hold int64


class ProtocolError(Exception):
  """Bytes that the type table does not describe."""


class _Reader:
  """Types of a table, compiled to functions that read one value each."""

  def __init__(self, data: bytes, types: list):
    self.data, self.types = data, types
    self.position = 0  # in bits, or in bytes: see the subclasses
    self._compiled: dict[int, Callable[[], Value]] = {}

  def of(self, type_id: int) -> Callable[[], Value]:
    """Returns the function that reads a type."""
    found = self._compiled.get(type_id)
    if found is None:
      if not 0 <= type_id < len(self.types):
        raise ProtocolError(f"type {type_id} is not in the table")
      kind, arguments = self.types[type_id]
      found = self._compiled[type_id] = getattr(self, kind)(*arguments)
    return found

  def _null(self) -> Callable[[], Value]:
    return lambda: None


def _merge(result: dict[str, Value], name: str, value: Value, count: int) -> Value:
  """Adds a field to a structure; a parent's fields become its own. Returns the structure."""
  if name != "__parent":
    result[name] = value
  elif isinstance(value, dict):
    result.update(value)
  elif count == 1:
    return value
  else:
    result[name] = value
  return result


class BitReader(_Reader):
  """Reads bit-packed values: integers have as many bits as their bounds need."""

  def bits(self, count: int) -> int:
    """Returns the next bits as an integer. Low bits of a byte come first, bytes are big-endian."""
    begin, end = self.position, self.position + count
    first, offset = begin >> 3, begin & 7
    if end > len(self.data) << 3:
      raise ProtocolError(f"the stream ends at byte {len(self.data)}, inside a value")
    self.position = end
    if offset + count <= 8:
      return self.data[first] >> offset & (1 << count) - 1
    last, rest = end >> 3, end & 7
    value = self.data[first] >> offset
    value = value << 8 * (last - first - 1) | int.from_bytes(self.data[first + 1:last], "big")
    return value << rest | self.data[last] & (1 << rest) - 1 if rest else value

  def align(self) -> None:
    """Goes to the next whole byte."""
    self.position = self.position + 7 & ~7

  def done(self) -> bool:
    """Returns whether no whole byte is left."""
    return self.position + 7 >> 3 >= len(self.data)

  def whole_bytes(self, count: int) -> bytes:
    """Returns the next bytes, aligned."""
    self.align()
    begin = self.position >> 3
    if begin + count > len(self.data):
      raise ProtocolError(f"the stream ends at byte {len(self.data)}, inside a blob")
    self.position += 8 * count
    return self.data[begin:begin + count]

  def _int(self, bounds: tuple[int, int]) -> Callable[[], int]:
    least, count = bounds
    bits = self.bits
    return lambda: least + bits(count)

  def _bool(self) -> Callable[[], bool]:
    bits = self.bits
    return lambda: bits(1) != 0

  def _array(self, bounds: tuple[int, int], type_id: int) -> Callable[[], list]:
    length, item = self._int(bounds), self.of(type_id)
    return lambda: [item() for _ in range(length())]

  def _bitarray(self, bounds: tuple[int, int]) -> Callable[[], tuple[int, int]]:
    length = self._int(bounds)

    def read() -> tuple[int, int]:
      # Bit i of the array is bit i % 8 of its byte i // 8. Four bytes at a time are one big-endian
      # integer; s2protocol, which reads all bytes as one, mixes up arrays of 33 bits and more.
      count = length()
      value = 0
      for start in range(0, count, 32):
        left = min(32, count - start)
        word, place = self.bits(left), start
        while left:
          size = min(8, left)
          left -= size
          value |= (word >> left & (1 << size) - 1) << place
          place += size
      return count, value

    return read

  def _blob(self, bounds: tuple[int, int]) -> Callable[[], bytes]:
    length = self._int(bounds)
    return lambda: self.whole_bytes(length())

  def _choice(self, bounds: tuple[int, int], fields: dict) -> Callable[[], dict[str, Value]]:
    tag = self._int(bounds)
    readers = {key: (name, self.of(type_id)) for key, (name, type_id) in fields.items()}

    def read() -> dict[str, Value]:
      found = readers.get(tag())
      if found is None:
        raise ProtocolError(f"unknown choice at byte {self.position >> 3}")
      return {found[0]: found[1]()}

    return read

  def _fourcc(self) -> Callable[[], bytes]:
    return lambda: bytes(self.bits(8) for _ in range(4))

  def _optional(self, type_id: int) -> Callable[[], Value]:
    item, bits = self.of(type_id), self.bits
    return lambda: item() if bits(1) else None

  def _struct(self, fields: list) -> Callable[[], Value]:
    readers = [(field[0], self.of(field[1])) for field in fields]
    if all(name != "__parent" for name, _ in readers):
      return lambda: {name: item() for name, item in readers}

    def read() -> Value:
      result: Value = {}
      for name, item in readers:
        result = _merge(result, name, item(), len(readers))
      return result

    return read


class VersionedReader(_Reader):
  """Reads values that carry their kinds: unknown fields can be skipped."""

  def whole_bytes(self, count: int) -> bytes:
    """Returns the next bytes."""
    begin = self.position
    if not 0 <= count <= len(self.data) - begin:
      raise ProtocolError(f"the stream ends at byte {len(self.data)}, inside a value")
    self.position += count
    return self.data[begin:begin + count]

  def align(self) -> None:
    """Does nothing: all values are whole bytes."""

  def done(self) -> bool:
    """Returns whether nothing is left."""
    return self.position >= len(self.data)

  def byte(self) -> int:
    """Returns the next byte."""
    if self.position >= len(self.data):
      raise ProtocolError(f"the stream ends at byte {len(self.data)}, inside a value")
    self.position += 1
    return self.data[self.position - 1]

  def integer(self) -> int:
    """Returns an integer of variable length."""
    found = self.byte()
    negative, result, bits = found & 1, found >> 1 & 0x3F, 6
    while found & 0x80:
      if bits > _MOST_INTEGER_BITS:
        raise ProtocolError(f"too long an integer at byte {self.position}")
      found = self.byte()
      result |= (found & 0x7F) << bits
      bits += 7
    if result.bit_length() > _MOST_INTEGER_BITS:
      raise ProtocolError(f"too large an integer at byte {self.position}")
    return -result if negative else result

  def expect(self, kind: int) -> None:
    """Reads the kind of a value and checks it."""
    found = self.byte()
    if found != kind:
      raise ProtocolError(f"kind {found} at byte {self.position - 1}, expected {kind}")

  def length(self) -> int:
    """Returns a number of items, each of which takes a byte or more."""
    found = self.integer()
    if not 0 <= found <= len(self.data) - self.position:
      raise ProtocolError(f"{found} items at byte {self.position} of {len(self.data)}")
    return found

  def skip(self) -> None:
    """Skips a value of any kind."""
    kind = self.byte()
    if kind in (0, 5):  # array, structure
      for _ in range(self.length()):
        if kind == 5:
          self.integer()
        self.skip()
    elif kind == 1:  # bits
      self.whole_bytes((self.integer() + 7) // 8)
    elif kind == 2:  # blob
      self.whole_bytes(self.integer())
    elif kind == 3:  # choice
      self.integer()
      self.skip()
    elif kind == 4:  # optional
      if self.byte():
        self.skip()
    elif kind in (6, 7, 8):
      self.whole_bytes({6: 1, 7: 4, 8: 8}[kind])
    elif kind == 9:
      self.integer()
    else:
      raise ProtocolError(f"unknown kind {kind} at byte {self.position - 1}")

  def _int(self, bounds: tuple[int, int]) -> Callable[[], int]:
    def read() -> int:
      self.expect(9)
      return self.integer()

    return read

  def _bool(self) -> Callable[[], bool]:
    def read() -> bool:
      self.expect(6)
      return self.byte() != 0

    return read

  def _array(self, bounds: tuple[int, int], type_id: int) -> Callable[[], list]:
    item = self.of(type_id)

    def read() -> list:
      self.expect(0)
      return [item() for _ in range(self.length())]

    return read

  def _bitarray(self, bounds: tuple[int, int]) -> Callable[[], tuple[int, int]]:
    def read() -> tuple[int, int]:
      self.expect(1)
      count = self.integer()
      return count, int.from_bytes(self.whole_bytes((count + 7) // 8), "big")

    return read

  def _blob(self, bounds: tuple[int, int]) -> Callable[[], bytes]:
    def read() -> bytes:
      self.expect(2)
      return self.whole_bytes(self.integer())

    return read

  def _choice(self, bounds: tuple[int, int], fields: dict) -> Callable[[], dict[str, Value]]:
    readers = {key: (name, self.of(type_id)) for key, (name, type_id) in fields.items()}

    def read() -> dict[str, Value]:
      self.expect(3)
      found = readers.get(self.integer())
      if found is None:
        self.skip()
        return {}
      return {found[0]: found[1]()}

    return read

  def _fourcc(self) -> Callable[[], bytes]:
    def read() -> bytes:
      self.expect(7)
      return self.whole_bytes(4)

    return read

  def _optional(self, type_id: int) -> Callable[[], Value]:
    item = self.of(type_id)

    def read() -> Value:
      self.expect(4)
      return item() if self.byte() else None

    return read

  def _struct(self, fields: list) -> Callable[[], Value]:
    readers = {field[2]: (field[0], self.of(field[1])) for field in fields}

    def read() -> Value:
      self.expect(5)
      result: Value = {}
      for _ in range(self.length()):
        found = readers.get(self.integer())
        if found is None:
          self.skip()
        else:
          result = _merge(result, found[0], found[1](), len(readers))
      return result

    return read
