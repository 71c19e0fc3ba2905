"""Bit-packed and versioned values: bounds, unknown fields, values that do not fit."""

import pytest

from starleague.data.replays.readers import BitReader, ProtocolError, VersionedReader


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63 - 1), 2**63, 2**66])
def test_integers_fit_64_bits(value):
  magnitude, parts = abs(value), []
  first = (magnitude & 0x3F) << 1 | (value < 0)
  magnitude >>= 6
  parts.append(first | (0x80 if magnitude else 0))
  while magnitude:
    parts.append((magnitude & 0x7F) | (0x80 if magnitude >> 7 else 0))
    magnitude >>= 7
  reader = VersionedReader(bytes(parts), [])
  if abs(value) < 2**63:
    assert reader.integer() == value
  else:
    with pytest.raises(ProtocolError, match="too l[a-z]+ an integer"):
      reader.integer()


def test_versioned_readers_skip_unknown_fields():
  types = [("_int", [(0, 8)]), ("_struct", [[("a", 0, 1)]])]
  unknown = b"\x00\x04\x09\x02\x09\x04"  # an array of two integers
  for content in (unknown, b"\x01\x12\xff\xff", b"\x02\x04ab", b"\x03\x02\x09\x06", b"\x04\x00",
                  b"\x04\x01\x06\x01", b"\x05\x02\x00\x09\x02", b"\x07abcd", b"\x08abcdefgh"):
    data = b"\x05\x04\x04" + content + b"\x02\x09\x54"
    assert VersionedReader(data, types).of(1)() == {"a": 42}, content


@pytest.mark.parametrize("reader, data, types, message", [
  (BitReader, b"\x01", [("_int", [(0, 9)])], "ends at byte 1, inside a value"),
  (BitReader, b"\x05a", [("_blob", [(0, 8)])], "inside a blob"),
  (BitReader, b"\x03", [("_choice", [(0, 2), {0: ("a", 1)}]), ("_null", [])], "choice"),
  (VersionedReader, b"\x09" + b"\xff" * 20, [("_int", [(0, 8)])], "too long an integer"),
  (VersionedReader, b"\x00\x7e", [("_array", [(0, 8), 1]), ("_int", [(0, 8)])], "63 items"),
  (VersionedReader, b"\x02\x7e", [("_blob", [(0, 8)])], "inside a value"),
  (VersionedReader, b"\x06\x01", [("_int", [(0, 8)])], "kind 6 at byte 0, expected 9"),
  (VersionedReader, b"", [("_bool", [])], "inside a value")])
def test_values_that_do_not_fit(reader, data, types, message):
  with pytest.raises(ProtocolError, match=message):
    reader(data, types).of(0)()
