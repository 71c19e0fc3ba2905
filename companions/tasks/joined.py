"""Several tasks at once, for systems that learn all of them with one network."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent.types import Array
from starleague.companions.tasks.task import Task, TaskError, TimeStep


class JoinedObservation(NamedTuple):
  """Observation of a copy of a joined task."""

  observation: Any  # padded with zeros to the largest size of each axis
  task: Any  # [] int32, index of the copy's task


def join(name: str, tasks: Sequence[Task]) -> Task:
  """Joins tasks: the first copies are those of the first task, and so on.

  The joined task has the actions of the task that has most; in another one, those beyond its own
  do what its first action does.

  Args:
    name: of the joined task.
    tasks: of one agent each, with an observation of one array of equal rank and dtype.

  Raises:
    TaskError: their observations or agents differ in kind, or two have one name; names the first
      such task.
  """
  names = [task.name for task in tasks]
  for index, each in enumerate(names):
    if each in names[:index]:
      raise TaskError(f"task {name!r}: found {each!r} twice, expected tasks of different names: "
                      "returns are reported by name")
  for task in tasks:
    leaves, first = jax.tree.leaves(task.observation), jax.tree.leaves(tasks[0].observation)
    if task.action_shape or task.symbols or len(leaves) != 1 or (
        (leaves[0].ndim, leaves[0].dtype) != (first[0].ndim, first[0].dtype)):
      raise TaskError(f"task {task.name!r} cannot be joined with {tasks[0].name!r}: expected one "
                      "agent, and one array of numbers of equal rank and dtype as observation")
  shapes = [jax.tree.leaves(task.observation)[0].shape for task in tasks]
  shape = tuple(map(max, zip(*shapes, strict=True)))
  dtype = jax.tree.leaves(tasks[0].observation)[0].dtype
  bounds = np.cumsum([0, *(task.copies for task in tasks)]).tolist()
  slices = [slice(*pair) for pair in zip(bounds[:-1], bounds[1:], strict=True)]
  number = np.repeat(np.arange(len(tasks), dtype=np.int32), [task.copies for task in tasks])

  def joined(steps: Sequence[TimeStep]) -> TimeStep:
    padded = [jnp.pad(jax.tree.leaves(step.observation)[0],
                      [(0, 0), *((0, most - size) for most, size in zip(shape, own, strict=True))])
              for step, own in zip(steps, shapes, strict=True)]
    reward, discount, first = (
      jnp.concatenate([getattr(step, field) for step in steps])
      for field in ("reward", "discount", "first"))
    return TimeStep(
      JoinedObservation(jnp.concatenate(padded), jnp.asarray(number)), reward, discount, first)

  def reset(keys: Array) -> tuple[Any, TimeStep]:
    states, steps = zip(*(task.reset(keys[rows]) for task, rows in zip(tasks, slices, strict=True)),
                        strict=True)
    return states, joined(steps)

  def step(states: Any, keys: Array, actions: Array) -> tuple[Any, TimeStep]:
    found = [
      task.step(state, keys[rows], jnp.where(actions[rows] < task.num_actions, actions[rows], 0))
      for task, state, rows in zip(tasks, states, slices, strict=True)]
    return tuple(state for state, _ in found), joined([step for _, step in found])

  spec = JoinedObservation(jax.ShapeDtypeStruct(shape, dtype), jax.ShapeDtypeStruct((), np.int32))
  return Task(name, bounds[-1], spec, max(task.num_actions for task in tasks), (), reset, step,
              parts=tuple((task.name, task.copies) for task in tasks),
              seed=next((task.seed for task in tasks if task.seed is not None), None))
