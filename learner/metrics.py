"""Scalars for TensorBoard."""

import os
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import tensorboardX


class Writer:
  """Writes scalars to one directory; used as a context manager or closed by hand.

  Args:
    directory: where event files go; made if need be. Each writer adds a file of its own.
    resume_step: the step that a resumed run goes on from. What an earlier writer wrote at this step
      or later is hidden, as it belongs to a past that did not last. None: nothing is hidden.
    flush_seconds: the longest time that a scalar stays in memory only.
  """

  def __init__(self, directory: str | os.PathLike, resume_step: int | None = None,
               flush_seconds: int = 30):
    self._writer = tensorboardX.SummaryWriter(
      os.fspath(directory), purge_step=resume_step, flush_secs=flush_seconds)

  def write(self, step: int, scalars: Mapping[str, Any]) -> None:
    """Writes scalars of one step.

    Args:
      step: the update that they belong to.
      scalars: name -> number or array of one element; arrays still on a device are fetched
        together, which waits for them. A name's part before "/" is its group in TensorBoard.

    Raises:
      ValueError: a value has more than one element.
    """
    for name, value in jax.device_get(dict(scalars)).items():
      array = np.asarray(value)
      if array.size != 1:
        raise ValueError(f"metric {name!r}: expected one number, found an array of shape "
                         f"{array.shape}; reduce it before it is written")
      self._writer.add_scalar(name, float(array.reshape(())), global_step=step)

  def flush(self) -> None:
    """Hands everything written so far to the file."""
    self._writer.flush()

  def close(self) -> None:
    """Flushes and closes the file."""
    self._writer.close()

  def __enter__(self) -> "Writer":
    return self

  def __exit__(self, *exception) -> None:
    self.close()
