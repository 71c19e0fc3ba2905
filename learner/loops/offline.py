"""Offline reinforcement learning: batches of a dataset, updates, checkpoints."""

import functools
import itertools
import pathlib
import time
from collections.abc import Callable
from typing import Any

import jax
from absl import logging

from starleague.agent.policy import Policy
from starleague.common import run_files, stopping
from starleague.data import checkpoints, wire
from starleague.data.games import ordering
from starleague.learner import guard, offline, prefetch, supervised, train_state, update
from starleague.learner.loops import imitation_setup, offline_data, reinforcement_setup
from starleague.learner.loops.imitation_setup import Phase, Position, Saved
from starleague.learner.loops.metrics_log import MetricsLog
from starleague.learner.loops.offline_data import OfflineData
from starleague.learner.loops.options import LearningAgent, OfflineOptions

PREFIX = "offline/"  # of the metrics' tags


def learn(agent: LearningAgent, options: OfflineOptions, run_dir: pathlib.Path,
          data: OfflineData, origin: float, report: Callable[[int], object]) -> bool:
  """Learns until the updates are over, or until a stop signal; resumes from the newest checkpoint.

  The run's initial weights are the estimated behaviour policy of methods that improve on one.

  Args:
    agent: that learns.
    options: of the method.
    run_dir: the run's directory.
    data: see `offline_data.open_data`.
    origin: start of the run, in Unix seconds.
    report: called with the updates done.

  Returns:
    Whether the updates are over.
  """
  learner = OfflineLearner(agent, options, run_dir, data)
  stop = stopping.stop_event()
  with MetricsLog(run_dir, origin, learner.step, options.imitation.batch_size * data.unroll_length,
                  options.imitation.log_interval_s, PREFIX, options.imitation.wandb) as log, \
      offline_data.batches(data, options, learner.position) as source, \
      prefetch.prefetch(source, learner.place, timeout=options.imitation.timeout_s) as found:
    saved = time.time()
    watch = guard.Guard(run_dir / "diagnosis", options.imitation.max_skipped,
                        readable=jax.vmap(learner.readable))
    for position, chunks in itertools.islice(
        found, max(0, options.updates - learner.step)):
      values, chunks = learner.learn(position, chunks)
      watch.check(values, chunks)
      log(learner.step, values, found.waiting(), last=learner.step == options.updates)
      report(learner.step)
      if stop.is_set():
        break
      if time.time() - saved >= options.imitation.checkpoint_interval_s:
        learner.save()
        saved = time.time()
    watch.finish()
    learner.save()
  return learner.step >= options.updates


class OfflineLearner:
  """The state of offline learning and its files.

  Attributes:
    step: updates done.
    position: in the dataset.
  """

  def __init__(self, agent: LearningAgent, options: OfflineOptions, run_dir: pathlib.Path,
               data: OfflineData):
    """Builds the update; resumes from the newest checkpoint where there is one."""
    self._agent, self._options, self._data = agent, options, data
    self._phase = Phase("offline", offline_data.NO_ROWS, offline_data.NO_ROWS,
                        options.learning_rate, 0.0, 0)
    self._saved = checkpoints.Checkpoints(
      run_dir / run_files.CHECKPOINTS, agent.config, options.imitation.keep_last)
    optimizer = imitation_setup.make_optimizer(options.imitation)
    self._update = make_update(agent, options, imitation_setup.make_policy(agent))
    start = reinforcement_setup.initial_snapshot(agent, run_dir)
    state = train_state.initial_state(start, optimizer, jax.random.key(options.imitation.seed))
    carry = offline.empty_carry(agent.config, options.objective, options.imitation.batch_size)
    self.position = Position()
    restored = self._saved.restore(Saved(state.params, state._replace(params=()), carry))
    if restored is not None:
      found = restored.state
      state, carry = found.train._replace(params=found.params), found.carry
      self.position = Position(**restored.extra)
      logging.info("restored update=%d", restored.step)
    self.step = int(state.step)
    self._state = self._update.replicate(state)
    self._carry = self._update.place_carry(carry)
    self._behaviour = self._update.replicate(start if options.objective.improves else ())

  def place(self, item: tuple[Position, ordering.OrderedBatch]) -> tuple[Position, offline.Chunks]:
    """Places a batch on the devices; `learn` gives it the carry."""
    position, batch = item
    carry: Any = None
    return position, self._update.place(
      offline.Chunks(wire.Columns(*batch.packed[:-1]), batch.first, carry))

  def readable(self, chunks: offline.Chunks) -> object:
    """Returns the trajectories of a device's chunks, for a diagnosis."""
    return wire.unpack(wire.Packed(*chunks.columns, chunks.carry.policy.state), self._agent.config)

  def learn(self, position: Position, chunks: offline.Chunks,
            ) -> tuple[dict[str, jax.Array | float], offline.Chunks]:
    """Starts an update.

    Returns:
      Its metrics, still on a device, with the learning rate; and the chunks with their carry.
    """
    imitation = self._options.imitation
    rate = imitation_setup.learning_rate(
      self._phase, self.step / self._options.updates, imitation.warm_up, imitation.final_rate)
    chunks = chunks._replace(carry=self._carry)
    self._state, values, self._carry = self._update.carried(
      train_state.with_learning_rate(self._state, rate), chunks, self._behaviour)
    self.step, self.position = self.step + 1, position
    return {**values, "learning_rate": rate}, chunks

  def save(self) -> None:
    """Saves a checkpoint with the position."""
    state = update.unreplicate(self._state)
    carry = jax.tree.map(lambda x: jax.device_get(x).reshape(-1, *x.shape[2:]), self._carry)
    self._saved.save(self.step, Saved(state.params, state._replace(params=()), carry),
                     self.position._replace(dataset=self._data.digest)._asdict())


def make_update(agent: LearningAgent, options: OfflineOptions, policy: Policy) -> update.Update:
  """Returns the update of the offline objective, which carries the state of the slots.

  Raises:
    UserError: the devices do not divide a batch.
  """
  imitation_setup.check_batch_size(options.imitation)
  loss = functools.partial(offline.offline_loss, policy, agent.config, options.objective)
  return update.make_update(
    loss, imitation_setup.make_optimizer(options.imitation),
    accumulate=options.imitation.accumulate, batch_axes=supervised.BATCH_AXES, carries=True)
