"""Ratings: the published curves, small games with known equilibria."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from starleague.league import ratings


@pytest.mark.parametrize("difference, exponential, base_ten, normal, ladder", [
  (0, .5, .5, .5, .5),
  (100, .562177, .640065, .598706, .569814),
  (400, .731059, .909091, .841345, .759158),
  (-400, .268941, .090909, .158655, .240842),
])
def test_expected_scores(difference, exponential, base_ten, normal, ladder):
  assert ratings.elo_expected_score(difference) == pytest.approx(exponential, abs=5e-7)
  assert ratings.elo_expected_score(difference, base=10) == pytest.approx(base_ten, abs=5e-7)
  assert ratings.ladder_expected_score(difference, scale=400) == pytest.approx(normal, abs=5e-7)
  assert ratings.ladder_expected_score(difference) == pytest.approx(ladder, abs=5e-7)


def test_expected_scores_of_large_differences():
  np.testing.assert_array_equal(ratings.elo_expected_score([-1e7, 0, 1e7]), [0, .5, 1])
  np.testing.assert_array_equal(ratings.ladder_expected_score([-1e7, 0, 1e7]), [0, .5, 1])
  assert pytest.approx(568.507, abs=1e-3) == ratings.LADDER_SCALE


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
])
def test_elo_ratings_refuse_inconsistent_tables(scores, games, options, message):
  with pytest.raises(ValueError, match=message):
    ratings.elo_ratings(scores, games, **options)


def test_ladder_rating():
  assert ratings.ladder_rating([5000, 5000], [True, False]) == pytest.approx(5000)
  assert ratings.ladder_rating([4000, 6000], [True, False]) == pytest.approx(5000)
  assert ratings.ladder_rating([5000] * 3, [True] * 3, bounds=(0, 7000)) == 7000
  assert ratings.ladder_rating([5000] * 3, [False] * 3) == 0
  # 841345 wins of a million: by Phi, one scale above.
  wins = [True] * 841 + [False] * 159
  assert ratings.ladder_rating([5000] * 1000, wins) == pytest.approx(
    5000 + ratings.LADDER_SCALE * .998576, abs=.01)
  with pytest.raises(ValueError, match="N > 0"):
    ratings.ladder_rating([], [])


@pytest.mark.parametrize("name, matrix, row, value", [
  ("matching pennies", [[1, 0], [0, 1]], [.5, .5], .5),
  ("rock, paper, scissors", [[.5, 0, 1], [1, .5, 0], [0, 1, .5]], [1 / 3] * 3, .5),
  ("a dominated choice", [[.5, .9, .8], [.1, .5, .5], [.2, .5, .5]], [1, 0, 0], .5),
  ("two by two", [[.7, .4], [.2, .6]], [4 / 7, 3 / 7], 17 / 35),
  ("one choice", [[.3]], [1], .3),
  ("one answer", [[.3], [.8]], [0, 1], .8),
  ("saddle", [[3, 1, 4], [1, 0, 2]], [1, 0], 1),
])
def test_nash_of_known_games(name, matrix, row, value):
  strategy = ratings.nash(matrix)
  np.testing.assert_allclose(strategy, row, atol=1e-7, err_msg=name)
  assert (strategy @ np.asarray(matrix)).min() == pytest.approx(value, abs=1e-7)


@hypothesis.given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 1000))
@hypothesis.settings(max_examples=30)
def test_neither_side_can_gain_at_nash(rows, columns, seed):
  matrix = np.random.default_rng(seed).random((rows, columns))
  row, column = ratings.nash(matrix), ratings.nash(-matrix.T)
  assert row.sum() == pytest.approx(1) and (row >= 0).all()
  value = row @ matrix @ column
  assert (row @ matrix).min() >= value - 1e-7
  assert (matrix @ column).max() <= value + 1e-7


def test_relative_population_performance():
  matrix = np.array([[.7, .4], [.2, .6]])
  np.testing.assert_allclose(ratings.nash(-matrix.T), [2 / 7, 5 / 7], atol=1e-7)
  assert ratings.relative_population_performance(matrix) == pytest.approx(17 / 35, abs=1e-9)
  # The values of both populations add up to 1.
  assert ratings.relative_population_performance(1 - matrix.T) == pytest.approx(18 / 35, abs=1e-9)
  # A population against itself scores one half.
  cycle = [[.5, .1, .9], [.9, .5, .1], [.1, .9, .5]]
  assert ratings.relative_population_performance(cycle) == pytest.approx(.5, abs=1e-9)


@pytest.mark.parametrize("matrix, message", [
  ([], "not empty"), (np.zeros((0, 2)), "not empty"), ([[.5, np.nan]], "1 entries"),
])
def test_nash_refuses_invalid_matrices(matrix, message):
  with pytest.raises(ValueError, match=message):
    ratings.nash(matrix)
