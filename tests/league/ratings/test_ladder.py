"""Ladder ratings: the published curve, modes and means of the posterior."""

import numpy as np
import pytest

from starleague.league.ratings import ladder


@pytest.mark.parametrize("difference, normal, expected", [
  (0, .5, .5),
  (100, .598706, .569814),
  (400, .841345, .759158),
  (-400, .158655, .240842),
])
def test_expected_scores(difference, normal, expected):
  assert ladder.ladder_expected_score(difference, scale=400) == pytest.approx(normal, abs=5e-7)
  assert ladder.ladder_expected_score(difference) == pytest.approx(expected, abs=5e-7)


def test_expected_scores_of_large_differences():
  np.testing.assert_array_equal(ladder.ladder_expected_score([-1e7, 0, 1e7]), [0, .5, 1])
  assert pytest.approx(568.507, abs=1e-3) == ladder.LADDER_SCALE


def test_ladder_rating():
  assert ladder.ladder_rating([5000, 5000], [True, False]) == pytest.approx(5000)
  assert ladder.ladder_rating([4000, 6000], [True, False]) == pytest.approx(5000)
  assert ladder.ladder_rating([5000] * 3, [True] * 3, bounds=(0, 7000)) == 7000
  assert ladder.ladder_rating([5000] * 3, [False] * 3) == 0
  # 841345 wins of a million: by Phi, one scale above.
  wins = [True] * 841 + [False] * 159
  assert ladder.ladder_rating([5000] * 1000, wins) == pytest.approx(
    5000 + ladder.LADDER_SCALE * .998576, abs=.01)
  with pytest.raises(ValueError, match="N > 0"):
    ladder.ladder_rating([], [])


def test_ladder_estimate_of_one_game():
  """One win against 5,000 within 4,000 to 6,000: the density is Phi((r - 5,000) / scale)."""
  found = ladder.ladder_estimate([5000], [True], bounds=(4000, 6000), scale=500)
  # The integral of Phi(z) over z from -2 to 2 is 2, that of z Phi(z) is 0.759345 + phi terms:
  # by parts, (z^2 - 1) Phi(z) / 2 + z phi(z) / 2 from -2 to 2.
  phi, cdf = np.exp(-2) / np.sqrt(2 * np.pi), .977250
  first = (1.5 * cdf + phi) - (1.5 * (1 - cdf) - phi)
  assert found.value == pytest.approx(5000 + 500 * first / 2, abs=.01)
  # The integral of Phi from -2 up is z Phi(z) + phi(z), less 0.008491: 2.5% of 2 at the bound.
  for bound, part in ((found.low, .025), (found.high, .975)):
    z = (bound - 5000) / 500
    integral = z * ladder.ladder_expected_score(z, scale=1) + np.exp(-z * z / 2) / np.sqrt(
      2 * np.pi) - .008491
    assert integral == pytest.approx(2 * part, abs=2e-5)


def test_ladder_estimate_of_many_games_is_that_of_the_likelihood():
  """With 4,000 games of equal players the curvature of log Phi is 2 / pi a game."""
  found = ladder.ladder_estimate([5000] * 4000, [True, False] * 2000)
  spread = 1.96 * ladder.LADDER_SCALE / np.sqrt(4000 * 2 / np.pi)
  np.testing.assert_allclose(found, [5000, 5000 - spread, 5000 + spread], atol=.05)


def test_ladder_estimate_lies_within_the_bounds():
  low, high = (ladder.ladder_estimate([5000] * 30, [won] * 30) for won in (False, True))
  assert 0 < low.low < low.value < low.high < 5000 < high.low < high.value < high.high < 10_000
  assert low.value + high.value == pytest.approx(10_000)


def test_ladder_intervals_cover_ratings_drawn_from_the_prior():
  """A credible interval covers exactly its level if the rating has the prior's distribution."""
  rng = np.random.default_rng(0)
  covered, errors = [], []
  for _ in range(400):
    rating = rng.uniform(3000, 7000)
    opponents = rng.uniform(3000, 7000, 30).round(-2)
    wins = rng.random(30) < ladder.ladder_expected_score(rating - opponents)
    found = ladder.ladder_estimate(opponents, wins, bounds=(3000, 7000))
    covered.append(found.low <= rating <= found.high)
    errors.append(found.value - rating)
  assert np.mean(covered) == pytest.approx(.95, abs=.025)
  assert abs(np.mean(errors)) < 3 * np.std(errors) / np.sqrt(400)


def test_ladder_estimate_refuses_no_games():
  with pytest.raises(ValueError, match="N > 0"):
    ladder.ladder_estimate([], [])
