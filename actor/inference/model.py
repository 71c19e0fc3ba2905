"""The device's part of the inference service: compiled steps of a policy, core states by slot.

The core states of all rows stay on the device, one for each slot; a batch reads and writes those of
its slots. One program is compiled for each static size before the first request. A program never
compiles again: it refuses other shapes.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.actor.inference import slots as slots_lib
from starleague.agent.policy import Policy
from starleague.data import wire


class ServedPolicy(NamedTuple):
  """A policy of steps of any form, as pure functions.

  Attributes:
    initial_state: () -> the core state at the start, unbatched.
    act: (params, key, Header, step, state) -> (action, its log-probs as the step records them, the
      core state after the step), unbatched.
  """

  initial_state: Callable[[], Any]
  act: Callable[..., tuple[Any, Any, Any]]


class Inferred(NamedTuple):
  """Results of a batch, [n, ...] with n its static size; rows past its requests are padding."""

  answers: Any  # [n, width] int32, see `slots.unpack_answers`
  log_prob: Any  # record of the policy, leaves [n, ...]
  core: Any  # leaves [n, ...]: before the step


class Model:
  """A policy's parameters by player, and the core states of all slots, on the device."""

  def __init__(self, policy: Policy | ServedPolicy, form: wire.Form, slots: int,
               sizes: Sequence[int], template: Any, key: jax.Array):
    """Compiles a program for each size.

    Args:
      policy: of all players; the agent's, or one of another form.
      form: of the steps, an AgentConfig for the agent's.
      slots: number of slots.
      sizes: static sizes of a batch.
      template: parameters, or their shapes and dtypes.
      key: of the noise of all actions.
    """
    self._slots, self._key = slots, key
    self._params: dict[int, Any] = {}
    self._template = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), template)
    served = policy if isinstance(policy, ServedPolicy) else _serve_agent(policy)
    initial = served.initial_state()
    self._core = jax.tree.map(
      lambda x: jnp.zeros((slots, *x.shape), x.dtype) + jnp.asarray(x), initial)
    step = jax.jit(functools.partial(_step, served, form), donate_argnums=(1,))
    self._request = slots_lib.slot_format(form).request
    self._programs = {
      size: step.lower(
        self._template, self._core, key, jax.ShapeDtypeStruct((size, self._request), np.uint8),
        jax.ShapeDtypeStruct((size,), np.int32)).compile()
      for size in sizes}

  @property
  def players(self) -> frozenset[int]:
    """The players that have parameters."""
    return frozenset(self._params)

  def set_params(self, player: int, params: Any) -> None:
    """Swaps the parameters of a player, from its next batch on.

    Raises:
      ValueError: they do not have the shapes and dtypes of the template.
    """
    found = jax.tree.map(lambda x: jax.ShapeDtypeStruct(np.shape(x), x.dtype), params)
    if found != self._template:
      raise ValueError(
        f"parameters of player {player} do not have the shapes of the service's policy; use those "
        "of the same preset")
    self._params[player] = jax.device_put(params)

  def start(self, player: int, slots: Sequence[int], requests: np.ndarray) -> Inferred:
    """Starts the inference of a batch and returns its results, which may not be computed yet.

    Args:
      player: that has parameters.
      slots: of the requests, each once.
      requests: [n, bytes] uint8, n a static size of at least len(slots).
    """
    size = len(requests)
    padded = np.full((size,), self._slots, np.int32)  # out of bounds: reads any, writes nothing
    padded[:len(slots)] = slots
    # A copy: the caller may reuse its buffer while the device reads.
    self._core, inferred = self._programs[size](
      self._params[player], self._core, self._key, np.array(requests), padded)
    return inferred


def _serve_agent(policy: Policy) -> ServedPolicy:
  def act(params: Any, key: jax.Array, header: slots_lib.Header, step: Any,
          state: Any) -> tuple[Any, Any, Any]:
    del header
    output = policy.step(params, key, step.observation, state)
    return output.action, output.log_prob, output.state

  return ServedPolicy(policy.initial_state, act)


def _step(policy: ServedPolicy, form: wire.Form, params: Any, cores: Any, key: jax.Array,
          requests: jax.Array, slots: jax.Array) -> tuple[Any, Inferred]:
  """Infers a batch; returns the core states of all slots and the results."""
  steps = wire.unpack_steps(slots_lib.device_columns(requests, form), form)
  words = jax.lax.bitcast_convert_type(
    requests[:, :4 * len(slots_lib.Header._fields)].reshape(len(slots), -1, 4), np.int32)
  header = slots_lib.Header(*jnp.moveaxis(words, 1, 0))

  def start(x: jax.Array, initial: jax.Array) -> jax.Array:
    fresh = (header.first != 0).reshape(-1, *[1] * initial.ndim)
    return jnp.where(fresh, initial, x.at[slots].get(mode="clip"))

  core = jax.tree.map(start, cores, policy.initial_state())
  # A row's noise depends on its game and its step, not on the rows that it is batched with.
  keys = jax.vmap(lambda seed, number: jax.random.fold_in(jax.random.fold_in(key, seed), number))(
    header.seed, header.number)
  action, log_prob, after = jax.vmap(policy.act, in_axes=(None, 0, 0, 0, 0))(
    params, keys, header, steps, core)
  cores = jax.tree.map(lambda x, new: x.at[slots].set(new, mode="drop"), cores, after)
  return cores, Inferred(slots_lib.device_answers(action), log_prob, core)
