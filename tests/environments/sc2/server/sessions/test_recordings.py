"""Files of games are read back; other bytes give the game's error."""

import base64
import os

import pytest

from starleague.common import mpq
from starleague.environments.sc2.protocol import sc_pb
from starleague.environments.sc2.server.game import exported
from starleague.environments.sc2.server.game.battlefields import Battlefield
from starleague.environments.sc2.server.sessions import recordings
from starleague.environments.skirmish.games import exact

PLAYERS = [sc_pb.PlayerInfo(player_id=1, race_actual=1), sc_pb.PlayerInfo(player_id=2)]
SETTINGS = {
  "version": "4.10.0.75689", "map": "Simple64", "seed": 3, "loops": 2240, "results": [1, 2],
  "players": [base64.b64encode(info.SerializeToString()).decode() for info in PLAYERS]}


def archive(settings):
  """An archive that holds a recording alone."""
  return mpq.make_archive({mpq.RECORDING: recordings.record(settings, [])})


def test_a_file_states_its_game():
  data = recordings.encode(SETTINGS, [(8, 0, b"action")], 96)
  info = recordings.replay_info(sc_pb.RequestReplayInfo(replay_data=data))
  assert not info.HasField("error")
  assert (info.map_name, info.game_duration_loops, info.game_duration_seconds) == (
    "Simple64", 2240, 100)
  # pysc2's replay_actions leaves out replays whose builds differ from those of `ping`.
  assert (info.base_build, info.data_build, info.data_version) == (
    75689, 75689, "B89B5D6FA7CBF6452E721311BFBC6CB2")
  assert [extra.player_info for extra in info.player_info] == PLAYERS
  assert [extra.player_result.result for extra in info.player_info] == [1, 2]
  assert data == recordings.encode(SETTINGS, [(8, 0, b"action")], 96)
  assert recordings.decode(data) == ({"schema": 4, **SETTINGS}, [(8, 0, b"action")])
  assert len(data) < 3072


def test_the_rules_of_a_battlefield_are_its_tiers_and_its_border():
  digests = [recordings.rules_of(Battlefield("mini", realistic=real)) for real in (True, False)]
  assert digests == [{"rules": exact.rules_digest("mini"), "border": 0,
                      "sources": exported.sources_digest()}] * 2


def test_a_border_is_that_of_realistic_maps(monkeypatch):
  monkeypatch.setattr(exact, "rules_digest", str)  # takes seconds at `large`
  borders = [recordings.rules_of(Battlefield("large", "open", real)) for real in (True, False)]
  sources = exported.sources_digest()
  assert borders == [{"rules": "large", "border": 8, "sources": sources},
                     {"rules": "large", "border": 0, "sources": sources}]


def test_a_recording_of_another_schema_states_both(monkeypatch):
  monkeypatch.setattr(recordings, "SCHEMA", 3)
  data = archive(SETTINGS)
  monkeypatch.undo()
  with pytest.raises(ValueError, match="^schema: expected 4, found 3; record the game again$"):
    recordings.decode(data)


@pytest.mark.parametrize("data, message", [
  (b"MPQ", "no file of a game: expected an MPQ archive with user data$"),
  (recordings.record(SETTINGS, []), "no file of a game: expected an MPQ archive"),
  (mpq.make_archive({"replay.details": b""}),
   "an archive without skirmish.recording: no game of Skirmish")])
def test_other_files_are_named(data, message):
  with pytest.raises(ValueError, match=f"^{message}"):
    recordings.decode(data)


def test_the_requests_of_a_file_have_limits(monkeypatch):
  entries = [(8, 0, b"action")] * 4
  data, line = recordings.encode(SETTINGS, entries, 96), len(b'[8, 0, "YWN0aW9u"]\n')
  assert (recordings._MOST_ENTRIES, line) == (1_048_576, 19)
  for name, most in (("_MOST_ENTRIES", 4), ("_MOST_ALL", 4 * line)):
    with monkeypatch.context() as patch:
      patch.setattr(recordings, name, most)
      assert recordings.decode(data).entries == entries
      patch.setattr(recordings, name, most - 1)
      with pytest.raises(ValueError, match=r"^requests: expected at most \d+, a line of at most "
                                           r"16777216 bytes and \d+ bytes in all, found more$"):
        recordings.decode(data)
      assert recordings.decode(data, entries=False).entries == []
  long = recordings.encode(SETTINGS, [(8, 0, bytes(13 << 20))], 96)
  with pytest.raises(ValueError, match="^requests: expected at most 1048576, a line of at most"):
    recordings.decode(long)


@pytest.mark.parametrize("request_, error", [
  (sc_pb.RequestReplayInfo(), "MissingReplay"),
  (sc_pb.RequestReplayInfo(replay_path="/nowhere"), "InvalidReplayPath"),
  (sc_pb.RequestReplayInfo(replay_path="\0"), "InvalidReplayPath"),
  (sc_pb.RequestReplayInfo(replay_data=b"MPQ"), "ParsingError"),
  (sc_pb.RequestReplayInfo(replay_data=archive(SETTINGS)[:-9]), "ParsingError"),
  (sc_pb.RequestReplayInfo(replay_data=archive({})), "ParsingError"),
  (sc_pb.RequestReplayInfo(replay_data=archive(SETTINGS | {"players": ["/w=="]})), "ParsingError"),
  (sc_pb.RequestReplayInfo(replay_data=archive(SETTINGS | {"loops": float("inf")})),
   "ParsingError")])
def test_other_files_give_the_games_error(request_, error):
  info = recordings.replay_info(request_)
  assert sc_pb.ResponseReplayInfo.Error.Name(info.error) == error


@pytest.mark.parametrize("absolute", [True, False])
def test_a_pipe_is_refused_at_once(absolute, tmp_path, monkeypatch):
  """Opening it would wait for a writer."""
  monkeypatch.chdir(tmp_path)
  monkeypatch.setenv("HOME", str(tmp_path))
  pipe = tmp_path / "Documents" / "StarCraft II" / "Replays" / "pipe.SC2Replay"
  pipe.parent.mkdir(parents=True)
  os.mkfifo(pipe)
  found = recordings.replay_info(sc_pb.RequestReplayInfo(
    replay_path=str(pipe) if absolute else pipe.name))
  assert found.error == sc_pb.ResponseReplayInfo.InvalidReplayPath
  assert found.error_details == f"{pipe}: expected a regular file"


def test_errors_do_not_quote_a_named_file(tmp_path):
  (tmp_path / "key").write_bytes(b"secret")
  found = recordings.replay_info(sc_pb.RequestReplayInfo(replay_path=str(tmp_path / "key")))
  assert found.error == sc_pb.ResponseReplayInfo.ParsingError
  assert found.error_details == "no file of a game: expected an MPQ archive with user data"


def test_a_relative_name_may_be_in_the_games_folder(tmp_path, monkeypatch):
  monkeypatch.setenv("HOME", str(tmp_path))
  monkeypatch.chdir(tmp_path)
  name, folder = "game.SC2Replay", tmp_path / "Documents" / "StarCraft II" / "Replays"
  request = sc_pb.RequestReplayInfo(replay_path=name)
  assert recordings.replay_info(request).error == sc_pb.ResponseReplayInfo.InvalidReplayPath
  folder.mkdir(parents=True)
  (folder / name).write_bytes(archive(SETTINGS))
  assert recordings.replay_info(request).game_duration_loops == 2240
  (tmp_path / name).write_bytes(archive(SETTINGS | {"loops": 8}))  # the working folder comes first
  assert recordings.replay_info(request).game_duration_loops == 8
