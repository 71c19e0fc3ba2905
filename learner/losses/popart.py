"""PopArt: normalises value targets while preserving outputs.

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
  """Running moments of each task's targets, for N tasks."""

  shift: Array  # [N] float32, mean
  scale: Array  # [N] float32, standard deviation
  second_moment: Array  # [N] float32


def popart_init(num_tasks: int) -> PopArtState:
  """Returns the identity normalisation: mean 0, scale 1."""
  return PopArtState(jnp.zeros(num_tasks), jnp.ones(num_tasks), jnp.ones(num_tasks))


def popart_normalise(state: PopArtState, targets: Array, tasks: Array) -> Array:
  """Normalises targets by their tasks' moments, `(target - mean) / scale`.

  Args:
    state: moments of N tasks.
    targets: [...] float.
    tasks: [...] integer below N, the task of each value.

  Returns:
    [...] float.
  """
  chex.assert_equal_shape([targets, tasks])
  return (targets - state.shift[tasks]) / state.scale[tasks]


def popart_unnormalise(state: PopArtState, normalised: Array, tasks: Array) -> Array:
  """Inverts `popart_normalise`, `scale n + mean`.

  Args:
    state: moments of N tasks.
    normalised: [...] float.
    tasks: [...] integer below N, the task of each value.

  Returns:
    [...] float.
  """
  chex.assert_equal_shape([normalised, tasks])
  return state.scale[tasks] * normalised + state.shift[tasks]


def popart_statistics(state: PopArtState, targets: Array, tasks: Array, step_size: float = 3e-4,
                      min_scale: float = 1e-4, max_scale: float = 1e6,
                      axis_name: str | None = None) -> PopArtState:
  """Updates each task's moments towards those of its targets.

  `mu <- (1 - beta) mu + beta mean(G)`, `nu <- (1 - beta) nu + beta mean(G^2)`,
  `scale = sqrt(nu - mu^2)` clipped. The means are over the task's targets in the batch, so that
  beta does not depend on the batch size. A task without targets keeps its moments.

  Args:
    state: moments of N tasks.
    targets: [...] float.
    tasks: [...] integer below N, the task of each target.
    step_size: beta.
    min_scale, max_scale: bounds of the scale.
    axis_name: mapped axis over which the batch is split; None: it is not.

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
  """Rescales the last linear layer so that unnormalised outputs are unchanged.

  `w' = w scale / scale'`, `b' = (scale b + mu - mu') / scale'`.

  Args:
    params: "w" [features, N] and "b" [N], a layer with one output per task.
    old, new: state before and after the update of the moments.

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
  """Updates the moments and preserves outputs: `popart_statistics`, then `popart_preserve`.

  Args:
    params: "w" [features, N] and "b" [N], the layer which outputs normalised values.
    state: its moments.
    targets: [...] float, unnormalised.
    tasks: [...] integer below N.
    step_size, min_scale, max_scale, axis_name: as for `popart_statistics`.

  Returns:
    (new parameters, new state).
  """
  new = popart_statistics(state, targets, tasks, step_size, min_scale, max_scale, axis_name)
  return popart_preserve(params, state, new), new
