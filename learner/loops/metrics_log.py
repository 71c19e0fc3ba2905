"""The learner's metrics: TensorBoard, the run's results, Weights & Biases."""

import pathlib
import time
from collections.abc import Mapping

import jax

from starleague.common import results
from starleague.learner import metrics, prefetch, terms, wandb_run


class MetricsLog:
  """Writes metrics to all their places, at most every `interval_s` seconds."""

  def __init__(self, run_dir: pathlib.Path, origin: float, step: int, steps_per_update: int,
               interval_s: float, prefix: str = "", project: str = ""):
    """Opens the files.

    Args:
      run_dir: the run's directory.
      origin: start of the run, in Unix seconds.
      step: updates done so far.
      steps_per_update: agent steps in a batch.
      interval_s: seconds between two records.
      prefix: of all tags, and the folder of the TensorBoard files: "" or a phase with a slash.
      project: of Weights & Biases; empty: none.

    Raises:
      WandbError: the project's run cannot be started.
    """
    self._board = metrics.MetricsWriter(run_dir / "tensorboard" / prefix, resume_step=step + 1)
    self._wandb = wandb_run.WandbRun(run_dir, project, prefix) if project else None
    self._path, self._origin, self._prefix = run_dir / results.FILE_NAME, origin, prefix
    self._steps_per_update, self._interval_s = steps_per_update, interval_s
    self._step = step
    self._time: float | None = None  # of the last record
    self._waiting = prefetch.Waiting(0, 0.0, 0.0)

  def __call__(self, step: int, values: Mapping[str, jax.Array | float],
               waiting: prefetch.Waiting, last: bool = False) -> bool:
    """Writes an update's metrics, still on the device, if the interval is over; returns whether.

    The first update is always recorded, as its time is what a start takes, and so is the `last`.
    """
    early = self._time is not None and time.time() - self._time < self._interval_s
    if early and not last:
      return False
    scalars = terms.measured(
      {name: float(value) for name, value in jax.device_get(dict(values)).items()})
    now = time.time()
    scalars["total/steps_learnt"] = step * self._steps_per_update
    if self._time is not None and now > self._time:
      rate = (step - self._step) * self._steps_per_update / (now - self._time)
      scalars |= {"speed/learner": rate, "speed/waiting": waiting.since(self._waiting).fraction}
    self.write(step, scalars)
    self._step, self._time, self._waiting = step, now, waiting
    return True

  def write(self, step: int, scalars: Mapping[str, float]) -> None:
    """Writes scalars now."""
    named = {self._prefix + (name if "/" in name else f"update/{name}"): value
             for name, value in scalars.items()}
    self._board.write(step, scalars)
    self._board.flush()
    if self._wandb is not None:
      self._wandb.write(step, named)
    seconds = time.time() - self._origin  # equal in all rows: readers join them by it
    results.append(self._path, [results.Row(seconds, step, name, value)
                                for name, value in named.items()])

  def close(self) -> None:
    """Closes the TensorBoard file and ends the run of Weights & Biases."""
    self._board.close()
    if self._wandb is not None:
      self._wandb.close()

  def __enter__(self) -> "MetricsLog":
    return self

  def __exit__(self, *exception: object) -> None:
    self.close()
