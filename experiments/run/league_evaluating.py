"""An evaluator of a league: games of the pairs known least, and replays of the telling ones."""

import pathlib
import time
import uuid
from typing import Any, NoReturn

import jax
import ml_collections
import numpy as np

from starleague import league
from starleague.data.parameters import ParameterFetcher
from starleague.environments.skirmish.games import dm_environment, replays
from starleague.environments.skirmish.rules import constants
from starleague.experiments.run import acting, league_acting, stopping, wiring

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
               address: str, client: league.LeagueClient):
    """Takes the parts of the run, the data server's address and the connection."""
    self._parts, self._config, self._run_dir = parts, config, run_dir
    self._client, self._members = client, league_acting.Members(client)
    self._address = address
    self._fetchers: dict[str, ParameterFetcher] = {}
    self._random = np.random.default_rng((config.seed, time.time_ns()))

  def _params(self, name: str) -> Any:
    """Returns the parameters of a policy: the newest ones of a player that learns."""
    if not self._members(name).learns:
      return league_acting.load_snapshot(self._parts, self._run_dir, name)
    if name not in self._fetchers:
      template = jax.eval_shape(self._parts.policy.init, jax.random.key(0))
      self._fetchers[name] = ParameterFetcher(
        self._address, name, template, interval_s=self._config.actor.parameter_interval_s,
        deadline_s=self._config.data.timeout_s)
    return self._fetchers[name]().params

  def _controller(self, name: str) -> replays.Controller:
    if self._members(name).kind == league.SCRIPTED:
      return replays.scripted_player(name, self._parts.game)
    return replays.policy_player(
      name, self._parts.policy, self._params(name), self._parts.game, self._parts.mmr)

  def _play(self, names: tuple[str, str],
            controllers: tuple[replays.Controller, replays.Controller],
            game: int, renewal: Renewal) -> replays.Replay:
    """Plays a game of an assignment, by its number; the sides alternate."""
    races = tuple(self._members(name).race or dm_environment.RANDOM for name in names)
    match_up = dm_environment.draw_match_up(
      self._random, self._config.environment.tier, races, swap_sides=bool(game % 2))
    return replays.record(
      controllers, int(self._random.integers(2**31)), game=self._parts.game, match_up=match_up,
      on_step=renewal)

  def evaluate(self, assignment: league.Assignment) -> None:
    """Plays and reports the games of an assignment; keeps the replays that are asked for.

    Learning players keep the parameters that they have at the first game.
    """
    names = assignment.home, assignment.away
    controllers = self._controller(names[0]), self._controller(names[1])
    renewal = Renewal(self._client, assignment, self._config.league.lease_s / 3)
    for game in range(assignment.games):
      replay = self._play(names, controllers, game, renewal)
      result = {0: league.WIN, 1: league.LOSS}.get(replay.winner, league.DRAW)
      played = league.PlayedGame(game, result, time.time(),
                                 replay.steps * constants.LOOPS_PER_STEP)
      (receipt,), = self._client.report_games([league.GamesReport(assignment, [played])])
      if receipt.reasons:
        path = self._run_dir / REPLAYS / f"{assignment.id}-{game}.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        replays.save(path, replay)
        self._client.keep_replay(assignment.result_id(game),
                                 str(path.relative_to(self._run_dir)))


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
  acting.lower_priority(config.league.evaluator_niceness)
  client = league.LeagueClient(
    league.GrpcTransport(coordinator), f"evaluator-{uuid.uuid4().hex[:8]}")
  evaluator = Evaluator(parts, config, run_dir, address, client)
  while not (run_dir / wiring.INITIAL).exists():  # the learner writes it when it starts
    time.sleep(_IDLE_S)
  while True:
    assignments = client.evaluation_matches(1, config.league.evaluation_games)
    for assignment in assignments:
      evaluator.evaluate(assignment)
    if not assignments:
      time.sleep(_IDLE_S)
