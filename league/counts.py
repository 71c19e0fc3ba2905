"""The decayed counts of all pairs of players, in memory, as arrays.

Each player has a row and a column. One row holds a player's scores against all others: matchmaking
reads it as a whole.
"""

import array
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

UNKNOWN_SCORE = 0.5  # of a pair without games
_FIRST_SIZE = 16
_MOST_REMEMBERED = 1024  # tuples of names whose columns are remembered


class Counts(NamedTuple):
  """Games of one player against another; decayed counts are not integers."""

  games: float
  wins: float
  draws: float
  losses: float

  @property
  def score(self) -> float:
    """Wins plus half the draws, over games; 0.5 without games."""
    return (self.wins + 0.5 * self.draws) / self.games if self.games else UNKNOWN_SCORE


NO_GAMES = Counts(0.0, 0.0, 0.0, 0.0)


def mirrored(counts: Counts) -> Counts:
  """Returns the counts of the other direction of a pair."""
  return Counts(counts.games, counts.losses, counts.draws, counts.wins)


Weight = Callable[[float], float]  # of an opponent, of the score against it


class ScoreRow:
  """The scores of one player and the weights of its opponents, kept up to date.

  Threads may share it. Python reads single values fastest from its own arrays, which are compact
  too.

  Attributes:
    scores: against each player, by its number.
    changes: number of changes of the scores so far.
  """

  __slots__ = ("_lock", "_weights", "changes", "scores")

  def __init__(self, scores: Iterable[float]):
    self.scores, self.changes = array.array("d", scores), 0
    self._weights: dict[Weight, array.array[float]] = {}
    self._lock = threading.Lock()

  def weights(self, weight: Weight) -> Sequence[float]:
    """Returns the weight of each player, by its number; later changes reach it."""
    with self._lock:
      if weight not in self._weights:
        self._weights[weight] = array.array("d", map(weight, self.scores))
      return self._weights[weight]

  def append(self, score: float) -> None:
    """Adds the score against a new player."""
    with self._lock:
      self.scores.append(score)
      for weight, values in self._weights.items():
        values.append(weight(score))

  def change(self, number: int, score: float) -> None:
    """Changes the score against a player."""
    with self._lock:
      self.scores[number] = score
      for weight, values in self._weights.items():
        values[number] = weight(score)
      self.changes += 1  # last: a reader that finds the number finds the score

  def fill(self, scores: Iterable[float]) -> None:
    """Changes the scores against all players."""
    for number, score in enumerate(scores):
      self.change(number, score)


class CountTable:
  """Counts of all pairs; both directions of a pair are stored.

  Threads may read while one thread changes it: a reader sees the counts of a pair before or after a
  change, and may see one direction of it earlier than the other.
  """

  def __init__(self) -> None:
    self._number: dict[str, int] = {}
    self._counts = np.zeros((_FIRST_SIZE, _FIRST_SIZE, len(Counts._fields)))
    self._scores = np.full((_FIRST_SIZE, _FIRST_SIZE), UNKNOWN_SCORE)
    self._times = np.zeros((_FIRST_SIZE, _FIRST_SIZE))  # of the latest change of each pair
    self._columns: dict[int, tuple[tuple[str, ...], np.ndarray]] = {}
    self._rows: dict[int, ScoreRow] = {}
    self._changed: set[tuple[int, int]] | None = None  # None: nobody has asked yet
    self._lock = threading.RLock()

  def _row(self, name: str) -> int:
    """Returns a player's number; a new player gets the next one."""
    number = self._number.get(name)
    return self._add(name) if number is None else number

  def _add(self, name: str) -> int:
    with self._lock:
      number = self._number.get(name)
      if number is not None:
        return number
      number, size = len(self._number), len(self._scores)
      if number == size:
        self._counts = np.pad(self._counts, ((0, size), (0, size), (0, 0)))
        self._scores = np.pad(self._scores, (0, size), constant_values=UNKNOWN_SCORE)
        self._times = np.pad(self._times, (0, size))
      for row in self._rows.values():
        row.append(UNKNOWN_SCORE)
      self._number[name] = number  # last: a reader that finds the number finds its row
      return number

  def _numbers(self, names: Sequence[str]) -> np.ndarray:
    """Returns [N] numbers of players.

    Those of tuples are remembered: matchmaking needs the same groups of players for every match.
    """
    if not isinstance(names, tuple):
      return np.fromiter(map(self._row, names), np.intp, len(names))
    found = self._columns.get(id(names))
    if found is None:
      numbers = np.fromiter(map(self._row, names), np.intp, len(names))
      with self._lock:
        if len(self._columns) >= _MOST_REMEMBERED:
          self._columns.clear()
        # The tuple is kept too: while it lives, no other one has its id.
        found = self._columns[id(names)] = names, numbers
    return found[1]

  def numbers(self, names: Sequence[str]) -> list[int]:
    """Returns the numbers of players; they never change."""
    return self._numbers(names).tolist()

  def row(self, name: str) -> ScoreRow:
    """Returns the scores of a player, which later changes reach too."""
    with self._lock:
      number = self._row(name)
      found = self._rows.get(number)
      if found is None:
        found = ScoreRow(self._scores[number, :len(self._number)].tolist())
        self._rows[number] = found
      return found

  def take_changes(self) -> set[tuple[int, int]]:
    """Returns the numbers of the pairs that changed since the last call, for one caller.

    The first call returns none.
    """
    with self._lock:
      changed, self._changed = self._changed, set()
      return changed or set()

  def put(self, pairs: Mapping[tuple[str, str], Counts]) -> None:
    """Stores the counts of pairs, in both directions."""
    with self._lock:
      for (home, away), counts in pairs.items():
        self._put(self._row(home), self._row(away), counts)

  def _put(self, i: int, j: int, counts: Counts) -> None:
    score = counts.score
    self._counts[i, j] = counts
    self._counts[j, i] = mirrored(counts)
    self._times[i, j] = self._times[j, i] = time.monotonic()
    self._set_score(i, j, score)
    self._set_score(j, i, 1.0 - score)
    if self._changed is not None:
      self._changed.add((i, j))

  def _set_score(self, i: int, j: int, score: float) -> None:
    self._scores[i, j] = score
    row = self._rows.get(i)
    if row is not None:
      row.change(j, score)

  def fill(self, first: Sequence[str], second: Sequence[str], counts: np.ndarray,
           ages: np.ndarray) -> None:
    """Stores the counts of many pairs at once.

    Args:
      first: [N] names.
      second: [N] names.
      counts: [N, 4] counts of `first` against `second`, columns as in `Counts`; games > 0.
      ages: [N] seconds since each pair last changed.
    """
    with self._lock:
      i, j = (np.fromiter(map(self._row, names), np.intp, len(names)) for names in (first, second))
      self._counts[i, j] = counts
      self._counts[j, i] = counts[:, [0, 3, 2, 1]]
      scores = (counts[:, 1] + 0.5 * counts[:, 2]) / counts[:, 0]
      self._scores[i, j] = scores
      self._scores[j, i] = 1.0 - scores
      self._times[i, j] = self._times[j, i] = time.monotonic() - ages
      for number, row in self._rows.items():
        row.fill(self._scores[number, :len(self._number)].tolist())
      if self._changed is not None:
        self._changed.update(zip(i.tolist(), j.tolist(), strict=True))

  def clear(self, name: str) -> None:
    """Deletes the counts of a player, in both directions."""
    with self._lock:
      number = self._row(name)
      for other in np.flatnonzero(self._counts[number, :, 0]):
        self._put(number, int(other), NO_GAMES)

  def get(self, home: str, away: str) -> Counts:
    """Returns the counts of `home` against `away`."""
    i, j = self._number.get(home), self._number.get(away)
    if i is None or j is None:
      return NO_GAMES
    return Counts(*self._counts[i, j].tolist())

  def score(self, home: str, away: str) -> float:
    """Returns the score of `home` against `away`."""
    i, j = self._number.get(home), self._number.get(away)
    return UNKNOWN_SCORE if i is None or j is None else self._scores.item(i, j)

  def scores(self, home: str, away: Sequence[str]) -> np.ndarray:
    """Returns [N] float64: the score of `home` against each of `away`."""
    row, columns = self._row(home), self._numbers(away)  # first: new names make the arrays grow
    return self._scores[row].take(columns)

  def score_matrix(self, home: Sequence[str], away: Sequence[str]) -> np.ndarray:
    """Returns [N, M] float64: the score of each of `home` against each of `away`."""
    rows, columns = self._numbers(home), self._numbers(away)
    return self._scores[np.ix_(rows, columns)]

  def count_matrix(self, home: Sequence[str], away: Sequence[str]) -> np.ndarray:
    """Returns [N, M, 4] float64: the counts of each of `home` against each of `away`."""
    rows, columns = self._numbers(home), self._numbers(away)
    return self._counts[np.ix_(rows, columns)]

  def of_pairs(self, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the counts of pairs and the seconds since they last changed.

    Args:
      first: [P] numbers of players.
      second: [P] numbers of players.

    Returns:
      [P, 4] float64 counts of `first` against `second`, and [P] float64 seconds, meaningless for a
      pair without a change.
    """
    return self._counts[first, second], time.monotonic() - self._times[first, second]
