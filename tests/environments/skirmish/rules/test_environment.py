"""Steps of the mini tier against numbers computed by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import types
from starleague.environments.skirmish import make_skirmish
from starleague.environments.skirmish.rules.tables import constants
from tests.environments.skirmish.mini_games import (
  GAMES,
  RULES,
  SCV,
  S,
  action,
  actions,
  everyone,
  host,
  start,
)


def test_shapes_and_dtypes_follow_the_specs(game):
  state = start(game)
  observation, privileged = game.observe(state)
  for found, spec in zip(
      jax.tree.leaves((observation, privileged)),
      jax.tree.leaves((types.observation_spec(64, 32), types.privileged_spec())), strict=True):
    assert (found.shape, found.dtype) == ((GAMES, 2, *spec.shape), spec.dtype)
  later = game.advance(game.act(state, actions({}), game.due(state)))
  assert jax.tree.map(jnp.shape, later) == jax.tree.map(jnp.shape, state)
  assert [x.dtype for x in jax.tree.leaves(later)] == [x.dtype for x in jax.tree.leaves(state)]


def test_unsuitable_sizes_are_rejected():
  with pytest.raises(ValueError, match="max_entities is 32, expected 36 to 2048"):
    make_skirmish(max_entities=32)
  with pytest.raises(ValueError, match="unknown tier 'huge'"):
    make_skirmish("huge")
  with pytest.raises(ValueError, match="multiple of 32"):
    make_skirmish(map_size=40)


def test_workers_deliver_five_minerals_every_forty_loops(game):
  state = start(game)
  for _ in range(20):
    state = game.advance(state)
  before = np.asarray(state.minerals)
  for _ in range(50):
    state = game.advance(state)
  np.testing.assert_array_equal(np.asarray(state.minerals) - before, 4 * 10 * 5)


def test_training_has_its_price_and_time_and_new_workers_mine(game):
  state = start(game)
  train = everyone(action("Train_SCV_quick", rows=[0], repeat=2))
  state = game.advance(game.act(state, train, game.due(state)))
  # 50 minerals pay for one of three.
  np.testing.assert_array_equal(np.asarray(state.queue)[:, 0, 0], [[SCV, 0, 0, 0, 0]] * GAMES)
  np.testing.assert_array_equal(np.asarray(state.minerals)[:, 0], 0)
  # The step of the order counts: 272 loops at tempo 3 are 91, 12 steps.
  for _ in range(10):
    state = game.advance(state)
  assert (np.sum(np.asarray(state.kind) == SCV, axis=2) == 4).all()
  state = game.advance(state)
  np.testing.assert_array_equal(np.sum(np.asarray(state.kind) == SCV, axis=2)[:, 0], 5)
  np.testing.assert_array_equal(np.asarray(state.orders.verb)[:, 0, 4], constants.GATHER)


def test_a_game_ends_with_the_last_structure(game):
  state = start(game)
  kind, health = np.array(state.kind), np.array(state.health)
  kind[0, 1, :S] = 0  # player 1 loses
  kind[1, 0, :S] = 0
  kind[2, :, :S] = 0  # both lose
  loop = np.array(state.loop)
  loop[3:5] = RULES.tier.loop_limit - 8  # the last step
  loop[5] = RULES.tier.loop_limit - 16
  state = state._replace(
    kind=jnp.asarray(kind), health=jnp.where(kind > 0, health, 0.0), loop=jnp.asarray(loop))
  later = game.advance(state)
  outcome = host(game.outcome(later))
  np.testing.assert_array_equal(outcome.over[:7], [True] * 5 + [False] * 2)
  np.testing.assert_array_equal(
    outcome.reward[:6], [[1, -1], [-1, 1], [0, 0], [0, 0], [0, 0], [0, 0]])
  assert not np.asarray(game.due(later))[:5].any()
  last = game.advance(later)
  for a, b in zip(jax.tree.leaves(host(later)), jax.tree.leaves(host(last)), strict=True):
    np.testing.assert_array_equal(a[:5], b[:5])
  assert (np.asarray(last.loop)[5:] == np.asarray(later.loop)[5:] + 8).all()
