"""Who beats whom: decayed win rates and the results they come from, in one SQLite file.

For each pair, games, wins, draws and losses are multiplied by 0.99 at each of its results, so that
about its latest hundred games count (Vinyals et al. 2019, pseudocode). Beside them every result is
kept as it came, for win rates with intervals over a stretch of time.
"""

import math
import numbers
import os
import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from starleague.common.database import Database

WIN, DRAW, LOSS = 1, 0, -1
DECAY = 0.99

# `first` < `second` in `pairs`: the counts of the other direction are the same with wins and losses
# exchanged, as both are always changed together.
_TABLES = (
  "CREATE TABLE IF NOT EXISTS results (id TEXT PRIMARY KEY, home TEXT NOT NULL, away TEXT NOT NULL,"
  " result INTEGER NOT NULL, time REAL NOT NULL) WITHOUT ROWID",
  "CREATE INDEX IF NOT EXISTS results_by_pair ON results (home, away, time)",
  "CREATE INDEX IF NOT EXISTS results_by_time ON results (time)",
  "CREATE TABLE IF NOT EXISTS pairs (first TEXT NOT NULL, second TEXT NOT NULL, games REAL NOT NULL,"
  " wins REAL NOT NULL, draws REAL NOT NULL, losses REAL NOT NULL,"
  " PRIMARY KEY (first, second)) WITHOUT ROWID",
  "CREATE INDEX IF NOT EXISTS pairs_by_second ON pairs (second)",
)
_VERSION = 1


class GameResult(NamedTuple):
  """How a game ended.

  Attributes:
    id: unique to the game; a result that comes twice counts once.
    home: name of one player.
    away: name of the other.
    result: WIN, DRAW or LOSS, of `home`.
    time: when, in seconds since 1970.
  """

  id: str
  home: str
  away: str
  result: int
  time: float


class Counts(NamedTuple):
  """Games of one player against another; decayed ones are not whole."""

  games: float
  wins: float
  draws: float
  losses: float

  @property
  def win_rate(self) -> float:
    """Wins and half the draws over the games, 0.5 for none."""
    return (self.wins + 0.5 * self.draws) / self.games if self.games else 0.5


class Interval(NamedTuple):
  """A win rate, the bounds it lies within with some confidence, and the games it comes from."""

  win_rate: float
  low: float
  high: float
  games: int


_NONE = Counts(0.0, 0.0, 0.0, 0.0)


def wilson_interval(wins: float, games: float, z: float = 1.96) -> tuple[float, float]:
  """Bounds of a win rate (Wilson 1927): 95% for the default z. Draws count as half wins.

  Returns:
    (low, high), within [0, 1]; (0, 1) for no games.
  """
  if not 0 <= wins <= games:
    raise ValueError(f"Expected 0 <= wins <= games, found {wins} wins in {games} games.")
  if not games:
    return 0.0, 1.0
  rate = wins / games
  centre = rate + z * z / (2 * games)
  spread = z * math.sqrt((rate * (1 - rate) + z * z / (4 * games)) / games)
  scale = 1 + z * z / games
  # Rounding must not leave the rate itself outside, where all or none are won.
  return max(0.0, min(rate, (centre - spread) / scale)), min(1.0, max(rate,
                                                                      (centre + spread) / scale))


def validated(result: GameResult) -> GameResult:
  """The result with plain Python values; ValueError where it is not one, naming it."""
  identifier, home, away, outcome, when = result
  where = f"Result {identifier!r} of {home!r} against {away!r}"
  for name, value in (("id", identifier), ("home", home), ("away", away)):
    if not isinstance(value, str) or not value:
      raise ValueError(f"{where}: {name} is {value!r}, expected a text that is not empty.")
  if outcome not in (WIN, DRAW, LOSS):
    raise ValueError(f"{where}: result is {outcome!r}, expected 1, 0 or -1 (win, draw or loss of "
                     "home).")
  if not isinstance(when, numbers.Real) or not math.isfinite(when):
    raise ValueError(f"{where}: time is {when!r}, expected seconds since 1970.")
  return GameResult(identifier, home, away, int(outcome), float(when))


def _decayed(counts: Counts, result: int, decay: float) -> Counts:
  """The counts after one more result."""
  return Counts(
    games=counts.games * decay + 1,
    wins=counts.wins * decay + (result == WIN),
    draws=counts.draws * decay + (result == DRAW),
    losses=counts.losses * decay + (result == LOSS))


def _mirrored(counts: Counts) -> Counts:
  return counts._replace(wins=counts.losses, losses=counts.wins)


class Payoff:
  """The win rates of a league. Threads and processes of one machine may share its file."""

  def __init__(self, path: str | os.PathLike, decay: float = DECAY):
    """Opens or makes the file at `path`; ValueError where it is something else."""
    if not 0 < decay <= 1:
      raise ValueError(f"decay is {decay}, expected a number in (0, 1].")
    self._decay = decay
    self._database = Database(path, "payoff", _VERSION, _TABLES)

  @property
  def path(self) -> os.PathLike:
    """Of the file."""
    return self._database.path

  def record(self, result: GameResult) -> bool:
    """Counts one result; False where its id was counted before. See record_many."""
    return self.record_many([result]) == 1

  def record_many(self, results: Iterable[GameResult]) -> int:
    """Counts results in their order, all of them or none.

    A result whose id was counted before changes nothing. A game of a player against itself is kept
    but has no win rate.

    Returns:
      How many were new.

    Raises:
      ValueError: for a result that is not valid, or that says otherwise of a game that was counted
        before. Nothing is counted then.
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
    """Decayed counts, of `home`."""
    return self._against(home).get(away, _NONE)

  def _against(self, home: str) -> dict[str, Counts]:
    """Decayed counts against everybody that `home` has met."""
    found = self._database.rows(
      "SELECT second, games, wins, draws, losses FROM pairs WHERE first = ?", (home,))
    counts = {name: Counts(*row) for name, *row in found}
    found = self._database.rows(
      "SELECT first, games, wins, draws, losses FROM pairs WHERE second = ?", (home,))
    counts.update((name, _mirrored(Counts(*row))) for name, *row in found)
    return counts

  def win_rate(self, home: str, away: str) -> float:
    """How often `home` beats `away`, draws half, of late; 0.5 where they never met."""
    return self.counts(home, away).win_rate

  def win_rates(self, home: str, away: Sequence[str]) -> np.ndarray:
    """[N] float64: win_rate of `home` against each of `away`."""
    counts = self._against(home)
    return np.array([counts.get(name, _NONE).win_rate for name in away], np.float64)

  def matrix(self, home: Sequence[str], away: Sequence[str]) -> np.ndarray:
    """[N, M] float64: win_rate of each of `home` against each of `away`."""
    games, points = self._tables(home, away)
    return np.where(games > 0, points / np.where(games > 0, games, 1.0), 0.5)

  def games(self, home: Sequence[str], away: Sequence[str]) -> np.ndarray:
    """[N, M] float64: decayed games of each of `home` against each of `away`."""
    return self._tables(home, away)[0]

  def _tables(self, home: Sequence[str], away: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Decayed games and points (wins and half the draws), [N, M] each."""
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
    """Undecayed counts of `home` against `away`, whoever was at home, since <= time < until."""
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
    """Undecayed win rate over a stretch of time, with its Wilson interval."""
    counts = self.results(home, away, since, until)
    low, high = wilson_interval(counts.wins + 0.5 * counts.draws, counts.games, z)
    return Interval(counts.win_rate, low, high, int(counts.games))

  def prune(self, before: float) -> int:
    """Deletes results older than a time, of which a long run makes many; returns how many.

    Win rates stay. A deleted result that comes again is counted again: keep those that may.
    """
    with self._database.transaction() as connection:
      return connection.execute("DELETE FROM results WHERE time < ?", (before,)).rowcount

  def close(self) -> None:
    """Closes the file; it is opened again when needed."""
    self._database.close()


def clear(connection: sqlite3.Connection, player: str) -> None:
  """Forgets a player's decayed counts, as it is about to be another; its results are kept.

  Args:
    connection: in a transaction on a payoff's file.
    player: its name.
  """
  connection.execute("DELETE FROM pairs WHERE first = ?1 OR second = ?1", (player,))


def _check_same(connection: sqlite3.Connection, result: GameResult) -> None:
  """ValueError where a result's id was counted for another outcome; times may differ."""
  found = connection.execute("SELECT home, away, result FROM results WHERE id = ?",
                             (result.id,)).fetchone()
  if found != result[1:4]:
    raise ValueError(f"Result {result.id!r} says {result[1:4]} but {found} was counted under that "
                     "id. Give every game its own id.")
