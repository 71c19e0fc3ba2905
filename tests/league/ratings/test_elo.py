"""Elo: the published curves, ratings behind scores, intervals."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from starleague.league import ratings


@pytest.mark.parametrize("difference, exponential, base_ten", [
  (0, .5, .5),
  (100, .562177, .640065),
  (400, .731059, .909091),
  (-400, .268941, .090909),
])
def test_expected_scores(difference, exponential, base_ten):
  assert ratings.elo_expected_score(difference) == pytest.approx(exponential, abs=5e-7)
  assert ratings.elo_expected_score(difference, base=10) == pytest.approx(base_ten, abs=5e-7)


def test_expected_scores_of_large_differences():
  np.testing.assert_array_equal(ratings.elo_expected_score([-1e7, 0, 1e7]), [0, .5, 1])


@pytest.mark.parametrize("base, updated", [
  (10, (1175.688, 1024.312)), (np.e, (1180.081, 1019.919))])
def test_elo_update_of_a_favourite_that_loses(base, updated):
  assert ratings.elo_update(1200, 1000, 0, k=32, base=base) == pytest.approx(updated, abs=5e-4)
  mirrored = ratings.elo_update(1000, 1200, 1, k=32, base=base)
  assert mirrored == pytest.approx(updated[::-1], abs=5e-4)


def test_elo_update_refuses_a_score_outside_0_1():
  with pytest.raises(ValueError, match="score is -1"):
    ratings.elo_update(1000, 1000, -1)


def test_elo_ratings_of_two_players():
  """With many games the prior is negligible: a score of 0.731059 is 400 in the paper's form."""
  games = np.array([[0, 1e6], [1e6, 0]])
  scores = np.array([[0, 731058.6], [268941.4, 0]])
  found = ratings.elo_ratings(scores, games, anchor=1)
  assert found == pytest.approx([400, 0], abs=.01)
  assert ratings.elo_ratings(scores, games, anchor=1, base=10) == pytest.approx(
    np.array([400, 0]) / np.log(10), abs=.01)


@hypothesis.given(st.integers(0, 1000))
@hypothesis.settings(max_examples=10)
def test_elo_ratings_recover_the_strengths_behind_the_scores(seed):
  rng = np.random.default_rng(seed)
  strengths = np.concatenate([[0], rng.normal(0, 300, 7)])
  games = np.triu(rng.integers(0, 3, (8, 8)), 1) * 1e6
  games[0, 1:] = 1e6  # every player has met the anchor
  games = games + games.T
  scores = games * ratings.elo_expected_score(strengths[:, None] - strengths)
  np.testing.assert_allclose(ratings.elo_ratings(scores, games), strengths, atol=.05)


def test_elo_ratings_of_undefeated_players_are_finite_and_ordered():
  games = 10 * (1 - np.eye(3))
  scores = 10 * np.triu(np.ones((3, 3)), 1)
  found = ratings.elo_ratings(scores, games, anchor=2)
  assert np.isfinite(found).all() and found[0] > found[1] > found[2] == 0


@pytest.mark.parametrize("scores, games, options, message", [
  (np.zeros((2, 3)), np.zeros((2, 3)), {}, "must both be"),
  ([[0, 1], [1, 0]], [[0, 1], [1, 0]], {}, "must add up"),
  ([[0, 1], [0, 0]], [[0, 1], [0, 0]], {}, "symmetric"),
  ([[0, 1], [0, 0]], [[0, 1], [1, 0]], {"prior_games": 0}, "prior_games is 0"),
  ([[0, 1], [0, 0]], [[0, 1], [1, 0]], {"prior_games": np.nan}, "prior_games is nan"),
  ([[0, np.inf], [0, 0]], [[0, np.inf], [np.inf, 0]], {}, "games has 2 entries that are not fin"),
  ([[0, 15], [-5, 0]], [[0, 10], [10, 0]], {},
   r"^Expected 0 <= points <= games, found 15.0 points in 10.0 games at \(0, 1\).$"),
  ([[0, -2], [-3, 0]], [[0, -5], [-5, 0]], {},
   r"^Expected 0 <= points <= games, found -2.0 points in -5.0 games at \(0, 1\).$"),
])
def test_elo_ratings_refuse_inconsistent_tables(scores, games, options, message):
  with pytest.raises(ValueError, match=message):
    ratings.elo_ratings(scores, games, **options)


def _round_robin(rng, strengths, each):
  """Returns points and games of `each` games without draws between all pairs of players."""
  number = len(strengths)
  expected = ratings.elo_expected_score(strengths[:, None] - strengths)
  won = np.triu(rng.binomial(each, expected), 1)
  games = each * (1 - np.eye(number))
  return won + np.tril(each - won.T, -1), games


def test_elo_estimate_of_two_players():
  """Of 100 games half are won: the curvature is 25, plus 1/4 of each player's prior game."""
  games = np.array([[0, 100], [100, 0]])
  found = ratings.elo_estimate(games / 2, games, anchor=1)
  hessian = np.array([[25.25, -25], [-25, 25.25]])
  lead = np.array([1, -1])
  spread = 1.959964 * 400 * np.sqrt(lead @ np.linalg.inv(hessian) @ lead)
  np.testing.assert_allclose(found, [[0, 0], [-spread, 0], [spread, 0]], rtol=1e-6, atol=1e-6)
  assert spread == pytest.approx(156.4, abs=.1)


def test_elo_estimate_agrees_with_the_bootstrap():
  rng = np.random.default_rng(0)
  strengths = np.array([0, -200, 100, 300.])
  points, games = _round_robin(rng, strengths, 200)
  found = ratings.elo_estimate(points, games)
  np.testing.assert_allclose(found.value, ratings.elo_ratings(points, games))
  resampled = []
  for _ in range(300):
    won = np.triu(rng.binomial(200, points / 200), 1)
    resampled.append(ratings.elo_ratings(won + np.tril(200 - won.T, -1), games))
  np.testing.assert_allclose(found.high - found.low, 2 * 1.96 * np.std(resampled, axis=0),
                             rtol=.1, atol=1e-9)


def test_elo_intervals_cover_the_strengths_in_95_percent_of_leagues():
  rng = np.random.default_rng(1)
  strengths = np.array([0, -250, -100, 50, 200, 400.])
  covered = []
  for _ in range(1000):
    found = ratings.elo_estimate(*_round_robin(rng, strengths, 40))
    covered.append((found.low <= strengths) & (strengths <= found.high))
  assert np.mean(covered, axis=0)[0] == 1  # the anchor
  np.testing.assert_allclose(np.mean(covered, axis=0)[1:], .95, atol=.02)


def test_elo_estimate_of_few_games_is_wide():
  games = np.array([[0, 100, 1], [100, 0, 0], [1, 0, 0]])
  points = np.array([[0, 50, .5], [50, 0, 0], [.5, 0, 0]])
  widths = np.subtract(*ratings.elo_estimate(points, games)[:0:-1])
  assert widths[0] == 0 and widths[2] > 4 * widths[1] > 0
  half = ratings.elo_estimate(points, games, level=.5)
  np.testing.assert_allclose((half.high - half.low)[1:], widths[1:] * .67449 / 1.959964, rtol=1e-5)


def test_elo_ratings_allow_for_the_rounding_of_decayed_counts():
  games = np.array([[0, 100.0], [100, 0]])
  won = np.nextafter(100, 101)
  found = ratings.elo_ratings([[0, won], [100 - won, 0]], games, anchor=1)
  assert 100 - won < 0
  np.testing.assert_allclose(found, ratings.elo_ratings(np.triu(games), games, anchor=1))
