"""The choice of evaluators: widths of intervals, ages, pending games; games worth keeping."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from starleague.league import evaluation
from starleague.league.counts import Counts
from starleague.league.evaluation import FIRST_WIN, LONGEST, UPSET, History, TellingRules
from starleague.league.payoff import DRAW, LOSS, WIN, wilson_interval


@hypothesis.given(st.integers(0, 500).flatmap(
  lambda games: st.tuples(st.integers(0, 2 * games), st.just(games))))
@hypothesis.settings(max_examples=50)
def test_widths_are_those_of_wilson_intervals(points):
  half_wins, games = points
  low, high = wilson_interval(half_wins / 2, games)
  width = evaluation.interval_widths(np.array([float(games)]), np.array([half_wins / 2]))
  assert width[0] == pytest.approx(high - low, abs=1e-12)


def test_widths_by_hand():
  """8 of 10: 0.943319 - 0.490157; without games everything is possible."""
  widths = evaluation.interval_widths(np.array([10., 0., 1e-12]), np.array([8., 0., 0.]))
  np.testing.assert_allclose(widths, [.453162, 1, 1], atol=1e-6)


def uncertainty(games, points, age=None, learns=(False, False, False), pending=None):
  zeros = np.zeros((3, 3))
  counts = np.stack([games, points, zeros, games - points], -1)
  return evaluation.uncertainty(counts, zeros if age is None else age, np.array(learns),
                                zeros if pending is None else pending, half_life_s=100.0)


def symmetric(a, b, c):
  """A [3, 3] matrix with entries (0, 1), (0, 2), (1, 2)."""
  return np.array([[0, a, b], [a, 0, c], [b, c, 0]], float)


def test_a_close_score_is_known_less_than_a_clear_one():
  widths = uncertainty(symmetric(20, 20, 20), np.array([[0, 10, 20], [10, 0, 18], [0, 2, 0.]]))
  assert widths[0, 1] > widths[1, 2] > widths[0, 2]
  assert (np.diag(widths) == -np.inf).all()
  np.testing.assert_allclose(widths, widths.T, rtol=1e-12)


def test_games_of_a_player_that_learns_lose_half_their_weight_in_a_half_life():
  games, points = symmetric(40, 40, 40), symmetric(20, 20, 20)
  widths = uncertainty(games, points, symmetric(100, 200, 1e9), (True, False, False))
  expected = evaluation.interval_widths(np.array([20., 10., 40.]), np.array([10., 5., 20.]))
  np.testing.assert_allclose(widths[[0, 0, 1], [1, 2, 2]], expected)


def test_a_clock_that_was_set_back_adds_no_weight():
  games, points = symmetric(40, 40, 40), symmetric(20, 20, 20)
  widths = uncertainty(games, points, symmetric(-1e6, 0, 0), (True, True, True))
  np.testing.assert_allclose(widths[0, 1], widths[0, 2])


def test_pending_games_count_as_played():
  widths = uncertainty(symmetric(10, 10, 0), symmetric(5, 5, 0), pending=symmetric(0, 30, 0))
  expected = evaluation.interval_widths(np.array([10., 40.]), np.array([5., 20.]))
  np.testing.assert_allclose(widths[0, [1, 2]], expected)
  assert widths[1, 2] == 1


def test_the_widest_pairs_come_first_and_ties_are_drawn():
  widths = symmetric(.3, .9, .5)
  rng = np.random.default_rng(0)
  for _ in range(5):
    first, second = evaluation.known_least(widths, 2, rng)
    assert sorted(first) == [0, 2] and sorted(second) == [1, 2]
  assert len(evaluation.known_least(widths, 9, rng)) == 3
  pairs = [evaluation.known_least(symmetric(1, 1, 1), 1, rng)[0] for _ in range(600)]
  counts = [pairs.count((home, away)) for home in range(3) for away in range(3) if home != away]
  assert sum(counts) == 600 and min(counts) > 60  # six ordered pairs, 100 each


@pytest.mark.parametrize("result, counts, kinds, loops, reasons", [
  # The loser's score was 0.9 in 20 games.
  (LOSS, Counts(20, 18, 0, 2), ("historical", "historical"), 0, (UPSET,)),
  (WIN, Counts(20, 2, 0, 18), ("historical", "historical"), 0, (UPSET,)),
  (WIN, Counts(20, 18, 0, 2), ("historical", "historical"), 0, ()),
  (DRAW, Counts(20, 2, 0, 18), ("historical", "historical"), 0, ()),
  (WIN, Counts(20, 4, 0, 16), ("historical", "historical"), 0, ()),  # 0.2 is not below 0.2
  (WIN, Counts(9.9, 1, 0, 8.9), ("historical", "historical"), 0, ()),  # hardly known
  (WIN, Counts(3, 0, 0, 3), ("main_exploiter", "main"), 0, (FIRST_WIN,)),
  (LOSS, Counts(3, 3, 0, 0), ("main", "league_exploiter"), 0, (FIRST_WIN,)),
  (WIN, Counts(3, .5, 0, 2.5), ("main_exploiter", "main"), 0, ()),
  (LOSS, Counts(3, 0, 0, 3), ("main_exploiter", "main"), 0, ()),
  (WIN, Counts(0, 0, 0, 0), ("historical", "main"), 0, ()),
  (DRAW, Counts(0, 0, 0, 0), ("main", "main"), 501, (LONGEST,)),
  (DRAW, Counts(0, 0, 0, 0), ("main", "main"), 500, ()),
  (WIN, Counts(40, 0, 0, 40), ("main_exploiter", "main"), 900, (UPSET, FIRST_WIN, LONGEST)),
])
def test_telling_games(result, counts, kinds, loops, reasons):
  assert evaluation.telling(result, loops, History(counts, *kinds, longest=500)) == reasons


def test_the_threshold_of_upsets_is_an_option():
  history = History(Counts(10, 4, 0, 6), "historical", "historical", 500)
  assert evaluation.telling(WIN, 0, history) == ()
  assert evaluation.telling(WIN, 0, history, TellingRules(upset_score=.45)) == (UPSET,)
