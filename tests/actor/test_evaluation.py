"""Evaluation on the clockwork environment."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.actor import evaluation, rollouts
from starleague.data.z.conditioning import unconditional
from tests.actor import builders
from tests.actor.clockwork import clockwork, counting_policy, scripted


def test_every_game_is_counted_once():
  evaluator = evaluation.make_evaluator(
    clockwork(), counting_policy(), scripted, opponents=(0, 1), games=4, inference_batch=8)
  scores = evaluation.count(
    evaluation.play(evaluator, jnp.ones(()), jax.random.key(2), unconditional(1, 6200)))
  assert scores == {0: evaluation.Counts(4, 0, 0), 1: evaluation.Counts(4, 0, 0)}
  assert scores[0].games == 4


def test_odd_numbers_of_games_are_rejected():
  with pytest.raises(ValueError, match="games must be even.*found 3"):
    evaluation.make_evaluator(clockwork(), counting_policy(), scripted, opponents=(0,), games=3)


def test_each_player_of_a_match_has_its_own_parameters_and_conditioning():
  environment, policy = builders.building(), builders.make_policy(follows_z=True)
  match = evaluation.make_match(environment, policy, games=4)
  orders = 20 + np.arange(40).reshape(2, 20)
  conditioning = builders.make_conditioning(orders, 0)._replace(
    mmr=np.array([2000, 3000], np.int16),
    active=np.array([[1, 1, 1, 1], [0, 0, 0, 0]], np.float32))
  for mine, reward in ((0, -1), (1, 0), (2, 1)):  # 2 + mine good actions against 3
    params = evaluation.pair(jnp.int32(mine), jnp.int32(0))
    found = evaluation.play(match, params, jax.random.key(0), conditioning)
    np.testing.assert_array_equal(found.reward, [[reward, -reward]] * 4)
    # Player 0 sees its z and builds it; player 1 sees none.
    np.testing.assert_array_equal(found.executed.build_order[:, 0], found.z.build_order[:, 0])
    np.testing.assert_array_equal(found.executed.build_order[:, 1], np.zeros((4, 20)))
    assert found.z.build_order[:, 1].all()
    assert sorted(found.side[:, 0]) == [0, 0, 1, 1]


def test_games_are_counted_by_scripted_player():
  def results(opponent, reward):
    return jax.tree.map(lambda x: None, rollouts.Results(*[None] * 8))._replace(
      opponent=np.array(opponent), reward=np.array(reward)[:, None] * [1, -1])

  games = results([1, 3, 1, 3, 3], [1.0, -1.0, 0.0, -1.0, 1.0])
  assert evaluation.count(games) == {0: evaluation.Counts(1, 1, 0), 2: evaluation.Counts(1, 0, 2)}
  assert evaluation.count_by_name(games, ("L1", "L2", "L3")) == {
    "L1": evaluation.Counts(1, 1, 0), "L3": evaluation.Counts(1, 0, 2)}


def test_match_ups_split_the_games_by_the_races_of_both_players():
  games = rollouts.Results(
    over=np.ones(5, bool), opponent=np.array([1, 2, 2, 1, 1]),
    reward=np.array([1.0, -1.0, 0.0, 1.0, -1.0])[:, None] * [1, -1], executed=(), z=(),
    race=np.array([[1, 2], [1, 2], [3, 3], [1, 2], [2, 1]]), side=np.zeros((5, 2), int),
    map_index=np.arange(5))
  found = evaluation.match_ups(games)
  assert {pair: evaluation.count(each) for pair, each in found.items()} == {
    (1, 2): {0: evaluation.Counts(2, 0, 0), 1: evaluation.Counts(0, 0, 1)},
    (2, 1): {0: evaluation.Counts(0, 0, 1)}, (3, 3): {1: evaluation.Counts(0, 1, 0)}}
  np.testing.assert_array_equal(found[1, 2].map_index, [0, 1, 3])
