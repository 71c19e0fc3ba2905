"""Tasks on the host: dm_env environments behind an ordered callback.

A compiled program steps them as it steps a task on JAX. The callback is ordered: the program runs
on one device, and not under `vmap`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import dm_env
import jax
import numpy as np
from jax.experimental import io_callback

from starleague.agent.types import Array
from starleague.companions.tasks.task import Batch, Task, TaskError, TimeStep

# Observations are stored in few dtypes; wider ones are narrowed.
_NARROWED = {"float64": "float32", "float16": "float32", "int64": "int32", "int8": "int16",
             "uint16": "int32", "uint32": "int32", "uint64": "int32"}
SEEDS = 2**31 - 1  # of an environment: below this number


class _State(NamedTuple):
  calls: Array  # [] int32, of resets and steps so far


def make_host_task(name: str, copies: int, make_environment: Callable[[int], dm_env.Environment],
                   *, limit: int = 0) -> Task:
  """Makes a task of dm_env environments, which are stepped one after the other.

  Args:
    name: as `Task.name`.
    copies: n.
    make_environment: seed -> an environment with discrete actions.
    limit: steps after which an episode ends; 0: none.

  Raises:
    TaskError: the environment has no discrete actions, or dicts as observations.
  """
  environment = make_environment(0)
  spec = environment.action_spec()
  num_values = getattr(spec, "num_values", None)
  if num_values is None:
    raise TaskError(f"task {name!r} has continuous actions ({spec}); these systems play discrete "
                    "ones only")
  observation = jax.tree.map(_narrowed, environment.observation_spec())
  batch = Environments(name, copies, make_environment, observation, limit)
  return make_batch_task(name, copies, batch, observation, int(num_values))


def make_batch_task(name: str, copies: int, batch: Batch, observation: Any,
                    num_actions: int) -> Task:
  """Makes a task of a batch of environments on the host.

  Its state counts the steps, so that an old state, which cannot be stepped again, is refused.
  The keys of a reset seed the environments; those of a step are not used.
  """
  results = TimeStep(
    observation=jax.tree.map(lambda spec: jax.ShapeDtypeStruct((copies, *spec.shape), spec.dtype),
                             observation),
    reward=jax.ShapeDtypeStruct((copies,), np.float32),
    discount=jax.ShapeDtypeStruct((copies,), np.float32),
    first=jax.ShapeDtypeStruct((copies,), np.bool_))
  taken = 0  # steps; a reset counts, so that states of before are old

  def reset_on_host(seeds) -> tuple[Any, TimeStep]:
    nonlocal taken
    taken += 1
    return np.int32(taken), batch.reset(np.asarray(seeds))

  def step_on_host(count, actions) -> tuple[Any, TimeStep]:
    nonlocal taken
    if int(count) != taken:
      raise TaskError(f"task {name!r}: the state of step {int(count)} is stepped, but the "
                      f"environments are at step {taken}; keep the latest state only")
    taken += 1
    return np.int32(taken), batch.step(np.asarray(actions))

  count = jax.ShapeDtypeStruct((), np.int32)

  def reset(keys: Array) -> tuple[_State, TimeStep]:
    chex.assert_axis_dimension(keys, 0, copies)
    seeds = jax.vmap(lambda key: jax.random.randint(key, (), 0, SEEDS))(keys)
    count_now, step = io_callback(reset_on_host, (count, results), seeds, ordered=True)
    return _State(count_now), step

  def step(state: _State, keys: Array, actions: Array) -> tuple[_State, TimeStep]:
    del keys
    chex.assert_shape(actions, (copies,))
    count_now, step = io_callback(step_on_host, (count, results), state.calls, actions,
                                  ordered=True)
    return _State(count_now), step

  return Task(name, copies, observation, num_actions, (), reset, step, host=batch)


class Environments:
  """n dm_env environments, one after the other; a `Batch`."""

  def __init__(self, name: str, copies: int,
               make_environment: Callable[[int], dm_env.Environment], observation: Any,
               limit: int):
    self._name, self._copies, self._limit = name, copies, limit
    self._make, self._observation = make_environment, observation
    self._environments: list[dm_env.Environment] = []
    self._steps = np.zeros(copies, np.int32)

  def reset(self, seeds: np.ndarray) -> TimeStep:
    self._environments = [self._make(int(seed)) for seed in seeds]
    self._steps[:] = 0
    first = self._collect(lambda copy, environment: (environment.reset().observation, 0.0, False))
    return first._replace(first=np.ones(self._copies, bool))

  def step(self, actions: np.ndarray) -> TimeStep:
    def step_one(copy, environment):
      step = environment.step(int(actions[copy]))
      self._steps[copy] += 1
      ended = step.last() or self._steps[copy] == self._limit
      if not ended:
        return step.observation, step.reward, False
      self._steps[copy] = 0
      return environment.reset().observation, step.reward, True

    return self._collect(step_one)

  def _collect(self, function: Callable[..., tuple[Any, float, bool]]) -> TimeStep:
    """Stacks (observation, reward, ended) of each copy."""
    leaves, structure = jax.tree.flatten(self._observation)
    observations = [np.empty((self._copies, *leaf.shape), leaf.dtype) for leaf in leaves]
    rewards = np.zeros(self._copies, np.float32)
    ended = np.zeros(self._copies, bool)
    for copy, environment in enumerate(self._environments):
      try:
        observation, rewards[copy], ended[copy] = function(copy, environment)
        for row, leaf in zip(observations, jax.tree.leaves(observation), strict=True):
          row[copy] = leaf
      except Exception as error:
        raise TaskError(f"task {self._name!r}, copy {copy}: {type(error).__name__}: "
                        f"{error}") from error
    return TimeStep(jax.tree.unflatten(structure, observations), rewards,
                    1.0 - ended.astype(np.float32), ended)


class Scaled:
  """A `Batch` whose rewards are multiplied."""

  def __init__(self, batch: Batch, scale: float):
    self._batch, self._scale = batch, scale

  def reset(self, seeds: np.ndarray) -> TimeStep:
    return self._scaled(self._batch.reset(seeds))

  def step(self, actions: np.ndarray) -> TimeStep:
    return self._scaled(self._batch.step(actions))

  def _scaled(self, step: TimeStep) -> TimeStep:
    return step._replace(reward=np.float32(self._scale) * np.asarray(step.reward))


def _narrowed(spec: Any) -> jax.ShapeDtypeStruct:
  dtype = np.dtype(spec.dtype).name
  return jax.ShapeDtypeStruct(tuple(spec.shape), np.dtype(_NARROWED.get(dtype, dtype)))
