"""Encodings of a replay's files against s2protocol's decoders, type by type."""

import pytest

pytest.importorskip("s2clientprotocol")

from s2protocol import decoders

from starleague.environments.sc2.server.sessions import encodings

INTEGER, BLOB, BOOL = ("_int", [(0, 64)]), ("_blob", [(0, 8)]), ("_bool", [])


@pytest.mark.parametrize("data, types, expected", [
  (encodings.integer(0), [INTEGER], 0), (encodings.integer(63), [INTEGER], 63),
  (encodings.integer(64), [INTEGER], 64), (encodings.integer(-75689), [INTEGER], -75689),
  (encodings.integer(2 ** 40 + 5), [INTEGER], 2 ** 40 + 5),
  (encodings.boolean(True), [BOOL], True), (encodings.blob(b"\0" * 200), [BLOB], b"\0" * 200),
  (encodings.four(b"abcd"), [("_fourcc", [])], b"abcd"),
  (encodings.optional(None), [("_optional", [1]), BOOL], None),
  (encodings.optional(encodings.boolean(False)), [("_optional", [1]), BOOL], False),
  (encodings.array(map(encodings.integer, (7, 8))), [("_array", [(0, 5), 1]), INTEGER], [7, 8]),
  (encodings.struct({3: encodings.blob(b"x"), 70: encodings.integer(9)}),
   [("_struct", [[("a", 1, 3), ("b", 2, 70)]]), BLOB, INTEGER], {"a": b"x", "b": 9})])
def test_versioned_values(data, types, expected):
  decoder = decoders.VersionedDecoder(data, types)
  assert decoder.instance(0) == expected and decoder.done()


def test_bit_packed_values():
  """Integers that cross bytes, missing values, and blobs after values of odd sizes."""
  writer = encodings.BitWriter()
  for count, value in ((3, 5), (32, 0xDEADBEEF), (64, 2 ** 63 + 1), (1, 1), (11, 1234)):
    writer.bits(count, value)
  writer.optional(8)
  writer.optional(4, 9)
  writer.blob(8, b"name")
  writer.bits(6, 33)
  decoder = decoders.BitPackedDecoder(writer.data(), [
    ("_blob", [(0, 8)]), ("_optional", [2]), ("_int", [(0, 8)]), ("_optional", [4]),
    ("_int", [(0, 4)])])
  integers = [decoder._buffer.read_bits(count) for count in (3, 32, 64, 1, 11)]
  assert integers == [5, 0xDEADBEEF, 2 ** 63 + 1, 1, 1234]
  assert [decoder.instance(kind) for kind in (1, 3, 0)] == [None, 9, b"name"]
  assert decoder._buffer.read_bits(6) == 33
  decoder.byte_align()
  assert decoder.done()
