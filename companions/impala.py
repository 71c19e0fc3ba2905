"""IMPALA: actor-critic with V-trace, and the corrections that it is compared with.

Source: Espeholt et al. 2018, "IMPALA: scalable distributed deep-RL with importance weighted
actor-learner architectures".
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp

from starleague.agent import distributions, linear
from starleague.agent.types import Array
from starleague.common.errors import UserError
from starleague.companions import networks
from starleague.companions.options import check_numbers, key_of
from starleague.companions.system import (
  NO_STATE,
  Acted,
  Fixed,
  Inputs,
  Losses,
  System,
  Unroll,
  require_one_agent,
  transitions,
)
from starleague.companions.tasks.task import Task
from starleague.data.trees import Tree
from starleague.learner import losses

VTRACE, ONE_STEP, EPSILON, NONE = CORRECTIONS = ("vtrace", "one_step", "epsilon", "none")
EPSILON_LOG = 1e-6  # of the epsilon correction (section 5.2.2)
# Options of its runs: those of the paper's Atari experiments that two cores allow.
OPTIONS = {"task": "minatar-breakout", "steps": 2_000_000}


@dataclasses.dataclass(frozen=True)
class Config:
  """The choices of IMPALA.

  Attributes:
    correction: "vtrace"; "one_step": n-step returns without correction, and each advantage times
      its clipped importance ratio; "epsilon": no correction, and 1e-6 is added inside the logarithm
      of the policy; "none" (section 5.2.2).
    torso: "shallow", "deep" or "dense"; see `networks.observe`.
    size: units of the torso's last layer.
    lstm: units of the LSTM; 0: feed-forward.
    discount: of a step.
    entropy_cost: weight of the entropy bonus.
    baseline_cost: weight of the value loss.
    clip_reward: whether rewards are clipped to [-1, 1].
  """

  correction: str = VTRACE
  torso: str = networks.SHALLOW
  size: int = 128
  lstm: int = 0
  discount: float = 0.99
  entropy_cost: float = 0.01
  baseline_cost: float = 0.5
  clip_reward: bool = True

  def __post_init__(self) -> None:
    check_numbers(self)
    if self.correction not in CORRECTIONS:
      raise UserError(f"{key_of(self, 'correction')}: found {self.correction!r}, expected "
                      f"one of {', '.join(CORRECTIONS)}")


class Outputs(NamedTuple):
  """The outputs of the network, [T, ...]."""

  logits: Array  # [T, num_actions] float32
  value: Array  # [T] float32


def initial_state(config: Config) -> Callable[[], Any]:
  """Returns the function that makes the core state at the start."""
  if config.lstm:
    return functools.partial(networks.lstm_state, config.lstm)
  return lambda: jax.tree.map(lambda x: jnp.zeros(x.shape), NO_STATE)


def features(config: Config, task: Task, inputs: Inputs, state: Any) -> tuple[jax.Array, Any]:
  """Applies torso and optional LSTM: [T, n] features, and the states after each step."""
  x = networks.observe(inputs.observation, config.torso, config.size, task.symbols)
  return remember(config, task, inputs, x, state)


def remember(config: Config, task: Task, inputs: Inputs, x: jax.Array,
             state: Any) -> tuple[jax.Array, Any]:
  """Applies the LSTM to features [T, n] and the last action and reward, if there is one."""
  if not config.lstm:
    return x, jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(x), *leaf.shape)), state)
  x = jnp.concatenate([x, networks.context(inputs, task.num_actions)], axis=-1)
  return networks.lstm(x, inputs.first, state, config.lstm)


def make_network(config: Config, task: Task, inputs: Inputs,
                 encode: Callable[..., tuple[jax.Array, Any]] = features) -> networks.Network:
  """Makes the network: features, policy and value.

  Args:
    config: choices.
    task: that is played.
    inputs: specs of unbatched inputs.
    encode: (config, task, Inputs [T, ...], state) -> features [T, n], states [T, ...].
  """
  def forward(inputs: Inputs, state: Any) -> tuple[Outputs, Any]:
    x, states = encode(config, task, inputs, state)
    logits = linear.Linear(
      task.num_actions, w_init=hk.initializers.VarianceScaling(0.01), name="policy")(x)
    return Outputs(logits, linear.Linear(1, name="value")(x)[:, 0]), states

  return networks.make_network(inputs, forward, initial_state(config))


class Behaviour(NamedTuple):
  """Record of the acting policy."""

  log_prob: Array  # [] float32, of the action


def make(config: Config, task: Task, inputs: Inputs) -> System:
  """Makes the system for a task of one agent.

  Raises:
    UserError: several agents act in the task.
  """
  return make_system("impala", config, task, inputs, features)


def make_system(name: str, config: Config, task: Task, inputs: Inputs,
                encode: Callable[..., tuple[jax.Array, Any]]) -> System:
  """Makes an actor-critic whose observations another function encodes; see `make_network`.

  Raises:
    UserError: several agents act in the task.
  """
  require_one_agent(task, name)
  network = make_network(config, task, inputs, encode)

  def loss(params: Tree, key: Array, unroll: Unroll, fixed: Fixed) -> Losses:
    del key
    outputs, _ = networks.unroll_batch(
      network, params, unroll.steps.inputs, unroll.initial_state)
    return actor_critic_loss(config, outputs, unroll, fixed)[0]

  return System(name, network.init, network.initial_state, make_act(network), loss)


def make_act(network: networks.Network) -> Callable[..., Acted]:
  """Returns `System.act` of a network with `Outputs`: a sample of the policy."""
  def act(params: Tree, key: Array, inputs: Inputs, state: Any, copy: Array) -> Acted:
    del copy  # the policy explores by itself, in evaluation too
    outputs, state = networks.step(network, params, inputs, state)
    action = distributions.sample(key, outputs.logits)
    log_prob = distributions.categorical_log_prob(outputs.logits, action)
    return Acted(action, Behaviour(log_prob), state)

  return act


def actor_critic_loss(config: Config, outputs: Outputs, unroll: Unroll, fixed: Fixed,
                      scale: Array | float = 1.0,
                      weight: Array | float = 1.0) -> tuple[Losses, Array]:
  """Computes IMPALA's loss: policy gradient, value and entropy, by the chosen correction.

  Args:
    config: choices.
    outputs: of the network for the unrolls' steps, [T + 1, B, ...].
    unroll: a batch.
    fixed: `hyperparameters` may hold `entropy_cost`, which precedes the config's.
    scale: [T, B] or a number, by which advantages and value errors are divided (PopArt's sigma).
    weight: [B] or a number, of the unrolls in the means.

  Returns:
    The losses, and the targets of the values [T, B]. The metrics of policy, value and entropy are
    weighted as the losses: the caller adds "fresh_unrolls", the mean weight; see `terms.measured`.
  """
  action, reward, discount = transitions(unroll, config.discount)
  if config.clip_reward:
    reward = jnp.clip(reward, -1.0, 1.0)
  logits, values = outputs.logits[:-1], outputs.value
  log_prob = distributions.categorical_log_prob(logits, action)
  ratio = jnp.exp(jax.lax.stop_gradient(log_prob) - unroll.steps.behaviour.log_prob[:-1])
  corrected = ratio if config.correction == VTRACE else jnp.ones_like(ratio)
  over_time = {"in_axes": 1, "out_axes": 1}
  targets = jax.vmap(losses.vtrace_targets, **over_time)(
    values[:-1], values[1:], reward, discount, corrected)
  advantage = jax.vmap(losses.vtrace_advantages, **over_time)(
    values[:-1], values[1:], reward, discount, corrected)
  if config.correction == ONE_STEP:
    advantage *= jnp.minimum(1.0, ratio)
  if config.correction == EPSILON:
    log_prob = jnp.log(jnp.exp(log_prob) + EPSILON_LOG)
  policy = (weight * losses.policy_gradient_loss(log_prob, advantage / scale)).mean()
  value = 0.5 * (weight * jnp.square((targets - values[:-1]) / scale)).mean()
  entropy = (weight * losses.action_entropy(logits)).mean()
  cost = fixed.hyperparameters.get("entropy_cost", config.entropy_cost)
  total = policy + config.baseline_cost * value - cost * entropy
  return Losses(total, {
    "loss/policy": policy, "loss/value": value, "entropy/action": entropy,
    "update/ratio": ratio.mean()}, jnp.ones(ratio.shape[1])), targets
