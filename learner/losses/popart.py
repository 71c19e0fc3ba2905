"""PopArt: value targets brought to one scale, while the values they teach stay put.

Sources: van Hasselt et al. 2016, "Learning values across many orders of magnitude"; Hessel et al.
2019, "Multi-task deep reinforcement learning with PopArt".
"""

from collections.abc import Mapping
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from starleague.agent.types import Array


class PopArtState(NamedTuple):
  """What is known of each task's targets. N tasks."""

  shift: Array  # [N] float32, mean
  scale: Array  # [N] float32, standard deviation
  second_moment: Array  # [N] float32


def popart_init(num_tasks: int) -> PopArtState:
  """Statistics that change nothing: mean 0, scale 1."""
  return PopArtState(jnp.zeros(num_tasks), jnp.ones(num_tasks), jnp.ones(num_tasks))


def popart_normalise(state: PopArtState, targets: Array, tasks: Array) -> Array:
  """`(target - mean) / scale` of each target's task.

  Args:
    state: of N tasks.
    targets: [...] float.
    tasks: [...] integer below N.

  Returns:
    [...] float.
  """
  chex.assert_equal_shape([targets, tasks])
  return (targets - state.shift[tasks]) / state.scale[tasks]


def popart_unnormalise(state: PopArtState, normalised: Array, tasks: Array) -> Array:
  """`scale n + mean` of each normalised value's task: the inverse of `popart_normalise`.

  Args:
    state: of N tasks.
    normalised: [...] float.
    tasks: [...] integer below N.

  Returns:
    [...] float.
  """
  chex.assert_equal_shape([normalised, tasks])
  return state.scale[tasks] * normalised + state.shift[tasks]


def popart_statistics(state: PopArtState, targets: Array, tasks: Array, step_size: float = 3e-4,
                      min_scale: float = 1e-4, max_scale: float = 1e6,
                      axis_name: str | None = None) -> PopArtState:
  """Moves each task's moments a step towards those of its targets.

  `mu <- (1 - beta) mu + beta mean(G)`, `nu <- (1 - beta) nu + beta mean(G^2)`,
  `scale = sqrt(nu - mu^2)` clipped. The means are over the task's targets of this batch, so that
  beta means the same for every batch size; a task without targets keeps its moments.

  Args:
    state: of N tasks.
    targets: [...] float.
    tasks: [...] integer below N, whose targets they are.
    step_size: beta.
    min_scale, max_scale: bounds of the scale.
    axis_name: the mapped axis over which batches are split, if any.

  Returns:
    The new state; no gradient passes.
  """
  chex.assert_equal_shape([targets, tasks])
  targets = jax.lax.stop_gradient(targets).reshape(-1)
  is_task = (tasks.reshape(-1)[:, None] == jnp.arange(state.shift.shape[0])).astype(targets.dtype)

  def total(x):
    x = jnp.sum(is_task * x[:, None], axis=0)
    return x if axis_name is None else jax.lax.psum(x, axis_name)

  count = total(jnp.ones_like(targets))
  step = jnp.where(count > 0, step_size, 0.0)
  count = jnp.maximum(count, 1.0)
  shift = state.shift + step * (total(targets) / count - state.shift)
  second_moment = state.second_moment + step * (
    total(jnp.square(targets)) / count - state.second_moment)
  variance = jnp.clip(second_moment - jnp.square(shift), min_scale**2, max_scale**2)
  return PopArtState(shift, jnp.where(step > 0, jnp.sqrt(variance), state.scale), second_moment)


def popart_preserve(params: Mapping[str, Array], old: PopArtState,
                    new: PopArtState) -> dict[str, Array]:
  """The last linear layer, changed so that unnormalised values are what they were.

  `w' = w scale / scale'`, `b' = (scale b + mu - mu') / scale'`.

  Args:
    params: "w" [features, N] and "b" [N], a layer with one output a task.
    old, new: the state before and after its update.

  Returns:
    The new "w" and "b".
  """
  chex.assert_shape(params["w"], (None, *old.scale.shape))
  chex.assert_equal_shape([params["b"], old.scale, new.scale])
  return {
    "w": params["w"] * old.scale / new.scale,
    "b": (old.scale * params["b"] + old.shift - new.shift) / new.scale,
  }


def popart_update(params: Mapping[str, Array], state: PopArtState, targets: Array, tasks: Array,
                  step_size: float = 3e-4, min_scale: float = 1e-4, max_scale: float = 1e6,
                  axis_name: str | None = None) -> tuple[dict[str, Array], PopArtState]:
  """Adapts to new targets and preserves outputs: `popart_statistics`, then `popart_preserve`.

  Args:
    params: "w" [features, N] and "b" [N], the layer whose outputs are normalised values.
    state: its statistics.
    targets: [...] float, unnormalised.
    tasks: [...] integer below N.
    step_size, min_scale, max_scale, axis_name: as for `popart_statistics`.

  Returns:
    (new parameters, new state).
  """
  new = popart_statistics(state, targets, tasks, step_size, min_scale, max_scale, axis_name)
  return popart_preserve(params, state, new), new
