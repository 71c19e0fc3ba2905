"""Companion systems as pure functions that act and learn, and the steps that they record."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent.types import Array
from starleague.common.errors import UserError
from starleague.companions.tasks.task import Task
from starleague.data import wire
from starleague.data.trees import Tree

GREEDY = -1  # the index of a copy that does not add exploration to its policy
NO_STATE = (jax.ShapeDtypeStruct((0,), np.float32),)  # the core state of a feed-forward network


class Inputs(NamedTuple):
  """Inputs of a policy at a step, unbatched; arrays or their specs."""

  observation: Any  # as the task gives it
  last_action: Any  # array [*action_shape] int32; 0 at the first step of an episode
  last_reward: Any  # array [] float32, of the transition into this step; 0 at the first step
  first: Any  # array [] bool: the first step of an episode


class Step(NamedTuple):
  """A recorded step, unbatched; arrays or their specs."""

  inputs: Inputs
  action: Array  # [*action_shape] int32
  behaviour: Any  # of the policy that acted, as log-probs: a tree without dicts, of `System.act`
  reward: Any  # array [] float32, of the action
  discount: Any  # array [] float32, 0 where the action ended the episode, else 1


class Unroll(NamedTuple):
  """T + 1 consecutive steps of one copy; the last is the bootstrap step. Episodes may end within.

  A batch has steps [T + 1, B, ...], the other fields [B, ...].
  """

  steps: Step
  initial_state: Any  # the core state before the first step
  replayed: Any  # bool: from the second table, of the options' `replay_share`


class Acted(NamedTuple):
  """The result of a step of a policy, unbatched."""

  action: Array  # [*action_shape] int32
  behaviour: Any  # recorded with the step
  state: Any  # the core state after the step


class Fixed(NamedTuple):
  """The arguments of a loss that are no parameters: they change without compiling again."""

  hyperparameters: Mapping[str, Array]  # [] float32 each
  target: Tree  # parameters of the target network; () for a system without one


class Losses(NamedTuple):
  """The result of a loss."""

  loss: jax.Array  # [], a mean over the batch
  metrics: Mapping[str, jax.Array]  # [] each
  priorities: Array  # [B] float32, of the unrolls in a prioritised table; ones elsewhere
  summary: Any = ()  # leaves [B, ...], for `System.finish`


class System(NamedTuple):
  """A system, as pure functions of parameters.

  Attributes:
    name: of its configuration.
    init: key -> parameters.
    initial_state: () -> the core state at the start, unbatched.
    act: (params, key, Inputs, state, copy) -> Acted, unbatched. `copy` is the index of the copy of
      the task, [] int32, for exploration that differs among copies, or GREEDY.
    loss: (params, key, Unroll of a batch, Fixed) -> Losses.
    finish: (params after the optimizer, summary [B, ...] of the loss) -> params, equal on all
      devices; see `learner.update`. None: no change.
    learnt: params -> the part of them that learns, for the size of the network.
    rates: params -> factors of the learning rate, a tree of their structure. None: 1 for all.
  """

  name: str
  init: Callable[[Any], Tree]
  initial_state: Callable[[], Any]
  act: Callable[..., Acted]
  loss: Callable[..., Losses]
  finish: Callable[[Tree, Any], Tree] | None = None
  learnt: Callable[[Tree], Any] = lambda params: params
  rates: Callable[[Tree], Tree] | None = None


def size(system: System, params: Tree) -> int:
  """Returns the number of parameters that learn."""
  return sum(int(np.size(leaf)) for leaf in jax.tree.leaves(system.learnt(params)))


def inputs_spec(task: Task) -> Inputs:
  """Returns the specs of a policy's inputs in a task, unbatched."""
  return Inputs(
    task.observation, jax.ShapeDtypeStruct(task.action_shape, np.int32),
    jax.ShapeDtypeStruct((), np.float32), jax.ShapeDtypeStruct((), np.bool_))


def require_one_agent(task: Task, system: str) -> None:
  """Raises UserError if several agents act in a task."""
  if task.action_shape:
    raise UserError(f"task {task.name!r}: {task.action_shape[0]} agents act in it, {system} is one")


def require_target(fixed: Fixed, system: str) -> None:
  """Raises UserError if a loss has no target network."""
  if not jax.tree.leaves(fixed.target):
    raise UserError(f"target_period: found 0, expected at least 1: {system} has a target network")


def step_format(system: System, task: Task) -> wire.StepFormat:
  """Returns the form of a system's steps in a task, on the wire.

  Raises:
    ValueError: an observation or a record has a dtype that the wire does not carry; names it.
  """
  scalar, inputs = jax.ShapeDtypeStruct((), np.float32), inputs_spec(task)
  state = jax.eval_shape(system.initial_state)
  params = jax.eval_shape(system.init, jax.random.key(0))
  acted = jax.eval_shape(system.act, params, jax.random.key(0), inputs, state,
                         jax.ShapeDtypeStruct((), np.int32))
  form = wire.StepFormat(Step(inputs, acted.action, acted.behaviour, scalar, scalar), state)
  wire.layout(form)
  return form


def transitions(unroll: Unroll, discount: float) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Returns what the losses take of an unroll's first T steps.

  Args:
    unroll: steps [T + 1, B, ...].
    discount: of a step.

  Returns:
    Actions [T, B, ...], rewards [T, B], discounts [T, B], which are 0 where episodes end.
  """
  steps = unroll.steps
  return (jnp.asarray(steps.action)[:-1], jnp.asarray(steps.reward)[:-1],
          discount * jnp.asarray(steps.discount)[:-1])
