"""An actor of a run: plays batches of games, writes trajectories, reports results.

  python -m starleague.experiments.actor --run_dir runs/mini --address localhost:7000

It may be killed at any time: nothing but its unfinished games is lost.
"""

import pathlib
import time
import uuid
from collections.abc import Sequence

import jax
import numpy as np
from absl import flags, logging

from starleague import league
from starleague.actor import rollouts
from starleague.common import results
from starleague.data import statistics
from starleague.data.parameters import ParameterFetcher
from starleague.data.writer import TrajectoryWriter
from starleague.experiments.run import entry, run_flags, settings, wiring
from starleague.league import payoff

for _name in ("run_dir", "address", "parameters", "origin"):
  flags.declare_key_flag(_name)
_INDEX = flags.DEFINE_integer("index", 0, "Which of the run's actors this is.", lower_bound=0)

TARGETS = 32  # z held for each race and starting side
REPORT_INTERVAL_S = 5.0
WINDOW_S = 60.0  # of the win rates shown while training


def opponent_probabilities(win_rates: np.ndarray, self_play: float, weighting: str,
                           uniform: float) -> np.ndarray:
  """How often the next game is against the live agent, and against each scripted player.

  Args:
    win_rates: [scripted players] of the agent against each.
    self_play: share of games against the live agent.
    weighting: of prioritised fictitious self-play, see `starleague.league.pfsp`.
    uniform: share of the other games that goes to all scripted players alike.

  Returns:
    [1 + scripted players] float32.
  """
  scripted = uniform / len(win_rates) + (1.0 - uniform) * league.pfsp(win_rates, weighting)
  return np.concatenate([[self_play], (1.0 - self_play) * scripted]).astype(np.float32)


def game_results(batch: rollouts.Results, names: Sequence[str],
                 now: float) -> list[payoff.GameResult]:
  """Results of games against the scripted players named, as the payoff counts them."""
  over = np.asarray(batch.over)
  opponents = np.asarray(batch.opponent)[over]
  outcomes = np.sign(np.asarray(batch.reward)[over][:, 0]).astype(int)
  return [
    payoff.GameResult(id=uuid.uuid4().hex, home=wiring.PLAYER, away=names[opponent - 1],
                  result=int(outcome), time=now)
    for opponent, outcome in zip(opponents, outcomes, strict=True)
    if opponent != rollouts.SELF_PLAY]


def add_demonstrations(recent: statistics.Recent, batch: rollouts.Results,
                       demonstrators: Sequence[int]) -> bool:
  """Takes z from games that a demonstrator won; whether there were any.

  Args:
    recent: what is held, changed in place.
    batch: games that ended.
    demonstrators: indices of scripted players.
  """
  shown = 1 + np.asarray(demonstrators, int)
  won = np.asarray(batch.over) & (np.asarray(batch.reward)[..., 1] > 0)
  won &= np.isin(np.asarray(batch.opponent), shown)
  for index in zip(*np.nonzero(won), strict=True):
    recent.add(int(batch.race[index]), int(batch.side[index]),
               jax.tree.map(lambda x, i=index: np.asarray(x)[i], batch.executed))
  return bool(won.any())


class Reporter:
  """Tells the league who won and the run's folder how fast it goes."""

  def __init__(self, run_dir: pathlib.Path, opponents: Sequence[str], origin: float):
    self._payoff = league.Payoff(run_dir / "league.sqlite")
    self._path, self._opponents, self._origin = run_dir / results.FILE_NAME, opponents, origin
    self._steps = self._games = 0
    self._results: list[payoff.GameResult] = []
    self._since = time.time()

  def win_rates(self) -> np.ndarray:
    """Of the agent against each scripted player, as the league knows them."""
    return self._payoff.win_rates(wiring.PLAYER, self._opponents)

  def add(self, steps: int, batch: rollouts.Results, update: int) -> None:
    """Counts what a call of the program played; reports every few seconds."""
    now = time.time()
    self._steps += steps
    self._games += int(np.asarray(batch.over).sum())
    self._results += game_results(batch, self._opponents, now)
    if now - self._since >= REPORT_INTERVAL_S:
      self._report(now, update)

  def _report(self, now: float, update: int) -> None:
    self._payoff.record_many(self._results)
    seconds = now - self._origin
    rows = [results.Row(seconds, update, "count/steps", self._steps),
            results.Row(seconds, update, "count/games", self._games)]
    for opponent in self._opponents:
      found = self._payoff.interval(wiring.PLAYER, opponent, since=now - WINDOW_S)
      if found.games:
        rows += [results.Row(seconds, update, f"score/train/{opponent}", found.win_rate,
                             found.low, found.high),
                 results.Row(seconds, update, f"games/{opponent}", found.games)]
    results.append(self._path, rows)
    self._steps = self._games = 0
    self._results, self._since = [], now


def play(parts: wiring.Parts, config, run_dir: pathlib.Path, address: str, index: int,
         origin: float) -> None:
  """Plays until it is told to stop.

  Calls of the compiled program and the writing of what the call before played overlap: the program
  is started, and while it runs the host writes.
  """
  stop = wiring.stop_event()
  program = wiring.make_rollouts(parts, config)
  template = jax.eval_shape(parts.policy.init, jax.random.key(0))
  fetch = ParameterFetcher(
    run_flags.PARAMETERS.value or address, wiring.PLAYER, template,
    interval_s=config.actor.parameter_interval_s, deadline_s=config.data.timeout_s)
  writer = TrajectoryWriter(
    address, wiring.PLAYER, parts.config, config.unroll_length, 2 * config.actor.games,
    deadline_s=config.data.timeout_s, stop=stop)
  reporter = Reporter(run_dir, parts.opponents, origin)
  demonstrators = [parts.opponents.index(name)
                   for name in filter(None, config.actor.demonstrators.split(","))]
  recent = statistics.Recent(TARGETS)
  targets = recent.targets()
  # A restarted actor must not play the same games again.
  key = jax.random.fold_in(jax.random.key(config.seed), time.time_ns() % 2**31 + index)
  opponents = np.arange(config.actor.games) % (1 + len(parts.opponents))
  state = program.init(key, opponents, targets)
  before = None
  while not stop.is_set():
    fetched = fetch()
    probabilities = opponent_probabilities(
      reporter.win_rates(), config.actor.self_play, config.actor.matchmaking,
      config.actor.uniform)
    state, *played = program.run(fetched.params, state, probabilities, targets)
    if before is not None:
      records, finished = before
      writer.write(records)
      if config.actor.pseudo_probability and add_demonstrations(
          recent, finished, demonstrators):
        targets = recent.targets()
      reporter.add(int((np.asarray(records.row) >= 0).sum()), finished, fetched.step)
    before = played
  writer.close()
  logging.info("stopped index=%d", index)


def main() -> None:
  config = settings.load(run_flags.RUN_DIR.value)
  origin = time.time() if run_flags.ORIGIN.value is None else run_flags.ORIGIN.value
  play(wiring.make_parts(config), config, pathlib.Path(run_flags.RUN_DIR.value),
       run_flags.ADDRESS.value, _INDEX.value, origin)


if __name__ == "__main__":
  entry.run(main, required=["run_dir", "address"])
