"""Self-imitation: worked values, gradients, returns."""

import jax
import jax.numpy as jnp

from starleague.learner import losses
from tests.learner.losses.worked import close


def test_self_imitation_worked():
  log_prob, v = jnp.log(jnp.array([.25, .25])), jnp.array([.4, .4])
  returns = jnp.array([1., .1])
  close(losses.self_imitation_loss(log_prob, v, returns, value_cost=0.0), [.831777, 0])
  both = losses.self_imitation_loss(log_prob, v, returns, value_cost=1.0)
  close(both, [.831777 + .18, 0])
  close(losses.self_imitation_priority(v, returns), [.6, 0])


def test_self_imitation_gradients():
  inputs = jnp.array([-1., -1.]), jnp.array([.4, .4]), jnp.array([1., .1])
  by_log_prob, by_v, by_returns = jax.grad(
    lambda *x: losses.self_imitation_loss(*x, value_cost=.5).sum(), argnums=(0, 1, 2))(*inputs)
  close(by_log_prob, [-.6, 0])  # only the action with a positive gain becomes more likely
  close(by_v, [-.5 * .6, 0])  # values only increase
  close(by_returns, [0, 0])


def test_discounted_returns():
  """The sum starts at the step itself: R_t includes r_t."""
  returns = losses.discounted_returns(jnp.array([1., 0., 2., 5.]), jnp.array([.5, .5, 0., .5]))
  close(returns, [1.5, 1., 2., 5.])
