"""Ratings on the ladder's scale, from games against rated opponents."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from starleague.league.ratings.estimates import Estimate

# The difference of two players' performances has twice the variance of one performance, and each
# rating has an uncertainty of a tenth of the scale (Vinyals et al. 2019, Methods): 568.5 points.
LADDER_SCALE = 400.0 * math.sqrt(2 + 0.1 ** 2 + 0.1 ** 2)
_NODES = 4001  # of the numerical integration
_NEGLIGIBLE_LOG = 40.0  # exp(-40) = 4e-18


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
  from scipy import optimize
  opponents, signs = _checked(opponent_ratings, wins)
  low, high = bounds  # the log-likelihood is concave: its slope decreases

  def slope(rating):
    return _slope(rating, opponents, signs, scale)

  if slope(low) <= 0:
    return float(low)
  if slope(high) >= 0:
    return float(high)
  return float(optimize.brentq(slope, low, high, xtol=1e-9))


def ladder_estimate(opponent_ratings: Sequence[float], wins: Sequence[bool],
                    bounds: tuple[float, float] = (0.0, 10_000.0), scale: float = LADDER_SCALE,
                    level: float = 0.95) -> Estimate[float]:
  """Computes the Bayesian ladder rating of a player: posterior mean and credible interval.

  The prior is uniform within the bounds, as in Vinyals et al. 2019, Methods. Their rating is the
  posterior's mode, `ladder_rating`; unlike it, the mean of a player that wins every game lies
  within the bounds.

  Args:
    opponent_ratings: [N] rating of each game's opponent.
    wins: [N] whether the game was won.
    bounds: of the prior.
    scale: see `ladder_expected_score`.
    level: probability of the interval, between the posterior's equal tails.

  Returns:
    Scalars.

  Raises:
    ValueError: there are no games, or the shapes differ.
  """
  opponents, signs = _checked(opponent_ratings, wins)
  kinds, number = np.unique(np.stack([opponents, signs]), axis=1, return_counts=True)
  low, high = bounds
  for _ in range(2):  # over the whole range, then where the posterior is not negligible
    ratings = np.linspace(low, high, _NODES)
    log_density = _log_likelihood(ratings, kinds, number, scale)
    kept = np.flatnonzero(log_density > log_density.max() - _NEGLIGIBLE_LOG)
    low, high = ratings[max(kept[0] - 1, 0)], ratings[min(kept[-1] + 1, _NODES - 1)]
  density = np.exp(log_density - log_density.max())
  weights = (density[1:] + density[:-1]) / 2
  total = np.concatenate([[0.0], weights.cumsum()]) / weights.sum()
  tails = np.interp([(1 - level) / 2, (1 + level) / 2], total, ratings)
  mean = (weights * (ratings[1:] + ratings[:-1]) / 2).sum() / weights.sum()
  return Estimate(float(mean), float(tails[0]), float(tails[1]))


def _checked(opponent_ratings: Sequence[float],
             wins: Sequence[bool]) -> tuple[np.ndarray, np.ndarray]:
  """Returns the opponents' ratings [N], and [N] 1 for wins and -1 for losses."""
  opponents = np.asarray(opponent_ratings, np.float64)
  signs = np.where(np.asarray(wins, bool), 1.0, -1.0)
  if opponents.shape != signs.shape or opponents.ndim != 1 or not opponents.size:
    raise ValueError(f"opponent_ratings {opponents.shape} and wins {signs.shape} must both be [N] "
                     "with N > 0.")
  return opponents, signs


def _slope(rating: float, opponents: np.ndarray, signs: np.ndarray, scale: float) -> float:
  """Returns the derivative of the log-likelihood, times `scale`."""
  from scipy import special
  lead = signs * (rating - opponents) / scale
  # The derivative of log Phi as a difference of logarithms: Phi underflows for large leads.
  return (signs * np.exp(-0.5 * lead * lead - special.log_ndtr(lead))).sum()


def _log_likelihood(ratings: np.ndarray, kinds: np.ndarray, number: np.ndarray,
                    scale: float) -> np.ndarray:
  """Returns [R] log-likelihoods of ratings [R], from `number` [K] games of each kind [2, K]."""
  from scipy import special
  opponents, signs = kinds
  return sum(count * special.log_ndtr(sign * (ratings - opponent) / scale)
             for opponent, sign, count in zip(opponents, signs, number, strict=True))
