"""Robustness: worked examples, and coverage of the intervals by simulation."""

import numpy as np
import pytest

from starleague.league.payoff import wilson_interval
from starleague.league.ratings import robustness


def test_minimum_score_at_one_time():
  """7 of 10, 12.5 of 20, 0 games: the minimum is 0.625; the third past self is not counted."""
  found = robustness.minimum_score([7, 12.5, 0], [10, 20, 0])
  assert found.value == .625
  # One-sided bounds at 2.5% below, at 1.25% above (two past selves).
  alone = robustness.minimum_score([12.5], [20])
  assert alone.low < .625 < alone.high
  assert found.low == min(alone.low, robustness.minimum_score([7], [10]).low)
  assert found.high > alone.high


def test_minimum_score_is_averaged_over_time():
  points = [[5, 0, 0], [8, 2, 0], [0, 0, 0], [9, 6, 4]]
  games = [[10, 0, 0], [10, 10, 0], [0, 0, 0], [10, 10, 10]]
  found = robustness.minimum_score(points, games)
  assert found.value == pytest.approx((.5 + .2 + .4) / 3)
  each = [robustness.minimum_score(p, g) for p, g in zip(points, games, strict=True) if sum(g)]
  np.testing.assert_allclose(found, np.mean(each, axis=0))


def test_exploitability_is_the_best_score_of_the_exploiters():
  found = robustness.exploitability([30, 55, 10], [100, 100, 50])
  assert found.value == pytest.approx(.55) and found.low < .55 < found.high
  agent = robustness.minimum_score([70, 45, 40], [100, 100, 50])
  np.testing.assert_allclose([found.low, found.high], [1 - agent.high, 1 - agent.low])


def test_validation_score_weighs_opponents_equally():
  """9 of 10 and 10 of 100: the mean is 0.5, whatever the games."""
  found = robustness.validation_score([9, 10], [10, 100])
  assert found.value == pytest.approx(.5)
  # Smoothed scores 19/22 and 21/202; the variance of their mean and its effective sample size:
  variance = (19 * 3 / 22 ** 2 / 10 + 21 * 181 / 202 ** 2 / 100) / 4
  mean = (19 / 22 + 21 / 202) / 2
  effective = mean * (1 - mean) / variance
  assert effective == pytest.approx(78.605, abs=.001)
  np.testing.assert_allclose(found[1:], wilson_interval(effective / 2, effective), rtol=1e-5)


def test_validation_score_of_one_opponent_has_the_wilson_interval():
  found = robustness.validation_score([9], [10])
  np.testing.assert_allclose(found, [.9, *wilson_interval(9, 10, 1.959964)], rtol=1e-6)
  assert robustness.validation_score([10, 20], [10, 20]).low < .95 < 1


def _coverage(function, scores, games, true, runs=400):
  rng = np.random.default_rng(0)
  covered = 0
  for _ in range(runs):
    found = function(rng.binomial(games, scores), games)
    covered += found.low <= true <= found.high
  return covered / runs


def test_intervals_cover_the_true_values():
  """At 95%: validation about so; minimum and maximum at least so, also over many equal scores."""
  games = np.full(8, 40)
  spread = np.linspace(.2, .95, 8)
  assert _coverage(robustness.validation_score, spread, games, spread.mean()) == pytest.approx(
    .95, abs=.025)
  assert _coverage(robustness.validation_score, np.full(8, .97), games, .97) >= .94
  for scores in (spread, np.full(8, .6)):
    assert _coverage(robustness.minimum_score, scores, games, scores.min()) >= .95
    assert _coverage(robustness.exploitability, scores, games, scores.max()) >= .95
  over_time = np.broadcast_to(spread, (6, 8))
  assert _coverage(robustness.minimum_score, over_time, np.full((6, 8), 40), .2) >= .95


def test_intervals_narrow_with_games():
  few, many = (robustness.minimum_score(np.array([.6, .8]) * n, np.array([n, n]))
               for n in (50, 5000))
  assert few.high - few.low > 5 * (many.high - many.low)


@pytest.mark.parametrize("function, points, games, message", [
  (robustness.minimum_score, [0, 0], [0, 0], "0 games"),
  (robustness.minimum_score, [3], [2], "3.0 points in 2.0 games"),
  (robustness.exploitability, [1, 0], [2, 0], "1 zeros"),
  (robustness.validation_score, [[1]], [[2]], r"expected \[K\]"),
  (robustness.validation_score, [1, -1], [2, 2], "-1.0 points"),
])
def test_impossible_games_are_refused(function, points, games, message):
  with pytest.raises(ValueError, match=message):
    function(points, games)
