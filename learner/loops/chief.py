"""The duties of host 0 alone: checkpoints, published parameters, metrics."""

import contextlib
import functools
import math
import threading
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import jax

from starleague.common import progress, run_files
from starleague.data import checkpoints
from starleague.data.reverb import parameters, transport
from starleague.learner import prefetch, train_state, update
from starleague.learner.loops.metrics_log import MetricsLog
from starleague.learner.loops.options import LearnerProcess, ReinforcementOptions


class ChiefDuties:
  """Saves, publishes and logs on host 0; does nothing on other hosts."""

  def __init__(self, options: ReinforcementOptions, process: LearnerProcess,
               saved: checkpoints.Checkpoints | None, player: str = run_files.PLAYER):
    """Connects to the data server.

    Args:
      options: of the learner.
      process: the learner's place; its directory is the player's, its data server gets the
        parameters.
      saved: the run's checkpoints; None on hosts other than the first.
      player: that learns.
    """
    self._saved, self._options = saved, options
    self._run_dir = process.run_dir
    self._saved_at: float | None = None  # at first the time of this process's first update
    self._saved_step = -1
    if saved is None:
      return
    self._publish = parameters.ParameterPublisher(
      process.address, player, interval_s=self._options.publish_interval_s,
      deadline_s=options.timeout_s)
    self._make_log = functools.partial(
      MetricsLog, process.run_dir, process.origin,
      steps_per_update=options.steps_per_update,
      interval_s=self._options.log_interval_s, project=self._options.wandb)
    self._log: MetricsLog | None = None

  def publish(self, state: train_state.TrainState, step: int) -> None:
    """Publishes the parameters if the interval is over."""
    if self._saved is not None:
      self._publish(functools.partial(update.unreplicate, state.params), step)

  def publish_now(self, state: train_state.TrainState, step: int, stop: threading.Event) -> None:
    """Publishes the parameters whatever the interval; returns once actors can fetch them.

    Raises:
      ServerUnavailableError: the data server does not answer within the deadline.
      StoppedError: `stop` was set.
    """
    if self._saved is not None:
      self._publish.publish_now(functools.partial(update.unreplicate, state.params), step, stop)

  def report_setup(self, detail: str) -> None:
    """Reports an activity of the setup phase."""
    if self._saved is not None:
      progress.write(self._run_dir, progress.Progress(progress.SETUP, detail=detail))

  def log(self, step: int, values: Mapping[str, jax.Array | float],
          waiting: prefetch.Waiting) -> bool:
    """Writes an update's metrics if the interval is over; returns whether."""
    if self._saved is None:
      return False
    self._log = self._log or self._make_log(step=step - 1)
    return self._log(step, values, waiting)

  def report_training(self, step: int, trained_seconds: float) -> None:
    """Reports the progress of the run's training."""
    done, total, unit = trained_seconds, self._options.seconds, "s"
    if self._options.updates and step / self._options.updates > done / total:
      done, total, unit = step, self._options.updates, "updates"
    progress.write(self._run_dir, progress.Progress(progress.TRAINING, done, total, unit))

  def save(self, state: train_state.TrainState, step: int, trained_seconds: float,
           now: bool = False, waiting: bool = False,
           extra: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Saves a checkpoint if the interval is over.

    The first update of a run is saved at once: a kill before it loses the compilation only.

    Args:
      state: to save.
      step: its updates.
      trained_seconds: of the run.
      now: always saves.
      waiting: the learner waits for batches. Only an update of this process that is not saved is.
      extra: any JSON object.
    """
    if self._saved is None or waiting and (self._saved_at is None or step == self._saved_step):
      return
    if self._saved_at is None:
      self._saved_at = time.time() if self._saved.steps() else -math.inf
    if now or time.time() - self._saved_at >= self._options.checkpoint_interval_s:
      self._saved.save(step, update.unreplicate(state), {
        "trained_seconds": trained_seconds, **extra})
      self._saved_at, self._saved_step = time.time(), step

  def close(self) -> None:
    """Closes the log and abandons a running publication: its server may have ended."""
    if self._saved is None:
      return
    with contextlib.suppress(transport.ServerUnavailableError):
      self._publish.close()
    if self._log is not None:
      self._log.close()
