"""UPGO: upgoing policy updates, which follow a trajectory for as long as it does better than
expected.

Source: Vinyals et al. 2019, Methods.
"""

import chex
import jax.numpy as jnp

from starleague.agent.types import Array
from starleague.learner.losses._rlax import rlax


def upgo_returns(v_tm1: Array, v_t: Array, r_t: Array, discount_t: Array) -> Array:
  """Returns that bootstrap where the next step was worse than its state's value.

  With `lambda_t = 1[r_{t+1} + g_{t+1} v_{t+2} >= v_{t+1}]`, 1 at the last step::

    G_t = r_t + g_t [lambda_t G_{t+1} + (1 - lambda_t) v_{t+1}],  G_{T-1} = r_{T-1} + g_{T-1} v_T

  The advantage that goes with it is `min(1, rho_t) (G_t - v_t)`.

  Args:
    v_tm1: [T] float, values of the states acted in.
    v_t: [T] float, values of the states reached.
    r_t: [T] float, rewards received between the two.
    discount_t: [T] float, 0 where the game ended between the two.

  Returns:
    [T] float; no gradient passes.
  """
  chex.assert_rank([v_tm1, v_t, r_t, discount_t], 1)
  chex.assert_equal_shape([v_tm1, v_t, r_t, discount_t])
  as_good = r_t + discount_t * v_t >= v_tm1
  follow = jnp.concatenate([as_good[1:], jnp.ones_like(as_good[:1])]).astype(v_t.dtype)
  return rlax.lambda_returns(r_t, discount_t, v_t, follow, stop_target_gradients=True)
