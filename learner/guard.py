"""Stops a run whose updates are all skipped, and saves a diagnosis."""

import json
import logging
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from starleague.common import files
from starleague.common.errors import UserError

_logger = logging.getLogger(__name__)


class NonFiniteError(UserError, RuntimeError):
  """Too many consecutive updates were skipped because values in them were not finite."""


class Guard:
  """Watches the metrics of `Update` for skipped updates.

  It inspects an update after the next one has been started, so that devices never wait for the
  host; until then it keeps that update's batch.

  Args:
    directory: directory of the diagnosis.
    limit: number of consecutive skipped updates that ends the run.
    readable: converts a batch of numpy arrays to the arrays that are saved: it unpacks a packed
      batch, so that the diagnosis names the fields that are not finite. None: no conversion.

  Raises:
    ValueError: `limit` is not positive.
  """

  def __init__(self, directory: str | os.PathLike, limit: int = 10,
               readable: Callable[[Any], Any] | None = None):
    if limit < 1:
      raise ValueError(f"limit: expected at least 1, found {limit}")
    self._directory, self._limit = Path(directory), limit
    self._readable = readable or (lambda batch: batch)
    self._pending: tuple[Mapping[str, Any], Any] | None = None

  def check(self, metrics: Mapping[str, Any], batch: Any) -> None:
    """Registers an update, and inspects the previous one.

    Args:
      metrics: the update's metrics, still on a device.
      batch: the update's batch.

    Raises:
      NonFiniteError: the previous update was the last of `limit` consecutive skipped ones. The
        error names the files with its batch and its metrics.
    """
    previous, self._pending = self._pending, (metrics, batch)
    if previous is not None:
      self._inspect(*previous)

  def finish(self) -> None:
    """Inspects the last update; raises as `check` does."""
    previous, self._pending = self._pending, None
    if previous is not None:
      self._inspect(*previous)

  def _inspect(self, metrics: Mapping[str, Any], batch: Any) -> None:
    skipped = int(metrics["consecutive_skipped"])
    if skipped == 0:
      return
    values = {name: float(value) for name, value in jax.device_get(dict(metrics)).items()}
    bad = sorted(name for name, value in values.items() if not math.isfinite(value))
    step = int(values["step"])
    _logger.warning("update skipped: step=%d consecutive=%d not_finite=%s", step, skipped, bad)
    if skipped < self._limit:
      return
    readable = self._readable(jax.tree.map(np.asarray, batch))
    diagnosis, arrays = _save_diagnosis(self._directory, step, values, bad, readable)
    raise NonFiniteError(
      f"{skipped} updates in a row were not finite, the last at step {step}; not finite in it: "
      f"{', '.join(bad) if bad else 'no metric, but the optimizer state'}. See {diagnosis}; the "
      f"batch is in {arrays}. Restart from an earlier checkpoint with a lower learning rate or "
      "with clipping, or fix the source of these trajectories")


def _save_diagnosis(directory: Path, step: int, metrics: Mapping[str, float], bad: list[str],
                    batch: Any) -> tuple[Path, Path]:
  """Writes the batch as npz and a report as json; returns (json, npz)."""
  name = f"not_finite_step_{step}_process_{jax.process_index()}"
  leaves = {jax.tree_util.keystr(path): np.asarray(leaf)
            for path, leaf in jax.tree_util.tree_leaves_with_path(batch)}
  bad_leaves = {}
  for leaf, array in leaves.items():
    if np.issubdtype(array.dtype, np.inexact):
      where = np.argwhere(~np.isfinite(array))
      if len(where):
        bad_leaves[leaf] = {"count": len(where), "first_index": where[0].tolist()}
  report = {
    "step": step,
    "not_finite_metrics": bad,
    # JSON has no NaN: values that are not finite are strings.
    "metrics": {k: v if math.isfinite(v) else str(v) for k, v in sorted(metrics.items())},
    "not_finite_batch_leaves": bad_leaves,
    "batch_layout": {leaf: [list(x.shape), str(x.dtype)] for leaf, x in leaves.items()},
  }
  arrays_path, json_path = directory / f"{name}.npz", directory / f"{name}.json"
  with files.replacing(arrays_path, "wb") as file:
    np.savez_compressed(file, **leaves)
  with files.replacing(json_path) as file:
    file.write(json.dumps(report, indent=2) + "\n")
  return json_path, arrays_path
