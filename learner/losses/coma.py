"""COMA: counterfactual advantages of one agent among several.

Source: Foerster et al. 2018, "Counterfactual multi-agent policy gradients".
"""

import chex
import jax
import jax.numpy as jnp

from starleague.agent.types import Array


def coma_advantages(q_values: Array, probabilities: Array) -> Array:
  """Computes counterfactual advantages: each choice's value over the policy's mean value.

  `A_u = Q(s, (others', u)) - sum_u' pi(u') Q(s, (others', u'))`.

  Args:
    q_values: [..., n] float, a central critic's values of the agent's choices, given the actions of
      the other agents.
    probabilities: [..., n] float, the agent's policy; they sum to 1.

  Returns:
    [..., n] float; no gradient passes. Their mean under the policy is 0.
  """
  chex.assert_equal_shape([q_values, probabilities])
  baseline = jnp.sum(probabilities * q_values, axis=-1, keepdims=True)
  return jax.lax.stop_gradient(q_values - baseline)


def coma_loss(q_values: Array, logits: Array, action: Array) -> Array:
  """Computes one agent's policy-gradient loss, `-stop_gradient(A_u) log pi(u)` of its choice u.

  Args:
    q_values: [..., n] float, as for `coma_advantages`.
    logits: [..., n] float, the agent's policy.
    action: [...] integer, its choice.

  Returns:
    [...] float; its gradient reaches `logits` alone.
  """
  chex.assert_equal_shape([q_values, logits])
  chex.assert_shape(action, logits.shape[:-1])
  log_pi = jax.nn.log_softmax(logits, axis=-1)
  index = action.astype(jnp.int32)[..., None]
  advantage = jnp.take_along_axis(coma_advantages(q_values, jnp.exp(log_pi)), index, axis=-1)
  return -(advantage * jnp.take_along_axis(log_pi, index, axis=-1))[..., 0]
