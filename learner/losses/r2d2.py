"""R2D2: recurrent Q-learning from replayed sequences.

Source: Kapturowski et al. 2019, "Recurrent experience replay in distributed reinforcement
learning".
"""

import chex
import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent.types import Array


def rescale_value(x: Array, epsilon: float = 1e-3) -> Array:
  """Rescales values, `h(x) = sign(x) (sqrt(|x| + 1) - 1) + epsilon x`.

  Args:
    x: [...] float.
    epsilon: slope that keeps the inverse Lipschitz continuous.

  Returns:
    [...] float.
  """
  chex.assert_type(x, float)
  # Equal to sign(x) (sqrt(|x| + 1) - 1), without cancellation near 0 and smooth there.
  return x / (jnp.sqrt(jnp.abs(x) + 1.0) + 1.0) + epsilon * x


def unscale_value(x: Array, epsilon: float = 1e-3) -> Array:
  """Inverts `rescale_value`.

  With `s = sqrt(|x| + 1) - 1`, `|x| = s (s + 2)` and `epsilon s^2 + (1 + 2 epsilon) s = |h(x)|`:
  s is the positive root, in the form that does not cancel in float32; s and x have the same sign.

  Args:
    x: [...] float, rescaled values.
    epsilon: as for `rescale_value`, above 0.

  Returns:
    [...] float.
  """
  chex.assert_type(x, float)
  linear = 1.0 + 2.0 * epsilon
  root = 2.0 * x / (linear + jnp.sqrt(linear**2 + 4.0 * epsilon * jnp.abs(x)))
  return root * (jnp.abs(root) + 2.0)


def double_q_targets(online_q_t: Array, target_q_t: Array, r_t: Array, discount_t: Array,
                     n: int = 5, epsilon: float = 1e-3) -> Array:
  """Computes n-step double Q-learning targets, in rescaled values.

  `h(sum_{k<n} g^k r_{t+k} + g^n h^-1(Q_target(s_{t+n}, argmax_a Q_online(s_{t+n}, a))))`; the
  last steps of a sequence bootstrap from its last state.

  Args:
    online_q_t: [T, n_actions] float, the online network's values of the states reached.
    target_q_t: [T, n_actions] float, the target network's values of the same states.
    r_t: [T] float.
    discount_t: [T] float.
    n: steps before bootstrapping.
    epsilon: as for `rescale_value`.

  Returns:
    [T] float; no gradient passes.
  """
  chex.assert_rank([online_q_t, target_q_t, r_t, discount_t], [2, 2, 1, 1])
  chex.assert_equal_shape([online_q_t, target_q_t])
  chex.assert_equal_shape_prefix([online_q_t, r_t, discount_t], 1)
  best = jnp.argmax(online_q_t, axis=-1)
  v_t = unscale_value(jnp.take_along_axis(target_q_t, best[:, None], axis=-1)[:, 0], epsilon)
  returns = _n_step_returns(r_t, discount_t, v_t, n)
  return jax.lax.stop_gradient(rescale_value(returns, epsilon))


def _n_step_returns(r_t: Array, discount_t: Array, v_t: Array, n: int) -> Array:
  """Computes n-step bootstrapped returns; fewer steps at the end of the sequence."""
  last = v_t.shape[0] - 1
  returns = v_t[np.minimum(np.arange(last + 1) + n - 1, last)]
  r_t, discount_t = jnp.pad(r_t, (0, n - 1)), jnp.pad(discount_t, (0, n - 1), constant_values=1.0)
  for k in reversed(range(n)):
    returns = r_t[k:k + last + 1] + discount_t[k:k + last + 1] * returns
  return returns


def double_q_errors(q_tm1: Array, action_tm1: Array, online_q_t: Array, target_q_t: Array,
                    r_t: Array, discount_t: Array, n: int = 5, epsilon: float = 1e-3) -> Array:
  """Computes TD errors, `target - Q(s, a)`; half their square is the loss.

  Args:
    q_tm1: [T, n_actions] float, values of the states acted in; these learn.
    action_tm1: [T] integer.
    online_q_t, target_q_t, r_t, discount_t, n, epsilon: as for `double_q_targets`.

  Returns:
    [T] float; their gradient reaches `q_tm1` alone.
  """
  chex.assert_rank([q_tm1, action_tm1], [2, 1])
  chex.assert_equal_shape([q_tm1, online_q_t])
  targets = double_q_targets(online_q_t, target_q_t, r_t, discount_t, n, epsilon)
  chosen = jnp.take_along_axis(q_tm1, action_tm1.astype(jnp.int32)[:, None], axis=-1)[:, 0]
  return targets - chosen


def sequence_priority(td_errors: Array, mask: Array | None = None, eta: float = 0.9,
                      exponent: float = 0.9) -> Array:
  """Computes a sequence's unnormalised priority, `(eta max|e| + (1 - eta) mean|e|)^exponent`.

  Args:
    td_errors: [T] float.
    mask: [T] bool or 0 and 1, the learnt steps (those after the burn-in); None: all are.
    eta: weight of the largest absolute error.
    exponent: priority exponent; 1 leaves the mixture unchanged.

  Returns:
    [] float; 0 where no step is learnt. No gradient passes.
  """
  chex.assert_rank(td_errors, 1)
  weight = jnp.ones_like(td_errors) if mask is None else mask.astype(td_errors.dtype)
  chex.assert_equal_shape([td_errors, weight])
  errors = jax.lax.stop_gradient(jnp.abs(td_errors)) * weight
  mean = jnp.sum(errors) / jnp.maximum(jnp.sum(weight), 1.0)
  return (eta * jnp.max(errors) + (1.0 - eta) * mean) ** exponent
