"""Robustness of an agent: against its past, against fresh exploiters, against fixed opponents.

Points are wins plus half the draws. Vinyals et al. 2019 report win rates; in games without draws
the two are equal.
"""

import numpy as np
from numpy.typing import ArrayLike

from starleague.league.payoff import wilson_interval
from starleague.league.ratings.estimates import Estimate, check_points, score_bounds


def minimum_score(points: ArrayLike, games: ArrayLike, level: float = 0.95) -> Estimate[float]:
  """Computes an agent's minimum score against its past selves, averaged over time.

  The forgetting proxy of Vinyals et al. 2019, Methods: an agent that forgets none of its past
  opponents keeps it at 1/2 or above. The minimum of observed scores lies below the minimum of
  the true ones, the more so the fewer games; the interval accounts for this.

  Args:
    points: [T, K] points at T times against K past selves, or [K] at one time.
    games: [T, K] or [K] games; 0 for past selves that did not exist yet or were not met.
    level: probability of the interval at one time. The lower bound is the lowest of the past
      selves' one-sided bounds. The upper one corrects their bounds for the choice of the lowest
      (Bonferroni). Means over time have the means of the bounds, which is conservative if the
      games of different times are independent.

  Returns:
    Scalars. Times without games are left out.

  Raises:
    ValueError: there are no games at all, or points exceed games.
  """
  won, total = check_points(points, games)
  if won.ndim not in (1, 2) or not (total > 0).any():
    raise ValueError(f"points have shape {won.shape} with {total.sum():g} games, expected [K] or "
                     "[T, K] with at least one game.")
  won, total = np.atleast_2d(won), np.atleast_2d(total)
  measured = (total > 0).any(1)
  won, total = won[measured], total[measured]
  met = total > 0
  error = (1 - level) / 2
  low, high = score_bounds(won, total, error, error / met.sum(1, keepdims=True))
  scores = won / np.where(met, total, 1.0)

  def mean_minimum(table):
    return float(np.where(met, table, np.inf).min(1).mean())

  return Estimate(mean_minimum(scores), mean_minimum(low), mean_minimum(high))


def exploitability(points: ArrayLike, games: ArrayLike, level: float = 0.95) -> Estimate[float]:
  """Computes an agent's exploitability: the best score of fresh exploiters against it.

  Each exploiter is trained against the frozen agent alone. 1/2 or less means that none of them
  found a weakness. The true value of the best response is at least as large. Compare agents by
  equally many exploiters with equal training.

  Args:
    points: [K] points of the exploiters.
    games: [K] games of the exploiters against the agent, played after their training.
    level: probability of the interval. The upper bound is the highest of the exploiters' one-sided
      bounds. The lower one corrects their bounds for the choice of the highest (Bonferroni).

  Returns:
    Scalars.

  Raises:
    ValueError: an exploiter has no games, or points exceed games.
  """
  won, total = _of_opponents(points, games)
  # The exploiters' highest score is one minus the lowest score of the agent.
  lowest = minimum_score(total - won, total, level)
  return Estimate(1 - lowest.value, 1 - lowest.high, 1 - lowest.low)


def validation_score(points: ArrayLike, games: ArrayLike, level: float = 0.95) -> Estimate[float]:
  """Computes an agent's score against a validation set of fixed opponents, each of equal weight.

  Source of the measure: Vinyals et al. 2019, Methods, with held-out validation agents.

  Args:
    points: [K] points of the agent.
    games: [K] games against each opponent.
    level: probability of the interval: Wilson's for the number of games whose mean has the
      variance of this score (the effective sample size of Korn and Graubard 1998).

  Returns:
    Scalars.

  Raises:
    ValueError: an opponent has no games, or points exceed games.
  """
  from scipy import special
  won, total = _of_opponents(points, games)
  value = float((won / total).mean())
  # Half a win and half a loss are added: few games without a loss do not prove a variance of 0.
  smoothed = (won + 0.5) / (total + 1)
  variance = (smoothed * (1 - smoothed) / total).sum() / len(total) ** 2
  effective = float(smoothed.mean() * (1 - smoothed.mean()) / variance)
  low, high = wilson_interval(value * effective, effective, float(special.ndtri((1 + level) / 2)))
  return Estimate(value, low, high)


def _of_opponents(points: ArrayLike, games: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
  """Returns both as [K]; raises ValueError unless each opponent has games."""
  won, total = check_points(points, games)
  if won.ndim != 1 or not (total > 0).all():
    raise ValueError(f"games have shape {total.shape} and {(total == 0).sum()} zeros, expected "
                     "[K] with games against each of K opponents.")
  return won, total
