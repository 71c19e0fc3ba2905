"""Warm-up of the value functions."""

import jax.numpy as jnp
import numpy as np
import optax

from starleague.learner import flat, train_state, warm_up

PARAMS = {"a": np.zeros((2, 2), np.float32), "b": np.zeros(3, np.float32)}
MASK = {"a": False, "b": True}


def test_others_learn_only_after_the_warm_up():
  mask = flat.repeat(MASK, PARAMS)
  zeros = jnp.zeros(mask.shape)
  optimizer = optax.chain(train_state.make_optimizer(0.1), warm_up.learn_alone(mask, 3))
  alone = train_state.make_optimizer(0.1)
  state, own = optimizer.init(zeros), alone.init(zeros)
  for i in range(5):
    gradient = jnp.arange(1.0, 1025.0).reshape(8, 128) * (1 + i)
    updates, state = optimizer.update(gradient, state, zeros)
    expected, own = alone.update(gradient, own, zeros)
    # Adam's moments see all gradients: after the warm-up the updates are those of Adam alone.
    np.testing.assert_array_equal(updates, np.where(mask | (i >= 3), expected, 0.0))
    assert np.all(expected != 0.0)
