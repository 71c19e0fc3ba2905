"""The learner's loop: batches from the data server, updates, checkpoints, new parameters."""

import contextlib
import itertools
import math
import threading
import time
from collections.abc import Callable, Iterator

import jax
from absl import logging

from starleague.common import compiling, run_files, stopping
from starleague.data import checkpoints, wire
from starleague.data.reverb import sampler, transport
from starleague.learner import prefetch, train_state, update
from starleague.learner.loops import chief, hosts, reinforcement_setup
from starleague.learner.loops.options import LearnerProcess, LearningAgent, ReinforcementOptions


def _make_checkpoints(agent: LearningAgent, options: ReinforcementOptions,
                      process: LearnerProcess) -> checkpoints.Checkpoints | None:
  """Returns the run's checkpoints; None on hosts other than the first."""
  if jax.process_index() > 0:
    return None
  return checkpoints.Checkpoints(process.run_dir / run_files.CHECKPOINTS, agent.config,
                                 options.keep_last, options.keep_every or None)


@contextlib.contextmanager
def _open_batches(agent: LearningAgent, options: ReinforcementOptions, process: LearnerProcess,
                  place: Callable[[wire.Packed], wire.Packed], stop: threading.Event,
                  idle: Callable[[], None]) -> Iterator[prefetch.Prefetch[wire.Packed]]:
  """Opens this host's share of the batches; see `prefetch.prefetch` for `place` and `idle`."""
  size = options.batch_size // jax.process_count()
  with sampler.Dataset(process.address, run_files.PLAYER, size, agent.config,
                       options.unroll_length, options.timeout_s, stop=stop) as data, \
      prefetch.prefetch(data, place, timeout=options.timeout_s, idle=idle) as batches, \
      contextlib.closing(data):  # first of all: the thread of the prefetch waits in it
    yield batches


def _compile(learner: reinforcement_setup.Learner, agent: LearningAgent,
             options: ReinforcementOptions, duties: chief.ChiefDuties) -> None:
  """Compiles the update while actors compile and play."""
  duties.report_setup("compiling the update")
  with compiling.without_collection():
    reinforcement_setup.compile_ahead(learner, agent, options)
  duties.report_setup("waiting for trajectories")


def learn(agent: LearningAgent, options: ReinforcementOptions, process: LearnerProcess) -> bool:
  """Trains until a host is stopped, or the run's training time or updates are over, then saves.

  Args:
    agent: that learns.
    options: of the learner.
    process: its place in the run.

  Returns:
    Whether the time or the updates are over, equal on all hosts.
  """
  # Nothing is saved before the first update, and compiling would delay the stop event. Several
  # hosts must end together nevertheless.
  (stopping.end_at_once if jax.process_count() == 1 else stopping.stop_event)()
  saved = _make_checkpoints(agent, options, process)
  learner = reinforcement_setup.make_learner(agent, options, process.run_dir, saved)
  step, vote = int(update.unreplicate(learner.state.step)), learner.update.make_vote()
  if vote(_share(options, learner.trained_seconds, step))() >= 1.0:
    return True  # resumed after its end: evaluation needs no batch
  duties = chief.ChiefDuties(options, process, saved)
  duties.publish(learner.state, step)
  _compile(learner, agent, options, duties)
  return _train(learner, step, agent, options, process, duties, vote)


def _share(options: ReinforcementOptions, trained_seconds: float, step: int) -> float:
  """Returns the share of the training that is over."""
  return max(trained_seconds / options.seconds, step / (options.updates or math.inf))


def _train(learner: reinforcement_setup.Learner, step: int, agent: LearningAgent,
           options: ReinforcementOptions, process: LearnerProcess, duties: chief.ChiefDuties,
           vote: Callable[[float], Callable[[], float]]) -> bool:
  """Trains a compiled learner from an update; see `learn`. `vote` is that of all hosts."""
  stop, state = stopping.stop_event(), learner.state
  watch = reinforcement_setup.make_guard(agent, options, process.run_dir)
  begun: float | None = None  # time of the first update: training time counts from it

  def trained() -> float:
    return learner.trained_seconds + (time.time() - begun if begun else 0.0)

  def done() -> float:
    return 1.0 if stop.is_set() else _share(options, trained(), step)

  def save(now: bool = False, waiting: bool = False) -> None:
    duties.save(state, step, trained(), now=now, waiting=waiting, extra={"stage": learner.stage})

  def idle() -> None:  # while no batch comes: a restarted data server has no parameters
    duties.publish(state, step)
    save(waiting=True)

  try:
    with _open_batches(agent, options, process, learner.update.place, stop, idle) as batches:
      left = options.updates - step if options.updates else None
      for batch, share in hosts.agreed(itertools.islice(batches, left), done, vote):
        if (stage := reinforcement_setup.stage_at(options, share)) > learner.stage:
          learner = reinforcement_setup.begin_stage(learner, state, stage, agent, process.run_dir)
          save(now=True)
        rate = reinforcement_setup.learning_rate(options, share)
        state = train_state.with_learning_rate(state, rate)
        state, values = learner.update(state, batch, learner.teacher, learner.factors)
        watch.check(values, batch)
        step += 1
        begun = begun or time.time()
        if duties.log(step, {**values, "learning_rate": rate}, batches.waiting()):
          duties.report_training(step, trained())
        duties.publish(state, step)
        save()
      watch.finish()
  except transport.StoppedError:  # before the first batch: the other hosts wait for this vote
    vote(1.0)()
  save(now=True)
  duties.close()
  logging.info("stopped update=%d", step)
  return vote(float(stop.is_set()))() < 1.0
