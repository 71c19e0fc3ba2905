"""The payoff matrix of a league: decayed scores and all game results, in one SQLite file.

Each new result multiplies the games, wins, draws and losses of its pair by 0.99 before it counts:
about the latest hundred games matter (Vinyals et al. 2019, pseudocode). The results themselves are
stored too, for scores with intervals over a period. The counts are held in memory, and on disk
before a change returns.

A score is wins plus half the draws, over games. The published pseudocode calls it a win rate.
"""

import math
import numbers
import os
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from starleague.common.database import Database
from starleague.league import schema
from starleague.league.counts import Counts, CountTable, mirrored

WIN = 1
DRAW = 0
LOSS = -1
DECAY = 0.99
# Unix seconds of the newest result of a pair, 0 if all were pruned; the index gives each at once.
_LATEST = """max(
  coalesce((SELECT max(time) FROM results WHERE home = first AND away = second), 0),
  coalesce((SELECT max(time) FROM results WHERE home = second AND away = first), 0))"""


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


class Interval(NamedTuple):
  """A score, the bounds of its confidence interval, and the number of games."""

  score: float
  low: float
  high: float
  games: int


def wilson_bounds(points: np.ndarray, games: np.ndarray,
                  z: float = 1.96) -> tuple[np.ndarray, np.ndarray]:
  """Computes Wilson intervals of rates (Wilson 1927): 95% for the default z.

  Args:
    points: [...] wins; for scores, draws count half.
    games: [...] games, at least `points`.
    z: quantile of the normal distribution.

  Returns:
    (low, high), [...] each within [0, 1]; 0 and 1 without games.
  """
  played = games > 0
  total = np.where(played, games, 1.0)
  rate = points / total
  centre = rate + z * z / (2 * total)
  spread = z * np.sqrt((rate * (1 - rate) + z * z / (4 * total)) / total)
  scale = 1 + z * z / total
  # Rounding must not exclude the rate itself if all or no games are won.
  low = np.clip((centre - spread) / scale, 0.0, rate)
  high = np.clip((centre + spread) / scale, rate, 1.0)
  return np.where(played, low, 0.0), np.where(played, high, 1.0)


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
  low, high = wilson_bounds(np.array(float(wins)), np.array(float(games)), z)
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


def decayed(counts: Counts, result: int, decay: float) -> Counts:
  """Returns the counts of a pair after one more result of its first player."""
  return Counts(
    games=counts.games * decay + 1,
    wins=counts.wins * decay + (result == WIN),
    draws=counts.draws * decay + (result == DRAW),
    losses=counts.losses * decay + (result == LOSS))


Pairs = dict[tuple[str, str], Counts]  # by the two names in alphabetical order


class Staged(NamedTuple):
  """Results written in a transaction that is not committed yet.

  Attributes:
    new: for each result, whether its id is new.
    before: for each result, the counts of `home` against `away` before it.
    pairs: the counts of the pairs that they change.
  """

  new: list[bool]
  before: list[Counts]
  pairs: Pairs


class Payoff:
  """The payoff matrix of a league, in a file that threads and processes of one machine share."""

  def __init__(self, path: str | os.PathLike, decay: float = DECAY, *, shared: bool = True,
               read_only: bool = False):
    """Opens or creates the file.

    Args:
      path: the SQLite file; its folder is created if missing.
      decay: factor of the counts at each result.
      shared: whether other processes may change the file; each read then asks SQLite for changes.
      read_only: whether to open an existing file without the right to change it.

    Raises:
      ValueError: `decay` is outside (0, 1], or the file is something else, or missing and
        `read_only` is set.
    """
    if not 0 < decay <= 1:
      raise ValueError(f"decay is {decay}, expected a number in (0, 1].")
    self._decay, self._shared = decay, shared
    version, tables = schema.VERSIONS[schema.PAYOFF], schema.statements(schema.PAYOFF)
    if read_only:
      version, tables = schema.readable_version(path, schema.PAYOFF), ()
    else:
      schema.prepare(path)
    self._database = Database(path, schema.PAYOFF, version, tables, read_only=read_only)
    self._table = CountTable()
    self._version: tuple[int, int] | None = None  # of the file, at the table's last change
    self._refresh()

  @property
  def path(self) -> os.PathLike:
    """Path of the file."""
    return self._database.path

  @property
  def database(self) -> Database:
    """The file's connection, for components that share the file."""
    return self._database

  def _refresh(self) -> None:
    """Reads the counts again if another connection changed the file.

    Ages are those of the results, so that a restart makes no pair look recent. A shared file is
    read often, and nobody asks for its ages: all are 0.
    """
    with self._database.lock:
      version = self._database.version()
      if version == self._version:
        return
      with self._database.damage_named():
        now = time.time()
        column = str(now) if self._shared else _LATEST
        rows = self._database.rows(
          f"SELECT first, second, games, wins, draws, losses, {column} FROM pairs")
      table = CountTable()
      if rows:
        first, second, *counts, latest = zip(*rows, strict=True)
        # The clock of an actor may be ahead of this one.
        table.fill(first, second, np.array(counts).T, np.maximum(now - np.array(latest), 0.0))
      self._table, self._version = table, version

  def table(self) -> CountTable:
    """Returns the counts; those of a file that is not shared stay up to date."""
    if self._shared:
      self._refresh()
    return self._table

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
    with self._database.lock:
      with self._database.transaction() as connection:
        if self._shared:
          self._refresh()  # inside the transaction, which excludes other writers
        staged = self.stage(connection, checked, {})
        self.write(connection, staged.pairs)
      self._table.put(staged.pairs)
    return sum(staged.new)

  def stage(self, connection: sqlite3.Connection, results: Sequence[GameResult],
            earlier: Mapping[tuple[str, str], Counts], *, first_counts: bool = False,
            scored: bool = True) -> Staged:
    """Writes results, and computes the counts that they lead to; `write` and `apply` store these.

    Args:
      connection: in a transaction on the payoff's file.
      results: validated.
      earlier: counts changed earlier in the same transaction.
      first_counts: whether a result that contradicts the one of the same id is ignored.
      scored: whether the results change scores; those of a former policy do not.

    Raises:
      ValueError: a result contradicts the result of the same id. The caller rolls back.
    """
    staged = Staged([], [], {})
    for result in results:
      forward = result.home < result.away
      key = (result.home, result.away) if forward else (result.away, result.home)
      counts = staged.pairs.get(key) or earlier.get(key) or self._table.get(*key)
      staged.before.append(counts if forward else mirrored(counts))
      added = connection.execute("INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?, ?)", result)
      staged.new.append(bool(added.rowcount))
      if not added.rowcount:
        if not first_counts:
          _check_same(connection, result)
      elif scored and result.home != result.away:
        outcome = result.result if forward else -result.result
        staged.pairs[key] = decayed(counts, outcome, self._decay)
    return staged

  def write(self, connection: sqlite3.Connection, pairs: Pairs) -> None:
    """Writes the counts of pairs, in a transaction."""
    connection.executemany("INSERT OR REPLACE INTO pairs VALUES (?, ?, ?, ?, ?, ?)",
                           [(*key, *counts) for key, counts in pairs.items()])

  def apply(self, pairs: Pairs) -> None:
    """Shows the counts of pairs to readers, after their transaction."""
    self._table.put(pairs)

  def apply_clear(self, player: str) -> None:
    """Shows a player without counts to readers, after the transaction of `clear`."""
    self._table.clear(player)

  def counts(self, home: str, away: str) -> Counts:
    """Returns the decayed counts of `home` against `away`."""
    return self.table().get(home, away)

  def score(self, home: str, away: str) -> float:
    """Returns the decayed score of `home` against `away`; 0.5 if they never met."""
    return self.table().score(home, away)

  def scores(self, home: str, away: Sequence[str]) -> np.ndarray:
    """Returns [N] float64: the decayed score of `home` against each of `away`."""
    return self.table().scores(home, away)

  def matrix(self, home: Sequence[str], away: Sequence[str]) -> np.ndarray:
    """Returns [N, M] float64: the decayed score of each of `home` against each of `away`."""
    return self.table().score_matrix(home, away)

  def count_matrix(self, home: Sequence[str], away: Sequence[str]) -> np.ndarray:
    """Returns [N, M, 4] float64: decayed counts, columns as in `Counts`."""
    return self.table().count_matrix(home, away)

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

  def interval(self, home: str, away: str, since: float = -math.inf,
               until: float = math.inf) -> Interval:
    """Returns the undecayed score for since <= time < until, with its 95% Wilson interval."""
    counts = self.results(home, away, since, until)
    low, high = wilson_interval(counts.wins + 0.5 * counts.draws, counts.games)
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

  `Payoff.apply_clear` shows it to readers after the transaction.

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
