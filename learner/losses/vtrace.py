"""V-trace: off-policy corrected advantages, and the ratios and loss that go with them.

Source: Espeholt et al. 2018, "IMPALA"; Vinyals et al. 2019, Methods, for one ratio a group of
arguments.
"""

from typing import Any

import chex
import jax
import jax.numpy as jnp

from starleague.agent.types import Array
from starleague.learner.losses._rlax import rlax


def vtrace_advantages(v_tm1: Array, v_t: Array, r_t: Array, discount_t: Array, rho_tm1: Array,
                      lambda_: float | Array = 1.0, clip_rho: float = 1.0,
                      clip_pg_rho: float = 1.0) -> Array:
  """Advantages for a policy gradient, corrected for the behaviour policy's being another.

  With `c = lambda min(1, rho)`, `w = min(clip_rho, rho)`, and backwards from `vs_T = v_T`::

    vs_t = v_t + w_t (r_t + g_t v_{t+1} - v_t) + g_t c_t (vs_{t+1} - v_{t+1})
    advantage_t = min(clip_pg_rho, rho_t) (r_t + g_t [lambda vs_{t+1} + (1 - lambda) v_{t+1}] - v_t)

  Args:
    v_tm1: [T] float, values of the states acted in.
    v_t: [T] float, values of the states reached.
    r_t: [T] float, rewards received between the two.
    discount_t: [T] float, 0 where the game ended between the two.
    rho_tm1: [T] float, probability of the action now over that when it was taken, not clipped.
    lambda_: [] or [T], 1 as published.
    clip_rho: the ceiling of the ratio in the targets: it decides what policy they evaluate.
    clip_pg_rho: the ceiling of the ratio that multiplies the advantage.

  Returns:
    [T] float; no gradient passes.
  """
  chex.assert_rank([v_tm1, v_t, r_t, discount_t, rho_tm1], 1)
  chex.assert_equal_shape([v_tm1, v_t, r_t, discount_t, rho_tm1])
  output = rlax.vtrace_td_error_and_advantage(
    v_tm1, v_t, r_t, discount_t, rho_tm1, lambda_, clip_rho, clip_pg_rho)
  return jax.lax.stop_gradient(output.pg_advantage)


def vtrace_targets(v_tm1: Array, v_t: Array, r_t: Array, discount_t: Array, rho_tm1: Array,
                   lambda_: float | Array = 1.0, clip_rho: float = 1.0) -> Array:
  """The values `vs_t` of `vtrace_advantages`, as targets of a value function (IMPALA's).

  Args:
    v_tm1, v_t, r_t, discount_t, rho_tm1, lambda_, clip_rho: as for `vtrace_advantages`.

  Returns:
    [T] float; no gradient passes.
  """
  chex.assert_rank([v_tm1, v_t, r_t, discount_t, rho_tm1], 1)
  chex.assert_equal_shape([v_tm1, v_t, r_t, discount_t, rho_tm1])
  errors = rlax.vtrace(v_tm1, v_t, r_t, discount_t, rho_tm1, lambda_, clip_rho)
  return jax.lax.stop_gradient(errors + v_tm1)


def joint_ratio(log_prob: Any, behaviour_log_prob: Any, mask: Any) -> Array:
  """How much likelier a group of arguments is now than when it was chosen: one number a step.

  `exp(sum over used arguments of log pi - log mu)`, not clipped. An argument that the action does
  not use has no say, whatever its log-probs.

  Args:
    log_prob: a tree of [...] floats, one leaf an argument: the learner's.
    behaviour_log_prob: the same tree, from when the action was taken.
    mask: the same tree of [...] bool or 0 and 1: whether the action uses the argument.

  Returns:
    [...] float; no gradient passes.
  """
  chex.assert_trees_all_equal_shapes(log_prob, behaviour_log_prob, mask)
  log_ratios = jax.tree.map(
    lambda pi, mu, used: jnp.where(used, pi - mu, 0.0), log_prob, behaviour_log_prob, mask)
  return jax.lax.stop_gradient(jnp.exp(sum(jax.tree.leaves(log_ratios))))


def policy_gradient_loss(log_prob: Array, advantage: Array, mask: Array | None = None) -> Array:
  """What to minimise so that actions of positive advantage become likelier.

  `-mask stop_gradient(advantage) log pi(a)`.

  Args:
    log_prob: [...] float, of the actions taken.
    advantage: [...] float.
    mask: [...] bool or 0 and 1, whether the argument was used; all where None.

  Returns:
    [...] float.
  """
  chex.assert_equal_shape([log_prob, advantage])
  loss = -jax.lax.stop_gradient(advantage) * log_prob
  return loss if mask is None else jnp.where(mask, loss, 0.0)
