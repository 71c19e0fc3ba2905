"""Nash equilibria: small games with known solutions, properties of all, intervals."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from starleague.league import ratings


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


def _scores(advantages):
  """Returns the scores of an antisymmetric game."""
  return (np.asarray(advantages, float) + 1) / 2


CYCLE = _scores([[0, 1, -1], [-1, 0, 1], [1, -1, 0]])


@pytest.mark.parametrize("name, scores, strategy, skills", [
  ("a cycle", CYCLE, [1 / 3] * 3, [0, 0, 0]),
  ("copies share a probability", CYCLE[np.ix_([0, 0, 1, 2], [0, 0, 1, 2])],
   [1 / 6, 1 / 6, 1 / 3, 1 / 3], [0] * 4),
  ("a cycle and a player that loses", _scores(
    [[0, 1, -1, .5], [-1, 0, 1, .5], [1, -1, 0, .5], [-.5, -.5, -.5, 0]]),
   [1 / 3, 1 / 3, 1 / 3, 0], [0, 0, 0, -.25]),
  ("a ladder", _scores([[0, -.2, -.6], [.2, 0, -.4], [.6, .4, 0]]), [0, 0, 1], [-.3, -.2, 0]),
  ("equal players", np.full((4, 4), .5), [.25] * 4, [0] * 4),
  ("one player", [[.5]], [1], [0]),
  # Third and fourth draw; each beats one of the first two, which beat each other's victor.
  ("an edge of equilibria", _scores([[0, 0, 1, -1], [0, 0, 1, -1], [-1, -1, 0, 1], [1, 1, -1, 0]]),
   [1 / 6, 1 / 6, 1 / 3, 1 / 3], [0] * 4),
])
def test_nash_averages_of_known_games(name, scores, strategy, skills):
  found = ratings.nash_averaging(scores)
  np.testing.assert_allclose(found.strategy, strategy, atol=1e-9, err_msg=name)
  np.testing.assert_allclose(found.skills, skills, atol=1e-9, err_msg=name)


@hypothesis.given(st.integers(1, 9), st.integers(0, 1000))
@hypothesis.settings(max_examples=60, deadline=None)
def test_nash_average_has_the_largest_entropy_of_all_equilibria(number, seed):
  """Games of wins, draws and losses often have many equilibria; `nash` finds corners of the set."""
  rng = np.random.default_rng(seed)
  upper = np.triu(rng.integers(-1, 2, (number, number)), 1)
  scores = _scores(upper - upper.T)
  found = ratings.nash_averaging(scores)
  assert found.strategy.sum() == pytest.approx(1) and (found.strategy >= 0).all()
  assert found.skills.max() < 1e-9 and np.abs(found.skills[found.strategy > 0]).max() < 1e-9
  entropy_slope = -np.log(np.maximum(found.strategy, 1e-300))
  for _ in range(5):
    order = rng.permutation(number)
    other = np.zeros(number)
    other[order] = ratings.nash(scores[np.ix_(order, order)])
    assert (other[found.strategy == 0] < 1e-7).all()  # outside of every equilibrium
    inside = found.strategy > 0
    assert ((other - found.strategy) * entropy_slope)[inside].sum() < 1e-6


@pytest.mark.parametrize("matrix, message", [
  (np.zeros((0, 0)), "not empty"), (np.full((2, 3), .5), r"\[N, N\]"),
  ([[.5, .9], [.2, .5]], "add up to 1"), ([[.5, np.nan], [.5, .5]], "1 entries"),
])
def test_nash_averaging_refuses_other_matrices(matrix, message):
  with pytest.raises(ValueError, match=message):
    ratings.nash_averaging(matrix)


def _played(rng, scores, each, same_players):
  points = rng.binomial(each, scores).astype(float)
  games = np.full(scores.shape, float(each))
  if same_players:
    np.fill_diagonal(games, 0)
    points = np.triu(points, 1)
    points = points + np.tril(each - points.T, -1)
  return points, games


def test_intervals_of_relative_population_performance_cover_its_value():
  """Coverage near 95%, and the width that first-order errors give."""
  rng = np.random.default_rng(0)
  scores, value = np.array([[.7, .4], [.2, .6]]), 17 / 35
  covered, widths = [], []
  for _ in range(40):
    points, games = _played(rng, scores, 100, same_players=False)
    found = ratings.posterior_estimate(ratings.relative_population_performance, points, games, rng,
                                       same_players=False, samples=50)
    covered.append(found.low <= value <= found.high)
    widths.append(found.high - found.low)
  assert .87 <= np.mean(covered) <= .99  # 50 samples cut the tails a little
  # At a mixed equilibrium the value changes by p_i q_j times each score's change.
  spread = np.outer([4 / 7, 3 / 7], [2 / 7, 5 / 7]) * np.sqrt(scores * (1 - scores) / 100)
  assert np.mean(widths) == pytest.approx(2 * 1.96 * np.linalg.norm(spread), rel=.1)


def test_intervals_of_nash_averages_cover_the_skills():
  """Three players in a cycle have skill 0, the fourth loses to each by 0.2."""
  rng = np.random.default_rng(1)
  scores = _scores([[0, .6, -.6, .4], [-.6, 0, .6, .4], [.6, -.6, 0, .4], [-.4, -.4, -.4, 0]])
  true = ratings.nash_averaging(scores).skills
  np.testing.assert_allclose(true, [0, 0, 0, -.2], atol=1e-9)
  covered = []
  for _ in range(40):
    points, games = _played(rng, scores, 100, same_players=True)
    found = ratings.posterior_estimate(
      lambda drawn: ratings.nash_averaging(drawn).skills, points, games, rng, same_players=True,
      samples=50)
    covered.append((found.low - 1e-9 <= true) & (true <= found.high + 1e-9))
  assert (np.mean(covered, axis=0)[:3] >= .95).all()
  assert .87 <= np.mean(covered, axis=0)[3] <= 1
