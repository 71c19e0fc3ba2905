"""Match settings from the request `create_game`."""

import pathlib
import secrets
from collections.abc import Mapping, Sequence

import numpy as np

from starleague.environments.sc2.protocol import common_pb, sc_pb
from starleague.environments.sc2.server.game import battlefields
from starleague.environments.sc2.server.game.game import ScriptedBot
from starleague.environments.sc2.server.game.opponents import make_bot
from starleague.environments.sc2.server.sessions.match import MatchSetup

_MOST_SEED = 2 ** 31 - 1
_MOST_PLAYERS = 2
_RACES = (common_pb.Terran, common_pb.Zerg, common_pb.Protoss)


class SetupError(Exception):
  """The players of a request are invalid."""


def make_setup(request: sc_pb.RequestCreateGame, saved: Mapping[str, bytes],
               folder: pathlib.Path | None) -> MatchSetup:
  """Returns the settings of a match.

  Args:
    request: of the client.
    saved: maps from `save_map`, by path.
    folder: the installation's `Maps`; None: every name is a map.

  Raises:
    SetupError: the players are invalid.
    FileNotFoundError: there is no such map.
    MapError: neither a name nor the bytes of a map, or one of this server with a wrong value.
  """
  name = request.battlenet_map_name or request.local_map.map_path
  data = request.local_map.map_data or saved.get(name, b"")
  battlefield = battlefields.find(
    name, data, None if request.battlenet_map_name else folder)
  players = tuple(setup for setup in request.player_setup if setup.type != sc_pb.Observer)
  if not 1 <= len(players) <= _MOST_PLAYERS:
    raise SetupError(f"player_setup: expected 1 or 2 players, found {len(players)}")
  observed = len(players) < len(request.player_setup)
  if not observed and not any(setup.type == sc_pb.Participant for setup in players):
    raise SetupError("player_setup: expected a participant or an observer, found none")
  seed = request.random_seed if request.HasField("random_seed") else secrets.randbits(31)
  return MatchSetup(battlefield, name, players, make_bots(battlefield, players), seed & _MOST_SEED,
               request.realtime, request.disable_fog)


def make_bots(battlefield: battlefields.Battlefield,
              players: Sequence[sc_pb.PlayerSetup]) -> dict[int, ScriptedBot]:
  """Returns the scripted players of a match, by player."""
  return {player: make_bot(battlefield.tier, setup.difficulty, setup.ai_build)
          for player, setup in enumerate(players) if setup.type == sc_pb.Computer}


def draw_races(setup: MatchSetup, joined: Mapping[int, int]) -> tuple[int, int]:
  """Returns the races that are played, as indices of types.RACES, which are the API's numbers.

  Args:
    setup: of the match; it has the races of computer players.
    joined: races of the participants by player; random ones are drawn with the match's seed.
  """
  rng = np.random.default_rng(setup.seed)
  races = [int(common_pb.Terran)] * _MOST_PLAYERS
  for player, info in enumerate(setup.players):
    drawn = int(rng.choice(_RACES))
    wanted = joined.get(player, info.race)
    races[player] = wanted if wanted in _RACES else drawn
  return races[0], races[1]
