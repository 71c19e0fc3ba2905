"""Errors of clients that cannot join."""

import pytest

from starleague.environments.sc2.protocol import sc_pb
from starleague.environments.sc2.server.game.battlefields import Battlefield
from starleague.environments.sc2.server.sessions.join_checks import (
  Join,
  join_problem,
  participants,
  resolution_problem,
)
from starleague.environments.sc2.server.sessions.match import MatchSetup
from tests.environments.sc2.server import play

PLAYER, COMPUTER = (sc_pb.PlayerSetup(type=kind) for kind in (sc_pb.Participant, sc_pb.Computer))
PORTS = sc_pb.PortSet(game_port=5001, base_port=5002)


def setup(*players):
  return MatchSetup(Battlefield("mini"), "map", players, {}, 1, False, False)


def test_participants_are_the_players_of_clients():
  assert participants(setup(COMPUTER, PLAYER)) == [1]
  assert participants(setup(PLAYER, PLAYER)) == [0, 1] and participants(setup(COMPUTER)) == []


@pytest.mark.parametrize("request_, players", [
  (sc_pb.RequestJoinGame(race=1), (PLAYER, COMPUTER)),
  (sc_pb.RequestJoinGame(race=1, server_ports=PORTS), (PLAYER, PLAYER)),
  (sc_pb.RequestJoinGame(race=1, server_ports=PORTS), None),
  (sc_pb.RequestJoinGame(observed_player_id=2), (COMPUTER, COMPUTER)),
  (sc_pb.RequestJoinGame(observed_player_id=0), (COMPUTER, COMPUTER))])
def test_these_can_join(request_, players):
  assert join_problem(request_, players and setup(*players)) is None


@pytest.mark.parametrize("request_, players, error, details", [
  (sc_pb.RequestJoinGame(), (PLAYER,), Join.MissingParticipation, "race: expected one, found none"),
  (sc_pb.RequestJoinGame(race=1, options=play.interface(1025, 8)), (PLAYER,), Join.OtherError,
   "resolution: expected 0 to 1024"),
  (sc_pb.RequestJoinGame(race=1), (COMPUTER, COMPUTER), Join.GameFull,
   "the game has room for an observer only"),
  (sc_pb.RequestJoinGame(race=1), (PLAYER, PLAYER), Join.MissingPorts,
   "server_ports.game_port: expected a port"),
  (sc_pb.RequestJoinGame(race=1, server_ports=sc_pb.PortSet(game_port=2 ** 16)), None,
   Join.MissingPorts, "server_ports.game_port: expected a port"),
  (sc_pb.RequestJoinGame(observed_player_id=1), (PLAYER, COMPUTER), Join.FeatureUnsupported,
   "observers watch games of computer players only"),
  (sc_pb.RequestJoinGame(observed_player_id=1), None, Join.FeatureUnsupported,
   "observers watch games of computer players only"),
  (sc_pb.RequestJoinGame(observed_player_id=3), (COMPUTER, COMPUTER),
   Join.InvalidObservedPlayerId, "expected 0 to 2, found 3")])
def test_others_are_told_why_not(request_, players, error, details):
  found = join_problem(request_, players and setup(*players))
  assert (found.error, found.error_details) == (error, details)


def test_resolutions_have_a_limit():
  assert resolution_problem(play.interface(1024, 1024)) is None
  assert resolution_problem(sc_pb.InterfaceOptions()) is None
  render = sc_pb.InterfaceOptions()
  render.render.resolution.x = -1
  for options in (play.interface(8, 1025), render):
    assert resolution_problem(options) == "resolution: expected 0 to 1024"
