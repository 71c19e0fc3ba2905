"""Counts of an actor's steps and games, for the run's results."""

import pathlib
import time

from starleague.common import results

REPORT_INTERVAL_S = 5.0


class Counts:
  """Adds the steps and games of an actor to the run's results file every few seconds."""

  def __init__(self, run_dir: pathlib.Path, origin: float, name: str | None = None):
    """Starts with none.

    Args:
      run_dir: the run's directory.
      origin: start of the run, in Unix seconds.
      name: of the actor, for rows of its own speed; None: no such rows.
    """
    self._path, self._origin, self._name = run_dir / results.FILE_NAME, origin, name
    self._steps = self._games = 0
    self._since = time.time()

  def add(self, steps: int, games: int, update: int = 0) -> float | None:
    """Counts steps and games; returns the time if it has reported them now, in Unix seconds."""
    self._steps += steps
    self._games += games
    now = time.time()
    if now - self._since < REPORT_INTERVAL_S:
      return None
    rows = {"count/steps": float(self._steps), "count/games": float(self._games)}
    if self._name is not None:
      rows[f"actor/{self._name}"] = self._steps / (now - self._since)
    results.append(self._path, [results.Row(now - self._origin, update, tag, value)
                                for tag, value in rows.items()])
    self._steps, self._games, self._since = 0, 0, now
    return now
