"""Evaluation: the pairs of players known least, and the notable games, whose replays are kept."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from starleague.league.counts import Counts, CountTable
from starleague.league.payoff import DRAW, WIN, wilson_bounds
from starleague.league.players import LEARNING_KINDS, MAIN

_EQUAL = 1e-9  # difference of equal widths
UPSET, LONGEST, FIRST_WIN = "upset", "longest", "first_win_against_main"


def uncertainty(counts: np.ndarray, age_s: np.ndarray, changes: np.ndarray, pending: np.ndarray,
                half_life_s: float) -> np.ndarray:
  """Computes how little is known about pairs of players: the widths of their scores' intervals.

  The games of a player that learns describe a former policy: they lose half their weight in
  `half_life_s`. Those of two frozen players keep it.

  Args:
    counts: [P, 4] decayed counts of each pair, columns as in `Counts`.
    age_s: [P] seconds since the latest game of each pair.
    changes: [P] bool, whether a player of the pair learns.
    pending: [P] games that evaluators play at present; they count as played, with the pair's score.
    half_life_s: in seconds; infinite where learning does not count.

  Returns:
    [P] float64 in (0, 1].
  """
  games, points = counts[:, 0], counts[:, 1] + 0.5 * counts[:, 2]
  total = games * np.where(changes, 0.5 ** (np.maximum(age_s, 0.0) / half_life_s), 1.0) + pending
  score = np.where(games > 0, points / np.where(games > 0, games, 1.0), 0.5)
  low, high = wilson_bounds(score * total, total)
  return high - low


def known_least(widths: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
  """Returns [count] indices of the largest widths, the largest first; fewer if there are fewer.

  Args:
    widths: [P] of `uncertainty`.
    count: number of indices.
    rng: chooses among equal widths.
  """
  count = min(count, len(widths))
  least = np.partition(widths, len(widths) - count)[len(widths) - count]
  # Rounding makes equal widths differ in their last digits.
  larger, equal = (np.flatnonzero(widths > least + _EQUAL),
                   np.flatnonzero(np.abs(widths - least) <= _EQUAL))
  chosen = rng.permutation(equal)[:count - len(larger)]
  return np.concatenate([larger[np.argsort(-widths[larger])], chosen])


class LeastKnownPairs:
  """The pairs of some players by how little is known about them, kept up to date.

  The width of a pair of frozen players changes with its games only, and is kept. The widths of the
  pairs of learning players change with time: they are computed for each choice. A row has the pairs
  of a player with those after it, learning players first. A choice looks at the largest width of
  each row, then at the pairs of the rows that matter. One thread at a time may use it.
  """

  def __init__(self, table: CountTable, names: Sequence[str], learns: Sequence[bool],
               half_life_s: float, scripted: Collection[str] = ()):
    """Computes the widths of all pairs of frozen players.

    Args:
      table: counts.
      names: [N] of the players, N >= 2.
      learns: [N] whether each player learns.
      half_life_s: see `uncertainty`.
      scripted: those of the players that meet no other one of them; they do not learn.
    """
    learning = [name for name, flag in zip(names, learns, strict=True) if flag]
    frozen = sorted((name for name, flag in zip(names, learns, strict=True) if not flag),
                    key=lambda name: name in scripted)
    self._scripted = len(names) - len(scripted)  # the first one
    self._names, self._learning = (*learning, *frozen), len(learning)
    self._table, self._half_life_s = table, half_life_s
    numbers = table.numbers(self._names)
    self._numbers = np.array(numbers)
    self._index = {name: i for i, name in enumerate(self._names)}
    self._index_of_number = {number: i for i, number in enumerate(numbers)}
    size = len(names)
    self._pending: dict[tuple[int, int], int] = {}  # games that are played at present, by pair
    self._pending_games = np.zeros((size, size))  # the same
    self._widths = np.full((size, size), -1.0)  # -1: no pair of the row
    self._largest = np.full(size, -1.0)  # of each row
    self._ties = np.zeros(size, np.intp)  # number of widths of each row that equal its largest
    self._changing = np.triu_indices(self._learning, 1, size)
    first, second = (at + self._learning for at in np.triu_indices(len(frozen), 1))
    meet = first < self._scripted
    self._compute(first[meet], second[meet])
    self._rank(np.arange(self._learning, size))

  def recount(self, pairs: Iterable[tuple[int, int]]) -> None:
    """Computes the widths of pairs again whose counts have changed, given by `table`'s numbers."""
    found = ((self._index_of_number.get(i), self._index_of_number.get(j)) for i, j in pairs)
    self._update({(min(i, j), max(i, j)) for i, j in found if i is not None and j is not None})

  def _update(self, pairs: Iterable[tuple[int, int]]) -> None:
    """Computes the widths of those of some pairs, by index, whose players are both frozen."""
    frozen = [(i, j) for i, j in pairs if self._learning <= i < min(j, self._scripted)]
    if frozen:
      first, second = np.array(frozen).T
      self._compute(first, second)
      self._rank(np.unique(first))

  def _compute(self, first: np.ndarray, second: np.ndarray) -> None:
    """Computes the widths of pairs, [P] indices each, the lower one first."""
    counts, ages = self._table.of_pairs(self._numbers[first], self._numbers[second])
    self._widths[first, second] = uncertainty(
      counts, ages, first < self._learning, self._pending_games[first, second], self._half_life_s)

  def _rank(self, rows: np.ndarray) -> None:
    widths = self._widths[rows]
    self._largest[rows] = largest = widths.max(1)
    self._ties[rows] = (widths >= np.maximum(largest[:, None] - _EQUAL, 0.0)).sum(1)

  def choose(self, count: int, pending: Iterable[tuple[str, str, int]],
             rng: np.random.Generator) -> list[tuple[str, str]]:
    """Returns the `count` pairs known least, those known least first; see `known_least`.

    Args:
      count: number of pairs; fewer are returned if there are fewer.
      pending: games that evaluators play at present, as (home, away, number).
      rng: chooses among equally known pairs.
    """
    self._count_pending(pending)
    if self._learning:
      self._compute(*self._changing)
      self._rank(np.arange(self._learning))
    if self._largest.max() < 0.0:
      return []  # scripted players alone
    rows = np.flatnonzero(self._largest >= self._largest.max() - _EQUAL)
    ends = self._ties[rows].cumsum()
    found = (self._choose_ties(rows, ends, count, rng) if count <= ends[-1]
             else self._choose_any(count, rng))
    return [(self._names[i], self._names[j]) for i, j in found]

  def _count_pending(self, pending: Iterable[tuple[str, str, int]]) -> None:
    games: dict[tuple[int, int], int] = {}
    for home, away, number in pending:
      i, j = self._index.get(home), self._index.get(away)
      if i is not None and j is not None:
        pair = min(i, j), max(i, j)
        games[pair] = games.get(pair, 0) + number
    changed = {pair for pair, _ in games.items() ^ self._pending.items()}
    self._pending = games
    for pair in changed:
      self._pending_games[pair] = games.get(pair, 0)
    self._update(changed)

  def _choose_ties(self, rows: np.ndarray, ends: np.ndarray, count: int,
                   rng: np.random.Generator) -> list[tuple[int, int]]:
    """Chooses among pairs that are all known least: in a young league most have no games."""
    found = []
    for number in rng.choice(ends[-1], count, replace=False):
      at = ends.searchsorted(number, "right")
      row = rows[at]
      tied = np.flatnonzero(self._widths[row] >= self._largest[row] - _EQUAL)
      found.append((int(row), int(tied[number - ends[at]])))  # counted from the end
    return found

  def _choose_any(self, count: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Chooses from the rows that can have one of the `count` largest widths."""
    kept = min(count, len(self._largest))
    least = np.partition(self._largest, -kept)[-kept]
    rows = np.flatnonzero(self._largest >= least - _EQUAL)
    widths = self._widths[rows]
    first, second = np.nonzero(widths >= 0)
    chosen = known_least(widths[first, second], count, rng)
    return [(int(rows[first[i]]), int(second[i])) for i in chosen]


class NotableRules(NamedTuple):
  """Thresholds of `notable`.

  Attributes:
    upset_score: a win is an upset if the winner's score before it was below this.
    upset_games: decayed games of the pair from which its score is known well enough for that.
  """

  upset_score: float = 0.2
  upset_games: float = 10.0


DEFAULT_RULES = NotableRules()


class History(NamedTuple):
  """The knowledge about a pair and its league before a game.

  Attributes:
    counts: decayed counts of the home player against the away player.
    home_kind: kind of the home player; see `players`.
    away_kind: kind of the away player.
    longest: game loops of the longest game so far.
  """

  counts: Counts
  home_kind: str
  away_kind: str
  longest: int


def notable(result: int, loops: int, history: History,
            rules: NotableRules = DEFAULT_RULES) -> tuple[str, ...]:
  """Returns why the replay of a game is worth keeping; empty if it is not.

  Args:
    result: WIN, DRAW or LOSS of the home player.
    loops: length of the game, in game loops.
    history: before the game.
    rules: thresholds.

  Returns:
    Any of `upset` (the winner's score was low), `first_win_against_main` (the first win of a
    learning player against a main agent, since the last reset of either) and `longest`.
  """
  reasons = []
  if result != DRAW:
    counts, home_won = history.counts, result == WIN
    expected = counts.score if home_won else 1.0 - counts.score
    won_before = counts.wins if home_won else counts.losses
    winner, loser = history.home_kind, history.away_kind
    if not home_won:
      winner, loser = loser, winner
    if counts.games >= rules.upset_games and expected < rules.upset_score:
      reasons.append(UPSET)
    if loser == MAIN and winner in LEARNING_KINDS and not won_before:
      reasons.append(FIRST_WIN)
  if loops > history.longest:
    reasons.append(LONGEST)
  return tuple(reasons)
