"""TD(lambda): how the value functions learn, without importance correction.

Source: Sutton 1988; Vinyals et al. 2019, Methods, for its use beside V-trace.
"""

import chex
import jax
import jax.numpy as jnp

from starleague.agent.types import Array
from starleague.learner.losses._rlax import rlax


def td_lambda_returns(v_t: Array, r_t: Array, discount_t: Array,
                      lambda_: float | Array = 0.8) -> Array:
  """Returns that mix every n-step return.

  `G_t = r_t + g_t [lambda G_{t+1} + (1 - lambda) v_{t+1}]`, `G_{T-1} = r_{T-1} + g_{T-1} v_T`.

  Args:
    v_t: [T] float, values of the states reached.
    r_t: [T] float, rewards received on the way there.
    discount_t: [T] float, 0 where the game ended on the way.
    lambda_: [] or [T], 0.8 as published.

  Returns:
    [T] float; no gradient passes.
  """
  chex.assert_rank([v_t, r_t, discount_t], 1)
  chex.assert_equal_shape([v_t, r_t, discount_t])
  return rlax.lambda_returns(r_t, discount_t, v_t, lambda_, stop_target_gradients=True)


def td_lambda_loss(v_tm1: Array, v_t: Array, r_t: Array, discount_t: Array,
                   lambda_: float | Array = 0.8) -> Array:
  """Half the squared distance of values from their TD(lambda) returns.

  `0.5 (stop_gradient(G_t) - v_t)^2`, G as in `td_lambda_returns`.

  Args:
    v_tm1: [T] float, values of the states acted in: what learns.
    v_t, r_t, discount_t, lambda_: as for `td_lambda_returns`. T rewards and T discounts: the
      reward of the bootstrap step has no place here.

  Returns:
    [T] float; its gradient reaches `v_tm1` alone.
  """
  chex.assert_rank([v_tm1, v_t, r_t, discount_t], 1)
  chex.assert_equal_shape([v_tm1, v_t, r_t, discount_t])
  return 0.5 * jnp.square(td_lambda_returns(v_t, r_t, discount_t, lambda_) - v_tm1)


def explained_variance(values: Array, returns: Array, weight: Array) -> Array:
  """How much of the returns' variance the values foretell: 1 is all, 0 none, below 0 is harm.

  Args:
    values: [...] float.
    returns: [...] float.
    weight: [...] float, how much each counts.

  Returns:
    [] float; 0 where the returns do not vary.
  """
  chex.assert_equal_shape([values, returns, weight])
  total = jnp.maximum(jnp.sum(weight), 1e-8)

  def variance(x):
    mean = jnp.sum(weight * x) / total
    return jnp.sum(weight * jnp.square(x - mean)) / total

  spread = variance(returns)
  some = spread > 1e-8
  explained = 1.0 - variance(returns - values) / jnp.where(some, spread, 1.0)
  return jax.lax.stop_gradient(jnp.where(some, explained, 0.0))
