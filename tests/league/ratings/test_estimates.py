"""Intervals of statistics of a payoff, exact bounds of scores."""

import numpy as np
import pytest
from scipy import stats

from starleague.league.ratings import estimates

RNG = np.random.default_rng


def test_posterior_of_one_score_is_the_beta_distribution():
  found = estimates.posterior_estimate(
    lambda scores: scores[0, 0], [[30.]], [[40.]], RNG(0), same_players=False, samples=4000)
  assert found.value == .75
  np.testing.assert_allclose([found.low, found.high], stats.beta(30.5, 10.5).ppf([.025, .975]),
                             atol=.006)


def test_posterior_of_the_same_players_is_antisymmetric():
  points = np.array([[0, 3, 0], [1, 0, 0], [0, 0, 0]])
  games = points + points.T

  def check(scores):
    np.testing.assert_allclose(scores + scores.T, 1)
    return scores

  found = estimates.posterior_estimate(check, points, games, RNG(0), same_players=True)
  np.testing.assert_allclose(found.value, [[.5, .75, .5], [.25, .5, .5], [.5, .5, .5]])
  np.testing.assert_allclose(np.diag(found.low), .5)
  assert found.low[0, 2] < .02 and found.high[0, 2] > .98  # never met


@pytest.mark.parametrize("points, games, same, message", [
  ([[3.]], [[2.]], False, r"3.0 points in 2.0 games at \(0, 0\)"),
  ([[1.]], [[np.nan]], False, "points in nan games"),
  ([[1.]], [[1., 2.]], False, "one shape"), ([], [], False, "not empty"),
  ([1.], [1.], False, r"\[N, M\]"),
  ([[0, 1], [1, 0]], [[0, 1], [1, 0]], True, "add up to games"),
])
def test_impossible_points_are_refused(points, games, same, message):
  with pytest.raises(ValueError, match=message):
    estimates.posterior_estimate(np.mean, points, games, RNG(0), same_players=same)


def test_score_bounds_are_clopper_and_pearsons():
  """Of 10 games 0, 3 and 10 are won: the published bounds, and none without games."""
  low, high = estimates.score_bounds(np.array([0., 3, 10, 0]), np.array([10., 10, 10, 0]), .025,
                                     .025)
  np.testing.assert_allclose(low, [0, .0667, .6915, 0], atol=5e-5)
  np.testing.assert_allclose(high, [.3085, .6525, 1, 1], atol=5e-5)
