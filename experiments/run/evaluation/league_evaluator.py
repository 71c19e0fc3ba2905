"""An evaluator of a league: games of the pairs known least, and replays of the telling ones."""

import pathlib
import time
import uuid
from typing import Any, NoReturn

import ml_collections
import numpy as np
from absl import logging

from starleague import league
from starleague.actor import sessions
from starleague.common import run_files, stopping
from starleague.common.errors import UserError
from starleague.data.reverb.parameters import ParameterFetcher
from starleague.experiments.run.actors import compiled_league
from starleague.experiments.run.evaluation import arenas, sc2_arena
from starleague.experiments.run.parts import wiring

REPLAYS = "replays"  # folder of a league's kept replays
_IDLE_S = 5.0  # before the league has weights, and while all its players are paused


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

  def __init__(self, parts: wiring.Parts, config: ml_collections.ConfigDict, run_dir: pathlib.Path,
               address: str, client: league.LeagueClient, arena: arenas.Arena):
    """Takes the parts of the run, the data server's address, the connection and the arena."""
    self._parts, self._config, self._run_dir = parts, config, run_dir
    self._client, self._members = client, compiled_league.Members(client)
    self._address, self._arena = address, arena
    self._fetchers: dict[str, ParameterFetcher] = {}

  def _params(self, player: league.Player) -> Any:
    """Returns the parameters of a player, the newest ones of one that learns; None: scripted."""
    if player.kind == league.SCRIPTED:
      return None
    if not player.learns:
      return compiled_league.load_snapshot(self._parts, self._run_dir, player.name)
    if player.name not in self._fetchers:
      self._fetchers[player.name] = wiring.make_fetcher(
        self._parts, self._config, self._address, player.name)
    return self._fetchers[player.name]().params

  def evaluate(self, assignment: league.Assignment) -> None:
    """Plays and reports the games of an assignment; keeps the replays that are asked for.

    Learning players keep the parameters that they have at the first game. If a game fails, the
    others of the assignment go to another evaluator, or to this one later.
    """
    players = [self._members(name) for name in (assignment.home, assignment.away)]
    match = self._arena.match(players, [self._params(player) for player in players])
    renewal = Renewal(self._client, assignment, self._config.league.lease_s / 3)
    for game in range(assignment.games):
      try:
        played = match(game, renewal)
      except self._arena.final_errors:
        raise
      except UserError as error:
        logging.warning("void_match home=%s away=%s reason=%r", *(each.name for each in players),
                        " ".join(str(error).split()))
        self._client.release([assignment])
        return
      self._report(assignment, game, played)

  def _report(self, assignment: league.Assignment, game: int, played: arenas.Played) -> None:
    (receipt,), = self._client.report_games([league.GamesReport(
      assignment, [league.PlayedGame(game, played.result, time.time(), played.loops)])])
    if receipt.reasons:
      path = self._run_dir / REPLAYS / f"{assignment.id}-{game}{self._arena.suffix}"
      path.parent.mkdir(parents=True, exist_ok=True)
      played.save(path)
      self._client.keep_replay(assignment.result_id(game), str(path.relative_to(self._run_dir)))


def _arena(parts: wiring.Parts, config: ml_collections.ConfigDict) -> arenas.Arena:
  random = np.random.default_rng((config.seed, time.time_ns()))
  if parts.sc2 is None:
    return arenas.SkirmishArena(parts, config, random)
  return sc2_arena.Sc2Arena(parts, random)


def evaluate(parts: wiring.Parts, config: ml_collections.ConfigDict, run_dir: pathlib.Path,
             address: str, coordinator: str) -> NoReturn:
  """Plays evaluation games until SIGTERM or SIGINT, which end the process at once.

  Args:
    parts: the agent, its environment and its scripted opponents.
    config: the run's config.
    run_dir: the run's directory.
    address: host:port of the data server, for the newest parameters.
    coordinator: host:port of the league's coordinator.
  """
  stopping.end_at_once()  # only unfinished games are lost: their leases end
  sessions.lower_priority(config.league.evaluator_niceness)
  client = league.LeagueClient(
    league.GrpcTransport(coordinator), f"evaluator-{uuid.uuid4().hex[:8]}")
  evaluator = Evaluator(parts, config, run_dir, address, client, _arena(parts, config))
  while not (run_dir / run_files.INITIAL).exists():  # the learner writes it when it starts
    time.sleep(_IDLE_S)
  while True:
    assignments = client.evaluation_matches(1, config.league.evaluation_games)
    for assignment in assignments:
      evaluator.evaluate(assignment)
    if not assignments:
      time.sleep(_IDLE_S)
