"""Estimates with intervals, and intervals of any statistic of a payoff matrix."""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

T = TypeVar("T", float, np.ndarray)

_PRIOR = 0.5  # Jeffreys' prior: half a win and half a loss


class Estimate(NamedTuple, Generic[T]):
  """An estimate and the bounds of its interval, three numbers or three arrays of a shape."""

  value: T
  low: T
  high: T


def posterior_estimate(statistic: Callable[[np.ndarray], ArrayLike], points: ArrayLike,
                       games: ArrayLike, rng: np.random.Generator, *, same_players: bool,
                       samples: int = 200, level: float = 0.95) -> Estimate[np.ndarray]:
  """Computes a statistic of a payoff matrix with its credible interval by posterior sampling.

  The scores of different pairs are independent, with Jeffreys' prior: score | points, games has
  the distribution Beta(points + 1/2, games - points + 1/2). Draws count as half a win and half a
  loss, which overstates their variance: with draws the interval is conservative.

  Args:
    statistic: maps scores [N, M] to a scalar or an array of any shape.
    points: [N, M] wins plus half the draws of row against column.
    games: [N, M] games of row against column; a pair without games has the prior.
    rng: source of randomness.
    same_players: whether rows and columns are the same players. Then the scores of both directions
      of a pair add up to 1, and a player scores 1/2 against itself.
    samples: number of samples of the posterior.
    level: probability of the interval, between the posterior's equal tails.

  Returns:
    The statistic of the observed scores (1/2 for pairs without games), and the interval.

  Raises:
    ValueError: points and games are not those of the same games.
  """
  points, games = check_points(points, games)
  if points.ndim != 2:
    raise ValueError(f"points have shape {points.shape}, expected [N, M].")
  if same_players and not (np.allclose(games, games.T) and np.allclose(points + points.T, games)):
    raise ValueError("games of the same players must be symmetric, and points and their transpose "
                     "must add up to games, also on the diagonal.")
  observed = np.where(games > 0, points / np.where(games > 0, games, 1.0), 0.5)
  drawn = []
  for _ in range(samples):
    scores = rng.beta(points + _PRIOR, games - points + _PRIOR)
    if same_players:
      upper = np.triu(scores, 1)
      scores = upper + np.tril(1 - upper.T, -1) + 0.5 * np.eye(len(scores))
    drawn.append(np.asarray(statistic(scores), np.float64))
  low, high = np.quantile(drawn, ((1 - level) / 2, (1 + level) / 2), axis=0)
  return Estimate(np.asarray(statistic(observed), np.float64), low, high)


def score_bounds(points: np.ndarray, games: np.ndarray, low_error: ArrayLike,
                 high_error: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
  """Computes exact one-sided bounds of scores (Clopper and Pearson 1934).

  Args:
    points: [...] wins plus half the draws.
    games: [...] games.
    low_error: [...] probability that a lower bound exceeds its score.
    high_error: [...] probability that an upper bound is below its score.

  Returns:
    (low, high), [...] each; 0 and 1 without games.
  """
  from scipy import special
  losses = games - points
  low = np.where(points > 0, special.betaincinv(
    np.maximum(points, 0.5), losses + 1, np.broadcast_to(low_error, points.shape)), 0.0)
  high = np.where(losses > 0, special.betaincinv(
    points + 1, np.maximum(losses, 0.5), 1 - np.broadcast_to(high_error, points.shape)), 1.0)
  return low, high


def check_points(points: ArrayLike, games: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
  """Returns both as float64 arrays; raises ValueError unless 0 <= points <= games everywhere."""
  points, games = np.asarray(points, np.float64), np.asarray(games, np.float64)
  if points.shape != games.shape or not points.size:
    raise ValueError(f"points {points.shape} and games {games.shape} must have one shape, not "
                     "empty.")
  wrong = ~((points >= 0) & (points <= games) & np.isfinite(games))  # NaN compares false
  if wrong.any():
    where = tuple(np.argwhere(wrong)[0].tolist())
    raise ValueError(f"Expected 0 <= points <= games, found {points[where]} points in "
                     f"{games[where]} games at {where}.")
  return points, games
