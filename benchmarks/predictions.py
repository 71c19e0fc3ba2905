"""The time of recording an agent's predictions: games with and without, in turn in one run.

  python -m benchmarks.predictions                  # mini, two agents
  python -m benchmarks.predictions --preset small --rounds 5

Prints medians of rounds: milliseconds of a decision, and the ratio with predictions to without, by
wall and by processor time, of

- games: a round plays one game twice, as `watch` and a league's evaluators do. Both copies are
  equal, and play `CHUNK` environment steps in turn, so that other programs disturb them alike. A
  copy's time includes making its replay, and so computing the values;
- decisions: a round decides BATCH times on one state and computes the values, without the game.
"""

import argparse
import time
from typing import NamedTuple

import jax
import numpy as np

from starleague import agent
from starleague.agent import pretrained
from starleague.environments.skirmish.games import live, replays
from starleague.environments.skirmish.games.prediction_log import BATCH, PredictionLog
from starleague.environments.skirmish.rules.tables.tables import GameConfig, game_config

CHUNK = 16  # environment steps of one copy before the other's turn
TIERS = {"mini": "mini", "small": "default"}


class Clock:
  """Seconds spent in the block of each `with`: wall, processor."""

  def __init__(self) -> None:
    self.seconds = np.zeros(2)

  def __enter__(self) -> None:
    self._begin = np.array([time.perf_counter(), time.process_time()])

  def __exit__(self, *error: object) -> None:
    self.seconds += np.array([time.perf_counter(), time.process_time()]) - self._begin


class Copy:
  """One copy of a game, and the time that it has taken."""

  def __init__(self, game: GameConfig, controller: live.Controller, seed: int, predictions: bool):
    pair = (controller, controller)
    self._live = live.LiveGame(game, live.with_controllers(replays.make_match_up(), pair), seed)
    self._players = [live.LivePlayer(each, game, predictions) for each in pair]
    self.clock, self.decisions = Clock(), 0

  def play(self, steps: int) -> None:
    """Plays so many environment steps, or to the end of the game."""
    with self.clock:
      for _ in range(steps):
        if self._live.winner < 0:
          due = np.flatnonzero(self._live.due).tolist()
          actions = {player: self._players[player].act(self._live, player) for player in due}
          self._live.step(actions, {player: self._players[player].predictions for player in due})
          self.decisions += len(due)

  def replay(self) -> replays.Replay:
    """Makes the replay."""
    with self.clock:
      return self._live.replay(("first", "second"))


class Round(NamedTuple):
  """Milliseconds of a decision, [2] each: wall, processor."""

  without: np.ndarray
  with_predictions: np.ndarray


def play_round(game: GameConfig, controller: live.Controller, seed: int, steps: int) -> Round:
  """Plays both copies of a game."""
  copies = [Copy(game, controller, seed, predictions) for predictions in (False, True)]
  for chunk in range(-(-steps // CHUNK)):
    for copy in copies[::1 if chunk % 2 else -1]:
      copy.play(CHUNK)
  made = [copy.replay() for copy in copies]
  if made[0].hashes != made[1].hashes or made[1].predicted is None:
    raise SystemExit("error: recording predictions has changed the game")
  return Round(*(1e3 * copy.clock.seconds / copy.decisions for copy in copies))


def decide_round(game: GameConfig, controller: live.Controller, seed: int) -> Round:
  """Decides without and with predictions, in turn, at the start of a game."""
  start = live.LiveGame(game, replays.make_match_up(), seed)
  players = [live.LivePlayer(controller, game, predictions) for predictions in (False, True)]
  clocks, log = [Clock(), Clock()], PredictionLog()
  for i in range(BATCH):
    for which in ((0, 1) if i % 2 else (1, 0)):
      with clocks[which]:
        players[which].act(start, 0)
        if (recorded := players[which].predictions) is not None:
          log.add(i, 0, recorded)
  return Round(*(1e3 * clock.seconds / BATCH for clock in clocks))


def report(preset: str, kind: str, rounds: list[Round]) -> None:
  """Prints the medians of rounds."""
  for i, name in enumerate(("wall", "processor")):
    found = np.array([[each.without[i], each.with_predictions[i]] for each in rounds])
    ratios = np.sort(found[:, 1] / found[:, 0])
    without, recorded = np.median(found, axis=0)
    print(f"preset={preset} {kind} time={name} rounds={len(rounds)} "
          f"milliseconds_per_decision={without:.2f} with_predictions={recorded:.2f} "
          f"ratio={np.median(ratios):.3f} lowest={ratios[0]:.3f} highest={ratios[-1]:.3f}",
          flush=True)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--preset", choices=TIERS, default="mini")
  parser.add_argument("--rounds", type=int, default=12)
  parser.add_argument("--steps", type=int, default=640, help="environment steps of a game, at most")
  options = parser.parse_args()
  if options.preset in pretrained.names():
    weights = pretrained.load_pretrained(options.preset)
    config, params = weights.config, weights.params
  else:  # the time does not depend on the weights
    config = agent.preset(options.preset)
    params = jax.jit(agent.make_policy(config).init)(jax.random.key(0))
  game = game_config(TIERS[options.preset], config)
  controller = replays.policy_player("agent", agent.make_policy(config), params, game)
  play_round(game, controller, 0, 2 * CHUNK)  # compiles
  seeds = range(1, 1 + options.rounds)
  report(options.preset, "decisions", [decide_round(game, controller, seed) for seed in seeds])
  report(options.preset, "games",
         [play_round(game, controller, seed, options.steps) for seed in seeds])


if __name__ == "__main__":
  main()
