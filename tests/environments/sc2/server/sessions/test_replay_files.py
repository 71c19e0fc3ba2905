"""Files of a .SC2Replay, read by s2protocol, mpyq, pysc2 and the decoder of replays."""

import io
import json
import pathlib
import runpy

import mpyq
import pytest

pytest.importorskip("s2clientprotocol")
pytest.importorskip("pysc2")

from s2protocol import versions

from starleague.common import mpq
from starleague.data.replays import decode, refusals
from starleague.environments.sc2.protocol import sc_pb
from starleague.environments.sc2.server.sessions import replay_files
from starleague.environments.sc2.server.sessions.replay_files import PlayedGame

PLAYERS = (
  sc_pb.PlayerInfo(player_id=1, type=sc_pb.Participant, race_requested=4, race_actual=2,
                   player_name="Zoë"),
  sc_pb.PlayerInfo(player_id=2, type=sc_pb.Computer, race_requested=1, race_actual=1,
                   difficulty=sc_pb.Hard, ai_build=sc_pb.Macro))
GAME = PlayedGame("Ladder2019Season3/AcropolisLE.SC2Map", 96, 4480, 7, PLAYERS, (1, 2))


def _protocol():
  return versions.build(75689)


def test_the_header_states_version_and_length():
  found = versions.latest().decode_replay_header(replay_files.header(GAME))
  assert found["m_signature"] == b"StarCraft II replay\x1b11"
  assert found["m_version"] == {"m_flags": 1, "m_major": 4, "m_minor": 10, "m_revision": 0,
                                "m_build": 75689, "m_baseBuild": 75689}
  assert (found["m_elapsedGameLoops"], found["m_type"], found["m_useScaledTime"]) == (
    4480, 2, True)
  assert found["m_ngdpRootKey"]["m_data"].hex() == "b89b5d6fa7cbf6452e721311bfbc6cb2"


@pytest.mark.parametrize("results, numbers, names", [
  ((1, 2), [1, 2], ["Win", "Loss"]), ((3, 3), [3, 3], ["Tie", "Tie"]),
  ((), [0, 0], ["Undecided", "Undecided"])])
def test_details_and_metadata_list_players_and_results(results, numbers, names):
  files = replay_files.make_files(GAME._replace(results=results))
  details = _protocol().decode_replay_details(files["replay.details"])
  assert details["m_title"] == b"AcropolisLE"
  assert [(player["m_name"].decode(), player["m_race"], player["m_control"], player["m_teamId"],
           player["m_workingSetSlotId"]) for player in details["m_playerList"]] == [
    ("Zoë", b"Zerg", 2, 0, 0), ("A.I. 2 (Hard)", b"Terran", 3, 1, 1)]
  assert [player["m_result"] for player in details["m_playerList"]] == numbers
  metadata = json.loads(files["replay.gamemetadata.json"])
  assert [player["Result"] for player in metadata["Players"]] == names
  assert [(player["SelectedRace"], player["AssignedRace"]) for player in metadata["Players"]] == [
    ("Rand", "Zerg"), ("Terr", "Terr")]
  assert (metadata["Title"], metadata["MapName"], metadata["Duration"]) == (
    "AcropolisLE", GAME.map_name, 280)


@pytest.mark.parametrize("players", [PLAYERS, PLAYERS[::-1], PLAYERS[:1], PLAYERS[:1] * 2])
def test_the_lobby_is_read_to_its_last_field(players):
  data = replay_files.make_files(GAME._replace(players=players, results=()))["replay.initData"]
  lobby = _protocol().decode_replay_initdata(data)["m_syncLobbyState"]
  people = [info for info in players if info.type == sc_pb.Participant]
  assert [user["m_name"].decode() for user in lobby["m_userInitialData"]] == ["Zoë"] * len(people)
  description = lobby["m_gameDescription"]
  assert (description["m_mapSizeX"], description["m_mapSizeY"], description["m_randomValue"],
          description["m_gameSpeed"], description["m_maxPlayers"]) == (96, 96, 7, 4, len(players))
  slots = lobby["m_lobbyState"]["m_slots"]
  assert [slot["m_control"] for slot in slots] == [
    2 if info.type == sc_pb.Participant else 3 for info in players]
  assert [slot["m_workingSetSlotId"] for slot in slots] == list(range(len(players)))
  assert lobby["m_lobbyState"]["m_isSinglePlayer"] == (len(people) == 1)
  assert lobby["m_lobbyState"]["m_defaultAIBuild"] == 0


def test_long_names_are_cut_between_letters():
  info = sc_pb.PlayerInfo(player_id=1, type=sc_pb.Participant, race_actual=1,
                          player_name="ä" * 200)
  details = _protocol().decode_replay_details(
    replay_files.make_files(GAME._replace(players=(info,), results=()))["replay.details"])
  assert details["m_playerList"][0]["m_name"].decode() == "ä" * 127


def test_pysc2_reads_the_version_and_the_decoder_names_the_game():
  data = mpq.make_archive(
    {mpq.RECORDING: b"recording", **replay_files.make_files(GAME)}, replay_files.header(GAME))
  assert set(mpyq.MPQArchive(io.BytesIO(data)).extract()) == {
    b"skirmish.recording", b"replay.details", b"replay.initData", b"replay.gamemetadata.json"}
  import pysc2
  hidden = pathlib.Path(pysc2.__file__).parent / "lib" / "replay.py"
  version = runpy.run_path(str(hidden))["get_replay_version"](data)
  assert (version.game_version, version.build_version, version.data_version) == (
    "4.10.0", 75689, "B89B5D6FA7CBF6452E721311BFBC6CB2")
  with pytest.raises(refusals.Refusal) as error:
    decode.decode(data, "a.SC2Replay")
  assert error.value.reason == "a game of Skirmish"
  assert str(error.value) == (
    "AcropolisLE: Zoë (Zerg) against A.I. 2 (Hard) (Terran), 4480 game loops")
  damaged = mpq.make_archive({mpq.RECORDING: b"recording"}, replay_files.header(GAME))
  with pytest.raises(refusals.Refusal, match="replay.details cannot be decoded") as error:
    decode.decode(damaged, "a.SC2Replay")
  assert error.value.reason == refusals.DAMAGED
