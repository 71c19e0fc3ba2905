"""Self-imitation: past actions are repeated where they turned out better than the value foretold.

Source: Oh et al. 2018, "Self-imitation learning".
"""

import chex
import jax
import jax.numpy as jnp

from starleague.agent.types import Array


def discounted_returns(r_t: Array, discount_t: Array) -> Array:
  """Returns of an episode that ended: `R_t = r_t + g_t R_{t+1}`, nothing after the last.

  Args:
    r_t: [T] float.
    discount_t: [T] float.

  Returns:
    [T] float; no gradient passes.
  """
  chex.assert_rank([r_t, discount_t], 1)
  chex.assert_equal_shape([r_t, discount_t])

  def backwards(return_, step):
    reward, discount = step
    return_ = reward + discount * return_
    return return_, return_

  _, returns = jax.lax.scan(backwards, jnp.zeros((), r_t.dtype), (r_t, discount_t), reverse=True)
  return jax.lax.stop_gradient(returns)


def self_imitation_loss(log_prob: Array, v_tm1: Array, returns: Array,
                        value_cost: float = 0.01) -> Array:
  """Actor-critic loss on transitions that did better than expected; 0 on the others.

  `-log pi(a) stop_gradient(max(R - V, 0)) + value_cost 0.5 max(R - V, 0)^2`.

  Args:
    log_prob: [...] float, of the action taken.
    v_tm1: [...] float, value of the state it was taken in.
    returns: [...] float, what came of it; `discounted_returns` of its episode.
    value_cost: the weight of the second term; the paper's for Atari.

  Returns:
    [...] float; the first term's gradient reaches `log_prob` alone, the second's `v_tm1` alone.
  """
  chex.assert_equal_shape([log_prob, v_tm1, returns])
  gain = jnp.maximum(jax.lax.stop_gradient(returns) - v_tm1, 0.0)
  return -log_prob * jax.lax.stop_gradient(gain) + value_cost * 0.5 * jnp.square(gain)


def self_imitation_priority(v_tm1: Array, returns: Array) -> Array:
  """How often to replay a transition, up to a factor: `max(R - V, 0)`.

  Args:
    v_tm1: [...] float.
    returns: [...] float.

  Returns:
    [...] float; no gradient passes.
  """
  chex.assert_equal_shape([v_tm1, returns])
  return jax.lax.stop_gradient(jnp.maximum(returns - v_tm1, 0.0))
