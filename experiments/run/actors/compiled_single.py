"""The games of a run of one agent: against scripted players and itself, by its win rates.

It is a league of one: opponents are dealt here, without a coordinator, and all weights are those of
one player.
"""

import pathlib
import time
import uuid
from collections.abc import Sequence
from typing import Any

import jax
import ml_collections
import numpy as np

from starleague import league
from starleague.actor import rollouts
from starleague.common import results, run_files
from starleague.data.reverb.writer import TrajectoryWriter
from starleague.data.z.conditioning import Conditioning, Recent
from starleague.experiments.run.actors import compiled_loop
from starleague.experiments.run.parts import wiring, z_source
from starleague.league import payoff

TARGETS = 32  # strategy statistics z kept for each race and starting side
WINDOW_S = 60.0  # window of the win rates shown while training


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
    payoff.GameResult(id=uuid.uuid4().hex, home=run_files.PLAYER, away=names[opponent - 1],
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


class Reporter:
  """Reports game results to the league, and speed to the run's results file."""

  def __init__(self, run_dir: pathlib.Path, opponents: Sequence[str], origin: float):
    self._payoff = league.Payoff(run_dir / run_files.LEAGUE)
    self._path, self._opponents, self._origin = run_dir / results.FILE_NAME, opponents, origin
    self._counts = compiled_loop.Counts(run_dir, origin)
    self._results: list[payoff.GameResult] = []

  def opponent_probabilities(self, actor: ml_collections.ConfigDict) -> np.ndarray:
    """Returns the probability of each opponent of the next game, by the league's payoff.

    Args:
      actor: the config group; see `opponent_probabilities`.
    """
    return opponent_probabilities(self._payoff.scores(run_files.PLAYER, self._opponents),
                                  actor.self_play, actor.matchmaking, actor.uniform)

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
      found = self._payoff.interval(run_files.PLAYER, opponent, since=now - WINDOW_S)
      if found.games:
        rows += [results.Row(seconds, update, f"score/train/{opponent}", found.score,
                             found.low, found.high),
                 results.Row(seconds, update, f"games/{opponent}", found.games)]
    results.append(self._path, rows)
    self._results = []


class AgentGames:
  """The games of one agent; see `compiled_loop.Games`."""

  def __init__(self, parts: wiring.Parts, config: ml_collections.ConfigDict,
               run_dir: pathlib.Path, address: str, parameters_address: str, origin: float):
    """Connects to the data servers.

    Args:
      parts: the agent, its environment and its opponents.
      config: the run's config.
      run_dir: the run's directory.
      address: host:port of the data server that gets the trajectories.
      parameters_address: host:port of the data server that has the newest parameters.
      origin: start of the run, in Unix seconds.
    """
    self.program = wiring.make_rollouts(parts, config)
    self._parts, self._actor = parts, config.actor
    self._template = jax.eval_shape(parts.policy.init, jax.random.key(0))
    self._fetch = wiring.make_fetcher(parts, config, parameters_address, run_files.PLAYER)
    self._writer = TrajectoryWriter(
      address, run_files.PLAYER, parts.config, config.unroll_length, 2 * config.actor.games,
      deadline_s=config.data.timeout_s)
    self._reporter = Reporter(run_dir, parts.opponents, origin)
    self._update = 0  # of the newest parameters
    self._demonstrators = [parts.opponents.index(name)
                           for name in filter(None, config.actor.demonstrators.split(","))]
    self._recent = Recent(TARGETS, parts.maps, wiring.active_probabilities(config), parts.mmr)
    self._finds_z = (config.actor.pseudo_probability > 0
                     and z_source.library_path(config, run_dir) is None)
    self._conditioning = (self._recent.conditioning() if self._finds_z
                          else z_source.of_games(parts, config, run_dir))

  def first(self) -> tuple[np.ndarray, Conditioning]:
    """Returns games against all opponents and itself in equal shares."""
    opponents = np.arange(self._actor.games) % (1 + len(self._parts.opponents))
    return opponents, self._conditioning

  def _call(self, params: Any) -> compiled_loop.Call:
    return compiled_loop.Call(
      0, params, self._reporter.opponent_probabilities(self._actor), self._conditioning)

  def example(self) -> compiled_loop.Call:
    """Returns a call without parameters: the learner may not have published any."""
    return self._call(self._template)

  def next_call(self) -> compiled_loop.Call:
    """Returns a call with the newest parameters; waits for the first ones."""
    fetched = self._fetch()
    self._update = fetched.step
    return self._call(fetched.params)

  def handle(self, played: compiled_loop.Played) -> None:
    """Writes trajectories, reports results and steps, and collects z of demonstrators."""
    self._writer.write(played.records)
    if self._finds_z and add_demonstrations(self._recent, played.results, self._demonstrators):
      self._conditioning = self._recent.conditioning()
    steps = int((np.asarray(played.records.row) >= 0).sum())
    self._reporter.add(steps, played.results, self._update)
