"""The actor's loop: games against chosen opponents, trajectories, results for the league."""

import contextlib
import os
import pathlib
import time
import uuid
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

import jax
import ml_collections
import numpy as np

from starleague import league
from starleague.actor import rollouts
from starleague.common import results
from starleague.data.conditioning import Recent
from starleague.data.parameters import ParameterFetcher
from starleague.data.records import Records
from starleague.data.writer import TrajectoryWriter
from starleague.experiments.run import compiling, conditions, stopping, wiring
from starleague.league import payoff

TARGETS = 32  # strategy statistics z kept for each race and starting side
REPORT_INTERVAL_S = 5.0
WINDOW_S = 60.0  # window of the win rates shown while training


class Played(NamedTuple):
  """Outputs of one call of the rollout program."""

  records: Records
  results: rollouts.Results


def opponent_probabilities(win_rates: np.ndarray, self_play: float, weighting: str,
                           uniform: float) -> np.ndarray:
  """Returns the probability of each opponent of the next game.

  Args:
    win_rates: [scripted players], of the agent against each.
    self_play: share of games against the current agent.
    weighting: of prioritised fictitious self-play (`starleague.league.pfsp`).
    uniform: share of the other games that is split evenly between the scripted players.

  Returns:
    [1 + scripted players] float32: self-play, then each scripted player.
  """
  scripted = uniform / len(win_rates) + (1.0 - uniform) * league.pfsp(win_rates, weighting)
  return np.concatenate([[self_play], (1.0 - self_play) * scripted]).astype(np.float32)


def game_results(batch: rollouts.Results, names: Sequence[str],
                 now: float) -> list[payoff.GameResult]:
  """Returns the payoff results of finished games against scripted players, without self-play."""
  over = np.asarray(batch.over)
  opponents = np.asarray(batch.opponent)[over]
  outcomes = np.sign(np.asarray(batch.reward)[over][:, 0]).astype(int)
  return [
    payoff.GameResult(id=uuid.uuid4().hex, home=wiring.PLAYER, away=names[opponent - 1],
                  result=int(outcome), time=now)
    for opponent, outcome in zip(opponents, outcomes, strict=True)
    if opponent != rollouts.SELF_PLAY]


def add_demonstrations(recent: Recent, batch: rollouts.Results,
                       demonstrators: Sequence[int]) -> bool:
  """Adds the z of games that a demonstrator won; returns whether there were any.

  Args:
    recent: the z kept, changed in place.
    batch: results of one call of the rollout program.
    demonstrators: indices of scripted players.
  """
  shown = 1 + np.asarray(demonstrators, int)
  won = np.asarray(batch.over) & (np.asarray(batch.reward)[..., 1] > 0)
  won &= np.isin(np.asarray(batch.opponent), shown)
  for index in zip(*np.nonzero(won), strict=True):
    scripted = (*index, 1)
    recent.add(int(batch.race[scripted]), int(batch.side[scripted]),
               jax.tree.map(lambda x, i=scripted: np.asarray(x)[i], batch.executed))
  return bool(won.any())


class Counts:
  """Adds steps and games to the run's results file every few seconds."""

  def __init__(self, run_dir: pathlib.Path, origin: float):
    """Takes the run's directory and the start of the run in Unix seconds."""
    self._path, self._origin = run_dir / results.FILE_NAME, origin
    self._steps = self._games = 0
    self._since = time.time()

  def add(self, steps: int, games: int, update: int = 0) -> float | None:
    """Counts steps and games; returns the time if it has reported them now, in Unix seconds."""
    self._steps += steps
    self._games += games
    now = time.time()
    if now - self._since < REPORT_INTERVAL_S:
      return None
    results.append(self._path, [
      results.Row(now - self._origin, update, "count/steps", self._steps),
      results.Row(now - self._origin, update, "count/games", self._games)])
    self._steps, self._games, self._since = 0, 0, now
    return now


class Reporter:
  """Reports game results to the league, and speed to the run's results file."""

  def __init__(self, run_dir: pathlib.Path, opponents: Sequence[str], origin: float):
    self._payoff = league.Payoff(run_dir / "league.sqlite")
    self._path, self._opponents, self._origin = run_dir / results.FILE_NAME, opponents, origin
    self._counts = Counts(run_dir, origin)
    self._results: list[payoff.GameResult] = []

  def win_rates(self) -> np.ndarray:
    """Returns the agent's score against each scripted player, from the league's payoff."""
    return self._payoff.scores(wiring.PLAYER, self._opponents)

  def add(self, steps: int, batch: rollouts.Results, update: int) -> None:
    """Counts the steps and games of one rollout call; reports every few seconds."""
    self._results += game_results(batch, self._opponents, time.time())
    reported = self._counts.add(steps, int(np.asarray(batch.over).sum()), update)
    if reported is not None:
      self._report(reported, update)

  def _report(self, now: float, update: int) -> None:
    self._payoff.record_many(self._results)
    seconds, rows = now - self._origin, []
    for opponent in self._opponents:
      found = self._payoff.interval(wiring.PLAYER, opponent, since=now - WINDOW_S)
      if found.games:
        rows += [results.Row(seconds, update, f"score/train/{opponent}", found.score,
                             found.low, found.high),
                 results.Row(seconds, update, f"games/{opponent}", found.games)]
    results.append(self._path, rows)
    self._results = []


def lower_priority(niceness: int) -> None:
  """Leaves the processor to other processes, where they want it.

  A process leads a session of its own. Where the kernel groups sessions (Linux's sched_autogroup),
  the niceness of the group is the one that counts.

  Args:
    niceness: 0 to 19, added to the process's own.
  """
  os.nice(niceness)
  with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as group:
    group.write(str(niceness))


def play(parts: wiring.Parts, config: ml_collections.ConfigDict, run_dir: pathlib.Path,
         address: str, parameters_address: str, index: int, origin: float) -> NoReturn:
  """Plays until SIGTERM or SIGINT, which end the process at once.

  The compiled program and the writer overlap: while a call runs on the device, the host writes the
  trajectories of the previous call.

  Args:
    parts: the agent, its environment and its opponents.
    config: the run's config.
    run_dir: the run's directory.
    address: host:port of the data server that gets the trajectories.
    parameters_address: host:port of the data server that has the newest parameters.
    index: of this actor among the run's.
    origin: start of the run, in Unix seconds.
  """
  stopping.end_at_once()  # only unfinished games are lost
  program = wiring.make_rollouts(parts, config)
  template = jax.eval_shape(parts.policy.init, jax.random.key(0))
  fetch = ParameterFetcher(
    parameters_address, wiring.PLAYER, template,
    interval_s=config.actor.parameter_interval_s, deadline_s=config.data.timeout_s)
  writer = TrajectoryWriter(
    address, wiring.PLAYER, parts.config, config.unroll_length, 2 * config.actor.games,
    deadline_s=config.data.timeout_s)
  reporter = Reporter(run_dir, parts.opponents, origin)
  demonstrators = [parts.opponents.index(name)
                   for name in filter(None, config.actor.demonstrators.split(","))]
  recent = Recent(TARGETS, parts.maps, wiring.active_probabilities(config), parts.mmr)
  library = conditions.library_path(config, run_dir)
  conditioning = (conditions.from_library(parts, config, library) if library
                  else recent.conditioning())
  finds_z = library is None and config.actor.pseudo_probability > 0
  # The time is part of the seed: a restarted actor must not repeat its games.
  key = jax.random.fold_in(jax.random.key(config.seed), time.time_ns() % 2**31 + index)
  opponents = np.arange(config.actor.games) % (1 + len(parts.opponents))
  with compiling.without_collection():
    state = program.init(key, opponents, conditioning)
  probabilities = opponent_probabilities(
    reporter.win_rates(), config.actor.self_play, config.actor.matchmaking, config.actor.uniform)
  # Compiled before the first parameters are there: the learner starts meanwhile.
  with compiling.without_collection():
    run = program.run.lower(template, state, probabilities, conditioning).compile()
  lower_priority(config.actor.niceness)
  previous: Played | None = None
  while True:
    fetched = fetch()
    probabilities = opponent_probabilities(
      reporter.win_rates(), config.actor.self_play, config.actor.matchmaking,
      config.actor.uniform)
    state, batch, finished = run(fetched.params, state, probabilities, conditioning)
    if previous is not None:
      writer.write(previous.records)
      if finds_z and add_demonstrations(recent, previous.results, demonstrators):
        conditioning = recent.conditioning()
      steps = int((np.asarray(previous.records.row) >= 0).sum())
      reporter.add(steps, previous.results, fetched.step)
    previous = Played(batch, finished)
