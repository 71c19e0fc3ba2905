"""The readers against s2protocol's own decoders, on real files."""

import pytest

from starleague.data.replays import protocol
from starleague.data.replays.archive import Archive
from starleague.data.replays.readers import BitReader, ProtocolError, VersionedReader
from tests.data.replays.games import REAL, Game, needs_real


def plain(value):
  """Returns a value with the bits of long arrays left out: s2protocol mixes them up."""
  if isinstance(value, dict):
    return {key: plain(item) for key, item in value.items() if key not in ("_bits", "Mask")}
  if isinstance(value, list):
    return [plain(item) for item in value]
  return value.encode("latin-1") if isinstance(value, str) else value


@needs_real
@pytest.mark.parametrize("name", ["di-star/replay_4.10.3", "pysc2/replay_05"])
def test_real_files_agree_with_s2protocol(name):
  archive = Archive((REAL / f"{name}.SC2Replay").read_bytes())
  header = protocol.header(archive.header)
  module = protocol.tables(header["m_version"]["m_baseBuild"])
  assert plain(header) == plain(module.decode_replay_header(archive.header))
  details = archive.read("replay.details")
  assert plain(protocol.details(module, details)) == plain(module.decode_replay_details(details))
  lobby = archive.read("replay.initData")
  expected = plain(module.decode_replay_initdata(lobby))["m_syncLobbyState"]
  found = protocol.lobby(module, lobby)
  assert plain(found.users) == expected["m_userInitialData"]
  assert plain(found.description).items() <= expected["m_gameDescription"].items()
  for kind in ("tracker", "game"):
    data = archive.read(f"replay.{kind}.events")
    events = list(getattr(protocol, f"{kind}_events")(module, data))
    reference = [plain(event) for event in getattr(module, f"decode_replay_{kind}_events")(data)]
    assert len(events) == len(reference) > 300
    for event, other in zip(events, reference, strict=True):
      assert event.loop == other.pop("_gameloop")
      assert f".S{event.name}Event".encode() in other.pop("_event")
      assert kind == "tracker" or event.user == other.pop("_userid")["m_userId"]
      other.pop("_eventid")
      assert plain(event.fields) == other


def test_synthetic_files_agree_with_s2protocol():
  module = protocol.tables(Game.build)
  data = Game().files()["replay.details"]
  assert plain(protocol.details(module, data)) == plain(module.decode_replay_details(data))


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
