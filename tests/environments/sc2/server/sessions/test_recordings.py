"""Files of games are read back; other bytes give the game's error."""

import base64

import pytest

from starleague.environments.sc2.protocol import sc_pb
from starleague.environments.sc2.server.sessions import recordings

PLAYERS = [sc_pb.PlayerInfo(player_id=1, race_actual=1), sc_pb.PlayerInfo(player_id=2)]
SETTINGS = {
  "version": "4.10.0.75689", "map": "Simple64", "loops": 2240, "results": [1, 2],
  "players": [base64.b64encode(info.SerializeToString()).decode() for info in PLAYERS]}


def test_a_file_states_its_game():
  data = recordings.encode(SETTINGS, [(8, 0, b"action")])
  info = recordings.replay_info(sc_pb.RequestReplayInfo(replay_data=data))
  assert not info.HasField("error")
  assert (info.map_name, info.game_duration_loops, info.game_duration_seconds) == (
    "Simple64", 2240, 100)
  assert [extra.player_info for extra in info.player_info] == PLAYERS
  assert [extra.player_result.result for extra in info.player_info] == [1, 2]
  assert data == recordings.encode(SETTINGS, [(8, 0, b"action")])


@pytest.mark.parametrize("request_, error", [
  (sc_pb.RequestReplayInfo(), "MissingReplay"),
  (sc_pb.RequestReplayInfo(replay_path="/nowhere"), "InvalidReplayPath"),
  (sc_pb.RequestReplayInfo(replay_path="\0"), "InvalidReplayPath"),
  (sc_pb.RequestReplayInfo(replay_data=b"MPQ"), "ParsingError"),
  (sc_pb.RequestReplayInfo(replay_data=recordings.encode({}, [])[:-9]), "ParsingError"),
  (sc_pb.RequestReplayInfo(replay_data=recordings.encode({}, [])), "ParsingError"),
  (sc_pb.RequestReplayInfo(replay_data=recordings.encode(
    SETTINGS | {"players": ["/w=="]}, [])), "ParsingError"),
  (sc_pb.RequestReplayInfo(replay_data=recordings.encode(
    SETTINGS | {"loops": float("inf")}, [])), "ParsingError")])
def test_other_files_give_the_games_error(request_, error):
  info = recordings.replay_info(request_)
  assert sc_pb.ResponseReplayInfo.Error.Name(info.error) == error
