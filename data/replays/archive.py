"""Files inside MPQ archives, the container of .SC2Replay files.

Written for files from strangers: every offset, count and size is checked against the file and
against limits before memory is used, so that a decompression bomb costs no more than its limit.
The format: http://www.zezula.net/en/mpq/mpqformat.html
"""

import bz2
import functools
import struct
import zlib
from typing import NamedTuple

from starleague.data.replays.refusals import DAMAGED, NOT_A_REPLAY, TOO_LARGE, Refusal

MOST_BYTES = 64 << 20  # of one unpacked file; real event streams have less than 16 MiB
_USER_DATA, _HEADER = b"MPQ\x1b", b"MPQ\x1a"
_EXISTS, _ENCRYPTED, _SINGLE_UNIT = 0x80000000, 0x00010000, 0x01000000
_SECTOR_CHECKSUMS, _COMPRESSED, _IMPLODED = 0x04000000, 0x00000200, 0x00000100
_ZLIB, _BZIP2 = 2, 16
_ENTRY = 16  # bytes of an entry of the hash table and of the block table
_MOST_SECTOR_SHIFT = 12  # sectors of 512 << 12 bytes; replays use 3


class _Block(NamedTuple):
  """An entry of the block table: where a file lies."""

  offset: int
  packed: int  # bytes in the archive
  size: int  # bytes unpacked
  flags: int


class Archive:
  """An MPQ archive in memory.

  Attributes:
    header: content of the user data header: a replay's version and length.
  """

  def __init__(self, data: bytes):
    """Reads the tables of an archive.

    Raises:
      Refusal: the bytes are no MPQ archive, or one that is damaged.
    """
    self._data = data
    if data[:4] != _USER_DATA:
      raise Refusal(NOT_A_REPLAY, f"expected an MPQ archive with user data, found a file that "
                    f"begins with {data[:8].hex(' ') or 'nothing'}")
    _, self._start, size = struct.unpack("<3I", self._span(4, 12, "user data header"))
    self.header = self._span(16, size, "user data")
    found = struct.unpack("<4s2I2H4I", self._span(self._start, 32, "archive header"))
    if found[0] != _HEADER:
      raise Refusal(DAMAGED, f"expected an MPQ header at byte {self._start}, "
                    f"found {found[0].hex()}")
    shift, hashes, blocks, hash_count, block_count = found[4], *found[5:]
    if shift > _MOST_SECTOR_SHIFT:
      raise Refusal(DAMAGED, f"sectors of 2^{9 + shift} bytes, expected at most "
                    f"2^{9 + _MOST_SECTOR_SHIFT}")
    self._sector = 512 << shift
    self._hashes = self._table("(hash table)", hashes, hash_count)
    self._blocks = [_Block(*entry) for entry in self._table("(block table)", blocks, block_count)]

  def read(self, name: str) -> bytes | None:
    """Returns an unpacked file, or None if the archive has no such file.

    Raises:
      Refusal: the file is damaged, larger than `MOST_BYTES`, or packed in an unsupported way.
    """
    wanted = _hash(name, 1), _hash(name, 2)
    index = next((entry[3] for entry in self._hashes if entry[:2] == wanted), None)
    if index is None or index >= len(self._blocks):
      return None
    block = self._blocks[index]
    if not block.flags & _EXISTS or not block.packed:
      return None
    if block.flags & (_ENCRYPTED | _IMPLODED):
      raise Refusal(DAMAGED, f"{name} is packed in a way that replays do not use")
    if block.size > MOST_BYTES:
      raise Refusal(TOO_LARGE, f"{name} unpacks to {block.size} bytes, expected at most "
                    f"{MOST_BYTES}")
    packed = self._span(self._start + block.offset, block.packed, name)
    if block.flags & _SINGLE_UNIT or not block.flags & _COMPRESSED:
      return _unpack(packed, block.size, name) if block.flags & _COMPRESSED else packed
    return self._join_sectors(packed, block, name)

  def _join_sectors(self, packed: bytes, block: _Block, name: str) -> bytes:
    count = -(-block.size // self._sector)
    positions_size = 4 * (count + 1)
    if positions_size > len(packed):
      raise Refusal(DAMAGED, f"{name}: expected {count} sectors in {len(packed)} bytes")
    positions = struct.unpack_from(f"<{count + 1}I", packed)
    parts = []
    for i, (begin, end) in enumerate(zip(positions[:-1], positions[1:], strict=True)):
      if not positions_size <= begin <= end <= len(packed):
        raise Refusal(DAMAGED, f"{name}: sector {i} lies at {begin} to {end} of "
                      f"{len(packed)} bytes")
      size = min(self._sector, block.size - i * self._sector)
      parts.append(_unpack(packed[begin:end], size, name))
    return b"".join(parts)

  def _span(self, offset: int, size: int, name: str) -> bytes:
    if offset + size > len(self._data):
      raise Refusal(DAMAGED, f"the file ends after {len(self._data)} bytes, inside its {name}, "
                    f"expected {offset + size} or more")
    return self._data[offset:offset + size]

  def _table(self, name: str, offset: int, count: int) -> list[tuple[int, ...]]:
    data = self._span(self._start + offset, _ENTRY * count, name)
    return list(struct.iter_unpack("<4I", _decrypt(data, _hash(name, 3))))


def _unpack(packed: bytes, size: int, name: str) -> bytes:
  """Returns a sector or a single unit of `size` bytes; what cannot shrink is stored as it is."""
  if len(packed) >= size:
    return packed[:size]
  kind = packed[0] if packed else None
  try:
    if kind == _ZLIB:
      found = zlib.decompressobj().decompress(packed[1:], size + 1)
    elif kind == _BZIP2:
      found = bz2.BZ2Decompressor().decompress(packed[1:], size + 1)
    else:
      raise Refusal(DAMAGED, f"{name}: unknown compression {kind}")
  except (zlib.error, OSError, EOFError, ValueError) as error:
    raise Refusal(DAMAGED, f"{name} does not unpack: {error}") from error
  if len(found) != size:
    more = "more" if len(found) > size else len(found)
    raise Refusal(DAMAGED, f"{name}: expected {size} unpacked bytes, found {more}")
  return found


@functools.cache
def _encryption_table() -> tuple[int, ...]:
  table, seed = [0] * 0x500, 0x00100001
  for i in range(0x100):
    for j in range(5):
      halves = []
      for _ in range(2):
        seed = (seed * 125 + 3) % 0x2AAAAB
        halves.append(seed & 0xFFFF)
      table[i + 0x100 * j] = halves[0] << 16 | halves[1]
  return tuple(table)


@functools.lru_cache(maxsize=64)
def _hash(text: str, kind: int) -> int:
  """Returns MPQ's hash of a name; kinds 1 and 2 identify files, 3 gives keys."""
  table, first, second = _encryption_table(), 0x7FED7FED, 0xEEEEEEEE
  for letter in text.upper().encode():
    first = (table[(kind << 8) + letter] ^ (first + second)) & 0xFFFFFFFF
    second = (letter + first + second + (second << 5) + 3) & 0xFFFFFFFF
  return first


def _decrypt(data: bytes, key: int) -> bytes:
  table, second, words = _encryption_table(), 0xEEEEEEEE, []
  for (word,) in struct.iter_unpack("<I", data):
    second = (second + table[0x400 + (key & 0xFF)]) & 0xFFFFFFFF
    word ^= (key + second) & 0xFFFFFFFF
    words.append(word)
    key = ((~key << 0x15) + 0x11111111 | key >> 0x0B) & 0xFFFFFFFF
    second = (word + second + (second << 5) + 3) & 0xFFFFFFFF
  return struct.pack(f"<{len(words)}I", *words)
