"""Reads the facts of a league from its run's folder, also while the run goes on."""

import os
import pathlib
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from starleague.common import results, run_files
from starleague.common.errors import UserError
from starleague.common.results import Row
from starleague.league import Payoff, elo_estimate
from starleague.league.league_file import open_league_file
from starleague.viewers.league.facts import Facts, anchor_of

T = TypeVar("T")


class LeagueReader:
  """Reads a run's league file and the results files of its learning players."""

  def __init__(self, run_dir: str | os.PathLike[str]):
    """Opens the league file to read it.

    Raises:
      UserError: there is no run or no league in the folder.
      DatabaseFileError: the file is damaged, no league's, or of another version.
    """
    self._folder = pathlib.Path(run_dir)
    self.name = self._folder.resolve().name
    path = self._folder / run_files.LEAGUE
    if not path.is_file():
      raise UserError(f"{self._folder}: expected the folder of a run with a league, found no file "
                      f"{run_files.LEAGUE} in it. Name another folder, such as runs/NAME.")
    self._league = open_league_file(path)
    self._payoff = Payoff(path, read_only=True)
    self._followers: dict[pathlib.Path, results.Follower] = {}
    self._rows: dict[pathlib.Path, list[Row]] = {}

  def stamp(self) -> tuple[tuple[str, int, int], ...]:
    """Returns what changes whenever a file changes that `facts` reads."""
    found = []
    for path in (*self._folder.glob(f"{run_files.LEAGUE}*"), *self._results_files()):
      try:
        status = path.stat()
      except FileNotFoundError:  # SQLite removes its log at times
        continue
      found.append((str(path), status.st_mtime_ns, status.st_size))
    return tuple(sorted(found))

  def _results_files(self) -> list[pathlib.Path]:
    """Returns the results files of the run as a whole, and of its learners by name."""
    return [*self._folder.glob(results.FILE_NAME),
            *sorted(self._folder.glob(f"{run_files.LEARNERS}/*/{results.FILE_NAME}"))]

  def _curves(self) -> dict[str, dict[str, list[Row]]]:
    """Returns rows by learner and tag; the folder of a results file names its learner or run."""
    for path in self._results_files():
      if path not in self._followers:
        self._followers[path], self._rows[path] = results.Follower(path), []
      self._rows[path] += self._followers[path].read()
    return {path.resolve().parent.name: results.by_tag(rows)
            for path, rows in self._rows.items() if rows}

  def facts(self) -> Facts:
    """Returns the league as it is now.

    Raises:
      UserError: the league has no player: it is being made, or was killed when it was.
      DatabaseFileError: the league file is damaged.
      ResultsError: a results file is damaged.
    """
    league = self._league
    orders = league.orders(done=True)
    players = tuple(league.players())
    if not players:
      raise UserError(f"{self._folder / run_files.LEAGUE}: expected a league with players, found "
                      "none yet; start the league, then try again")
    names = [player.name for player in players]
    counts = self._payoff.count_matrix(names, names)
    games, points = counts[..., 0], counts[..., 1] + 0.5 * counts[..., 2]
    np.fill_diagonal(games, 0.0)
    np.fill_diagonal(points, 0.0)
    anchor = anchor_of(players)
    return Facts(
      name=self.name, players=players, progress=league.progress(),
      resets=frozenset(order.snapshot for order in orders if order.reset),
      paused=frozenset(league.paused()), playing=len(league.assignments()), games=games,
      points=points, ratings=elo_estimate(points, games, anchor), anchor=anchor,
      branches=league.branches(), replays=league.replays(), curves=self._curves(),
      behaviours=league.behaviours())


class Newest(Generic[T]):
  """The newest value of something that is expensive to make.

  It is made again when its sources have changed, but takes a small share of the time only: the
  page of a running league must not slow its learners.
  """

  def __init__(self, make: Callable[[], T], stamp: Callable[[], object], *, share: float = 0.1,
               clock: Callable[[], float] = time.monotonic):
    """Makes the first value.

    Args:
      make: returns the value.
      stamp: returns what changes whenever the value's sources change.
      share: of the time, for `make`.
      clock: in seconds.
    """
    self._make, self._stamp, self._share, self._clock = make, stamp, share, clock
    self._lock = threading.Lock()
    self._version = 0
    self._error: Exception | None = None
    self._update()

  def _update(self) -> None:
    begin = self._clock()
    stamp = self._stamp()  # before: changes during `make` are found later
    try:
      self._value = self._make()
      self._made_of = stamp
      self._version += 1
      self._error = None
    except Exception as error:
      self._error = error
      raise
    finally:
      end = self._clock()
      self._not_before = end + (end - begin) * (1 / self._share - 1)

  def __call__(self) -> tuple[int, T]:
    """Returns a number that changes with the value, and the value.

    Raises:
      Exception: that of the last attempt to make the value, until another one succeeds.
    """
    with self._lock:
      if self._clock() >= self._not_before and self._stamp() != self._made_of:
        self._update()
      if self._error:
        raise self._error
      return self._version, self._value
