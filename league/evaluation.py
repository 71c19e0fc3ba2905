"""Evaluation: the pairs of players known least, and the notable games, whose replays are kept."""

from typing import NamedTuple

import numpy as np

from starleague.league.counts import Counts
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
