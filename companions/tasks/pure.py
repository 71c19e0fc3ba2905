"""Tasks of pure functions: one copy's functions, batched, that reset episodes as they end."""

from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp

from starleague.agent.types import Array
from starleague.companions.tasks.task import Task, TimeStep


class Copy(NamedTuple):
  """Functions of one copy of an environment.

  Attributes:
    init: key -> state, at the start of an episode.
    step: (state, key, action) -> (state, reward [] float32, ended [] bool).
    observe: state -> observation.
  """

  init: Callable[[Array], Any]
  step: Callable[[Any, Array, Array], tuple[Any, Array, Array]]
  observe: Callable[[Any], Any]


class _State(NamedTuple):
  copies: Any  # states, [n, ...]
  steps: Array  # [n] int32, of the episode


def make_pure_task(name: str, copies: int, copy: Copy, num_actions: int, *,
                   action_shape: tuple[int, ...] = (), limit: int = 0,
                   cheap_init: bool = True, symbols: tuple[int, ...] = ()) -> Task:
  """Makes a task of one copy's functions.

  Args:
    name: as `Task.name`.
    copies: n.
    copy: the functions of one copy.
    num_actions: as `Task.num_actions`.
    action_shape: as `Task.action_shape`.
    limit: steps after which an episode ends; 0: none.
    cheap_init: whether to compute `init` of all copies in each step. Otherwise a loop runs over the
      copies that ended: this pays where `init` costs more than some steps. Under `vmap` each pass
      of the loop computes one `init` for every batch.
    symbols: as `Task.symbols`.
  """
  renew = _renew_all if cheap_init else _renew_ended

  def reset(keys: Array) -> tuple[_State, TimeStep]:
    chex.assert_axis_dimension(keys, 0, copies)
    states = jax.vmap(copy.init)(keys)
    return _State(states, jnp.zeros(copies, jnp.int32)), TimeStep(
      observation=jax.vmap(copy.observe)(states), reward=jnp.zeros(copies),
      discount=jnp.ones(copies), first=jnp.ones(copies, bool))

  def step(state: _State, keys: Array, actions: Array) -> tuple[_State, TimeStep]:
    chex.assert_shape(actions, (copies, *action_shape))
    step_keys, init_keys = jnp.moveaxis(jax.vmap(jax.random.split)(keys), 1, 0)
    states, reward, ended = jax.vmap(copy.step)(state.copies, step_keys, actions)
    steps = state.steps + 1
    if limit:
      ended |= steps >= limit
    states = renew(copy.init, ended, states, init_keys)
    return _State(states, jnp.where(ended, 0, steps)), TimeStep(
      observation=jax.vmap(copy.observe)(states), reward=reward,
      discount=1.0 - ended.astype(jnp.float32), first=ended)

  observation = jax.eval_shape(lambda key: copy.observe(copy.init(key)), jax.random.key(0))
  return Task(name, copies, observation, num_actions, action_shape, reset, step, symbols)


def _renew_all(init: Callable[[Array], Any], ended: Array, states: Any, keys: Array) -> Any:
  """Replaces the states of ended copies; computes a new one for every copy."""
  return jax.tree.map(
    lambda new, old: jnp.where(ended.reshape(ended.shape + (1,) * (old.ndim - 1)), new, old),
    jax.vmap(init)(keys), states)


def _renew_ended(init: Callable[[Array], Any], ended: Array, states: Any, keys: Array) -> Any:
  """Replaces the states of ended copies, one after the other."""
  def body(carry):
    left, states = carry
    index = jnp.argmax(left)
    new = init(keys[index])
    return left.at[index].set(False), jax.tree.map(
      lambda new, old: old.at[index].set(new), new, states)

  return jax.lax.while_loop(lambda carry: carry[0].any(), body, (ended, states))[1]
