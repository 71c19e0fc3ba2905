"""Elo ratings: expected scores, updates, maximum-likelihood ratings of a league."""

import math

import numpy as np
from numpy.typing import ArrayLike

from starleague.league.ratings.estimates import Estimate, check_points

ELO_SCALE = 400.0
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
    prior_games: drawn games added for each player against a virtual opponent. It stands in the
      middle of the league, before ratings are shifted to the anchor. Without these games a player
      that wins every game has no finite rating.
    iterations: maximum number of Newton steps.

  Returns:
    [N] float64 ratings.

  Raises:
    ValueError: the shapes differ, `games` is not finite or not symmetric, the scores of a pair do
      not add up to its games or one is outside [0, games], or `prior_games` is not positive and
      finite.
  """
  strength, _ = _fit(scores, games, prior_games, iterations)
  return (strength - strength[anchor]) * ELO_SCALE / math.log(base)


def elo_estimate(scores: np.ndarray, games: np.ndarray, anchor: int = 0, base: float = math.e,
                 prior_games: float = 1.0, iterations: int = 100,
                 level: float = 0.95) -> Estimate[np.ndarray]:
  """Computes Elo ratings with their intervals, from the curvature of the likelihood.

  The covariance of the ratings is the inverse of the negated Hessian at the maximum, that of
  rating leads over the anchor follows. Draws count as half a win and half a loss, which overstates
  their variance: with draws the intervals are conservative.

  Args:
    scores: see `elo_ratings`, as are the other arguments.
    games: see `elo_ratings`.
    anchor: index of the player with rating 0; its interval is empty.
    base: see `elo_expected_score`.
    prior_games: see `elo_ratings`.
    iterations: see `elo_ratings`.
    level: probability of the interval.

  Returns:
    [N] float64 ratings and bounds.

  Raises:
    ValueError: see `elo_ratings`.
  """
  from scipy import special
  strength, hessian = _fit(scores, games, prior_games, iterations)
  covariance = np.linalg.inv(hessian)
  own = np.diag(covariance)
  variance = np.maximum(own + own[anchor] - 2 * covariance[:, anchor], 0.0)
  scale = ELO_SCALE / math.log(base)
  value = (strength - strength[anchor]) * scale
  spread = special.ndtri((1 + level) / 2) * np.sqrt(variance) * scale
  return Estimate(value, value - spread, value + spread)


def _fit(scores: np.ndarray, games: np.ndarray, prior_games: float,
         iterations: int) -> tuple[np.ndarray, np.ndarray]:
  """Returns the strengths [N], in units of 400 / log(base), and the negated Hessian [N, N]."""
  scores, games = _without_diagonal(scores, games)
  if not 0 < prior_games < math.inf:  # NaN compares false
    raise ValueError(f"prior_games is {prior_games}, expected a positive number.")
  strength = np.zeros(len(games))
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
  return strength, hessian


def _without_diagonal(scores: np.ndarray, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Copies with a diagonal of 0; ValueError if they are not scores and games of the same pairs."""
  scores, games = np.array(scores, np.float64), np.array(games, np.float64)
  number = len(games)
  if games.shape != (number, number) or scores.shape != games.shape:
    raise ValueError(f"scores {scores.shape} and games {games.shape} must both be [N, N].")
  np.fill_diagonal(games, 0.0)
  np.fill_diagonal(scores, 0.0)
  if not np.isfinite(games).all():  # the search for a step would not end
    raise ValueError(f"games has {(~np.isfinite(games)).sum()} entries that are not finite.")
  if not np.allclose(games, games.T) or not np.allclose(scores + scores.T, games):
    raise ValueError("games must be symmetric, and scores and their transpose must add up to "
                     "games: give both directions of each pair.")
  bounded = np.clip(scores, 0.0, games)  # decayed counts may exceed these bounds by their rounding
  return check_points(np.where(np.isclose(scores, bounded), bounded, scores), games)


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
