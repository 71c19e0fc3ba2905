"""Population-based training of a companion system: the worker of a member.

The rules are in `learner.evolution`, the members' records in `learner.population`. A worker is a
run of the system that reports its returns, and continues with a better member's weights where a
decision says so.

Source: Jaderberg et al. 2017, "Population Based Training of Neural Networks".
"""

import pathlib
import shutil

import numpy as np
from absl import logging

from starleague.common import run_files
from starleague.companions.acting import EpisodeLog
from starleague.companions.training import Run
from starleague.data.checkpoints import CheckpointDamagedError
from starleague.learner.population import Population

EVALUATIONS = 10  # latest training episodes that count (section 4.1)


class Worker:
  """The worker of a member, called after each round of its run.

  Attributes:
    seed: of the population: its members play one task.
    member: the record of the member.
  """

  def __init__(self, population: Population, name: str, seed: int, number: int, interval: int,
               copies: bool):
    """Joins the population.

    Args:
      population: shared by all workers.
      name: of the member.
      seed: of the population.
      number: of the member.
      interval: steps between two reports.
      copies: whether the member may copy others; if none may, the population is a random search.
    """
    self._population, self.seed, self._number = population, seed, number
    self._interval, self._copies = interval, copies
    self.member = population.join(self._rng(0), name)
    self._reported = self.member.step

  def _rng(self, step: int) -> np.random.Generator:
    """Returns a generator that is the same after a restart at this step."""
    return np.random.default_rng([self.seed, self._number, step])

  def discard_later(self, run_dir: pathlib.Path) -> None:
    """Removes checkpoints that the population does not know of: a stop or a kill left them.

    A run keeps its newest checkpoints only: those of two stops would displace the reported one,
    which other members may load.
    """
    known = -1 if self.member.checkpoint is None else int(self.member.checkpoint.name)
    folder = run_dir / run_files.CHECKPOINTS
    for path in folder.iterdir() if folder.is_dir() else ():
      if path.name.isdigit() and int(path.name) > known:
        shutil.rmtree(path)

  def __call__(self, run: Run, episodes: EpisodeLog) -> None:
    """Reports and decides if the interval is over and an episode has ended since the last report.

    A report holds each episode once: Welch's test counts them as independent. None of the former
    weights remains after a copy.
    """
    steps = run.counts.steps
    ended = steps >= run.options.steps
    scores = episodes.scores()
    if not scores or (steps - self._reported < self._interval and not ended):
      return
    self._reported = steps
    name = self.member.name
    self._population.report(name, steps, scores[-EVALUATIONS:], run.save())
    episodes.clear()
    exploit = self._population.decide(self._rng(steps), name) if (
      self._copies and not ended) else None
    if exploit is None:
      return
    try:
      run.load(exploit.checkpoint)
    except (FileNotFoundError, CheckpointDamagedError):  # the latter: removed during the read
      logging.info("member %s cannot read the checkpoint of %s; it continues", name, exploit.source)
      return
    run.tune(exploit.hyperparameters)
    # A step of its own: were the process killed now, the population would know the former one.
    run.count_update()
    self.member = self._population.adopt(name, exploit, run.save())
    logging.info("member %s copies %s: %s", name, exploit.source, exploit.hyperparameters)
