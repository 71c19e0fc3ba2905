"""The choice of evaluators: the pairs known least, and the games whose replays are kept."""

from typing import NamedTuple

import numpy as np

from starleague.league.counts import Counts
from starleague.league.payoff import DRAW, WIN
from starleague.league.players import LEARNING_KINDS, MAIN

UPSET, LONGEST, FIRST_WIN = "upset", "longest", "first_win_against_main"
_Z = 1.96


def interval_widths(games: np.ndarray, points: np.ndarray) -> np.ndarray:
  """Computes the widths of the scores' 95% Wilson intervals (Wilson 1927).

  Args:
    games: [...] number of games, not necessarily integers.
    points: [...] wins plus half the draws.

  Returns:
    [...] float64 in (0, 1]; 1 without games.
  """
  known = np.maximum(games, 1e-9)  # the width tends to 1 as the games tend to 0
  rates = points / known
  spread = np.sqrt(np.maximum(rates * (1 - rates), 0.0) / known + (_Z / (2 * known)) ** 2)
  return np.where(games > 0, 2 * _Z * spread / (1 + _Z ** 2 / known), 1.0)


def uncertainty(counts: np.ndarray, age_s: np.ndarray, learns: np.ndarray, pending: np.ndarray,
                half_life_s: float) -> np.ndarray:
  """Computes how little is known about each pair: the width of its score's interval.

  The games of a player that learns describe a former policy: they lose half their weight in
  `half_life_s`. Those of two frozen players keep it.

  Args:
    counts: [N, N, 4] decayed counts, columns as in `Counts`.
    age_s: [N, N] seconds since the latest game of each pair.
    learns: [N] bool, whether each player learns.
    pending: [N, N] games that evaluators play at present; they count as played, with the pair's
      score.
    half_life_s: in seconds; infinite where learning does not count.

  Returns:
    [N, N] float64 in (0, 1], symmetric; -inf on the diagonal.
  """
  changes = learns[:, None] | learns[None, :]
  weight = np.where(changes, 0.5 ** (np.maximum(age_s, 0.0) / half_life_s), 1.0)
  games = counts[..., 0]
  points = counts[..., 1] + 0.5 * counts[..., 2]
  score = np.where(games > 0, points / np.where(games > 0, games, 1.0), 0.5)
  total = games * weight + pending
  widths = interval_widths(total, score * total)
  np.fill_diagonal(widths, -np.inf)
  return widths


def known_least(widths: np.ndarray, count: int, rng: np.random.Generator) -> list[tuple[int, int]]:
  """Returns the pairs with the widest intervals, the widest first.

  Args:
    widths: [N, N] of `uncertainty`, symmetric.
    count: number of pairs; fewer if there are not so many.
    rng: chooses among equal widths, and each pair's home player.
  """
  first, second = np.triu_indices(len(widths), 1)
  # Rounding makes equal pairs equal: sums in another order differ in their last bits.
  values = np.round(widths[first, second], 9)
  order = np.lexsort((rng.random(len(values)), -values))[:count]
  swap = rng.random(len(order)) < 0.5
  pairs = np.stack([first[order], second[order]], axis=1)
  pairs[swap] = pairs[swap, ::-1]
  return [(int(home), int(away)) for home, away in pairs]


class TellingRules(NamedTuple):
  """Thresholds of `telling`.

  Attributes:
    upset_score: a win is an upset if the winner's score before it was below this.
    upset_games: decayed games of the pair from which its score is known well enough for that.
  """

  upset_score: float = 0.2
  upset_games: float = 10.0


DEFAULT_RULES = TellingRules()


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


def telling(result: int, loops: int, history: History,
            rules: TellingRules = DEFAULT_RULES) -> tuple[str, ...]:
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
