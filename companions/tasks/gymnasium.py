"""Environments of gymnasium as dm_env environments, and gymnasium's classic control tasks.

Values of a discrete space are one-hot vectors in observations. The actions of several discrete
choices are the numbers of their combinations.
"""

import math
from typing import Any

import dm_env
import gymnasium
import numpy as np
from dm_env import specs
from gymnasium import spaces

from starleague.companions.tasks.host import make_host_task
from starleague.companions.tasks.task import Task

TASKS = {name: {"limit": 0} for name, spec in gymnasium.registry.items()
         if str(spec.entry_point).startswith("gymnasium.envs.classic_control.")}


class GymnasiumEnvironment(dm_env.Environment):
  """A gymnasium environment as a dm_env environment; its first reset takes the seed."""

  def __init__(self, environment: gymnasium.Env, seed: int):
    self._environment, self._seed = environment, seed
    self._started = False

  def reset(self) -> dm_env.TimeStep:
    observation, _ = self._environment.reset(seed=None if self._started else self._seed)
    self._started = True
    return dm_env.restart(encode(self._environment.observation_space, observation))

  def step(self, action: int) -> dm_env.TimeStep:
    observation, reward, terminated, truncated, _ = self._environment.step(
      decode_action(self._environment.action_space, action))
    observation = encode(self._environment.observation_space, observation)
    if terminated:
      return dm_env.termination(float(reward), observation)
    if truncated:
      return dm_env.truncation(float(reward), observation)
    return dm_env.transition(float(reward), observation)

  def observation_spec(self) -> Any:
    return spec_of(self._environment.observation_space)

  def action_spec(self) -> specs.Array:
    space = self._environment.action_space
    if isinstance(space, spaces.Discrete):
      return specs.DiscreteArray(int(space.n), name="action")
    if isinstance(space, spaces.MultiDiscrete):
      return specs.DiscreteArray(math.prod(space.nvec.tolist()), name="action")
    return specs.Array(space.shape or (), np.float32, name=f"{type(space).__name__} action")


def spec_of(space: spaces.Space) -> Any:
  """Spec of an observation space: arrays, and tuples of them in place of tuples and dicts.

  Raises:
    ValueError: a space of texts, graphs or sequences.
  """
  if isinstance(space, spaces.Tuple):
    return tuple(map(spec_of, space.spaces))
  if isinstance(space, spaces.Dict):
    return tuple(map(spec_of, space.spaces.values()))
  if isinstance(space, spaces.Discrete):
    return specs.Array((int(space.n),), bool)
  if isinstance(space, spaces.MultiDiscrete):
    return specs.Array((int(space.nvec.sum()),), bool)
  if isinstance(space, spaces.MultiBinary):
    return specs.Array(space.shape, bool)
  if isinstance(space, spaces.Box):
    return specs.Array(space.shape, space.dtype)
  raise ValueError(f"an observation space {space}; expected numbers, discrete values, or tuples "
                   "and dicts of them")


def encode(space: spaces.Space, value: Any) -> Any:
  """An observation as `spec_of` has it."""
  if isinstance(space, spaces.Tuple):
    return tuple(map(encode, space.spaces, value))
  if isinstance(space, spaces.Dict):
    return tuple(encode(each, value[key]) for key, each in space.spaces.items())
  if isinstance(space, spaces.Discrete):
    return np.arange(int(space.n)) == int(value) - int(space.start)
  if isinstance(space, spaces.MultiDiscrete):
    sizes = space.nvec.ravel()
    ids = np.ravel(value) - np.ravel(space.start) + np.cumsum(sizes) - sizes
    encoded = np.zeros(int(sizes.sum()), bool)
    encoded[ids] = True
    return encoded
  return value


def decode_action(space: spaces.Space, action: int) -> Any:
  """The action of an index."""
  if isinstance(space, spaces.MultiDiscrete):
    return np.reshape(np.unravel_index(action, space.nvec.ravel()), space.shape) + space.start
  assert isinstance(space, spaces.Discrete)
  return action + int(space.start)


def make(name: str, task: str, copies: int, seed: int, *, limit: int) -> Task:
  """Makes a task of classic control.

  Args:
    name: the task's full name.
    task: a key of `TASKS`.
    copies: n.
    seed: not used; nothing stays the same over episodes.
    limit: steps of an episode; 0: the task's own limit.
  """
  del seed
  return make_host_task(name, copies, lambda copy_seed: GymnasiumEnvironment(
    gymnasium.make(task), copy_seed), limit=limit)
