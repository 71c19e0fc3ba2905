"""Warm-up of the value functions."""

import jax.numpy as jnp
import numpy as np
import optax

from starleague.learner import train_state, warm_up

PARAMS = {"a": np.zeros((2, 2), np.float32), "b": np.zeros(3, np.float32)}
MASK = {"a": False, "b": True}


def test_a_flat_mask_follows_the_order_of_the_leaves():
  np.testing.assert_array_equal(
    warm_up.flat(MASK, PARAMS), [False, False, False, False, True, True, True])


def test_others_learn_only_after_the_warm_up():
  mask = warm_up.flat(MASK, PARAMS)
  optimizer = optax.chain(train_state.make_optimizer(0.1), warm_up.learn_alone(mask, 3))
  alone = train_state.make_optimizer(0.1)
  state, own = optimizer.init(jnp.zeros(7)), alone.init(jnp.zeros(7))
  for i in range(5):
    gradient = jnp.arange(1.0, 8.0) * (1 + i)
    updates, state = optimizer.update(gradient, state, jnp.zeros(7))
    expected, own = alone.update(gradient, own, jnp.zeros(7))
    # Adam's moments see all gradients: after the warm-up the updates are those of Adam alone.
    np.testing.assert_array_equal(updates, np.where(mask | (i >= 3), expected, 0.0))
    assert np.all(expected != 0.0)
