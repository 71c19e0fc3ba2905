"""The choice of evaluators: widths of intervals, ages, pending games; games worth keeping."""

import collections
import itertools

import numpy as np
import pytest

from starleague.league import evaluation
from starleague.league.counts import Counts, CountTable
from starleague.league.evaluation import (
  FIRST_WIN,
  LONGEST,
  UPSET,
  History,
  LeastKnownPairs,
  NotableRules,
)
from starleague.league.payoff import DRAW, LOSS, WIN, wilson_interval


def width(points, games):
  low, high = wilson_interval(points, games)
  return high - low


def uncertainty(games, points, age=(0, 0, 0), changes=(False,) * 3, pending=(0, 0, 0)):
  games, points = np.array(games, float), np.array(points, float)
  counts = np.stack([games, points, 0 * games, games - points], -1)
  return evaluation.uncertainty(counts, np.array(age, float), np.array(changes),
                                np.array(pending, float), half_life_s=100.0)


def test_a_close_score_is_known_less_than_a_clear_one():
  widths = uncertainty([20, 20, 20], [10, 20, 18])
  np.testing.assert_allclose(widths, [width(10, 20), width(20, 20), width(18, 20)])
  assert widths[0] > widths[2] > widths[1]
  assert uncertainty([0, 0, 0], [0, 0, 0]).tolist() == [1, 1, 1]


def test_draws_count_half():
  widths = evaluation.uncertainty(np.array([[8., 2., 4., 2.]]), np.zeros(1), np.zeros(1, bool),
                                  np.zeros(1), 100.0)
  assert widths[0] == pytest.approx(width(4, 8))


def test_games_of_a_player_that_learns_lose_half_their_weight_in_a_half_life():
  widths = uncertainty([40] * 3, [20] * 3, [100, 200, 1e9], [True, True, False])
  np.testing.assert_allclose(widths, [width(10, 20), width(5, 10), width(20, 40)])


def test_a_negative_age_adds_no_weight():
  widths = uncertainty([40] * 3, [20] * 3, [-1e6, 0, 0], [True] * 3)
  np.testing.assert_allclose(widths, [width(20, 40)] * 3)


def test_pending_games_count_as_played():
  widths = uncertainty([10, 10, 0], [5, 5, 0], pending=[0, 30, 6])
  np.testing.assert_allclose(widths, [width(5, 10), width(20, 40), width(3, 6)])


def test_the_largest_widths_come_first_and_ties_are_drawn():
  rng = np.random.default_rng(0)
  widths = np.array([.3, .9, .5, .5, .1])
  for _ in range(5):
    chosen = evaluation.known_least(widths, 3, rng).tolist()
    assert chosen[0] == 1 and sorted(chosen[1:]) == [2, 3]
  assert evaluation.known_least(widths, 9, rng).tolist()[0] == 1
  assert sorted(evaluation.known_least(widths, 9, rng)) == [0, 1, 2, 3, 4]
  found = [int(evaluation.known_least(np.full(6, .7) + 1e-14 * np.arange(6), 1, rng)[0])
           for _ in range(600)]
  assert min(found.count(i) for i in range(6)) > 60  # 100 each


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
def test_notable_games(result, counts, kinds, loops, reasons):
  assert evaluation.notable(result, loops, History(counts, *kinds, longest=500)) == reasons


def test_the_threshold_of_upsets_is_an_option():
  history = History(Counts(10, 4, 0, 6), "historical", "historical", 500)
  assert evaluation.notable(WIN, 0, history) == ()
  assert evaluation.notable(WIN, 0, history, NotableRules(upset_score=.45)) == (UPSET,)


def plain_widths(table, names, learns, pending, half_life_s, scripted):
  """Returns {pair: width} of all pairs, computed at once."""
  pairs = [pair for pair in itertools.combinations(names, 2) if not scripted.issuperset(pair)]
  numbers = dict(zip(names, table.numbers(names), strict=True))
  counts, ages = table.of_pairs(*np.array([(numbers[a], numbers[b]) for a, b in pairs]).T)
  games = collections.Counter()
  for home, away, number in pending:
    games[frozenset((home, away))] += number
  return dict(zip(pairs, evaluation.uncertainty(
    counts, ages, np.array([learns[a] or learns[b] for a, b in pairs]),
    np.array([games[frozenset(pair)] for pair in pairs], float), half_life_s).tolist(),
    strict=True))


@pytest.mark.parametrize("learning, frozen, scripts, meetings", [
  (3, 9, 0, 0), (3, 9, 0, 30), (3, 9, 0, 400), (0, 6, 0, 40), (5, 0, 0, 40), (1, 1, 0, 3),
  (3, 9, 4, 0), (3, 9, 4, 400), (0, 6, 5, 40), (1, 2, 2, 3)])
def test_kept_pairs_choose_as_all_pairs_do(monkeypatch, learning, frozen, scripts, meetings):
  """After results, pending games and time, the chosen widths are the largest of all pairs."""
  rng, clock = np.random.default_rng(meetings), [1e6]
  monkeypatch.setattr("time.monotonic", lambda: clock[0])
  names = [f"p{i}" for i in range(learning + frozen)]
  learns = {name: bool(flag) for name, flag in zip(
    names, rng.permutation(learning + frozen) < learning, strict=True)}
  scripted = set([name for name, flag in learns.items() if not flag][:scripts])
  table = CountTable()

  def play():
    first, second = rng.choice(names, 2, replace=False)
    wins, losses = rng.uniform(0, 40, 2)
    table.put({(str(first), str(second)): Counts(wins + losses, wins, 0, losses)})

  for _ in range(meetings):
    play()
  table.take_changes()
  kept = LeastKnownPairs(table, names, list(learns.values()), 100.0, scripted)
  for count in (1, 2, 1, 5, 40, 200) * 4:
    clock[0] += float(rng.uniform(0, 60))
    for _ in range(rng.integers(0, 4)):
      play()
    pending = [(*rng.choice(names, 2, replace=False).tolist(), int(rng.integers(1, 20)))
               for _ in range(rng.integers(0, 4))]
    kept.recount(table.take_changes())
    found = kept.choose(count, pending, rng)
    widths = plain_widths(table, names, learns, pending, 100.0, scripted)
    expected = sorted(widths.values(), reverse=True)[:count]
    chosen = [widths.get(pair) or widths[pair[::-1]] for pair in found]
    np.testing.assert_allclose(chosen, expected, atol=1e-8)
    assert len({frozenset(pair) for pair in found}) == len(found) == len(expected)


def test_equally_known_pairs_are_equally_likely():
  """Pairs without games are drawn uniformly among learning and frozen players alike."""
  table = CountTable()
  names = ["a", "b", "c", "d"]
  table.put({("a", "b"): Counts(9, 4, 0, 5)})
  kept = LeastKnownPairs(table, names, [False, True, False, True], 1e9)
  rng = np.random.default_rng(0)
  for count in (1, 3):
    found = collections.Counter(frozenset(pair) for _ in range(1000)
                                for pair in kept.choose(count, [], rng))
    assert len(found) == 5 and frozenset("ab") not in found
    np.testing.assert_allclose(np.array(list(found.values())) / 1000, count / 5, atol=.05)
