"""Scalars for TensorBoard."""

import os
import time
from collections.abc import Mapping
from pathlib import Path

import jax
import numpy as np
from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto import event_pb2
from tensorboardX.summary import scalar

from starleague.common import disk


class MetricsWriter:
  """Writes scalars to one directory; a context manager, or closed by the caller.

  It writes in the caller's thread. tensorboardX's SummaryWriter passes events to a thread of its
  own: its flush does not wait for them, and once a full disk has ended that thread, the eleventh
  event blocks.

  Args:
    directory: directory of event files, created if missing. Each writer adds one file.
    resume_step: the first step of a resumed run. TensorBoard hides values of earlier writers at
      this step or later, which the resumed run computes again. None: nothing is hidden.
    flush_seconds: the next write flushes scalars older than this.
  """

  def __init__(self, directory: str | os.PathLike, resume_step: int | None = None,
               flush_seconds: float = 30.0):
    self._directory = directory = Path(directory)
    with disk.named(directory):
      directory.mkdir(parents=True, exist_ok=True)
    # EventsWriter's file names have whole seconds: without the suffix, a run restarted within a
    # second would overwrite the previous file.
    self._writer = EventsWriter(str(directory / "events"), f".{time.time_ns()}.{os.getpid()}")
    self._flush_seconds, self._flushed = flush_seconds, time.monotonic()
    if resume_step is not None:
      self._writer.write_event(event_pb2.Event(
        wall_time=time.time(), step=resume_step,
        session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START)))

  def write(self, step: int, scalars: Mapping[str, float | np.ndarray | jax.Array]) -> None:
    """Writes the scalars of one step.

    Args:
      step: number of the update.
      scalars: name -> number or array of one element. Arrays on a device are fetched together,
        which waits for them. The part of a name before "/" is its group in TensorBoard.

    Raises:
      ValueError: a value has more than one element; nothing of this step is written.
      DiskFullError: there is no space left.
    """
    event = event_pb2.Event(wall_time=time.time(), step=step)
    for name, value in zip(scalars, jax.device_get(list(scalars.values())), strict=True):
      array = np.asarray(value)
      if array.size != 1:
        raise ValueError(f"metric {name!r}: expected one number, found an array of shape "
                         f"{array.shape}; reduce it before writing")
      event.summary.value.extend(scalar(name, array.reshape(())).value)
    with disk.named(self._directory):
      self._writer.write_event(event)
    if time.monotonic() - self._flushed >= self._flush_seconds:
      self.flush()

  def flush(self) -> None:
    """Flushes all scalars to disk.

    Raises:
      DiskFullError: there is no space left.
    """
    with disk.named(self._directory):
      self._writer.flush()
    self._flushed = time.monotonic()

  def close(self) -> None:
    """Flushes and closes the file."""
    with disk.named(self._directory):
      self._writer.close()

  def __enter__(self) -> "MetricsWriter":
    return self

  def __exit__(self, *exception) -> None:
    self.close()
