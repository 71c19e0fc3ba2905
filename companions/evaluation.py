"""The evaluation of a companion system: returns of episodes apart from training."""

import pathlib
import threading
from collections.abc import Mapping
from typing import NamedTuple

import jax
import numpy as np

from starleague.common import intervals, results
from starleague.companions import acting
from starleague.companions.options import RunOptions
from starleague.companions.system import System
from starleague.companions.tasks.task import Task, part_slices
from starleague.data.trees import Tree

EVALUATION_STEPS = 10_000  # of a copy for each of its episodes, at most
_EVALUATION_SEED = 2  # acting has 0, learning 1


class Evaluation(NamedTuple):
  """Returns of whole episodes, apart from training."""

  mean: float
  # Bounds of the 95% interval of the mean, by Student's t; None for one episode.
  low: float | None
  high: float | None
  episodes: int


def evaluate(system: System, task: Task, params: Tree, options: RunOptions,
             stop: threading.Event) -> dict[str, Evaluation] | None:
  """Evaluates whole episodes with parameters that do not change.

  Each copy plays the same number of episodes: counting the first ones to end would prefer short
  ones. Evaluation ends after `EVALUATION_STEPS` for each of these. A copy that has finished no
  episode by then counts once, with its return so far.

  Args:
    system: that acts, without added exploration.
    task: copies of the task.
    params: of the system.
    options: of the run.
    stop: ends the evaluation when set.

  Returns:
    The mean return, by part of the task as `part_slices` names it: "" for a single task. None if
    it was stopped.
  """
  slices = part_slices(task)
  fewest = min(len(range(task.copies)[copies]) for copies in slices.values())
  each = -(-options.evaluation_episodes // fewest)
  actor = acting.make_acting(system, task, iterations=100, greedy=True)
  key = jax.random.fold_in(jax.random.key(options.seed), _EVALUATION_SEED)
  state = actor.init(key)
  found: list[list[float]] = [[] for _ in range(task.copies)]
  steps = 0
  while min(map(len, found)) < each and steps < each * EVALUATION_STEPS:
    if stop.is_set():
      return None
    state, _, episodes = actor.run(params, state)
    steps += 100
    ended, returns, _ = map(np.asarray, episodes)
    for moment, copy in np.argwhere(ended):
      found[copy].append(float(returns[moment, copy]))
  running = np.asarray(state.episode_return).tolist()
  counted = [values[:each] or [running[copy]] for copy, values in enumerate(found)]
  return {name: _mean(np.concatenate(counted[copies])) for name, copies in slices.items()}


def _mean(returns: np.ndarray) -> Evaluation:
  mean, low, high = intervals.mean(returns)
  if len(returns) < 2:
    return Evaluation(mean, None, None, len(returns))
  return Evaluation(mean, low, high, len(returns))


def record(run_dir: pathlib.Path, found: Mapping[str, Evaluation], seconds: float,
           updates: int) -> None:
  """Appends an evaluation to the run's results."""
  results.append(run_dir / results.FILE_NAME, [
    results.Row(seconds, updates, f"return/evaluation{results.as_tag(name)}", part.mean, part.low,
                part.high)
    for name, part in found.items()])
