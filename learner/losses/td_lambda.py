"""TD(lambda): value-function learning without importance correction.

Sources: Sutton 1988; Vinyals et al. 2019, Methods, for its use beside V-trace.
"""

import chex
import jax
import jax.numpy as jnp

from starleague.agent.types import Array

TD_LAMBDA = 0.8  # as published


def td_lambda_returns(v_t: Array, r_t: Array, discount_t: Array,
                      lambda_: float | Array = TD_LAMBDA) -> Array:
  """Computes TD(lambda) returns, the targets of `td_lambda_loss`.

  `G_t = r_t + g_t [lambda G_{t+1} + (1 - lambda) v_{t+1}]`, `G_{T-1} = r_{T-1} + g_{T-1} v_T`.

  Args:
    v_t: [T] float, values of the states reached; `v_t[-1]` is the bootstrap value.
    r_t: [T] float, rewards received on the transitions.
    discount_t: [T] float, 0 where the episode ends on the transition.
    lambda_: [] or [T], mixing parameter; 0.8 as published.

  Returns:
    [T] float; no gradient passes.
  """
  chex.assert_rank([v_t, r_t, discount_t, lambda_], [1, 1, 1, {0, 1}])
  chex.assert_equal_shape([v_t, r_t, discount_t])

  def step(return_tp1, inputs):
    v_t, r_t, discount_t, lambda_t = inputs
    return_t = r_t + discount_t * ((1.0 - lambda_t) * v_t + lambda_t * return_tp1)
    return return_t, return_t

  inputs = jax.lax.stop_gradient(
    (v_t, r_t, discount_t, jnp.broadcast_to(lambda_, r_t.shape)))
  bootstrap = jax.lax.index_in_dim(inputs[0], -1, keepdims=False)
  return jax.lax.scan(step, bootstrap, inputs, reverse=True)[1]


def td_lambda_loss(v_tm1: Array, v_t: Array, r_t: Array, discount_t: Array,
                   lambda_: float | Array = TD_LAMBDA) -> Array:
  """Computes half the squared TD(lambda) error, `0.5 (stop_gradient(G_t) - v_t)^2`.

  Args:
    v_tm1: [T] float, values of the states acted in; these learn.
    v_t, r_t, discount_t, lambda_: as for `td_lambda_returns`. Rewards and discounts are both [T]:
      the reward of the bootstrap step must be trimmed.

  Returns:
    [T] float; its gradient reaches `v_tm1` alone.
  """
  chex.assert_rank([v_tm1, v_t, r_t, discount_t], 1)
  chex.assert_equal_shape([v_tm1, v_t, r_t, discount_t])
  return 0.5 * jnp.square(td_lambda_returns(v_t, r_t, discount_t, lambda_) - v_tm1)


def explained_variance(values: Array, returns: Array, weight: Array) -> Array:
  """Computes the fraction of the returns' variance that the values explain.

  `1 - Var[returns - values] / Var[returns]`: 1 for exact values, 0 for constant ones, and negative
  for values worse than a constant.

  Args:
    values: [...] float.
    returns: [...] float.
    weight: [...] float, weight of each entry in the variances.

  Returns:
    [] float; 0 where the returns do not vary. No gradient passes.
  """
  chex.assert_equal_shape([values, returns, weight])
  total = jnp.maximum(jnp.sum(weight), 1e-8)

  def variance(x):
    mean = jnp.sum(weight * x) / total
    return jnp.sum(weight * jnp.square(x - mean)) / total

  spread = variance(returns)
  varies = spread > 1e-8
  explained = 1.0 - variance(returns - values) / jnp.where(varies, spread, 1.0)
  return jax.lax.stop_gradient(jnp.where(varies, explained, 0.0))
