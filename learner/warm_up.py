"""Warm-up of the value functions: they learn alone, before the policy moves.

Imitation leaves the value functions untrained. Advantages of random values would then move the
policy away from the imitated one for no reason. DI-star trains its value functions first, with a
frozen policy, for the same reason.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from starleague.agent.types import Array


class WarmUpState(NamedTuple):
  """The state of a warm-up."""

  updates: Array  # [] int32: updates so far


def resumed(fresh: Any, old: Any) -> Any:
  """Returns a new optimizer state whose warm-up is as far as that of an old one."""
  def is_warm_up(x: Any) -> bool:
    return isinstance(x, WarmUpState)

  return jax.tree.map(lambda new, before: before if is_warm_up(new) else new, fresh, old,
                      is_leaf=is_warm_up)


def learn_alone(mask: np.ndarray, updates: int) -> optax.GradientTransformation:
  """Zeroes the updates of all but some parameters at first; the last link of an optax chain.

  Moments of the optimizer before it see every gradient from the first update on.

  Args:
    mask: [n, 128] bool, the parameters that learn from the first update on; see `flat.repeat`.
    updates: number of updates before the others learn too.

  Returns:
    A transformation of the parameters as one matrix, as `learner.update` applies it.
  """
  def init(params: Any) -> WarmUpState:
    del params
    return WarmUpState(jnp.zeros((), jnp.int32))

  def update(values: jax.Array, state: WarmUpState,
             params: Any = None) -> tuple[jax.Array, WarmUpState]:
    del params
    learns = jnp.asarray(mask) | (state.updates >= updates)
    return jnp.where(learns, values, 0.0), WarmUpState(state.updates + 1)

  return optax.GradientTransformation(init, update)
