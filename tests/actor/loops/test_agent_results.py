"""Results of one agent's games: opponents by win rates, scores of match-ups, counted games."""

import time
import types

import numpy as np
import pytest

from starleague.actor import rollouts
from starleague.actor.loops import agent_results
from starleague.common import results as run_results
from starleague.common import run_files
from tests.actor.loops.results import NAMES, ZERG, results

TERRAN = 1


def test_opponents_are_split_between_self_play_and_hard_opponents():
  win_rates = np.array([0.1, 0.5, 0.9])
  probabilities = agent_results.opponent_probabilities(win_rates, 0.25, "squared", uniform=0.0)
  # 0.75 of (0.757009, 0.233645, 0.009346), the paper's f_hard of these win rates.
  np.testing.assert_allclose(probabilities, [0.25, 0.567757, 0.175234, 0.007009], atol=1e-5)
  assert probabilities.dtype == np.float32
  # 0.3 of the others' 0.75 split evenly: 0.075 each, plus 0.7 of the values above.
  mixed = agent_results.opponent_probabilities(win_rates, 0.25, "squared", uniform=0.3)
  np.testing.assert_allclose(mixed, [0.25, 0.472430, 0.197664, 0.079906], atol=1e-5)


def test_an_opponent_that_was_never_beaten_is_met():
  probabilities = agent_results.opponent_probabilities(
    np.array([0.0, 0.5]), 0.5, "variance", uniform=0.2)
  np.testing.assert_allclose(probabilities, [0.5, 0.05, 0.45], atol=1e-6)


def test_only_finished_games_against_scripted_players_count():
  rusher = 1 + NAMES.index("rusher")
  batch = results([rollouts.SELF_PLAY, rusher, rusher, rusher], [1, 1, 0, -1],
                  over=[True, True, True, False])
  found = agent_results.game_results(batch, NAMES, now=5.0)
  assert [(r.home, r.away, r.result, r.time) for r in found] == [
    (run_files.PLAYER, "rusher", 1, 5.0), (run_files.PLAYER, "rusher", 0, 5.0)]
  assert len({r.id for r in found}) == 2


def test_the_score_of_training_is_that_of_the_latest_games(tmp_path, monkeypatch):
  """A loss at second 0 and a win at second 100: the window of 60 s has the win alone."""
  clock = [0.0]
  monkeypatch.setattr(time, "time", lambda: clock[0])
  reporter = agent_results.Reporter(
    tmp_path, types.SimpleNamespace(opponents=NAMES, races=(TERRAN, ZERG)), origin=0.0)
  rusher = 1 + NAMES.index("rusher")
  for clock[0], result in ((0.0, -1), (100.0, 1)):
    reporter.add(1, results([rusher], [result]), 0)
  rows = {row.tag: row.value for row in run_results.read(tmp_path / run_results.FILE_NAME)}
  assert (rows["score/train/rusher"], rows["games/rusher"]) == (1.0, 1.0)


def scores() -> agent_results.MatchUpScores:
  return agent_results.MatchUpScores((TERRAN, ZERG), opponents=2)


def in_races(batch, pairs):
  """Returns results with the races of both players, a pair for each game."""
  return batch._replace(race=np.array([pairs]))


def test_without_games_match_ups_are_drawn_equally():
  np.testing.assert_array_equal(scores().scores, np.full((2, 2, 2), 0.5))
  np.testing.assert_allclose(scores().probabilities("variance", 0.2), np.full((3, 2, 2), 0.25))


def test_finished_games_against_scripted_players_count():
  found = scores()
  batch = results([rollouts.SELF_PLAY, 2, 2, 2, 2, 1], [-1, 1, 1, 0, -1, -1],
                  over=[True, True, True, True, True, False])
  found.add(in_races(batch, [(ZERG, TERRAN)] * 4 + [(TERRAN, ZERG)] * 2))
  # Zerg against Terran and the second player, with decay: games 1, 1.99, 2.9701, won 1, 1.99,
  # 2.4701. Terran against Zerg: one lost game.
  np.testing.assert_allclose(
    found.scores, [[[0.5, 0.5], [0.5, 0.5]], [[0.5, 1 / 3], [3.4701 / 4.9701, 0.5]]], rtol=1e-12)


def test_old_games_fade():
  found = scores()
  for _ in range(40):
    found.add(results([1] * 25, [-1] * 25))
  for _ in range(40):
    found.add(results([1] * 25, [1] * 25))
  # 1,000 games, of which 100 are remembered: the counts are those of the wins alone.
  np.testing.assert_allclose(found.scores[0, 1, 1], 101 / 102, atol=1e-4)


@pytest.mark.parametrize("weighting, uniform, expected", [
  ("uniform", 0.3, [[0.25, 0.25], [0.25, 0.25]]),
  # Zerg against Terran (0 + 1) / (1 + 2) = 1/3, others 1/2: variances 2/9 and 1/4, in sum 35/36.
  ("variance", 0.0, [[9 / 35, 9 / 35], [8 / 35, 9 / 35]]),
  ("variance", 1.0, [[0.25, 0.25], [0.25, 0.25]]),
])
def test_match_ups_are_drawn_by_their_scores(weighting, uniform, expected):
  found = scores()
  found.add(in_races(results([1], [-1]), [(ZERG, TERRAN)]))
  probabilities = found.probabilities(weighting, uniform)
  np.testing.assert_allclose(probabilities[1], expected, rtol=1e-6)
  np.testing.assert_allclose(probabilities[[0, 2]], np.full((2, 2, 2), 0.25))
  assert probabilities.dtype == np.float32
