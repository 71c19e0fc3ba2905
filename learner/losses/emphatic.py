"""Emphatic weights: n-step emphatic traces of the policy gradient of off-policy data.

Sources: Jiang et al. 2021, "Emphatic Algorithms for Deep Reinforcement Learning" (NETD, ACE);
Mathieu et al. 2023, "AlphaStar Unplugged", for their use in an offline actor-critic.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from starleague.agent.types import Array


class EmphaticState(NamedTuple):
  """The last n steps of a game, oldest first: what the next piece of the game starts from."""

  trace: Array  # [n] float32: their emphatic weights
  decay: Array  # [n] float32: their discounts, each times the clipped ratio of its step


def emphatic_init(steps: int) -> EmphaticState:
  """Returns the state before a game.

  Args:
    steps: n, at least 1.
  """
  return EmphaticState(jnp.zeros(steps), jnp.ones(steps))


def emphatic_weights(discount_t: Array, rho_tm1: Array, state: EmphaticState,
                     clip_rho: float | Array = 1.0) -> tuple[jax.Array, EmphaticState]:
  """Computes n-step emphatic weights, which move the data's states towards those of pi.

  With `d_t = g_t min(clip_rho, rho_t)`, and `F_t = 1` for the first n steps of a game::

    F_t = 1 + d_{t-1} d_{t-2} ... d_{t-n} F_{t-n}

  The policy gradient of step t is multiplied by F_t. The ratios clipped at 1 bound F_t by
  `1 + t // n`. A discount of 0 starts the trace again.

  Args:
    discount_t: [T] float, 0 where the episode ends on the transition.
    rho_tm1: [T] float, importance ratios pi/mu of the actions, unclipped.
    state: of the steps before: `emphatic_init`, or the state of the game's last piece. It has n.
    clip_rho: [], clipping threshold of the ratios.

  Returns:
    ([T] float, the state after the last step); no gradient passes.
  """
  chex.assert_rank([discount_t, rho_tm1, *state], 1)
  chex.assert_equal_shape([discount_t, rho_tm1])
  chex.assert_equal_shape(state)

  def step(state, inputs):
    discount_t, rho_tm1 = inputs
    weight = 1.0 + jnp.prod(state.decay) * state.trace[0]
    decay = discount_t * jnp.minimum(clip_rho, rho_tm1)
    return EmphaticState(jnp.append(state.trace[1:], weight),
                         jnp.append(state.decay[1:], decay)), weight

  state, weights = jax.lax.scan(
    step, *jax.lax.stop_gradient((EmphaticState(*state), (discount_t, rho_tm1))))
  return weights, state
