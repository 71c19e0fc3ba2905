"""Stops a run whose updates are all skipped, and saves what is needed to find out why."""

import json
import logging
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from starleague.common.errors import UserError

_logger = logging.getLogger(__name__)


class NonFiniteError(UserError, RuntimeError):
  """Too many updates in a row were skipped because something in them was not finite."""


class Guard:
  """Watches the metrics of `Update` for skipped updates.

  It looks at an update only when the next one has been started, so that devices never wait for the
  host; until then it holds on to that update's batch.

  Args:
    directory: where the diagnosis goes.
    limit: updates skipped in a row that end the run.
    readable: makes of a batch, its leaves as numpy arrays, what is saved: where batches travel
      packed, so that the diagnosis names the fields that are wrong. None: as it is.
  """

  def __init__(self, directory: str | os.PathLike, limit: int = 10,
               readable: Callable[[Any], Any] | None = None):
    if limit < 1:
      raise ValueError(f"limit: expected at least 1, found {limit}")
    self._directory, self._limit = Path(directory), limit
    self._readable = readable or (lambda batch: batch)
    self._pending: tuple[Mapping[str, Any], Any] | None = None

  def check(self, metrics: Mapping[str, Any], batch: Any) -> None:
    """Takes what one update gave and was given, and looks at the one before it.

    Args:
      metrics: of `Update`, still on a device.
      batch: that it was given.

    Raises:
      NonFiniteError: the update before was the last of `limit` skipped in a row. The error names
        the files that hold its batch and its metrics.
    """
    previous, self._pending = self._pending, (metrics, batch)
    if previous is not None:
      self._inspect(*previous)

  def finish(self) -> None:
    """Looks at the last update; raises as `check` does."""
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
    _logger.warning("update skipped: step=%d in_a_row=%d not_finite=%s", step, skipped, bad)
    if skipped < self._limit:
      return
    readable = self._readable(jax.tree.map(np.asarray, batch))
    diagnosis, arrays = _save_diagnosis(self._directory, step, values, bad, readable)
    raise NonFiniteError(
      f"{skipped} updates in a row were not finite, the last at step {step}; not finite in it: "
      f"{', '.join(bad) if bad else 'no metric, but the optimizer state'}. See {diagnosis}; the "
      f"batch is in {arrays}. Restart from an earlier checkpoint with a lower learning rate or "
      "with clipping, or mend what writes such trajectories")


def _save_diagnosis(directory: Path, step: int, metrics: Mapping[str, float], bad: list[str],
                    batch: Any) -> tuple[Path, Path]:
  """Writes the batch as npz and what is wrong with it as json; returns (json, npz)."""
  directory.mkdir(parents=True, exist_ok=True)
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
    # JSON has no NaN: such values are strings.
    "metrics": {k: v if math.isfinite(v) else str(v) for k, v in sorted(metrics.items())},
    "not_finite_batch_leaves": bad_leaves,
    "batch_layout": {leaf: [list(x.shape), str(x.dtype)] for leaf, x in leaves.items()},
  }
  arrays_path, json_path = directory / f"{name}.npz", directory / f"{name}.json"
  partial = directory / f".{name}.partial"
  with partial.open("wb") as file:
    np.savez_compressed(file, **leaves)
  os.replace(partial, arrays_path)
  partial.write_text(json.dumps(report, indent=2) + "\n")
  os.replace(partial, json_path)
  return json_path, arrays_path
