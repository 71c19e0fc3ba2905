"""Evaluation on the clockwork environment."""

import jax
import jax.numpy as jnp
import pytest

from starleague.actor import evaluation
from starleague.data.conditioning import unconditional
from tests.actor.clockwork import clockwork, counting_policy, scripted


def test_every_game_is_counted_once():
  evaluator = evaluation.make_evaluator(
    clockwork(), counting_policy(), scripted, opponents=(0, 1), games=4, inference_batch=8)
  scores = evaluation.evaluate(evaluator, jnp.ones(()), jax.random.key(2), unconditional(1, 6200))
  assert scores == {0: evaluation.Counts(4, 0, 0), 1: evaluation.Counts(4, 0, 0)}
  assert scores[0].games == 4


def test_odd_numbers_of_games_are_rejected():
  with pytest.raises(ValueError, match="games must be even.*found 3"):
    evaluation.make_evaluator(clockwork(), counting_policy(), scripted, opponents=(0,), games=3)
