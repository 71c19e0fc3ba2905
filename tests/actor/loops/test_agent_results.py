"""Results of one agent's games: opponents by win rates, counted games."""

import numpy as np

from starleague.actor import rollouts
from starleague.actor.loops import agent_results
from starleague.common import run_files
from tests.actor.loops.results import NAMES, results


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
