"""Self-imitation: learning from past transitions whose returns exceeded their values.

Source: Oh et al. 2018, "Self-imitation learning".
"""

import chex
import jax
import jax.numpy as jnp

from starleague.agent.types import Array


def discounted_returns(r_t: Array, discount_t: Array) -> Array:
  """Computes discounted returns of a finished episode, `R_t = r_t + g_t R_{t+1}`, `R_T = 0`.

  Args:
    r_t: [T] float.
    discount_t: [T] float.

  Returns:
    [T] float; no gradient passes.
  """
  chex.assert_rank([r_t, discount_t], 1)
  chex.assert_equal_shape([r_t, discount_t])

  def step(return_tp1, inputs):
    r_t, discount_t = inputs
    return_t = r_t + discount_t * return_tp1
    return return_t, return_t

  inputs = jax.lax.stop_gradient((r_t, discount_t))
  return jax.lax.scan(step, jnp.zeros((), r_t.dtype), inputs, reverse=True)[1]


def self_imitation_loss(log_prob: Array, v_tm1: Array, returns: Array,
                        value_cost: float = 0.01) -> Array:
  """Computes the actor-critic loss of transitions with returns above their values; 0 for others.

  `-log pi(a) stop_gradient(max(R - V, 0)) + value_cost 0.5 max(R - V, 0)^2`.

  Args:
    log_prob: [...] float, of the action taken.
    v_tm1: [...] float, value of the state acted in.
    returns: [...] float, `discounted_returns` of the episode.
    value_cost: weight of the second term; the paper's for Atari.

  Returns:
    [...] float; the first term's gradient reaches `log_prob` alone, the second's `v_tm1` alone.
  """
  chex.assert_equal_shape([log_prob, v_tm1, returns])
  gain = jnp.maximum(jax.lax.stop_gradient(returns) - v_tm1, 0.0)
  return -log_prob * jax.lax.stop_gradient(gain) + value_cost * 0.5 * jnp.square(gain)


def self_imitation_priority(v_tm1: Array, returns: Array) -> Array:
  """Computes the unnormalised replay priority of a transition, `max(R - V, 0)`.

  Args:
    v_tm1: [...] float.
    returns: [...] float.

  Returns:
    [...] float; no gradient passes.
  """
  chex.assert_equal_shape([v_tm1, returns])
  return jax.lax.stop_gradient(jnp.maximum(returns - v_tm1, 0.0))
