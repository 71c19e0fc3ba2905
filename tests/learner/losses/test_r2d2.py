"""R2D2: value rescaling, double Q-learning, priorities."""

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies

from starleague.learner import losses
from tests.learner.losses.worked import close
from tests.learner.rlax_without_tensorflow import rlax

twin_test = hypothesis.settings(max_examples=20, deadline=None)


def test_rescale_worked():
  values = jnp.array([1., 3., -8., 100., 0.])
  close(losses.rescale_value(values), [.415214, 1.003, -2.008, 9.149876, 0])


@twin_test
@hypothesis.given(strategies.floats(-1e4, 1e4, width=32))
def test_unscale_is_the_inverse(value):
  x = jnp.float32(value)
  np.testing.assert_allclose(losses.unscale_value(losses.rescale_value(x)), x, rtol=1e-5, atol=1e-6)


def test_rescaling_is_smooth_at_zero():
  """The form with |x| and sign(x), also rlax's, has no derivative there."""
  assert jax.grad(losses.rescale_value)(0.0) == pytest.approx(0.501, rel=1e-6)
  assert jax.grad(losses.unscale_value)(0.0) == pytest.approx(1 / 0.501, rel=1e-6)


def test_double_q_errors_equal_rlax_and_their_gradient_reaches_q_alone():
  rng = np.random.default_rng(1)
  q, online, target = jnp.asarray(rng.normal(size=(3, 6, 4)).astype(np.float32))
  action = jnp.array([0, 3, 1, 2, 2, 0])
  r, g = jnp.asarray(rng.normal(size=6).astype(np.float32)), jnp.full(6, .997)
  errors = losses.double_q_errors(q, action, online, target, r, g, n=3)
  expected = rlax.transformed_n_step_q_learning(
    q, action, target, online.argmax(-1), r, g, 3, tx_pair=rlax.SIGNED_HYPERBOLIC_PAIR)
  close(errors, expected, 2e-4)  # rlax's inverse cancels; the error from the twin is below 1e-5
  by_q, by_online, by_target = jax.grad(
    lambda *x: losses.double_q_errors(x[0], action, x[1], x[2], r, g, n=3).sum(),
    argnums=(0, 1, 2))(q, online, target)
  close(by_q, -np.eye(4)[action])
  assert (by_online == 0).all() and (by_target == 0).all()


def test_sequence_priority_worked():
  errors = jnp.array([1., -.2, .5])
  close(losses.sequence_priority(errors, exponent=1.0), .956667)
  close(losses.sequence_priority(errors), .960914)
  burn_in = jnp.array([0, 1, 1])
  close(losses.sequence_priority(errors, burn_in, exponent=1.0), .9 * .5 + .1 * .35)
  assert losses.sequence_priority(errors, jnp.zeros(3)) == 0.0
