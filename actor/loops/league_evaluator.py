"""An evaluator of a league: games of the pairs known least, and replays of the notable ones."""

import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn, Protocol

from absl import logging

from starleague import league
from starleague.actor.loops.league_connection import Members
from starleague.actor.loops.options import ActorOptions, ActorProcess
from starleague.actor.loops.weights import WeightSource, make_source
from starleague.actor.parts import Parts
from starleague.common import run_files
from starleague.common.errors import UserError
from starleague.league.run_copy import RunCopy

_IDLE_S = 5.0  # before the league has weights, and while all its players are paused


class ArenaGame(NamedTuple):
  """A game of an arena that has ended; `league.PlayedGame` is its report."""

  result: int  # WIN, DRAW or LOSS of the first player
  loops: int  # game loops
  save: Callable[[pathlib.Path], object] | None  # writes its replay; None: there is none
  behaviours: tuple[league.Behaviour, ...] = ()  # of the first player, then of the second


# Plays a game of a match, by its number; the second argument is called at every step.
PlayMatch = Callable[[int, Callable[[], object]], ArenaGame]


class Arena(Protocol):
  """Plays the matches of an evaluator."""

  suffix: str  # of replays
  final_errors: tuple[type[Exception], ...]  # after these, no other game can be played either

  def match(self, players: Sequence[league.Player], params: Sequence[Any]) -> PlayMatch:
    """Returns the match of two players; `params` of scripted ones are None.

    The sides alternate.
    """


class Renewal:
  """Renews the lease of an assignment while its game goes on."""

  def __init__(self, client: league.LeagueClient, assignment: league.Assignment,
               interval_s: float):
    """Starts with a lease of full length.

    Args:
      client: the connection.
      assignment: that is played.
      interval_s: between two renewals.
    """
    self._client, self._assignment, self._interval_s = client, assignment, interval_s
    self._renewed = time.monotonic()

  def __call__(self) -> None:
    """Renews the lease if the interval is over; called at every step of a game."""
    now = time.monotonic()
    if now - self._renewed >= self._interval_s:
      self._renewed = now
      self._client.renew([self._assignment])


class Evaluator:
  """Plays single games with any two players of a league."""

  def __init__(self, run: RunCopy, client: league.LeagueClient, members: Members,
               weights: WeightSource, arena: Arena, lease_s: float):
    """Takes the run's directory, the league, the weights of its players, and the arena.

    Args:
      run: the run's directory.
      client: of the league's coordinator.
      members: the league's players.
      weights: of the players.
      arena: that plays the matches.
      lease_s: of an assignment.
    """
    self._run, self._client, self._members = run, client, members
    self._weights, self._arena, self._lease_s = weights, arena, lease_s

  def _params(self, player: league.Player) -> Any:
    """Returns the weights of a player, the newest ones of one that learns; None: scripted."""
    return None if player.kind == league.SCRIPTED else self._weights(player.name).params

  def evaluate(self, assignment: league.Assignment) -> None:
    """Plays and reports the games of an assignment; keeps the replays that are asked for.

    Learning players keep the parameters that they have at the first game. If a game fails, the
    assignment goes to another evaluator, or to this one again, at most three times in all. All of
    its games are then played again, but a game that has a result counts no second time and its
    replay stays.

    Raises:
      LeagueUnavailableError: the coordinator did not answer within the deadline. No game has
        failed, so the assignment is not void: its lease ends.
    """
    players = [self._members(name) for name in (assignment.home, assignment.away)]
    match = self._arena.match(players, [self._params(player) for player in players])
    renewal = Renewal(self._client, assignment, self._lease_s / 3)
    final_errors: tuple[type[Exception], ...] = (
      league.LeagueUnavailableError, *self._arena.final_errors)
    for game in range(assignment.games):
      try:
        played = match(game, renewal)
      except final_errors:
        raise
      except UserError as error:
        logging.warning("void_match home=%s away=%s reason=%r", *(each.name for each in players),
                        " ".join(str(error).split()))
        self._client.release([assignment])
        return
      self._report(assignment, game, played)

  def _report(self, assignment: league.Assignment, game: int, played: ArenaGame) -> None:
    (receipt,), = self._client.report_games([league.GamesReport(
      assignment, [league.PlayedGame(game, played.result, time.time(), played.loops,
                                     played.behaviours)])])
    if receipt.reasons and played.save is not None:
      name = f"{run_files.REPLAYS}/{assignment.id}-{game}{self._arena.suffix}"
      path = self._run.run_dir / name
      path.parent.mkdir(parents=True, exist_ok=True)
      played.save(path)
      self._run.send(name)
      self._client.keep_replay(assignment.result_id(game), name)


def evaluate(parts: Parts, options: ActorOptions, process: ActorProcess,
             client: league.LeagueClient, arena: Arena) -> NoReturn:
  """Plays evaluation games until SIGTERM or SIGINT, which end the process at once.

  Args:
    parts: the agent and its games.
    options: of an actor.
    process: the evaluator.
    client: of the league's coordinator.
    arena: that plays the matches.
  """
  members, run = Members(client), RunCopy(process.run_dir, client)
  weights = make_source(
    parts, run, process.parameters, members.learners, options.parameter_interval_s,
    options.timeout_s)
  evaluator = Evaluator(run, client, members, weights, arena, options.lease_s)
  while not run.fetch(run_files.INITIAL):  # the learner makes it when it starts
    time.sleep(_IDLE_S)
  while True:
    assignments = client.evaluation_matches(1, options.evaluation_games)
    for assignment in assignments:
      evaluator.evaluate(assignment)
    if not assignments:
      time.sleep(_IDLE_S)
