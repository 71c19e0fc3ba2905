"""Requests that set up games: maps, races, bots, the interface."""

import pytest

pytest.importorskip("pysc2")

from starleague.agent import config
from starleague.environments.sc2.client import setup_requests
from starleague.environments.sc2.protocol import sc_pb


@pytest.mark.parametrize("name, expected", [
  ("AbyssalReef", ("AbyssalReef", "Ladder2017Season4/AbyssalReefLE.SC2Map", "Abyssal Reef LE")),
  ("Abyssal Reef LE", ("AbyssalReef", "Ladder2017Season4/AbyssalReefLE.SC2Map",
                       "Abyssal Reef LE")),
  ("Mine/Home.SC2Map", ("Home", "Mine/Home.SC2Map", "")),
  ("Simple64", ("Simple64", "Melee/Simple64.SC2Map", ""))])
def test_maps_are_found_by_each_name(name, expected):
  assert setup_requests.find_map(name) == expected


@pytest.mark.parametrize("name, close", [("AbysalReef", "AbyssalReef"), ("xqzw", "none")])
def test_an_unknown_map_is_named_with_close_ones(name, close):
  with pytest.raises(setup_requests.GameSetupError, match=f"found '{name}'; close names: {close}"):
    setup_requests.find_map(name)


def test_bots_are_parsed():
  assert setup_requests.parse_bot("zerg:hard:macro") == (2, sc_pb.Hard, sc_pb.Macro)
  assert setup_requests.parse_bot("Random:CheatInsane") == (4, sc_pb.CheatInsane, sc_pb.RandomBuild)


@pytest.mark.parametrize("text, message", [
  ("zerg", "expected RACE:DIFFICULTY"), ("orc:hard", "race: expected one of terran"),
  ("zerg:godlike", "difficulty of a bot: expected one of veryeasy"),
  ("zerg:hard:cheese", "build of a bot: expected one of randombuild"),
  ("none:hard", "race: expected one of terran")])
def test_bots_that_the_game_lacks_are_refused(text, message):
  with pytest.raises(setup_requests.GameSetupError, match=message):
    setup_requests.parse_bot(text)


def test_the_interface_has_planes_of_the_configs_size():
  options = setup_requests.interface(config.mini())
  assert options.feature_layer.minimap_resolution.x == 32 and options.raw and options.score
  assert not options.feature_layer.allow_cheating_layers and options.IsInitialized()


def test_a_game_against_a_bot():
  request = setup_requests.create_game(
    setup_requests.find_map("Simple64"), [setup_requests.parse_bot("terran:easy")],
    map_data=b"map", seed=7)
  assert [(p.type, p.race, p.difficulty) for p in request.player_setup] == [
    (sc_pb.Participant, 0, 1), (sc_pb.Computer, 1, sc_pb.Easy)]
  assert request.local_map.map_data == b"map" and request.random_seed == 7
  assert not request.HasField("battlenet_map_name")
  only_online = setup_requests.GameMap("Mine", "", "Mine LE")
  assert setup_requests.create_game(only_online).battlenet_map_name == "Mine LE"


def test_the_ports_of_a_game_of_two_processes():
  request = setup_requests.join_game(3, config.mini(), "me", [1, 2, 3, 4])
  assert request.race == 3 and request.player_name == "me" and request.HasField("shared_port")
  assert (request.server_ports.game_port, request.server_ports.base_port) == (1, 2)
  assert [(p.game_port, p.base_port) for p in request.client_ports] == [(3, 4)]
  assert not setup_requests.join_game(3, config.mini()).HasField("server_ports")
