"""PopArt-IMPALA: values of many tasks, normalised by task while their outputs are preserved.

Source: Hessel et al. 2019, "Multi-task deep reinforcement learning with PopArt".
"""

import dataclasses
from typing import Any, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp

from starleague.agent import linear
from starleague.agent.types import Array
from starleague.common import results
from starleague.common.errors import UserError
from starleague.companions import impala, networks
from starleague.companions.system import (
  Acted,
  Fixed,
  Inputs,
  Losses,
  System,
  Unroll,
  require_one_agent,
)
from starleague.companions.tasks.joined import JoinedObservation
from starleague.companions.tasks.task import Task
from starleague.data.trees import Tree
from starleague.learner import losses
from starleague.learner.update import AXIS

POPART, PLAIN, CLIPPED = VALUES = ("popart", "plain", "clipped")
OPTIONS = {
  "task": "minatar-breakout+minatar-asterix:scale=10+minatar-freeway:scale=100"
          "+minatar-space_invaders:scale=1000",
  "steps": 4_000_000}


@dataclasses.dataclass(frozen=True)
class Config(impala.Config):
  """The choices of PopArt-IMPALA, beside those of IMPALA.

  Attributes:
    values: "popart": normalised by task; "plain": as the rewards are; "clipped": of rewards clipped
      to [-1, 1].
    step_size: of the moments of each task's targets, beta.
  """

  values: str = POPART
  step_size: float = 3e-4
  clip_reward: bool = False

  def __post_init__(self) -> None:
    super().__post_init__()
    if self.values not in VALUES:
      raise UserError(f"popart.values: found {self.values!r}, expected one of {', '.join(VALUES)}")
    if self.clip_reward and self.values != CLIPPED:
      raise UserError(f"popart.clip_reward: found True, expected False with the popart.values "
                      f"{self.values!r}; popart.values=clipped clips rewards")


class Outputs(NamedTuple):
  """The outputs of the network, [T, ...]."""

  logits: Array  # [T, num_actions] float32; they do not depend on the task
  normalised: Array  # [T, N] float32, a value for each task


def make_network(config: Config, task: Task, inputs: Inputs) -> networks.Network:
  """Makes the network: IMPALA's, with a value for each task in the last layer."""
  def forward(inputs: Inputs, state: Any) -> tuple[Outputs, Any]:
    x, states = impala.features(config, task, inputs, state)
    logits = linear.Linear(
      task.num_actions, w_init=hk.initializers.VarianceScaling(0.01), name="policy")(x)
    return Outputs(logits, linear.Linear(num_tasks(task), name="value")(x)), states

  seen = inputs._replace(observation=observed(inputs.observation)[0])
  return networks.make_network(seen, forward, impala.initial_state(config))


def num_tasks(task: Task) -> int:
  """Returns N, the number of tasks that a task joins."""
  return max(1, len(task.parts))


def observed(observation: Any) -> tuple[Any, Array]:
  """Returns what the network observes, and the index of the task, [...] int32."""
  if isinstance(observation, JoinedObservation):
    return observation
  leading = jax.tree.leaves(observation)[0].shape
  return observation, jnp.zeros(leading[:2], jnp.int32)


def make(config: Config, task: Task, inputs: Inputs) -> System:
  """Makes the system for one task or several joined ones."""
  require_one_agent(task, "popart")
  network = make_network(config, task, inputs)
  act_on_seen = impala.make_act(network)

  def init(key: Array) -> Tree:
    return network.init(key) | {"popart": losses.popart_init(num_tasks(task))._asdict()}

  def act(params: Tree, key: Array, inputs: Inputs, state: Any, copy: Array) -> Acted:
    seen = inputs._replace(observation=observed(inputs.observation)[0])
    return act_on_seen(_weights(params), key, seen, state, copy)

  def loss(params: Tree, key: Array, unroll: Unroll, fixed: Fixed) -> Losses:
    del key
    observation, tasks = observed(unroll.steps.inputs.observation)
    outputs, _ = networks.unroll_batch(
      network, _weights(params), unroll.steps.inputs._replace(observation=observation),
      unroll.initial_state)
    state = _statistics(params)
    normalised = jnp.take_along_axis(outputs.normalised, tasks[..., None], axis=-1)[..., 0]
    values = losses.popart_unnormalise(state, normalised, tasks)
    found, targets = impala.actor_critic_loss(
      dataclasses.replace(config, clip_reward=config.values == CLIPPED),
      impala.Outputs(outputs.logits, values), unroll, fixed, scale=state.scale[tasks[:-1]])
    metrics = {f"scale/{results.as_tag(name)}": state.scale[number]
               for number, (name, _) in enumerate(task.parts)}
    return found._replace(
      metrics={**found.metrics, **metrics}, summary=(targets.T, tasks[:-1].T))

  def finish(params: Tree, summary: tuple[Array, Array]) -> Tree:
    targets, tasks = summary
    value, state = losses.popart_update(
      params["value"], _statistics(params), targets, tasks, config.step_size, axis_name=AXIS)
    return {**params, "value": value, "popart": state._asdict()}

  return System("popart", init, network.initial_state, act, loss,
                finish if config.values == POPART else None, learnt=_weights)


def _weights(params: Tree) -> Tree:
  return {name: value for name, value in params.items() if name != "popart"}


def _statistics(params: Tree) -> losses.PopArtState:
  return jax.lax.stop_gradient(losses.PopArtState(**params["popart"]))
