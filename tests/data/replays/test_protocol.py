"""The files of a replay by the tables of its build, against s2protocol's own decoders."""

import importlib.util

import pytest

from starleague.common.mpq import Archive
from starleague.data.replays import protocol
from starleague.data.replays.readers import ProtocolError
from tests.data.replays import encoding, games
from tests.data.replays.games import REAL, Game, needs_real


def plain(value):
  """Returns a value with the bits of long arrays left out: s2protocol mixes them up."""
  if isinstance(value, dict):
    return {key: plain(item) for key, item in value.items() if key not in ("_bits", "Mask")}
  if isinstance(value, list):
    return [plain(item) for item in value]
  return value.encode("latin-1") if isinstance(value, str) else value


@pytest.mark.parametrize("build", [27950, 32283, 51702, 55505, 65895, 78285, 81009, 90136, 98310])
def test_builds_of_all_years(build):
  """From the first expansion with these events to the newest build."""
  smart = {"m_cmdFlags": 0x100, "m_data": {"None": None}, "m_sequence": 1, "m_abil": None}
  found = games.decoded(Game(build=build, events=(games.select(5, 0, 11), (6, 0, "Cmd", smart))))
  assert (found.game.protocol, found.game.unread) == (build, "")
  assert [row.units for row in found.commands] == [[games.tag(11)]]
  assert [row.name for row in found.builds if row.order >= 0][:2] == ["Gateway", "Zealot"]


def test_builds_without_tables_use_the_nearest():
  assert protocol.nearest_builds(75689)[0] == 75689
  assert protocol.nearest_builds(75690)[0] == 75689
  assert protocol.nearest_builds(38215)[0] == 51702  # the first table of Legacy of the Void
  assert protocol.nearest_builds(32000)[0] == 32283
  found = games.decoded(Game(build=75700))
  assert (found.game.build, found.game.protocol) == (75700, 75689)


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


def test_an_unknown_event_is_named():
  """The id of an event that the build lacks, after one that it has."""
  module = protocol.tables(Game.build)
  writer = encoding.VersionedWriter(module.typeinfos)
  writer.write(module.svaruint32_typeid, {"m_uint32": 12})
  writer.write(module.tracker_eventid_typeid, 99)
  data = encoding.encode_events(Game.build, "tracker", Game.tracker[:1]) + writer.data()
  events = protocol.tracker_events(module, data)
  assert next(events).name == "PlayerSetup"
  with pytest.raises(ProtocolError) as error:
    next(events)
  assert str(error.value) == "unknown event 99 at game loop 12"


def test_events_count_game_loops_from_the_start():
  module = protocol.tables(Game.build)
  data = encoding.encode_events(Game.build, "game", Game.events)
  assert [event[:3] for event in protocol.game_events(module, data)] == [
    event[:3] for event in Game.events]


def test_text_of_blobs():
  assert protocol.text("테".encode() + b"\xff!") == "테\ufffd!"
  assert protocol.text(b"abc", limit=2) == "ab" and protocol.text(None) == ""
  assert protocol.text(b"a\0b\0\0") == protocol.text(b"a\0b\0c", limit=4) == "a\0b"


def test_a_missing_package_is_named_with_its_remedy(monkeypatch):
  monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
  with pytest.raises(ModuleNotFoundError) as error:
    protocol._folder()
  assert str(error.value) == ("StarCraft II replays: expected the package s2protocol, found none; "
                              "pip install 'starleague[replays]'")
