"""MPQ archives, the container of .SC2Replay files: read and written.

The reader is written for files from strangers: every offset, count and size is checked against the
file and against limits before memory is used, so that a decompression bomb costs no more than its
limit. The format: http://www.zezula.net/en/mpq/mpqformat.html
"""

import bz2
import functools
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

RECORDING = "skirmish.recording"  # the file with a game of Skirmish in a .SC2Replay archive
NO_ARCHIVE, DAMAGED, TOO_LARGE = "no archive", "damaged", "too large"
MOST_BYTES = 64 << 20  # of one unpacked file; real event streams have less than 16 MiB
_USER_DATA, _HEADER = b"MPQ\x1b", b"MPQ\x1a"
_EXISTS, _ENCRYPTED, _SINGLE_UNIT = 0x80000000, 0x00010000, 0x01000000
_SECTOR_CHECKSUMS, _COMPRESSED, _IMPLODED = 0x04000000, 0x00000200, 0x00000100
_ZLIB, _BZIP2 = 2, 16
_ENTRY = 16  # bytes of an entry of the hash table and of the block table
_SECTOR_SHIFT, _MOST_SECTOR_SHIFT = 3, 12  # of sectors of 512 bytes: in replays, at most
_ARCHIVE_START, _HEADER_BYTES = 1024, 32  # of archives that are written; user data lies before
_EMPTY = (0xFFFFFFFF,) * 4  # an entry of the hash table
_LIST = "(listfile)"


class ArchiveError(Exception):
  """Bytes that are not read as an archive; `reason` is NO_ARCHIVE, DAMAGED or TOO_LARGE."""

  def __init__(self, reason: str, detail: str):
    super().__init__(detail)
    self.reason = reason


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
      ArchiveError: the bytes are no MPQ archive, or one that is damaged.
    """
    self._data = data
    if data[:4] != _USER_DATA:
      raise ArchiveError(NO_ARCHIVE, f"expected an MPQ archive with user data, found a file that "
                         f"begins with {data[:8].hex(' ') or 'nothing'}")
    _, self._start, size = struct.unpack("<3I", self._span(4, 12, "user data header"))
    self.header = self._span(16, size, "user data")
    found = struct.unpack("<4s2I2H4I", self._span(self._start, 32, "archive header"))
    if found[0] != _HEADER:
      raise ArchiveError(DAMAGED, f"expected an MPQ header at byte {self._start}, "
                         f"found {found[0].hex()}")
    shift, hashes, blocks, hash_count, block_count = found[4], *found[5:]
    if shift > _MOST_SECTOR_SHIFT:
      raise ArchiveError(DAMAGED, f"sectors of 2^{9 + shift} bytes, expected at most "
                         f"2^{9 + _MOST_SECTOR_SHIFT}")
    self._sector = 512 << shift
    self._hashes = self._table("(hash table)", hashes, hash_count)
    self._blocks = [_Block(*entry) for entry in self._table("(block table)", blocks, block_count)]

  def read(self, name: str) -> bytes | None:
    """Returns an unpacked file, or None if the archive has no such file.

    Raises:
      ArchiveError: the file is damaged, larger than `MOST_BYTES`, or packed in an unsupported way.
    """
    wanted = _hash(name, 1), _hash(name, 2)
    index = next((entry[3] for entry in self._hashes if entry[:2] == wanted), None)
    if index is None or index >= len(self._blocks):
      return None
    block = self._blocks[index]
    if not block.flags & _EXISTS or (block.size and not block.packed):
      return None
    if not block.size:
      return b""
    if block.flags & (_ENCRYPTED | _IMPLODED):
      raise ArchiveError(DAMAGED, f"{name} is packed in a way that replays do not use")
    if block.size > MOST_BYTES:
      raise ArchiveError(TOO_LARGE, f"{name} unpacks to {block.size} bytes, expected at most "
                         f"{MOST_BYTES}")
    packed = self._span(self._start + block.offset, block.packed, name)
    if block.flags & _SINGLE_UNIT or not block.flags & _COMPRESSED:
      return _unpack(packed, block.size, name) if block.flags & _COMPRESSED else packed
    return self._join_sectors(packed, block, name)

  def _join_sectors(self, packed: bytes, block: _Block, name: str) -> bytes:
    count = -(-block.size // self._sector)
    positions_size = 4 * (count + 1)
    if positions_size > len(packed):
      raise ArchiveError(DAMAGED, f"{name}: expected {count} sectors in {len(packed)} bytes")
    positions = struct.unpack_from(f"<{count + 1}I", packed)
    parts = []
    for i, (begin, end) in enumerate(zip(positions[:-1], positions[1:], strict=True)):
      if not positions_size <= begin <= end <= len(packed):
        raise ArchiveError(DAMAGED, f"{name}: sector {i} lies at {begin} to {end} of "
                           f"{len(packed)} bytes")
      size = min(self._sector, block.size - i * self._sector)
      parts.append(_unpack(packed[begin:end], size, name))
    return b"".join(parts)

  def _span(self, offset: int, size: int, name: str) -> bytes:
    if offset + size > len(self._data):
      raise ArchiveError(DAMAGED, f"the file ends after {len(self._data)} bytes, inside its "
                         f"{name}, expected {offset + size} or more")
    return self._data[offset:offset + size]

  def _table(self, name: str, offset: int, count: int) -> list[tuple[int, ...]]:
    data = self._span(self._start + offset, _ENTRY * count, name)
    return list(struct.iter_unpack("<4I", _cipher(data, _hash(name, 3), encrypts=False)))


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
      raise ArchiveError(DAMAGED, f"{name}: unknown compression {kind}")
  except (zlib.error, OSError, EOFError, ValueError) as error:
    raise ArchiveError(DAMAGED, f"{name} does not unpack: {error}") from error
  if len(found) != size:
    more = "more" if len(found) > size else len(found)
    raise ArchiveError(DAMAGED, f"{name}: expected {size} unpacked bytes, found {more}")
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
  """Returns MPQ's hash of a name: 0 is its place, 1 and 2 identify files, 3 gives keys."""
  table, first, second = _encryption_table(), 0x7FED7FED, 0xEEEEEEEE
  for letter in text.upper().encode():
    first = (table[(kind << 8) + letter] ^ (first + second)) & 0xFFFFFFFF
    second = (letter + first + second + (second << 5) + 3) & 0xFFFFFFFF
  return first


def _cipher(data: bytes, key: int, encrypts: bool) -> bytes:
  table, second, words = _encryption_table(), 0xEEEEEEEE, []
  for (word,) in struct.iter_unpack("<I", data):
    second = (second + table[0x400 + (key & 0xFF)]) & 0xFFFFFFFF
    words.append(word ^ (key + second) & 0xFFFFFFFF)
    key = ((~key << 0x15) + 0x11111111 | key >> 0x0B) & 0xFFFFFFFF
    plain = word if encrypts else words[-1]
    second = (plain + second + (second << 5) + 3) & 0xFFFFFFFF
  return struct.pack(f"<{len(words)}I", *words)


def make_archive(files: Mapping[str, bytes], header: bytes = b"") -> bytes:
  """Returns an archive, whose list of files names them in their order.

  Args:
    files: contents by name.
    header: content of the user data header, at most 1,008 bytes.

  Raises:
    ValueError: the header is too long.
  """
  if len(header) > _ARCHIVE_START - 16:
    raise ValueError(f"header: expected at most {_ARCHIVE_START - 16} bytes, found {len(header)}")
  body, blocks = b"", list[_Block]()
  contents = {**files, _LIST: "\r\n".join(files).encode()}
  for content in contents.values():
    packed, flags = bytes([_ZLIB]) + zlib.compress(content), _EXISTS | _SINGLE_UNIT | _COMPRESSED
    if len(packed) >= len(content):
      packed, flags = content, _EXISTS | _SINGLE_UNIT
    blocks.append(_Block(_HEADER_BYTES + len(body), len(packed), len(content), flags))
    body += packed
  tables = [_pack_table("(hash table)", _hash_entries(list(contents))),
            _pack_table("(block table)", blocks)]
  hashes = _HEADER_BYTES + len(body)
  head = struct.pack(
    "<4s2I2H4I", _HEADER, _HEADER_BYTES, hashes + sum(map(len, tables)), 0, _SECTOR_SHIFT, hashes,
    hashes + len(tables[0]), len(tables[0]) // _ENTRY, len(blocks))
  user = _USER_DATA + struct.pack("<3I", 512, _ARCHIVE_START, len(header)) + header
  return user.ljust(_ARCHIVE_START, b"\0") + head + body + b"".join(tables)


def _hash_entries(names: list[str]) -> list[tuple[int, int, int, int]]:
  """Returns the hash table: each name at its hash, or at the next free entry."""
  size = 1 << len(names).bit_length()
  entries = [_EMPTY] * size
  for block, name in enumerate(names):
    place = _hash(name, 0) % size
    while entries[place] != _EMPTY:
      place = (place + 1) % size
    entries[place] = _hash(name, 1), _hash(name, 2), 0, block
  return entries


def _pack_table(name: str, entries: Sequence[tuple[int, ...]]) -> bytes:
  data = b"".join(struct.pack("<4I", *entry) for entry in entries)
  return _cipher(data, _hash(name, 3), encrypts=True)
