"""Figures of ablations with known answers."""

import math

import pytest

from starleague import league
from starleague.actor.evaluation import Counts
from starleague.common.results import Row
from starleague.experiments.run.ablation import figures


def scores(seconds, update, **by_opponent):
  for name, (score, games) in by_opponent.items():
    yield Row(seconds, update, f"score/train/{name}", score, 0.0, 1.0)
    yield Row(seconds, update, f"games/{name}", games)


def test_agents_of_a_seed_keep_equally_many_past_selves_evenly_spaced():
  past = {name: tuple(Counts(wins, 0, 10 - wins) for wins in range(number))
          for name, number in (("a", 5), ("b", 3), ("c", 8), ("d", 1), ("e", 4))}
  found = figures.equally_many(past, {"a": 3, "b": 3, "c": 4, "d": 5, "e": 5, "no league": 3})
  assert {name: [counts.wins for counts in kept] for name, kept in found.items()} == {
    "a": [0, 2, 4], "b": [0, 1, 2], "c": list(range(8)), "d": [0], "e": [0]}


def test_the_time_to_a_score_counts_from_the_first_update():
  rows = [
    Row(90.0, 1, "total/steps_learnt", 512),
    *scores(95.0, 5, a=(0.9, 19), b=(0.5, 40)),  # too few games against a
    *scores(100.0, 20, a=(0.2, 20)),  # mean 0.35
    *scores(110.0, 30, b=(0.7, 50)),  # mean 0.45
    *scores(120.0, 45, a=(0.35, 30)),  # mean 0.525
    *scores(130.0, 60, a=(0.9, 30), b=(0.9, 30))]
  assert figures.time_to_score(rows, ["a", "b"]) == (30.0, 45)
  assert figures.time_to_score(rows, ["a", "b"], 0.6) == (40.0, 60)
  assert figures.time_to_score(rows, ["b"]) == (5.0, 5)
  assert figures.time_to_score(rows, ["a", "b"], 0.95) == (math.inf, math.inf)
  assert figures.time_to_score([], ["a"]) == (math.inf, math.inf)


def test_ratings_recover_the_players_that_made_the_results():
  true = {"script": 0.0, "weak": -300.0, "good": 250.0, "best": 400.0}
  names, games = list(true), 100_000
  played = {}
  for i, one in enumerate(names):
    for other in names[i + 1:]:
      wins = round(games * league.elo_expected_score(true[one] - true[other]))
      played[one, other] = Counts(wins, 0, games - wins)
  found = figures.ratings(played, anchor="script")
  assert found["script"] == 0.0
  for name in names:
    assert found[name] == pytest.approx(true[name], abs=0.2)


def test_draws_count_half_in_ratings():
  found = figures.ratings({("a", "b"): Counts(0, 1000, 0)}, anchor="a")
  assert found == pytest.approx({"a": 0.0, "b": 0.0})
