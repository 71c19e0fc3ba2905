"""Writes MPQ archives and the files of replays: the inverse of what `data.replays` reads."""

import struct
import zlib

import mpyq

from starleague.data.replays import protocol

SECTOR_SHIFT = 3
SECTOR = 512 << SECTOR_SHIFT
_MPQ = mpyq.MPQArchive.__new__(mpyq.MPQArchive)  # its hash and tables, as an independent reference


def _encrypt(data, key):
  table, second, words = mpyq.MPQArchive.encryption_table, 0xEEEEEEEE, []
  for (word,) in struct.iter_unpack("<I", data):
    second = (second + table[0x400 + (key & 0xFF)]) & 0xFFFFFFFF
    words.append(word ^ (key + second) & 0xFFFFFFFF)
    key = ((~key << 0x15) + 0x11111111 | key >> 0x0B) & 0xFFFFFFFF
    second = (word + second + (second << 5) + 3) & 0xFFFFFFFF
  return struct.pack(f"<{len(words)}I", *words)


def archive(files, header=b"", sizes=None):
  """Returns an MPQ archive.

  Args:
    files: contents by name; bytes are stored in compressed sectors, a tuple (flags, packed bytes,
      size) as it is.
    header: content of the user data header.
    sizes: false sizes of files, by name.
  """
  start, offset, body, blocks, hashes = 1024, 32, b"", [], []
  for name, content in files.items():
    flags, packed, size = content if isinstance(content, tuple) else (
      0x80000200, _sectors(content), len(content))
    blocks.append(struct.pack("<4I", offset, len(packed), (sizes or {}).get(name, size), flags))
    hashes.append(struct.pack("<2I2HI", _MPQ._hash(name, "HASH_A"), _MPQ._hash(name, "HASH_B"),
                              0, 0, len(blocks) - 1))
    body += packed
    offset += len(packed)
  tables = (_encrypt(b"".join(hashes), _MPQ._hash("(hash table)", "TABLE"))
            + _encrypt(b"".join(blocks), _MPQ._hash("(block table)", "TABLE")))
  head = struct.pack("<4s2I2H4I", b"MPQ\x1a", 32, offset + len(tables), 0, SECTOR_SHIFT, offset,
                     offset + 16 * len(hashes), len(hashes), len(blocks))
  user = b"MPQ\x1b" + struct.pack("<3I", 512, start, len(header)) + header
  return user.ljust(start, b"\0") + head + body + tables


def _sectors(content):
  parts = []
  for begin in range(0, len(content), SECTOR):
    part = content[begin:begin + SECTOR]
    packed = b"\x02" + zlib.compress(part)
    parts.append(packed if len(packed) < len(part) else part)
  positions, place = [], 4 * (len(parts) + 1)
  for part in parts:
    positions.append(place)
    place += len(part)
  return struct.pack(f"<{len(parts) + 1}I", *positions, place) + b"".join(parts)


class BitWriter:
  """Writes bit-packed values; missing values are zero."""

  def __init__(self, types):
    self._types, self._bits = types, []

  def data(self):
    self.align()
    return bytes(sum(bit << i for i, bit in enumerate(self._bits[at:at + 8]))
                 for at in range(0, len(self._bits), 8))

  def align(self):
    self._bits += [0] * (-len(self._bits) % 8)

  def bits(self, value, count):
    while count:
      size = min(count, 8 - len(self._bits) % 8)
      count -= size
      self._bits += [value >> count + i & 1 for i in range(size)]

  def write(self, type_id, value=None):
    kind, arguments = self._types[type_id]
    getattr(self, kind)(value, *arguments)

  def _null(self, value):
    pass

  def _int(self, value, bounds):
    self.bits((bounds[0] if value is None else value) - bounds[0], bounds[1])

  def _bool(self, value):
    self.bits(int(bool(value)), 1)

  def _array(self, value, bounds, type_id):
    self._int(len(value or ()), bounds)
    for item in value or ():
      self.write(type_id, item)

  def _bitarray(self, value, bounds):
    count, bits = value or (0, 0)
    self._int(count, bounds)
    for start in range(0, count, 32):
      size = min(32, count - start)
      word = bits >> start & (1 << size) - 1
      packed = 0
      for at in range(0, size, 8):
        width = min(8, size - at)
        packed = packed << width | word >> at & (1 << width) - 1
      self.bits(packed, size)

  def _blob(self, value, bounds):
    self._int(len(value or b""), bounds)
    self.align()
    for byte in value or b"":
      self.bits(byte, 8)

  def _choice(self, value, bounds, fields):
    (name, content), = value.items() if value else [(next(iter(fields.values()))[0], None)]
    tag, type_id = next((tag, field[1]) for tag, field in fields.items() if field[0] == name)
    self._int(tag, bounds)
    self.write(type_id, content)

  def _fourcc(self, value):
    for byte in value or b"\0" * 4:
      self.bits(byte, 8)

  def _optional(self, value, type_id):
    self.bits(int(value is not None), 1)
    if value is not None:
      self.write(type_id, value)

  def _struct(self, value, fields):
    for name, type_id, _ in fields:
      self.write(type_id, value if name == "__parent" else (value or {}).get(name))


class VersionedWriter(BitWriter):
  """Writes versioned values; missing fields are left out."""

  def integer(self, value):
    negative, value = int(value < 0), abs(value)
    self.bits((value & 0x3F) << 1 | negative | (0x80 if value >> 6 else 0), 8)
    value >>= 6
    while value:
      self.bits(value & 0x7F | (0x80 if value >> 7 else 0), 8)
      value >>= 7

  def _int(self, value, bounds):
    self.bits(9, 8)
    self.integer(value)

  def _bool(self, value):
    self.bits(6, 8)
    self.bits(int(value), 8)

  def _array(self, value, bounds, type_id):
    self.bits(0, 8)
    self.integer(len(value))
    for item in value:
      self.write(type_id, item)

  def _blob(self, value, bounds):
    self.bits(2, 8)
    self.integer(len(value))
    for byte in value:
      self.bits(byte, 8)

  def _choice(self, value, bounds, fields):
    self.bits(3, 8)
    (name, content), = value.items()
    tag, type_id = next((tag, field[1]) for tag, field in fields.items() if field[0] == name)
    self.integer(tag)
    self.write(type_id, content)

  def _fourcc(self, value):
    self.bits(7, 8)
    super()._fourcc(value)

  def _optional(self, value, type_id):
    self.bits(4, 8)
    self.bits(int(value is not None), 8)
    if value is not None:
      self.write(type_id, value)

  def _struct(self, value, fields):
    present = [field for field in fields if field[0] in value]
    self.bits(5, 8)
    self.integer(len(present))
    for name, type_id, tag in present:
      self.integer(tag)
      self.write(type_id, value[name])


def encode(build, kind, value):
  """Returns a file: kind is the prefix of the type's name in the protocol of the build."""
  module = protocol.tables(build)
  writer = (BitWriter if kind == "replay_initdata" else VersionedWriter)(module.typeinfos)
  writer.write(getattr(module, f"{kind}_typeid"), value)
  return writer.data()


def encode_events(build, kind, events):
  """Returns a stream of events (loop, user, name, fields); kind is "game" or "tracker"."""
  module = protocol.tables(build)
  writer = (BitWriter if kind == "game" else VersionedWriter)(module.typeinfos)
  types = getattr(module, f"{kind}_event_types")
  ids = {name.rpartition(".S")[2].removesuffix("Event"): (event, type_id)
         for event, (type_id, name) in types.items()}
  before = 0
  for loop, user, name, fields in events:
    delta, before = loop - before, loop
    writer.write(module.svaruint32_typeid, {"m_uint32": delta})
    if kind == "game":
      writer.write(module.replay_userid_typeid, {"m_userId": user})
    event, type_id = ids[name]
    writer.write(getattr(module, f"{kind}_eventid_typeid"), event)
    writer.write(type_id, fields)
    writer.align()
  return writer.data()
