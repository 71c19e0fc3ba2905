"""The training of a companion system: acting, tables, updates, checkpoints, evaluation.

One process acts and learns. A round has two halves that run at the same time:

  1. the copies of the task act, with the parameters of the round before, on the device;
  2. the unrolls of the round before are written to the tables, and the learner makes as many
     updates as the replay ratio allows.

Frames for each update, the age of the acting parameters and the replay ratio are therefore exact,
whatever the speed of the machine.
"""

import collections
import contextlib
import dataclasses
import functools
import math
import pathlib
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
import optax
from absl import logging

from starleague.common import compiling, run_files
from starleague.common.errors import UserError
from starleague.companions import acting, experience
from starleague.companions.options import RunOptions, make_optimizer
from starleague.companions.system import Fixed, System, Unroll, step_format
from starleague.companions.tasks import registry as tasks
from starleague.companions.tasks.task import Task
from starleague.companions.workers import actor as hosted
from starleague.data import checkpoints, wire
from starleague.data.trees import Tree
from starleague.learner import flat, guard, prefetch, train_state, update
from starleague.learner.loops.metrics_log import MetricsLog

CHECKPOINT_INTERVAL_S = 60.0
LOG_INTERVAL_S = 5.0
KEEP_LAST = 2
MAX_SKIPPED = 10
_ACTING_SEED, _LEARNING_SEED = 0, 1  # evaluation has 2

Report = Callable[[int, str], object]  # (steps done, figures in a few words)


@dataclasses.dataclass(frozen=True)
class Identity:
  """System, task and config of a run's checkpoints."""

  name: str  # of the system
  task: str
  config: dict[str, Any]  # of the system


class Learner(NamedTuple):
  """The parts of a run that learn."""

  update: update.Update
  optimizer: optax.GradientTransformation
  form: wire.StepFormat
  options: RunOptions


class Saved(NamedTuple):
  """A checkpoint's state."""

  params: Tree
  train: train_state.TrainState  # without its parameters
  target: Tree  # parameters of the target network; () without one


class Trained(NamedTuple):
  """The result of a training."""

  params: Tree  # on the host
  counts: "Counts"


class Counts(NamedTuple):
  """Progress of a run."""

  steps: int = 0  # of all copies
  updates: int = 0
  seconds: float = 0.0  # of training
  cpu_seconds: float = 0.0  # of training, of all cores


def make_learner(system: System, task: Task, options: RunOptions) -> Learner:
  """Makes the compiled update of a system."""
  form = step_format(system, task)

  def loss(params: Tree, key: jax.Array, batch: experience.Batch, fixed: Fixed) -> tuple:
    found = system.loss(params, key, experience.unpack(batch, form), fixed)
    return found.loss, (found.metrics, (found.priorities, found.summary))

  finish = system.finish
  factors = None
  if system.rates is not None:
    params = jax.eval_shape(system.init, jax.random.key(0))
    factors = flat.repeat(system.rates(params), params).astype(np.float32)
  optimizer = make_optimizer(options, factors)
  run = update.make_update(
    loss, optimizer, batch_axes=experience.BATCH_AXES, carries=True,
    finish=None if finish is None else lambda params, carry: finish(params, carry[1]))
  return Learner(run, optimizer, form, options)


def check(system: System, task: Task, options: RunOptions) -> None:
  """Traces a system's policy and loss without computing, so that a run fails before it begins.

  Raises:
    UserError: a choice does not fit the others, the task or the options.
  """
  devices = len(jax.local_devices())
  if options.batch_size % devices:
    raise UserError(f"batch_size: found {options.batch_size}, expected a multiple of {devices}, "
                    "the number of devices that share a batch")
  form, batch = step_format(system, task), (options.batch_size,)

  def of_batch(spec: Any, *leading: int) -> Any:
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct((*leading, *batch, *x.shape), x.dtype), spec)

  params, key = jax.eval_shape(system.init, jax.random.key(0)), jax.random.key(0)
  unroll = Unroll(of_batch(form.step, options.unroll_length + 1), of_batch(form.state),
                  jax.ShapeDtypeStruct(batch, np.bool_))
  jax.eval_shape(system.loss, params, key, unroll,
                 Fixed({}, params if options.target_period else ()))


_copy = jax.jit(lambda tree: jax.tree.map(lambda x: x + 0, tree))  # the update donates its state
_first_copy = jax.jit(lambda tree: jax.tree.map(lambda x: x[0] + 0, tree))  # of all devices


def train(system: System, task: Task, options: RunOptions, config: Mapping[str, Any],
          run_dir: pathlib.Path, stop: threading.Event, report: Report,
          hyperparameters: Mapping[str, float] | None = None,
          after_round: Callable[["Run", acting.EpisodeLog], object] | None = None) -> Trained:
  """Trains a system, resumed from the newest checkpoint where there is one.

  Args:
    system: that learns.
    task: `options.copies` copies.
    options: of the run.
    config: of the system, as JSON values; a checkpoint of another one is refused.
    run_dir: gets checkpoints, TensorBoard files and results.
    stop: ends the training when set, after a checkpoint.
    report: called once a round.
    hyperparameters: those that change without compiling again; see `Run.tune`.
    after_round: called after each round with the run and its episodes. It saves the checkpoints,
      except for the last one.

  Returns:
    The parameters, and the counts of the whole run.

  Raises:
    CheckpointMismatchError: the directory has checkpoints of another system.
    NonFiniteError: the loss was not finite in many updates in a row.
  """
  with contextlib.ExitStack() as stack:
    learner = make_learner(system, task, options)
    saved = checkpoints.Checkpoints(
      run_dir / run_files.CHECKPOINTS, Identity(system.name, task.name, dict(config)), KEEP_LAST)
    run = Run(learner, saved, run_dir, system, hyperparameters or {},
              math.inf if after_round else CHECKPOINT_INTERVAL_S)
    if run.counts.steps < options.steps:
      actor = stack.enter_context(contextlib.closing(
        _make_actor(run, system, task, learner.form, stop)))
      _learn(run, actor, task, experience.Experience(learner.form, options, stack, stop), stop,
             report, after_round or (lambda run, episodes: None))
    run.close()
    return Trained(update.unreplicate(run.state.params), run.counts)


class Run:
  """The state of a run, its checkpoints and its log.

  Attributes:
    options: of the run.
    counts: its progress.
    state: the replicated training state.
    loads: times that another run's weights replaced its own.
  """

  def __init__(self, learner: Learner, saved: checkpoints.Checkpoints, run_dir: pathlib.Path,
               system: System, hyperparameters: Mapping[str, float],
               interval_s: float):
    self.options, self._saved, self._learner = learner.options, saved, learner
    self._interval_s = interval_s  # between two checkpoints
    key = jax.random.fold_in(jax.random.key(self.options.seed), _LEARNING_SEED)
    with compiling.without_collection():
      params = jax.tree.map(np.asarray, system.init(key))
    state = train_state.initial_state(params, learner.optimizer, key)
    target = params if self.options.target_period else ()
    restored = saved.restore(_as_saved(state, target))
    self.counts, self.loads = Counts(), 0
    if restored is not None:
      state, target = _of_saved(restored.state)
      self.counts = Counts(**restored.extra)
      logging.info("restored steps=%d updates=%d", self.counts.steps, self.counts.updates)
    self._place(state)
    self._target = learner.update.replicate(target)
    self.tune(hyperparameters)
    self._began = time.time() - self.counts.seconds
    self._cpu_began = time.process_time() - self.counts.cpu_seconds
    self._saved_at = 0.0
    self._log = MetricsLog(
      run_dir, self._began, self.counts.updates,
      self.options.batch_size * self.options.unroll_length, LOG_INTERVAL_S)
    self._guard = guard.Guard(
      run_dir / "diagnosis", MAX_SKIPPED,
      readable=jax.vmap(functools.partial(experience.unpack, form=learner.form)))

  def _place(self, state: train_state.TrainState) -> None:
    self.state = self._learner.update.replicate(state)

  def tune(self, hyperparameters: Mapping[str, float]) -> None:
    """Changes hyperparameters from the next update on, without compiling again.

    "learning_rate", which falls to `final_rate` of it as the options' does, and those that the loss
    reads from `Fixed`; a name in the part "schedule" of the parameters changes there.
    """
    state = update.unreplicate(self.state)
    schedule = dict(state.params.get("schedule", {}))
    changed = {name: np.float32(hyperparameters[name]) for name in schedule
               if name in hyperparameters}
    if changed:
      self._place(state._replace(params={**state.params, "schedule": {**schedule, **changed}}))
    devices = len(self._learner.update.local_devices)
    self._hyperparameters = {
      name: np.full(devices, value, np.float32) for name, value in hyperparameters.items()
      if name not in schedule}

  def load(self, checkpoint: pathlib.Path) -> None:
    """Continues with the weights and the optimizer's state of another run of the same system.

    The run's own key and counts go on.

    Raises:
      FileNotFoundError: the other run has removed the checkpoint.
      CheckpointDamagedError: it is damaged, or the other run removes it during the read.
    """
    own, target = update.unreplicate((self.state, self._target))
    others = checkpoints.Checkpoints(checkpoint.parent, self._saved.config, KEEP_LAST)
    found = others.restore(_as_saved(own, target), int(checkpoint.name))
    assert found is not None
    state, target = _of_saved(found.state)
    self._place(state._replace(key=own.key, step=own.step))
    self.loads += 1
    self._target = self._learner.update.replicate(target)

  def save(self) -> pathlib.Path:
    """Saves a checkpoint; returns its path."""
    self._saved_at = time.time()
    state = _as_saved(*update.unreplicate((self.state, self._target)))
    return self._saved.save(self.counts.updates, state, self.counts._asdict())

  def learn(self, batch: experience.Batch) -> tuple[Mapping[str, jax.Array], jax.Array]:
    """Makes an update; returns its metrics and the priorities of the batch, on the device."""
    options = self.options
    done = min(1.0, self.counts.steps / options.steps)
    initial = float(self._hyperparameters.get("learning_rate", [options.learning_rate])[0])
    rate = initial * (1.0 - (1.0 - options.final_rate) * done)
    placed = self._learner.update.place(batch)
    self.state, metrics, (priorities, _) = self._learner.update.carried(
      train_state.with_learning_rate(self.state, rate), placed,
      Fixed(self._hyperparameters, self._target))
    self._guard.check(metrics, placed)
    self.count_update()
    return metrics, priorities

  def count_update(self) -> None:
    """Counts an update, or other weights, and refreshes the target network if it is time."""
    self.counts = self.counts._replace(updates=self.counts.updates + 1)
    if self.options.target_period and self.counts.updates % self.options.target_period == 0:
      self._target = _copy(self.state.params)

  def advance(self, steps: int, cpu_seconds: float, stop: bool) -> None:
    """Counts steps and the CPU time of other processes, and saves a checkpoint if it is time."""
    self.counts = self.counts._replace(
      steps=self.counts.steps + steps, seconds=time.time() - self._began,
      cpu_seconds=time.process_time() - self._cpu_began + cpu_seconds)
    done = self.counts.steps >= self.options.steps or stop
    if done or time.time() - self._saved_at >= self._interval_s:
      self.save()

  def log(self, metrics: Mapping[str, jax.Array], episodes: acting.EpisodeLog,
          waiting: prefetch.Waiting) -> None:
    """Writes metrics and the returns of episodes if the interval is over."""
    if self._log(self.counts.updates, metrics, waiting):
      self._log.write(self.counts.updates, {
        "total/steps": self.counts.steps, "speed/actor": episodes.rate(self.counts.steps),
        **episodes.means()})

  def close(self) -> None:
    """Checks the last update and closes the log."""
    self._guard.finish()
    self._log.close()


def _as_saved(state: train_state.TrainState, target: Tree) -> Saved:
  return Saved(state.params, state._replace(params=()), target)


def _of_saved(saved: Saved) -> tuple[train_state.TrainState, Tree]:
  """Returns the training state and the target network of a checkpoint."""
  return saved.train._replace(params=saved.params), saved.target


def _make_actor(run: Run, system: System, task: Task, form: wire.StepFormat,
                stop: threading.Event) -> acting.Actor:
  """Makes the actor of a run: its compiled program, or its workers."""
  options, steps = run.options, run.counts.steps
  # The key counts the steps: a resumed run does not repeat its episodes.
  key = jax.random.fold_in(jax.random.fold_in(jax.random.key(options.seed), _ACTING_SEED), steps)
  if options.workers:
    make = functools.partial(tasks.make_task, options.task, seed=task.seed or 0)
    return hosted.HostedActor(system, task, form, options, make, key, stop)
  program = acting.make_acting(system, task, options.iterations)
  with compiling.without_collection():
    return acting.CompiledActor(program, key)


def _learn(run: Run, actor: acting.Actor, task: Task, tables: experience.Experience,
           stop: threading.Event, report: Report,
           after_round: Callable[[Run, acting.EpisodeLog], object]) -> None:
  """Acts and learns until the steps are done or `stop` is set."""
  options = run.options
  used = collections.deque([_first_copy(run.state.params)], maxlen=options.lag + 1)
  episodes, waited = acting.EpisodeLog(task, run.counts.steps), 0.0
  began = time.monotonic()
  loads, gap = run.loads, False  # whether the last round was dropped
  previous: Callable[[], acting.Round | None] | None = None
  while run.counts.steps < options.steps and not stop.is_set():
    current = actor.start(used[0])
    if previous is not None:
      start = time.monotonic()
      acted = previous()
      if acted is None:  # stopped before the end of the round
        run.advance(0, actor.cpu_seconds(), True)
        break
      if run.loads != loads:  # it acted with weights that the run has replaced
        loads, gap = run.loads, True
      else:
        tables.write(acted.records, range(options.copies) if gap else acted.restarted)
        gap = False
        waited += time.monotonic() - start
        episodes.add(acted.episodes)
        for batch in tables.batches():
          metrics, priorities = run.learn(batch)
          tables.learnt(priorities)
          used.append(_first_copy(run.state.params))
          run.log(metrics, episodes, prefetch.Waiting(
            run.counts.updates, waited, time.monotonic() - began))
    previous = current
    run.advance(options.steps_per_iteration, actor.cpu_seconds(), stop.is_set())
    after_round(run, episodes)
    if run.loads != loads:
      used.clear()
      used.append(_first_copy(run.state.params))
    report(run.counts.steps, " ".join(
      f"{tag.removesuffix('/train')}={value:.2f}" for tag, value in episodes.means().items()
      if tag.startswith("return")))
