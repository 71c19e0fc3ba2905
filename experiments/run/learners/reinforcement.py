"""The learner's loop: batches from the data server, updates, checkpoints, new parameters."""

import contextlib
import itertools
import math
import pathlib
import time

import jax
import ml_collections
from absl import logging

from starleague.actor.parts import Parts
from starleague.common import compiling, run_files, stopping
from starleague.data import checkpoints
from starleague.data.reverb import datasets, transport
from starleague.experiments.run.learners import chief, hosts, reinforcement_setup
from starleague.learner import prefetch, train_state, update


def _make_checkpoints(parts: Parts, config: ml_collections.ConfigDict,
                      run_dir: pathlib.Path) -> checkpoints.Checkpoints | None:
  """Returns the run's checkpoints; None on hosts other than the first."""
  if jax.process_index() > 0:
    return None
  return checkpoints.Checkpoints(run_dir / run_files.CHECKPOINTS, parts.config,
                                 config.learner.keep_last, config.learner.keep_every or None)


def learn(parts: Parts, config: ml_collections.ConfigDict, run_dir: pathlib.Path,
          address: str, origin: float) -> bool:
  """Trains until a host is stopped, or the run's training time or updates are over, then saves.

  Args:
    parts: the agent and its environment.
    config: the run's config.
    run_dir: the run's directory.
    address: host:port of this host's data server.
    origin: start of the run, in Unix seconds.

  Returns whether the time or the updates are over, equal on all hosts.
  """
  # Nothing is saved before the first update, and compiling would delay the stop event. Several
  # hosts must end together nevertheless.
  (stopping.end_at_once if jax.process_count() == 1 else stopping.stop_event)()
  saved = _make_checkpoints(parts, config, run_dir)
  learner = reinforcement_setup.make_learner(parts, config, run_dir, saved)
  state, step = learner.state, int(update.unreplicate(learner.state.step))
  first = chief.FirstHost(config, run_dir, address, origin, saved)
  first.publish(state, step)
  first.report_setup("compiling the update")
  with compiling.without_collection():
    reinforcement_setup.compile_ahead(learner, parts, config)
  first.report_setup("waiting for trajectories")
  stop = stopping.stop_event()
  watch = reinforcement_setup.make_guard(parts, config, run_dir)
  begun: float | None = None  # time of the first update: training time counts from it

  def trained() -> float:
    return learner.trained_seconds + (time.time() - begun if begun else 0.0)

  def done() -> float:
    by_updates = step / (config.learner.updates or math.inf)
    return 1.0 if stop.is_set() else max(trained() / config.seconds, by_updates)

  size = config.learner.batch_size // jax.process_count()
  with contextlib.suppress(transport.StoppedError), \
      datasets.dataset(address, size, run_files.PLAYER, parts.config, config.unroll_length,
                       deadline_s=config.data.timeout_s, stop=stop) as data, \
      prefetch.prefetch(data, learner.update.place, timeout=config.data.timeout_s) as batches:
    left = max(0, config.learner.updates - step) if config.learner.updates else None
    for batch, share in hosts.agreed(
        itertools.islice(batches, left), done, learner.update.make_vote()):
      rate = reinforcement_setup.learning_rate(config, share)
      state = train_state.with_learning_rate(state, rate)
      state, values = learner.update(state, batch, learner.teacher)
      watch.check(values, batch)
      step += 1
      begun = begun or time.time()
      if first.log(step, {**values, "learning_rate": rate}, batches.waiting()):
        first.report_training(step, trained())
      first.publish(state, step)
      first.save(state, step, trained())
    watch.finish()
    data.close()
  first.save(state, step, trained(), now=True)
  first.close()
  logging.info("stopped update=%d", step)
  return learner.update.make_vote()(float(stop.is_set()))() < 1.0
