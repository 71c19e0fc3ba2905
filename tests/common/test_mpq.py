"""MPQ archives: read as mpyq reads them, and written so that mpyq reads them."""

import bz2
import io
import random
import struct
import zlib

import mpyq
import pytest

from starleague.common import mpq
from tests.data.replays import encoding
from tests.data.replays.games import REAL, needs_real

TEXT = bytes(range(256)) * 100  # six sectors and a rest
NOISE = random.Random(0).randbytes(20_000)


@pytest.mark.parametrize("content", [
  b"x", TEXT, NOISE, bytes(encoding.SECTOR),
  (0x81000200, b"\x02" + zlib.compress(TEXT), len(TEXT)),
  (0x81000200, b"\x10" + bz2.compress(TEXT), len(TEXT)),
  (0x81000000, TEXT, len(TEXT))])
def test_files_of_archives(content, tmp_path):
  """The reader agrees with mpyq on sectors, single units, zlib, bzip2 and stored bytes."""
  data = encoding.archive({"a": b"other", "b": content}, b"header")
  found = mpq.Archive(data)
  expected = content[1] if content == (0x81000000, TEXT, len(TEXT)) else (
    TEXT if isinstance(content, tuple) else content)
  assert found.header == b"header" and found.read("a") == b"other"
  assert found.read("b") == expected and found.read("c") is None
  if content is NOISE:
    return  # mpyq takes a sector that is stored as it is for a compressed one
  (tmp_path / "a.mpq").write_bytes(data)
  assert mpyq.MPQArchive(str(tmp_path / "a.mpq"), listfile=False).read_file("b") == expected


@needs_real
def test_real_archives_agree_with_mpyq():
  path = REAL / "di-star" / "replay_4.10.3.SC2Replay"
  found, reference = mpq.Archive(path.read_bytes()), mpyq.MPQArchive(str(path))
  for name in reference.files:
    if not name.endswith(b"battlelobby"):
      # mpyq returns None for an empty file.
      assert (found.read(name.decode()) or None) == (reference.read_file(name) or None), name


@pytest.mark.parametrize("count", [1, 7, 100])
def test_written_archives_are_read_by_both_readers(count):
  contents = [b"x", b"short text", TEXT, NOISE, b"{}" * 3]
  files = {f"replay.part.{i}": contents[i % len(contents)] for i in range(count)}
  data = mpq.make_archive(files, b"version")
  reference = mpyq.MPQArchive(io.BytesIO(data))
  assert reference.header["user_data_header"]["content"] == b"version"
  assert reference.extract() == {name.encode(): content for name, content in files.items()}
  found = mpq.Archive(data)
  assert found.header == b"version" and found.read("replay.part") is None
  assert {name: found.read(name) for name in files} == files
  assert data == mpq.make_archive(files, b"version")


def test_an_empty_file_is_not_a_missing_one():
  found = mpq.Archive(mpq.make_archive({"a": b"", "b": b"x"}))
  assert found.read("a") == b"" and found.read("b") == b"x" and found.read("c") is None


def test_written_files_lie_where_their_hash_says():
  """Other readers start at a name's hash, and give up at an empty entry."""
  names = [f"file{i}" for i in range(40)]
  data = mpq.make_archive(dict.fromkeys(names, b"x"))
  reference = mpyq.MPQArchive(io.BytesIO(data))
  size = len(reference.hash_table)
  assert size & (size - 1) == 0 and size > len(names)
  for name in names:
    place = reference._hash(name, "TABLE_OFFSET") % size
    while reference.hash_table[place].hash_a != reference._hash(name, "HASH_A"):
      assert reference.hash_table[place].block_table_index != 0xFFFFFFFF
      place = (place + 1) % size
  assert struct.unpack_from("<I", data, 1024 + 8)[0] == len(data) - 1024


def test_a_header_that_does_not_fit_is_refused():
  assert mpq.Archive(mpq.make_archive({}, b"h" * 1008)).header == b"h" * 1008
  with pytest.raises(ValueError, match="^header: expected at most 1008 bytes, found 1009$"):
    mpq.make_archive({}, b"h" * 1009)


@pytest.mark.parametrize("damage, reason, detail", [
  (lambda data: b"PK\x03\x04", mpq.NO_ARCHIVE,
   "expected an MPQ archive with user data, found a file that begins with 50 4b 03 04"),
  (lambda data: data[:-1], mpq.DAMAGED, "inside its (block table)"),
  (lambda data: data.replace(b"MPQ\x1a", b"MPQ\x1c"), mpq.DAMAGED,
   "expected an MPQ header at byte 1024, found 4d50511c")])
def test_damage_is_named(damage, reason, detail):
  with pytest.raises(mpq.ArchiveError) as error:
    mpq.Archive(damage(mpq.make_archive({"a": TEXT})))
  assert error.value.reason == reason and detail in str(error.value)
