"""The games of one agent: opponents by win rates, results, z of demonstrators."""

import numpy as np
import pytest

from starleague.actor import rollouts
from starleague.agent import types
from starleague.common import run_files
from starleague.data.z.conditioning import Recent
from starleague.experiments.run.actors import compiled_single

NAMES = ("passive", "rusher", "builder")
ZERG = types.RACES.index("zerg")


def results(opponent, reward, over=True) -> rollouts.Results:
  """Returns one iteration with a game per opponent; unit type 7 marks the first game."""
  games = len(opponent)
  executed = types.zeros(types.statistics_spec())
  executed = types.Statistics(*(np.stack([np.stack([x, x])] * games)[None] for x in executed))
  executed.units[0, 0, 1, 7] = True
  reward = np.array(reward, np.float32)
  return rollouts.Results(
    over=np.broadcast_to(np.asarray(over), (1, games)), opponent=np.array([opponent], np.int32),
    reward=np.stack([reward, -reward], axis=-1)[None], executed=executed,
    target=executed, race=np.full((1, games, 2), ZERG), side=np.zeros((1, games, 2), np.int32),
    map_index=np.zeros((1, games), np.int32))


def test_opponents_are_split_between_self_play_and_hard_opponents():
  win_rates = np.array([0.1, 0.5, 0.9])
  probabilities = compiled_single.opponent_probabilities(win_rates, 0.25, "squared", uniform=0.0)
  # 0.75 of (0.757009, 0.233645, 0.009346), the paper's f_hard of these win rates.
  np.testing.assert_allclose(probabilities, [0.25, 0.567757, 0.175234, 0.007009], atol=1e-5)
  assert probabilities.dtype == np.float32
  # 0.3 of the others' 0.75 split evenly: 0.075 each, plus 0.7 of the values above.
  mixed = compiled_single.opponent_probabilities(win_rates, 0.25, "squared", uniform=0.3)
  np.testing.assert_allclose(mixed, [0.25, 0.472430, 0.197664, 0.079906], atol=1e-5)


def test_an_opponent_that_was_never_beaten_is_met():
  probabilities = compiled_single.opponent_probabilities(
    np.array([0.0, 0.5]), 0.5, "variance", uniform=0.2)
  np.testing.assert_allclose(probabilities, [0.5, 0.05, 0.45], atol=1e-6)


def test_only_finished_games_against_scripted_players_count():
  rusher = 1 + NAMES.index("rusher")
  batch = results([rollouts.SELF_PLAY, rusher, rusher, rusher], [1, 1, 0, -1],
                  over=[True, True, True, False])
  found = compiled_single.game_results(batch, NAMES, now=5.0)
  assert [(r.home, r.away, r.result, r.time) for r in found] == [
    (run_files.PLAYER, "rusher", 1, 5.0), (run_files.PLAYER, "rusher", 0, 5.0)]
  assert len({r.id for r in found}) == 2


@pytest.mark.parametrize("name, reward, taken", [
  ("rusher", -1, True), ("builder", -1, True), ("rusher", 1, False), ("rusher", 0, False),
  ("passive", -1, False)])
def test_z_comes_from_games_that_demonstrators_won(name, reward, taken):
  recent = Recent(3, 1, np.ones(4), 6200)
  batch = results([1 + NAMES.index(name)], [reward])
  assert compiled_single.add_demonstrations(recent, batch, [1, 2]) is taken
  found = recent.conditioning()
  units = found.statistics.units[found.rows]  # [maps, races, races, sides, 3, 256]
  assert units.shape == (1, len(types.RACES), len(types.RACES), 2, 3, 256)
  np.testing.assert_array_equal(units[:, ZERG, :, 0, :, 7], taken)
  units[:, ZERG, :, 0] = False
  assert not units.any()
