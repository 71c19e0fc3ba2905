"""The interface of tasks: batches of copies of an environment, reset as soon as they end.

A task on JAX is a pair of pure functions. A task on the host has the same functions: its step is an
ordered callback, so that one compiled program acts in both.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from starleague.agent.types import Array, Leaf
from starleague.common.errors import UserError


class TimeStep(NamedTuple):
  """Results of a reset or a step of n copies of an environment, [n, ...].

  A step that ends an episode gives the reward of the end, discount 0, and the first observation of
  the next episode. Episodes that a time limit ends have discount 0 too.
  """

  observation: Any  # tree of arrays of bool, uint8, int16, int32 or float32
  reward: Leaf  # [n] float32, of the transition into this step
  discount: Leaf  # [n] float32, 0 where that transition ended an episode
  first: Leaf  # [n] bool: the observation is the first of an episode


class Batch(Protocol):
  """n environments on the host that reset as their episodes end; numpy in, numpy out."""

  def reset(self, seeds: np.ndarray) -> TimeStep:
    """Starts all episodes, with random numbers of these seeds [n]."""

  def step(self, actions: np.ndarray) -> TimeStep:
    """Steps all environments."""


class Task(NamedTuple):
  """An environment as pure functions of n copies.

  Attributes:
    name: as `make_task` takes it.
    copies: n.
    observation: specs of one copy's observation, a tree of jax.ShapeDtypeStruct without dicts.
      Numbers of uint8 are colours, 0 to 255; counts have another dtype.
    num_actions: actions are indices below this number.
    action_shape: () for one agent, (agents,) for several that act at the same time.
    reset: keys [n] -> (state, TimeStep).
    step: (state, keys [n], actions [n, *action_shape] int32) -> (state, TimeStep).
    symbols: of an observation [..., C] of symbol ids, the number of symbols of each channel; of one
      without a channel axis, one number. () for numbers and images.
    parts: names and numbers of copies of the tasks that are joined, in the order of the copies;
      () for a single task.
    host: the environments that `reset` and `step` call on the host; None: they are on JAX, or the
      task is joined.
    seed: of what all episodes share, such as a mapping of actions; None if they share nothing that
      is drawn.
  """

  name: str
  copies: int
  observation: Any
  num_actions: int
  action_shape: tuple[int, ...]
  reset: Callable[[Array], tuple[Any, TimeStep]]
  step: Callable[[Any, Array, Array], tuple[Any, TimeStep]]
  symbols: tuple[int, ...] = ()
  parts: tuple[tuple[str, int], ...] = ()
  host: Batch | None = None
  seed: int | None = None


def part_slices(task: Task) -> dict[str, slice]:
  """Returns the copies of each part of a joined task, by "/NAME"; of a single task, all, by ""."""
  slices, start = {}, 0
  for name, copies in task.parts or (("", task.copies),):
    slices[f"/{name}" if name else ""] = slice(start, start + copies)
    start += copies
  return slices


class TaskError(UserError, ValueError):
  """A task that cannot be made or stepped: its message names the task and the remedy."""
