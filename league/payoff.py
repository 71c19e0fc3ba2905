"""The payoff matrix of a league: decayed scores and all game results, in one SQLite file.

Each new result multiplies the games, wins, draws and losses of its pair by 0.99 before it counts:
about the latest hundred games matter (Vinyals et al. 2019, pseudocode). The results themselves are
stored too, for scores with intervals over a period.

A score is wins plus half the draws, over games. The published pseudocode calls it a win rate.
"""

import math
import numbers
import os
import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from starleague.common.database import Database
from starleague.league.intervals import wilson_bounds

WIN, DRAW, LOSS = 1, 0, -1
DECAY = 0.99

# `first` < `second` in `pairs`: the counts of the other direction are these with wins and losses
# exchanged.
_TABLES = (
  "CREATE TABLE IF NOT EXISTS results (id TEXT PRIMARY KEY, home TEXT NOT NULL, away TEXT NOT NULL,"
  " result INTEGER NOT NULL, time REAL NOT NULL) WITHOUT ROWID",
  "CREATE INDEX IF NOT EXISTS results_by_pair ON results (home, away, time)",
  "CREATE INDEX IF NOT EXISTS results_by_time ON results (time)",
  "CREATE TABLE IF NOT EXISTS pairs (first TEXT NOT NULL, second TEXT NOT NULL,"
  " games REAL NOT NULL, wins REAL NOT NULL, draws REAL NOT NULL, losses REAL NOT NULL,"
  " PRIMARY KEY (first, second)) WITHOUT ROWID",
  "CREATE INDEX IF NOT EXISTS pairs_by_second ON pairs (second)",
)
_VERSION = 1


class GameResult(NamedTuple):
  """The result of a game.

  Attributes:
    id: unique to the game; a repeated result counts once.
    home: name of one player.
    away: name of the other player.
    result: WIN, DRAW or LOSS, of `home`.
    time: in Unix seconds.
  """

  id: str
  home: str
  away: str
  result: int
  time: float


class Counts(NamedTuple):
  """Games of one player against another; decayed counts are not integers."""

  games: float
  wins: float
  draws: float
  losses: float

  @property
  def score(self) -> float:
    """Wins plus half the draws, over games; 0.5 without games."""
    return (self.wins + 0.5 * self.draws) / self.games if self.games else 0.5


class Interval(NamedTuple):
  """A score, the bounds of its confidence interval, and the number of games."""

  score: float
  low: float
  high: float
  games: int


_NONE = Counts(0.0, 0.0, 0.0, 0.0)


def wilson_interval(wins: float, games: float, z: float = 1.96) -> tuple[float, float]:
  """Computes the Wilson interval of a rate (Wilson 1927): 95% for the default z.

  Args:
    wins: number of wins; for a score, draws count half.
    games: number of games.
    z: quantile of the normal distribution.

  Returns:
    (low, high), within [0, 1]; (0, 1) without games.

  Raises:
    ValueError: wins exceed games, or are negative.
  """
  if not 0 <= wins <= games:
    raise ValueError(f"Expected 0 <= wins <= games, found {wins} wins in {games} games.")
  low, high = wilson_bounds(np.float64(wins), np.float64(games), z)
  return float(low), float(high)


def validated(result: GameResult) -> GameResult:
  """Returns the result with plain Python values; raises ValueError if a value is invalid."""
  identifier, home, away, outcome, when = result
  where = f"Result {identifier!r} of {home!r} against {away!r}"
  for name, value in (("id", identifier), ("home", home), ("away", away)):
    if not isinstance(value, str) or not value:
      raise ValueError(f"{where}: {name} is {value!r}, expected a text that is not empty.")
  if outcome not in (WIN, DRAW, LOSS):
    raise ValueError(f"{where}: result is {outcome!r}, expected 1, 0 or -1 (win, draw or loss of "
                     "home).")
  if not isinstance(when, numbers.Real) or not math.isfinite(when):
    raise ValueError(f"{where}: time is {when!r}, expected Unix seconds.")
  return GameResult(identifier, home, away, int(outcome), float(when))


def _decayed(counts: Counts, result: int, decay: float) -> Counts:
  """Returns the counts after one more result."""
  return Counts(
    games=counts.games * decay + 1,
    wins=counts.wins * decay + (result == WIN),
    draws=counts.draws * decay + (result == DRAW),
    losses=counts.losses * decay + (result == LOSS))


def _mirrored(counts: Counts) -> Counts:
  return counts._replace(wins=counts.losses, losses=counts.wins)


class Payoff:
  """The payoff matrix of a league, in a file that threads and processes of one machine share."""

  def __init__(self, path: str | os.PathLike, decay: float = DECAY):
    """Opens or creates the file.

    Args:
      path: the SQLite file; its folder is created if missing.
      decay: factor of the counts at each result.

    Raises:
      ValueError: `decay` is outside (0, 1], or the file is something else.
    """
    if not 0 < decay <= 1:
      raise ValueError(f"decay is {decay}, expected a number in (0, 1].")
    self._decay = decay
    self._database = Database(path, "payoff", _VERSION, _TABLES)

  @property
  def path(self) -> os.PathLike:
    """Path of the file."""
    return self._database.path

  def record(self, result: GameResult) -> bool:
    """Counts one result; returns False if its id was counted before. See `record_many`."""
    return self.record_many([result]) == 1

  def record_many(self, results: Iterable[GameResult]) -> int:
    """Counts results in order, all or none.

    A result whose id was counted before has no effect. A game of a player against itself is stored
    but has no score.

    Returns:
      The number of new results.

    Raises:
      ValueError: a result is invalid, or contradicts the result of the same id. Nothing is counted.
    """
    checked = [validated(result) for result in results]  # before anything is changed
    pairs: dict[tuple[str, str], Counts] = {}
    new = 0
    with self._database.transaction() as connection:
      for result in checked:
        added = connection.execute("INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?, ?)", result)
        if not added.rowcount:
          _check_same(connection, result)
          continue
        new += 1
        if result.home == result.away:
          continue
        key = min(result.home, result.away), max(result.home, result.away)
        if key not in pairs:
          row = connection.execute("SELECT games, wins, draws, losses FROM pairs "
                                   "WHERE first = ? AND second = ?", key).fetchone()
          pairs[key] = Counts(*row) if row else _NONE
        outcome = result.result if key[0] == result.home else -result.result
        pairs[key] = _decayed(pairs[key], outcome, self._decay)
      connection.executemany("INSERT OR REPLACE INTO pairs VALUES (?, ?, ?, ?, ?, ?)",
                             [(*key, *counts) for key, counts in pairs.items()])
    return new

  def counts(self, home: str, away: str) -> Counts:
    """Returns the decayed counts of `home` against `away`."""
    return self._against(home).get(away, _NONE)

  def _against(self, home: str) -> dict[str, Counts]:
    """Returns the decayed counts of `home` against each player that it has met."""
    found = self._database.rows(
      "SELECT second, games, wins, draws, losses FROM pairs WHERE first = ?", (home,))
    counts = {name: Counts(*row) for name, *row in found}
    found = self._database.rows(
      "SELECT first, games, wins, draws, losses FROM pairs WHERE second = ?", (home,))
    counts.update((name, _mirrored(Counts(*row))) for name, *row in found)
    return counts

  def score(self, home: str, away: str) -> float:
    """Returns the decayed score of `home` against `away`; 0.5 if they never met."""
    return self.counts(home, away).score

  def scores(self, home: str, away: Sequence[str]) -> np.ndarray:
    """Returns [N] float64: the decayed score of `home` against each of `away`."""
    counts = self._against(home)
    return np.array([counts.get(name, _NONE).score for name in away], np.float64)

  def matrix(self, home: Sequence[str], away: Sequence[str]) -> np.ndarray:
    """Returns [N, M] float64: the decayed score of each of `home` against each of `away`."""
    games, points = self._tables(home, away)
    return np.where(games > 0, points / np.where(games > 0, games, 1.0), 0.5)

  def games(self, home: Sequence[str], away: Sequence[str]) -> np.ndarray:
    """Returns [N, M] float64: decayed games of each of `home` against each of `away`."""
    return self._tables(home, away)[0]

  def _tables(self, home: Sequence[str], away: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Returns decayed games and points (wins plus half the draws), [N, M] each."""
    number = {name: i for i, name in enumerate(dict.fromkeys((*home, *away)))}
    games = np.zeros((len(number), len(number)))
    points = np.zeros_like(games)
    for first, second, *row in self._database.rows(
        "SELECT first, second, games, wins, draws, losses FROM pairs"):
      i, j = number.get(first), number.get(second)
      if i is not None and j is not None:
        counts = Counts(*row)
        games[i, j] = games[j, i] = counts.games
        points[i, j] = counts.wins + 0.5 * counts.draws
        points[j, i] = counts.losses + 0.5 * counts.draws
    rows = np.ix_([number[name] for name in home], [number[name] for name in away])
    return games[rows], points[rows]

  def results(self, home: str, away: str, since: float = -math.inf,
              until: float = math.inf) -> Counts:
    """Returns the undecayed counts of `home` against `away` for since <= time < until.

    Games in which `away` was the home player count too.
    """
    counts = {WIN: 0, DRAW: 0, LOSS: 0}
    directions = ((home, away, 1), (away, home, -1)) if home != away else ((home, away, 1),)
    for first, second, sign in directions:
      for result, number in self._database.rows(
          "SELECT result, COUNT(*) FROM results WHERE home = ? AND away = ? AND time >= ? AND "
          "time < ? GROUP BY result", (first, second, since, until)):
        counts[sign * result] += number
    return Counts(sum(counts.values()), counts[WIN], counts[DRAW], counts[LOSS])

  def interval(self, home: str, away: str, since: float = -math.inf, until: float = math.inf,
               z: float = 1.96) -> Interval:
    """Returns the undecayed score for since <= time < until, with its Wilson interval."""
    counts = self.results(home, away, since, until)
    low, high = wilson_interval(counts.wins + 0.5 * counts.draws, counts.games, z)
    return Interval(counts.score, low, high, int(counts.games))

  def prune(self, before: float) -> int:
    """Deletes results older than a time and returns their number; decayed scores stay.

    A deleted result that is reported again counts again: keep results that may be repeated.
    """
    with self._database.transaction() as connection:
      return connection.execute("DELETE FROM results WHERE time < ?", (before,)).rowcount

  def close(self) -> None:
    """Closes the file; the next use reopens it."""
    self._database.close()


def clear(connection: sqlite3.Connection, player: str) -> None:
  """Deletes the decayed counts of a player that is reset; its results stay.

  Args:
    connection: in a transaction on a payoff's file.
    player: its name.
  """
  connection.execute("DELETE FROM pairs WHERE first = ?1 OR second = ?1", (player,))


def _check_same(connection: sqlite3.Connection, result: GameResult) -> None:
  """Raises ValueError if the id was counted with another result; times may differ."""
  found = connection.execute("SELECT home, away, result FROM results WHERE id = ?",
                             (result.id,)).fetchone()
  if found != result[1:4]:
    raise ValueError(f"Result {result.id!r} says {result[1:4]} but {found} was counted under that "
                     "id. Give every game its own id.")
