"""The optimizer's constants and the initial state of a run."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.learner import train_state


def make_params():
  rng = np.random.default_rng(0)
  return {"layer": {"w": rng.normal(size=(4, 3)).astype(np.float32), "b": np.zeros(3, np.float32)}}


def make_state(optimizer):
  return train_state.initial_state(make_params(), optimizer, jax.random.key(7))


def test_optimizer_has_the_published_constants():
  # Adam without momentum, second moment 0.99, epsilon 1e-5, by hand in float64.
  optimizer = train_state.make_optimizer()
  gradients = [np.array([2.0, -0.5]), np.array([-1.0, 1e-6]), np.array([0.25, 3.0])]
  params = np.array([1.0, -1.0])
  actual, second = jnp.asarray(params, jnp.float32), np.zeros(2)
  state = optimizer.init(actual)
  expected_steps, actual_steps = [], []
  for t, gradient in enumerate(gradients, start=1):
    second = 0.99 * second + 0.01 * gradient ** 2
    expected_steps.append(-3e-5 * gradient / (np.sqrt(second / (1 - 0.99 ** t)) + 1e-5))
    change, state = optimizer.update(jnp.asarray(gradient, jnp.float32), state, actual)
    actual_steps.append(change)
  np.testing.assert_allclose(actual_steps, expected_steps, rtol=1e-5)
  np.testing.assert_allclose(actual_steps[0], [-3e-5, 3e-5], rtol=1e-4)


def test_clipping_scales_the_gradient_to_the_norm():
  optimizer = train_state.make_optimizer(1.0, max_norm=1.0, eps=1.0)
  gradient = jnp.array([3.0, 4.0])
  change, _ = optimizer.update(gradient, optimizer.init(gradient), gradient)
  np.testing.assert_allclose(change, [-0.6 / 1.6, -0.8 / 1.8], rtol=1e-5)


def test_learning_rate_changes_within_the_state():
  optimizer = train_state.make_optimizer(1e-2, adjustable=True)
  state = make_state(optimizer)
  faster = train_state.with_learning_rate(state, 3e-2)
  assert jax.tree.structure(faster) == jax.tree.structure(state)
  gradient = np.ones((8, 128), np.float32)  # of the parameters as one matrix
  change, _ = optimizer.update(gradient, faster.opt_state)
  np.testing.assert_allclose(change, np.full(gradient.shape, -3e-2), rtol=1e-4)
  with pytest.raises(ValueError, match="adjustable=True"):
    train_state.with_learning_rate(make_state(train_state.make_optimizer()), 1e-3)


def test_initial_state_rejects_parameters_that_are_not_finite():
  params = make_params()
  params["layer"]["b"][2] = np.nan
  with pytest.raises(ValueError, match=r"\['layer'\]\['b'\] is not finite"):
    train_state.initial_state(params, train_state.make_optimizer(), jax.random.key(0))
