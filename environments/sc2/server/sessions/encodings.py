"""The two encodings of a replay's files: versioned values and bit-packed values.

Versioned values state their kinds, and the numbers of their fields. Bit-packed values have as many
bits as their bounds need; the reader knows their order.
"""

from collections.abc import Iterable, Mapping

_ARRAY, _BLOB, _OPTIONAL, _STRUCT, _BOOL, _FOUR, _INTEGER = 0, 2, 4, 5, 6, 7, 9  # kinds


def integer(value: int) -> bytes:
  """Returns a versioned integer."""
  return bytes([_INTEGER]) + _variable(value)


def boolean(value: bool) -> bytes:
  """Returns a versioned bool."""
  return bytes([_BOOL, value])


def blob(value: bytes) -> bytes:
  """Returns versioned bytes."""
  return bytes([_BLOB]) + _variable(len(value)) + value


def four(value: bytes) -> bytes:
  """Returns a versioned code of four bytes."""
  return bytes([_FOUR]) + value


def array(values: Iterable[bytes]) -> bytes:
  """Returns a versioned array of versioned values."""
  listed = list(values)
  return bytes([_ARRAY]) + _variable(len(listed)) + b"".join(listed)


def optional(value: bytes | None) -> bytes:
  """Returns a versioned value that may be missing."""
  return bytes([_OPTIONAL, value is not None]) + (value or b"")


def struct(fields: Mapping[int, bytes]) -> bytes:
  """Returns a versioned structure of versioned values by the numbers of their fields."""
  return bytes([_STRUCT]) + _variable(len(fields)) + b"".join(
    _variable(number) + value for number, value in fields.items())


def _variable(value: int) -> bytes:
  """Six bits and the sign, then seven bits a byte; the highest bit announces another byte."""
  rest = abs(value)
  found = [(rest & 0x3F) << 1 | (value < 0)]
  rest >>= 6
  while rest:
    found[-1] |= 0x80
    found.append(rest & 0x7F)
    rest >>= 7
  return bytes(found)


class BitWriter:
  """Packs values. Low bits of a byte come first; the bytes of an integer are big-endian."""

  def __init__(self) -> None:
    """Makes a writer without values."""
    self._data, self._used = bytearray(), 0  # bits of the last byte

  def data(self) -> bytes:
    """Returns the packed bytes."""
    return bytes(self._data)

  def bits(self, count: int, value: int = 0) -> None:
    """Adds an integer of so many bits."""
    while count:
      if not self._used:
        self._data.append(0)
      size = min(count, 8 - self._used)
      count -= size
      self._data[-1] |= (value >> count & (1 << size) - 1) << self._used
      self._used = (self._used + size) % 8

  def optional(self, count: int, value: int | None = None) -> None:
    """Adds an integer of so many bits that may be missing."""
    self.bits(1, value is not None)
    if value is not None:
      self.bits(count, value)

  def blob(self, count: int, value: bytes = b"") -> None:
    """Adds bytes whose length has so many bits. They start at a whole byte."""
    self.bits(count, len(value))
    self._used = 0
    self._data += value
