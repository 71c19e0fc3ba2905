"""R2D2: recurrent Q-learning from prioritised sequences, with stored states and burn-in.

Source: Kapturowski et al. 2019, "Recurrent experience replay in distributed reinforcement
learning".
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp

from starleague.agent import linear
from starleague.agent.types import Array
from starleague.common.errors import UserError
from starleague.companions import networks
from starleague.companions.options import check_numbers
from starleague.companions.system import (
  GREEDY,
  Acted,
  Fixed,
  Inputs,
  Losses,
  System,
  Unroll,
  require_one_agent,
  require_target,
  transitions,
)
from starleague.companions.tasks.task import Task
from starleague.data.trees import Tree
from starleague.learner import losses

# Options of its runs: unrolls of 40 steps that start every 20, half of the paper's sizes. The 30
# steps after the burn-in are learnt; consecutive learnt parts overlap by a third.
OPTIONS = {
  "task": "minatar-breakout", "steps": 1_500_000, "copies": 32, "unroll_length": 40, "period": 20,
  "table": "prioritised", "replay_size": 20_000, "min_replay": 500, "samples_per_item": 2.0,
  "exponent": 0.9, "target_period": 400, "learning_rate": 3e-4, "eps": 1e-5, "momentum": 0.9,
  "decay": 0.999}


@dataclasses.dataclass(frozen=True)
class Config:
  """The choices of R2D2.

  Attributes:
    torso: "shallow", "deep" or "dense"; see `networks.observe`.
    size: units of the torso's last layer and of the duelling heads.
    lstm: units of the LSTM.
    context: whether the network sees the last action and reward, beside the observation.
    discount: of a step.
    stored_state: whether an unroll starts from the state that was recorded with it, instead of
      zeros.
    burn_in: first steps of an unroll that only produce a state to start from.
    n: steps before bootstrapping.
    eta: weight of the largest error of an unroll in its priority, against the mean.
    epsilon: of the most exploring copy; copy i of n explores with epsilon^(1 + alpha i / (n - 1)).
    alpha: spread of the copies' exploration.
  """

  torso: str = networks.SHALLOW
  size: int = 128
  lstm: int = 128
  context: bool = True
  discount: float = 0.997
  stored_state: bool = True
  burn_in: int = 10
  n: int = 5
  eta: float = 0.9
  epsilon: float = 0.4
  alpha: float = 7.0

  def __post_init__(self) -> None:
    check_numbers(self)


def make_network(config: Config, task: Task, inputs: Inputs) -> networks.Network:
  """Makes the network of action values: torso, LSTM, duelling heads."""
  def forward(inputs: Inputs, state: Any) -> tuple[jax.Array, Any]:
    x = networks.observe(inputs.observation, config.torso, config.size, task.symbols)
    if config.context:
      x = jnp.concatenate([x, networks.context(inputs, task.num_actions)], axis=-1)
    x, states = networks.lstm(x, inputs.first, state, config.lstm)
    return duel(x, config.size, task.num_actions), states

  return networks.make_network(inputs, forward, lambda: networks.lstm_state(config.lstm))


def duel(x: jax.Array, size: int, num_actions: int) -> jax.Array:
  """Computes action values as a value and advantages of mean 0 (Wang et al. 2016): [T, n]."""
  value, advantage = (
    linear.Linear(outputs, name=name)(
      jax.nn.relu(linear.Linear(size, name=f"{name}_hidden")(x)))
    for name, outputs in (("value", 1), ("advantage", num_actions)))
  return value + advantage - advantage.mean(axis=-1, keepdims=True)


def exploration(config: Config, copy: Array, copies: int) -> jax.Array:
  """Returns the probability of a random action in a copy: 0 for GREEDY."""
  spread = config.alpha * jnp.maximum(copy, 0) / max(1, copies - 1)
  return jnp.where(copy == GREEDY, 0.0, config.epsilon ** (1.0 + spread))


def make(config: Config, task: Task, inputs: Inputs) -> System:
  """Makes the system for a task of one agent.

  Raises:
    UserError: several agents act in the task.
  """
  require_one_agent(task, "r2d2")
  network = make_network(config, task, inputs)

  def act(params: Tree, key: Array, inputs: Inputs, state: Any, copy: Array) -> Acted:
    q, state = networks.step(network, params, inputs, state)
    explore_key, action_key = jax.random.split(key)
    explores = jax.random.bernoulli(explore_key, exploration(config, copy, task.copies))
    random = jax.random.randint(action_key, (), 0, task.num_actions)
    return Acted(jnp.where(explores, random, jnp.argmax(q)).astype(jnp.int32), (), state)

  def loss(params: Tree, key: Array, unroll: Unroll, fixed: Fixed) -> Losses:
    del key
    require_target(fixed, "r2d2")
    return q_loss(config, network, params, fixed.target, unroll)

  return System("r2d2", network.init, network.initial_state, act, loss)


def burnt_in(config: Config, network: networks.Network, params: Tree, unroll: Unroll) -> Any:
  """Returns the states [B, ...] from which the learnt part of unrolls starts.

  Its gradient does not reach the burn-in.
  """
  start = unroll.initial_state
  if not config.stored_state:
    start = jax.tree.map(jnp.zeros_like, start)
  if not config.burn_in:
    return start
  before = jax.tree.map(lambda x: x[:config.burn_in], unroll.steps.inputs)
  _, states = networks.unroll_batch(network, params, before, start)
  return jax.lax.stop_gradient(jax.tree.map(lambda x: x[-1], states))


def q_loss(config: Config, network: networks.Network, params: Tree, target: Tree,
           unroll: Unroll) -> Losses:
  """Computes half the squared n-step double-Q error of the steps after the burn-in.

  Raises:
    UserError: no step is learnt.
  """
  length = len(unroll.steps.reward) - 1
  if config.burn_in >= length:
    raise UserError(f"r2d2.burn_in: found {config.burn_in}, expected less than the unroll_length, "
                    f"{length}")
  learnt = unroll._replace(steps=jax.tree.map(lambda x: x[config.burn_in:], unroll.steps))

  def values(params: Tree) -> jax.Array:
    state = burnt_in(config, network, params, unroll)
    return networks.unroll_batch(network, params, learnt.steps.inputs, state)[0]

  q, target_q = values(params), values(target)
  action, reward, discount = transitions(learnt, config.discount)
  errors = jax.vmap(functools.partial(losses.double_q_errors, n=config.n), 1, 1)(
    q[:-1], action, q[1:], target_q[1:], reward, discount)
  priorities = jax.vmap(
    functools.partial(losses.sequence_priority, eta=config.eta, exponent=1.0), 1)(errors)
  value = 0.5 * jnp.square(errors).mean()
  return Losses(value, {
    "loss/value": value, "q/mean": q.mean(), "q/largest": q.max(axis=-1).mean(),
    "update/error": jnp.abs(errors).mean()}, priorities)
