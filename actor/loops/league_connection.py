"""The connection of actors and evaluators to a league: its players, and reports of games."""

import time
import uuid
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from starleague import league
from starleague.league import players as league_players

REPORT_INTERVAL_S = 2.0


class Ended(NamedTuple):
  """A game that ended, with its number within its assignment."""

  assignment: league.Assignment
  game: int  # at least `assignment.games` if the game is surplus: it does not count
  reward: float  # of the home player: 1, 0 or -1
  behaviours: tuple[league.Behaviour, ...] = ()  # of the home player, then of the away player


def connect(coordinator: str, name: str) -> league.LeagueClient:
  """Returns a process's connection to the coordinator at host:port."""
  return league.LeagueClient(
    league.GrpcTransport(coordinator), f"{name}-{uuid.uuid4().hex[:8]}")


class Members:
  """The league's players by name."""

  def __init__(self, client: league.LeagueClient):
    """Asks for the players."""
    self._client = client
    self._players = self._ask()

  def _ask(self) -> dict[str, league.Player]:
    return {player.name: player for player in self._client.players()}

  @property
  def learners(self) -> list[str]:
    """Names of the players that learn."""
    return [name for name, player in self._players.items() if player.learns]

  def __call__(self, name: str) -> league.Player:
    """Returns a player; asks again for one that is not known, a new snapshot."""
    if name not in self._players:
      self._players = self._ask()
    return self._players[name]


def active(probabilities: np.ndarray, player: league.Player) -> np.ndarray:
  """Returns the probability [4] that each part of z is active for a player.

  Main agents and their snapshots play with z, exploiters without.

  Args:
    probabilities: [4], for a main agent.
    player: of the league.
  """
  return probabilities * (league_players.MAIN in (player.kind, player.parent_kind))


class GameReports:
  """Reports games to the coordinator every few seconds, and renews the leases of the others."""

  def __init__(self, client: league.LeagueClient):
    """Takes the connection."""
    self._client = client
    self._ended: dict[league.Assignment, list[league.PlayedGame]] = {}
    self._reported = time.monotonic()

  def add(self, ended: Sequence[Ended],
          held: Collection[league.Assignment]) -> list[league.Assignment]:
    """Takes games that ended, and the held assignments; returns those of them that are lost.

    An assignment is lost if another actor has it, or a player of it is paused.
    """
    for game in ended:
      if game.game < game.assignment.games:
        self._ended.setdefault(game.assignment, []).append(
          league.PlayedGame(game.game, int(np.sign(game.reward)), time.time(),
                            behaviours=game.behaviours))
    now = time.monotonic()
    if now - self._reported < REPORT_INTERVAL_S:
      return []
    self._reported = now
    if self._ended:
      self._client.report_games(
        [league.GamesReport(assignment, games) for assignment, games in self._ended.items()])
      self._ended = {}
    kept = set(self._client.renew(held))
    return [each for each in held if each.id not in kept]
