"""MERLIN: memory, reinforcement learning and inference network.

A predictor reads and writes a memory of its latent states, and learns to reconstruct its
observations. A policy reads the same memory; its gradient does not reach the predictor.

Source: Wayne et al. 2018, "Unsupervised predictive memory in a goal-directed agent".
"""

import dataclasses
import math
from typing import Any, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import blocks, distributions, linear
from starleague.agent.types import Array
from starleague.companions import latent, memory, networks
from starleague.companions.options import check_numbers
from starleague.companions.system import (
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

OPTIONS = {
  "task": "popgym-AutoencodeEasy", "steps": 1_500_000, "copies": 16, "unroll_length": 20,
  "batch_size": 16, "learning_rate": 5e-4}


@dataclasses.dataclass(frozen=True)
class Config:
  """The choices of MERLIN.

  Attributes:
    torso: "shallow", "deep" or "dense"; see `networks.observe`.
    size: units of dense layers.
    lstm: units of each of the two LSTMs.
    latent: size of z; a row of the memory has twice as many entries.
    rows: of the memory.
    reads: of the predictor; the policy has one of its own.
    retroaction: decay of the retroactive writes, gamma of "v_ret".
    discount: of a step.
    lambda_: of the returns and advantages.
    entropy_cost: weight of the entropy bonus.
    policy_cost: weight of the policy gradient.
    reconstruction_cost: weight of the reconstructed observation, action and reward.
    kl_cost: weight of KL(posterior || prior).
    return_cost: weight of the predicted return.
    memory: whether memory is read; without it, two LSTMs and the losses remain.
  """

  torso: str = networks.DENSE
  size: int = 64
  lstm: int = 64
  latent: int = 16
  rows: int = 64
  reads: int = 2
  retroaction: float = 0.96
  discount: float = 0.96
  lambda_: float = 0.95
  entropy_cost: float = 0.01
  policy_cost: float = 1.0
  reconstruction_cost: float = 1.0
  kl_cost: float = 0.1
  return_cost: float = 0.5
  memory: bool = True

  def __post_init__(self) -> None:
    check_numbers(self)


class MerlinState(NamedTuple):
  """The state of both parts."""

  predictor: blocks.LSTMState
  policy: blocks.LSTMState
  read: Array  # [K 2 z] float32, the predictor's last reads
  memory: memory.Memory


class MerlinInputs(NamedTuple):
  """Inputs of the network, unbatched; arrays or their specs."""

  inputs: Inputs
  noise: Any  # [z] float32, standard normal, of the posterior sample


class Outputs(NamedTuple):
  """The outputs of the network, [T, ...]."""

  logits: Array  # [T, num_actions]
  value: Array  # [T], the predicted return
  reconstruction: Array  # [T], loss of observation, last action and last reward, in nats
  kl: Array  # [T], of the posterior from the prior, in nats


class Behaviour(NamedTuple):
  """Record of the acting policy."""

  log_prob: Array  # [] float32
  noise: Array  # [z] float32


def initial_state(config: Config) -> MerlinState:
  """Returns the state at the start of an episode."""
  return MerlinState(
    networks.lstm_state(config.lstm), networks.lstm_state(config.lstm),
    jnp.zeros(config.reads * 2 * config.latent), memory.empty(config.rows, config.latent))


def _reader(content: memory.Memory, hidden: Array, count: int,
            name: str) -> tuple[Array, Array]:
  """Reads with keys and strengths of a hidden state: [count 2 z], weights [count, N]."""
  width = content.rows.shape[1]
  made = linear.Linear(count * (width + 1), name=name)(hidden).reshape(count, width + 1)
  found, weights = memory.read(content, made[:, :-1], 1.0 + jax.nn.softplus(made[:, -1]))
  return found.reshape(count * width), weights


def _hidden(x: Array, size: int, name: str) -> jax.Array:
  return jax.nn.relu(linear.Linear(size, name=name)(x))


class _Targets(NamedTuple):
  """Reconstruction targets of a step."""

  binary: Array  # [n] float32, 0 or 1
  numbers: Array  # [m] float32
  action: Array  # [num_actions] one-hot of the last action
  reward: Array  # [1] the last reward, clipped


def _targets(task: Task, inputs: Inputs) -> _Targets:
  """Returns the targets of T steps: symbols and planes are binary, everything else numbers."""
  binary, numbers = [jnp.zeros((len(inputs.first), 0))], [jnp.zeros((len(inputs.first), 0))]
  for leaf in jax.tree.leaves(inputs.observation):
    x = networks.one_hot(leaf, task.symbols) if task.symbols else leaf
    flat = x.reshape(len(x), math.prod(x.shape[1:])).astype(jnp.float32)
    if x.dtype == jnp.bool_:
      binary.append(flat)
    else:
      numbers.append(flat / (255.0 if x.dtype == jnp.uint8 else 1.0))
  context = networks.context(inputs, task.num_actions)
  return _Targets(jnp.concatenate(binary, axis=-1), jnp.concatenate(numbers, axis=-1),
                  context[:, :-1], context[:, -1:])


def _reconstruction(config: Config, z: Array, targets: _Targets) -> jax.Array:
  """Computes the reconstruction loss of a step, [], in nats and half squared errors."""
  x = _hidden(z, config.size, "decoder")

  def decoded(target: Array, name: str) -> jax.Array:
    return linear.Linear(target.shape[-1], name=name)(x)

  total = -jnp.sum(targets.action * jax.nn.log_softmax(decoded(targets.action, "decode_action")))
  total += 0.5 * jnp.sum(jnp.square(decoded(targets.reward, "decode_reward") - targets.reward))
  if targets.binary.size:
    logits = decoded(targets.binary, "decode_binary")
    total += jnp.sum(jax.nn.softplus(logits) - targets.binary * logits)
  if targets.numbers.size:
    total += 0.5 * jnp.sum(jnp.square(decoded(targets.numbers, "decode_numbers") - targets.numbers))
  return total


def _predict(config: Config, x: Array, noise: Array, targets: _Targets,
             state: MerlinState) -> tuple[Array, jax.Array, Array, MerlinState, Array]:
  """Applies the predictor to a step: z, reconstruction, KL, state without the write, weights."""
  before = jnp.concatenate([state.predictor.hidden, state.read])
  prior = latent.gaussian(_hidden(before, config.size, "prior_hidden"), config.latent, "prior")
  corrected = _hidden(jnp.concatenate([x, before]), config.size, "posterior_hidden")
  posterior = latent.gaussian(corrected, config.latent, "posterior", prior)
  z = latent.sample(posterior, noise)
  hidden, predictor = networks.lstm_step(
    jnp.concatenate([z, targets.action, state.read]), state.predictor, config.lstm, "predictor")
  found, weights = _reader(state.memory, hidden, config.reads, "keys")
  if not config.memory:
    found = jnp.zeros_like(found)
  return (z, _reconstruction(config, z, targets), latent.kl(posterior, prior),
          state._replace(predictor=predictor, read=found), weights)


def _act(config: Config, num_actions: int, z: Array, state: MerlinState,
         ) -> tuple[jax.Array, jax.Array, blocks.LSTMState]:
  """Applies the policy to a step: logits, the predicted return, its state."""
  seen, content = jax.lax.stop_gradient((jnp.concatenate([z, state.read]), state.memory))
  hidden, policy = networks.lstm_step(seen, state.policy, config.lstm, "policy_lstm")
  found, _ = _reader(content, hidden, 1, "policy_keys")
  if not config.memory:
    found = jnp.zeros_like(found)
  x = _hidden(jnp.concatenate([hidden, found, seen]), config.size, "policy_hidden")
  logits = linear.Linear(
    num_actions, w_init=hk.initializers.VarianceScaling(0.01), name="policy")(x)
  # The return is a function of z, which it shapes, and of the policy, which it does not.
  about = jnp.concatenate([z, jax.lax.stop_gradient(jnp.concatenate([x, logits]))])
  value = linear.Linear(1, name="value")(_hidden(about, config.size, "value_hidden"))[0]
  return logits, value, policy


def make_network(config: Config, task: Task, inputs: Inputs) -> networks.Network:
  """Makes the network: one step is prior, posterior, LSTM, reads, policy, write."""
  def forward(seen: MerlinInputs, state: MerlinState) -> tuple[Outputs, MerlinState]:
    x = networks.observe(seen.inputs.observation, config.torso, config.size, task.symbols)
    targets = _targets(task, seen.inputs)
    x = jnp.concatenate([x, targets.action, targets.reward], axis=-1)

    def step(state: MerlinState, at: Any) -> tuple[MerlinState, tuple[Outputs, MerlinState]]:
      x, noise, targets, first = at
      state = jax.tree.map(lambda new, old: jnp.where(first, new, old),
                           initial_state(config), state)
      z, reconstruction, kl, state, weights = _predict(config, x, noise, targets, state)
      logits, value, policy = _act(config, task.num_actions, z, state)
      written = memory.write(state.memory, z, weights, config.retroaction)
      state = state._replace(policy=policy, memory=written)
      return state, (Outputs(logits, value, reconstruction, kl), state)

    return hk.scan(step, state, (x, seen.noise, targets, jnp.asarray(seen.inputs.first)))[1]

  spec = MerlinInputs(inputs, jax.ShapeDtypeStruct((config.latent,), np.float32))
  return networks.make_network(spec, forward, lambda: initial_state(config))


def make(config: Config, task: Task, inputs: Inputs) -> System:
  """Makes the system for a task of one agent.

  Raises:
    UserError: several agents act in the task.
  """
  require_one_agent(task, "merlin")
  network = make_network(config, task, inputs)

  def act(params: Tree, key: Array, inputs: Inputs, state: Any, copy: Array) -> Acted:
    del copy  # the policy explores by itself, in evaluation too
    noise_key, action_key = jax.random.split(key)
    noise = jax.random.normal(noise_key, (config.latent,))
    outputs, state = networks.step(network, params, MerlinInputs(inputs, noise), state)
    action = distributions.sample(action_key, outputs.logits)
    log_prob = distributions.categorical_log_prob(outputs.logits, action)
    return Acted(action, Behaviour(log_prob, noise), state)

  def loss(params: Tree, key: Array, unroll: Unroll, fixed: Fixed) -> Losses:
    del key
    seen = MerlinInputs(unroll.steps.inputs, unroll.steps.behaviour.noise)
    outputs, _ = networks.unroll_batch(network, params, seen, unroll.initial_state)
    return merlin_loss(config, outputs, unroll, fixed)

  return System("merlin", network.init, network.initial_state, act, loss)


def merlin_loss(config: Config, outputs: Outputs, unroll: Unroll, fixed: Fixed) -> Losses:
  """Computes the losses of predictor and policy.

  Args:
    config: choices.
    outputs: of the network, [T + 1, B, ...], with the recorded noise.
    unroll: a batch.
    fixed: `hyperparameters` may hold `entropy_cost` and `kl_cost`, which precede the config's.
  """
  action, reward, discount = transitions(unroll, config.discount)
  values = jax.lax.stop_gradient(outputs.value)
  log_prob = distributions.categorical_log_prob(outputs.logits[:-1], action)
  ratio = jnp.exp(jax.lax.stop_gradient(log_prob) - unroll.steps.behaviour.log_prob[:-1])

  def corrected(function: Any) -> jax.Array:
    return jax.vmap(lambda *x: function(*x, lambda_=config.lambda_), 1, 1)(
      values[:-1], values[1:], reward, discount, ratio)

  targets, advantage = corrected(losses.vtrace_targets), corrected(losses.vtrace_advantages)
  policy = losses.policy_gradient_loss(log_prob, advantage).mean()
  entropy = losses.action_entropy(outputs.logits[:-1]).mean()
  value = 0.5 * jnp.square(targets - outputs.value[:-1]).mean()
  reconstruction, kl = outputs.reconstruction.mean(), outputs.kl.mean()
  costs = {name: fixed.hyperparameters.get(name, getattr(config, name))
           for name in ("entropy_cost", "kl_cost")}
  total = (config.policy_cost * (policy - costs["entropy_cost"] * entropy)
           + config.return_cost * value + config.reconstruction_cost * reconstruction
           + costs["kl_cost"] * kl)
  return Losses(total, {
    "loss/policy": policy, "loss/value": value, "loss/reconstruction": reconstruction,
    "loss/kl": kl, "entropy/action": entropy, "update/ratio": ratio.mean()},
    jnp.ones(ratio.shape[1]))
