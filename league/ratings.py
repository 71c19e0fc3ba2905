"""Elo and ladder ratings, Nash equilibria and relative population performance.

SciPy is imported by the functions that use it: 0.34 CPU-seconds that most processes do not need.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

ELO_SCALE = 400.0
# The difference of two players' performances has twice the variance of one performance, and each
# rating has an uncertainty of a tenth of the scale (Vinyals et al. 2019, Methods): 568.5 points.
LADDER_SCALE = ELO_SCALE * math.sqrt(2 + 0.1 ** 2 + 0.1 ** 2)
_ROUNDING = 1e-9


def elo_expected_score(difference: ArrayLike, base: float = math.e):
  """Computes the expected score of a player from its rating lead.

  `1 / (1 + base^(-difference / 400))`. Vinyals et al. 2019 use base e; the usual base is 10. The
  two curves differ: do not compare ratings of one with ratings of the other.

  Args:
    difference: [...] own rating minus the opponent's.
    base: e or 10.

  Returns:
    [...] float64 in [0, 1].
  """
  from scipy import special
  return special.expit(np.asarray(difference, np.float64) * (math.log(base) / ELO_SCALE))[()]


def elo_update(rating: float, opponent_rating: float, score: float, k: float = 32.0,
               base: float = math.e) -> tuple[float, float]:
  """Updates both ratings after a game.

  Args:
    rating: of the player.
    opponent_rating: of its opponent.
    score: of the player: 1 for a win, 0.5 for a draw, 0 for a loss.
    k: the largest change of a rating by one game.
    base: see `elo_expected_score`.

  Returns:
    (rating, opponent_rating), with the sum unchanged.

  Raises:
    ValueError: `score` is outside [0, 1].
  """
  if not 0 <= score <= 1:
    raise ValueError(f"score is {score}, expected a number in [0, 1].")
  change = k * (score - float(elo_expected_score(rating - opponent_rating, base)))
  return rating + change, opponent_rating - change


def elo_ratings(scores: np.ndarray, games: np.ndarray, anchor: int = 0, base: float = math.e,
                prior_games: float = 1.0, iterations: int = 100) -> np.ndarray:
  """Computes the maximum-likelihood Elo ratings of a league by Newton's method.

  Args:
    scores: [N, N] score of row against column: wins plus half the draws.
    games: [N, N] games of row against column, symmetric; the diagonal is ignored.
    anchor: index of the player with rating 0; the published ratings use the built-in elite bot.
    base: see `elo_expected_score`.
    prior_games: drawn games added for each player against an opponent of rating 0. Without them a
      player that wins every game has no finite rating.
    iterations: maximum number of Newton steps.

  Returns:
    [N] float64 ratings.

  Raises:
    ValueError: the shapes differ, `games` is not symmetric, the scores of a pair do not add up to
      its games, or `prior_games` is not positive.
  """
  scores, games = _without_diagonal(scores, games)
  if prior_games <= 0:
    raise ValueError(f"prior_games is {prior_games}, expected a positive number.")
  strength = np.zeros(len(games))  # in units of 400 / log(base)
  value, gradient, hessian = _log_likelihood(strength, scores, games, prior_games)
  for _ in range(iterations):
    step = np.linalg.solve(hessian, gradient)
    if np.abs(step).max() < _ROUNDING:
      break
    while True:  # the objective is concave: a short enough Newton step never lowers it
      candidate = _log_likelihood(strength + step, scores, games, prior_games)
      if candidate[0] >= value - _ROUNDING * abs(value):
        break
      step /= 2
    strength = strength + step
    value, gradient, hessian = candidate
  return (strength - strength[anchor]) * ELO_SCALE / math.log(base)


def _without_diagonal(scores: np.ndarray, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Copies with a diagonal of 0; ValueError if they are not scores and games of the same pairs."""
  scores, games = np.array(scores, np.float64), np.array(games, np.float64)
  number = len(games)
  if games.shape != (number, number) or scores.shape != games.shape:
    raise ValueError(f"scores {scores.shape} and games {games.shape} must both be [N, N].")
  np.fill_diagonal(games, 0.0)
  np.fill_diagonal(scores, 0.0)
  if not np.allclose(games, games.T) or not np.allclose(scores + scores.T, games):
    raise ValueError("games must be symmetric, and scores and their transpose must add up to "
                     "games: give both directions of each pair.")
  return scores, games


def _log_likelihood(strength: np.ndarray, scores: np.ndarray, games: np.ndarray,
                    prior_games: float) -> tuple[float, np.ndarray, np.ndarray]:
  """Log-likelihood of strengths [N], its gradient [N] and its negated Hessian [N, N]."""
  from scipy import special
  lead = strength[:, None] - strength
  value = (scores * special.log_expit(lead)).sum() + prior_games * 0.5 * (
    special.log_expit(strength) + special.log_expit(-strength)).sum()
  expected, prior_expected = special.expit(lead), special.expit(strength)
  gradient = (scores - games * expected).sum(1) + prior_games * (0.5 - prior_expected)
  curvature = games * expected * (1 - expected)
  diagonal = curvature.sum(1) + prior_games * prior_expected * (1 - prior_expected)
  return float(value), gradient, np.diag(diagonal) - curvature


def ladder_expected_score(difference: ArrayLike, scale: float = LADDER_SCALE):
  """Computes the ladder's win probability, Phi(difference / scale).

  Source: Vinyals et al. 2019, Methods.

  Args:
    difference: [...] own rating minus the opponent's.
    scale: 568.5 for the ladder; 400 gives the curve that the paper approximates by its Elo form.

  Returns:
    [...] float64 in [0, 1].
  """
  from scipy import special
  return special.ndtr(np.asarray(difference, np.float64) / scale)[()]


def ladder_rating(opponent_ratings: Sequence[float], wins: Sequence[bool],
                  bounds: tuple[float, float] = (0.0, 10_000.0),
                  scale: float = LADDER_SCALE) -> float:
  """Computes the maximum-likelihood ladder rating of a player, with a uniform prior.

  Args:
    opponent_ratings: [N] rating of each game's opponent.
    wins: [N] whether the game was won.
    bounds: of the rating. A player that wins (loses) every game gets the upper (lower) bound.
    scale: see `ladder_expected_score`.

  Raises:
    ValueError: there are no games, or the shapes differ.
  """
  from scipy import optimize, special
  opponents = np.asarray(opponent_ratings, np.float64)
  signs = np.where(np.asarray(wins, bool), 1.0, -1.0)
  if opponents.shape != signs.shape or opponents.ndim != 1 or not opponents.size:
    raise ValueError(f"opponent_ratings {opponents.shape} and wins {signs.shape} must both be [N] "
                     "with N > 0.")

  def slope(rating):
    lead = signs * (rating - opponents) / scale
    # The derivative of log Phi as a difference of logarithms: Phi underflows for large leads.
    return (signs * np.exp(-0.5 * lead * lead - special.log_ndtr(lead))).sum()

  low, high = bounds  # the log-likelihood is concave: its slope decreases
  if slope(low) <= 0:
    return float(low)
  if slope(high) >= 0:
    return float(high)
  return float(optimize.brentq(slope, low, high, xtol=1e-9))


def nash(payoff_matrix: np.ndarray) -> np.ndarray:
  """Computes the row player's Nash equilibrium strategy of a zero-sum game.

  If there are several equilibria, the result is one of them; all have the same value.

  Args:
    payoff_matrix: [N, M] payoff of the row player; win rates work, as the constant 1/2 that makes
      them zero-sum changes no strategy.

  Returns:
    [N] float64 probabilities of the row player's choices.

  Raises:
    ValueError: the matrix is empty or not finite.
  """
  from scipy import optimize
  matrix = np.asarray(payoff_matrix, np.float64)
  if matrix.ndim != 2 or not matrix.size:
    raise ValueError(f"payoff_matrix has shape {matrix.shape}, expected [N, M], not empty.")
  if not np.isfinite(matrix).all():
    raise ValueError(f"payoff_matrix has {(~np.isfinite(matrix)).sum()} entries that are not "
                     "finite.")
  rows, columns = matrix.shape
  # Linear program: the largest v such that the row player gets at least v against every column.
  solution = optimize.linprog(
    c=np.concatenate([np.zeros(rows), [-1.0]]),
    A_ub=np.concatenate([-matrix.T, np.ones((columns, 1))], axis=1), b_ub=np.zeros(columns),
    A_eq=np.concatenate([np.ones(rows), [0.0]])[None], b_eq=[1.0],
    bounds=[(0, None)] * rows + [(None, None)], method="highs")
  if not solution.success:
    raise RuntimeError(f"The linear program of a {rows} x {columns} game found no equilibrium: "
                       f"{solution.message}")
  strategy = np.maximum(solution.x[:rows], 0.0)
  return strategy / strategy.sum()


def relative_population_performance(payoff_matrix: np.ndarray) -> float:
  """Computes the value of the game between two populations, each at its Nash equilibrium.

  Nash(P_AB)^T P_AB Nash(P_BA) (Balduzzi et al. 2019; Vinyals et al. 2019, Methods).

  Args:
    payoff_matrix: [N, M] win rates of the members of A against those of B.

  Returns:
    The win rate of A; above 0.5 if A is the better population.
  """
  matrix = np.asarray(payoff_matrix, np.float64)
  return float(nash(matrix) @ matrix @ nash(-matrix.T))
