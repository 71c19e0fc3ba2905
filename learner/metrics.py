"""Scalars for TensorBoard."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto import event_pb2
from tensorboardX.summary import scalar


class Writer:
  """Writes scalars to one directory; used as a context manager or closed by hand.

  It writes in the caller's thread. tensorboardX's SummaryWriter hands events to a thread: its flush
  does not wait for them, and once that thread has died of a full disk the eleventh event blocks.

  Args:
    directory: where event files go; made if need be. Each writer adds a file of its own.
    resume_step: the step that a resumed run goes on from. What earlier writers wrote at this step
      or later is hidden, as it belongs to a past that did not last. None: nothing is hidden.
    flush_seconds: scalars older than this are flushed by the next write.
  """

  def __init__(self, directory: str | os.PathLike, resume_step: int | None = None,
               flush_seconds: float = 30.0):
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    # The name that it makes has whole seconds only: the suffix keeps a quick restart from
    # overwriting the file before.
    self._writer = EventsWriter(str(directory / "events"), f".{time.time_ns()}.{os.getpid()}")
    self._flush_seconds, self._flushed = flush_seconds, time.monotonic()
    if resume_step is not None:
      self._writer.write_event(event_pb2.Event(
        wall_time=time.time(), step=resume_step,
        session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START)))

  def write(self, step: int, scalars: Mapping[str, Any]) -> None:
    """Writes scalars of one step.

    Args:
      step: the update that they belong to.
      scalars: name -> number or array of one element; arrays still on a device are fetched
        together, which waits for them. A name's part before "/" is its group in TensorBoard.

    Raises:
      ValueError: a value has more than one element; nothing of this step is written.
    """
    event = event_pb2.Event(wall_time=time.time(), step=step)
    for name, value in zip(scalars, jax.device_get(list(scalars.values())), strict=True):
      array = np.asarray(value)
      if array.size != 1:
        raise ValueError(f"metric {name!r}: expected one number, found an array of shape "
                         f"{array.shape}; reduce it before it is written")
      event.summary.value.extend(scalar(name, array.reshape(())).value)
    self._writer.write_event(event)
    if time.monotonic() - self._flushed >= self._flush_seconds:
      self.flush()

  def flush(self) -> None:
    """Hands everything written so far to the disk."""
    self._writer.flush()
    self._flushed = time.monotonic()

  def close(self) -> None:
    """Flushes and closes the file."""
    self._writer.close()

  def __enter__(self) -> "Writer":
    return self

  def __exit__(self, *exception) -> None:
    self.close()
