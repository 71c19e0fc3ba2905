"""V-trace: off-policy-corrected advantages and targets, importance ratios, policy-gradient loss.

Sources: Espeholt et al. 2018, "IMPALA"; Vinyals et al. 2019, Methods, for one importance ratio per
group of arguments.
"""

from collections.abc import Mapping, Sequence

import chex
import jax
import jax.numpy as jnp

from starleague.agent.types import Array

Arrays = Sequence[Array] | Mapping[str, Array]


def _vtrace_scan(v_tm1: Array, v_t: Array, r_t: Array, discount_t: Array, rho_tm1: Array,
                 lambda_: float | Array, clip_rho: float | Array, clip_pg_rho: float | Array
                 ) -> tuple[jax.Array, jax.Array]:
  """Computes targets and advantages, both [T]; jit removes the one that is not used."""
  chex.assert_rank([v_tm1, v_t, r_t, discount_t, rho_tm1, lambda_], [1, 1, 1, 1, 1, {0, 1}])
  chex.assert_equal_shape([v_tm1, v_t, r_t, discount_t, rho_tm1])

  # All arithmetic is inside the scan: see the package's docstring.
  def step(correction, inputs):  # vs_{t+1} - v_{t+1}
    v_tm1, v_t, r_t, discount_t, rho_tm1, lambda_t = inputs
    td_error = r_t + discount_t * v_t - v_tm1
    correction *= discount_t * lambda_t
    advantage = jnp.minimum(clip_pg_rho, rho_tm1) * (td_error + correction)
    correction = jnp.minimum(clip_rho, rho_tm1) * td_error + jnp.minimum(1.0, rho_tm1) * correction
    return correction, (v_tm1 + correction, advantage)

  inputs = jax.lax.stop_gradient(
    (v_tm1, v_t, r_t, discount_t, rho_tm1, jnp.broadcast_to(lambda_, r_t.shape)))
  return jax.lax.scan(step, jnp.zeros((), v_tm1.dtype), inputs, reverse=True)[1]


def vtrace_advantages(v_tm1: Array, v_t: Array, r_t: Array, discount_t: Array, rho_tm1: Array,
                      lambda_: float | Array = 1.0, clip_rho: float | Array = 1.0,
                      clip_pg_rho: float | Array = 1.0) -> Array:
  """Computes V-trace's off-policy-corrected policy-gradient advantages.

  With `c_t = lambda min(1, rho_t)`, `w_t = min(clip_rho, rho_t)`, and backwards from `vs_T = v_T`::

    vs_t = v_t + w_t (r_t + g_t v_{t+1} - v_t) + g_t c_t (vs_{t+1} - v_{t+1})
    advantage_t = min(clip_pg_rho, rho_t) (r_t + g_t [lambda vs_{t+1} + (1 - lambda) v_{t+1}] - v_t)

  Args:
    v_tm1: [T] float, values of the states acted in.
    v_t: [T] float, values of the states reached; `v_t[-1]` is the bootstrap value.
    r_t: [T] float, rewards received on the transitions.
    discount_t: [T] float, 0 where the episode ends on the transition.
    rho_tm1: [T] float, importance ratios pi/mu of the actions, unclipped.
    lambda_: [] or [T], mixing parameter; 1 as published.
    clip_rho: [], clipping threshold of the ratios in the targets; it determines which policy the
      targets evaluate.
    clip_pg_rho: [], clipping threshold of the ratios that multiply the advantages.

  Returns:
    [T] float; no gradient passes.
  """
  _, advantages = _vtrace_scan(
    v_tm1, v_t, r_t, discount_t, rho_tm1, lambda_, clip_rho, clip_pg_rho)
  return advantages


def vtrace_targets(v_tm1: Array, v_t: Array, r_t: Array, discount_t: Array, rho_tm1: Array,
                   lambda_: float | Array = 1.0, clip_rho: float | Array = 1.0) -> Array:
  """Computes V-trace value targets, `vs_t` of `vtrace_advantages` (IMPALA's value function).

  Args:
    v_tm1, v_t, r_t, discount_t, rho_tm1, lambda_, clip_rho: as for `vtrace_advantages`.

  Returns:
    [T] float; no gradient passes.
  """
  targets, _ = _vtrace_scan(
    v_tm1, v_t, r_t, discount_t, rho_tm1, lambda_, clip_rho, clip_pg_rho=1.0)
  return targets


def joint_ratio(log_prob: Arrays, behaviour_log_prob: Arrays, mask: Arrays) -> Array:
  """Computes the joint importance ratio pi/mu of a group of arguments, unclipped.

  `exp(sum over used arguments of log pi - log mu)`. The log-probs of arguments that the action does
  not use are ignored, infinite ones included.

  Args:
    log_prob: a tree of [...] floats, one leaf per argument: the learner's policy pi.
    behaviour_log_prob: the same tree: the behaviour policy mu.
    mask: the same tree of [...] bool or 0 and 1, whether the action uses the argument.

  Returns:
    [...] float; no gradient passes.
  """
  chex.assert_trees_all_equal_shapes(log_prob, behaviour_log_prob, mask)
  log_ratios = jax.tree.map(
    lambda pi, mu, used: jnp.where(used, pi - mu, 0.0), log_prob, behaviour_log_prob, mask)
  return jax.lax.stop_gradient(jnp.exp(sum(jax.tree.leaves(log_ratios))))


def policy_gradient_loss(log_prob: Array, advantage: Array, mask: Array | None = None) -> Array:
  """Computes the policy-gradient loss, `-mask stop_gradient(advantage) log pi(a)`.

  Args:
    log_prob: [...] float, of the actions taken.
    advantage: [...] float.
    mask: [...] bool or 0 and 1, whether the argument is used; None: all are.

  Returns:
    [...] float.
  """
  chex.assert_equal_shape([log_prob, advantage])
  loss = -jax.lax.stop_gradient(advantage) * log_prob
  return loss if mask is None else jnp.where(mask, loss, 0.0)
