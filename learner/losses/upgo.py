"""UPGO, upgoing policy update: returns that follow a trajectory while it exceeds its values.

Source: Vinyals et al. 2019, Methods.
"""

import chex
import jax
import jax.numpy as jnp

from starleague.agent.types import Array


def upgo_returns(v_tm1: Array, v_t: Array, r_t: Array, discount_t: Array) -> Array:
  """Computes UPGO returns, which bootstrap where the next step falls short of its value.

  With `lambda_t = 1[r_{t+1} + g_{t+1} v_{t+2} >= v_{t+1}]`, and 1 at the last step::

    G_t = r_t + g_t [lambda_t G_{t+1} + (1 - lambda_t) v_{t+1}],  G_{T-1} = r_{T-1} + g_{T-1} v_T

  The advantage of the policy gradient is `min(1, rho_t) (G_t - v_t)`.

  Args:
    v_tm1: [T] float, values of the states acted in.
    v_t: [T] float, values of the states reached; `v_t[-1]` is the bootstrap value.
    r_t: [T] float, rewards received on the transitions.
    discount_t: [T] float, 0 where the episode ends on the transition.

  Returns:
    [T] float; no gradient passes.
  """
  chex.assert_rank([v_tm1, v_t, r_t, discount_t], 1)
  chex.assert_equal_shape([v_tm1, v_t, r_t, discount_t])

  def step(carry, inputs):
    return_tp1, follow = carry
    v_tm1, v_t, r_t, discount_t = inputs
    return_t = r_t + discount_t * jnp.where(follow, return_tp1, v_t)
    return (return_t, r_t + discount_t * v_t >= v_tm1), return_t

  inputs = jax.lax.stop_gradient((v_tm1, v_t, r_t, discount_t))
  bootstrap = jax.lax.index_in_dim(inputs[1], -1, keepdims=False)
  return jax.lax.scan(step, (bootstrap, jnp.array(True)), inputs, reverse=True)[1]
