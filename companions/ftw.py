"""FTW: two LSTMs on two time scales, whose latents are each other's prior and posterior.

The slow core changes every tau steps and predicts the latent; the fast core corrects it at each
step. The policy acts on the sample.

Source: Jaderberg et al. 2019, "Human-level performance in 3D multiplayer games with
population-based reinforcement learning" (FTW).
"""

import dataclasses
from typing import Any, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import blocks, distributions, linear
from starleague.agent.types import Array
from starleague.companions import impala, latent, networks
from starleague.companions.system import (
  Acted,
  Fixed,
  Inputs,
  Losses,
  System,
  Unroll,
  require_one_agent,
)
from starleague.companions.tasks.task import Task
from starleague.data.trees import Tree

OPTIONS = {"task": "xminigrid-MemoryS16", "steps": 3_000_000, "unroll_length": 40}


@dataclasses.dataclass(frozen=True)
class Config(impala.Config):
  """The choices of FTW, beside those of IMPALA.

  Attributes:
    lstm: units of each core.
    latent: size of the latent.
    tau: steps between two steps of the slow core.
    kl_cost: weight of KL(posterior || prior).
    prior_cost: weight of KL(prior || normal with mean 0).
    sigma: standard deviation of that normal, which the prior corrects.
    slow_gradient: factor of the gradient that passes from the fast core into the slow one.
    hierarchy: whether there is a slow core; without, the prior is that normal.
  """

  lstm: int = 64
  latent: int = 32
  tau: int = 10
  kl_cost: float = 1e-3
  prior_cost: float = 1e-4
  sigma: float = 0.1
  slow_gradient: float = 0.1
  hierarchy: bool = True


class FtwState(NamedTuple):
  """The state of both cores."""

  fast: blocks.LSTMState
  slow: blocks.LSTMState
  age: Array  # [] float32, steps of the episode


class FtwInputs(NamedTuple):
  """Inputs of the network, unbatched; arrays or their specs."""

  inputs: Inputs
  noise: Any  # [latent] float32, standard normal, of the posterior sample
  tau: Any  # [] float32, steps between two steps of the slow core


class Outputs(NamedTuple):
  """The outputs of the network, [T, ...]."""

  policy: impala.Outputs
  kl: Array  # [T], of the posterior from the prior, in nats
  prior_kl: Array  # [T], of the prior from the normal with mean 0


class Behaviour(NamedTuple):
  """Record of the acting policy."""

  log_prob: Array  # [] float32
  noise: Array  # [latent] float32
  tau: Array  # [] float32


def initial_state(config: Config) -> FtwState:
  """Returns the state at the start of an episode."""
  core = networks.lstm_state(config.lstm)
  return FtwState(core, core, jnp.zeros(()))


def scale_gradient(x: jax.Array, factor: float) -> jax.Array:
  """Returns x; its gradient is multiplied by a factor."""
  return factor * x + (1.0 - factor) * jax.lax.stop_gradient(x)


def _cores(config: Config, x: Array, noise: Array, tau: Array, state: FtwState,
           ) -> tuple[Array, latent.Gaussian, latent.Gaussian, FtwState]:
  """Applies both cores to a step: the sample, posterior, prior, the state after it."""
  _, slow = networks.lstm_step(state.fast.hidden, state.slow, config.lstm, "slow")
  ticks = (state.age % jnp.round(tau) == 0.0) & config.hierarchy
  slow = jax.tree.map(lambda new, old: jnp.where(ticks, new, old), slow, state.slow)
  above = scale_gradient(slow.hidden, config.slow_gradient)
  fast_output, fast = networks.lstm_step(
    jnp.concatenate([x, above]), state.fast, config.lstm, "fast")
  prior = latent.normal(config.latent, config.sigma)
  if config.hierarchy:
    prior = latent.gaussian(slow.hidden, config.latent, "prior", prior)
  posterior = latent.gaussian(fast_output, config.latent, "posterior", prior)
  return (latent.sample(posterior, noise), posterior, prior,
          FtwState(fast, slow, state.age + 1.0))


def make_network(config: Config, task: Task, inputs: Inputs) -> networks.Network:
  """Makes the network: torso, two cores, a latent, policy and value."""
  def forward(seen: FtwInputs, state: FtwState) -> tuple[Outputs, FtwState]:
    x = networks.observe(seen.inputs.observation, config.torso, config.size, task.symbols)
    x = jnp.concatenate([x, networks.context(seen.inputs, task.num_actions)], axis=-1)

    def step(state: FtwState, at: Any) -> tuple[FtwState, Any]:
      x, noise, tau, first = at
      state = jax.tree.map(lambda new, old: jnp.where(first, new, old), initial_state(config),
                           state)
      z, posterior, prior, state = _cores(config, x, noise, tau, state)
      normal = latent.normal(config.latent, config.sigma)
      return state, (z, latent.kl(posterior, prior), latent.kl(prior, normal), state)

    _, (z, kl, prior_kl, states) = hk.scan(
      step, state, (x, seen.noise, seen.tau, jnp.asarray(seen.inputs.first)))
    hidden = jax.nn.relu(linear.Linear(config.size, name="decide")(z))
    logits = linear.Linear(
      task.num_actions, w_init=hk.initializers.VarianceScaling(0.01), name="policy")(hidden)
    value = linear.Linear(1, name="value")(hidden)[:, 0]
    return Outputs(impala.Outputs(logits, value), kl, prior_kl), states

  scalar = jax.ShapeDtypeStruct((), np.float32)
  spec = FtwInputs(inputs, jax.ShapeDtypeStruct((config.latent,), np.float32), scalar)
  return networks.make_network(spec, forward, lambda: initial_state(config))


def make(config: Config, task: Task, inputs: Inputs) -> System:
  """Makes the system for a task of one agent.

  tau is among the parameters, without gradient, so that a population may change it.

  Raises:
    UserError: several agents act in the task.
  """
  require_one_agent(task, "ftw")
  network = make_network(config, task, inputs)

  def init(key: Array) -> Tree:
    return network.init(key) | {"schedule": {"tau": jnp.float32(config.tau)}}

  def act(params: Tree, key: Array, inputs: Inputs, state: Any, copy: Array) -> Acted:
    del copy  # the policy explores by itself, in evaluation too
    noise_key, action_key = jax.random.split(key)
    noise, tau = jax.random.normal(noise_key, (config.latent,)), params["schedule"]["tau"]
    outputs, state = networks.step(
      network, _weights(params), FtwInputs(inputs, noise, tau), state)
    action = distributions.sample(action_key, outputs.policy.logits)
    log_prob = distributions.categorical_log_prob(outputs.policy.logits, action)
    return Acted(action, Behaviour(log_prob, noise, tau), state)

  def loss(params: Tree, key: Array, unroll: Unroll, fixed: Fixed) -> Losses:
    del key
    behaviour = unroll.steps.behaviour
    seen = FtwInputs(unroll.steps.inputs, behaviour.noise, behaviour.tau)
    outputs, _ = networks.unroll_batch(network, _weights(params), seen, unroll.initial_state)
    found, _ = impala.actor_critic_loss(config, outputs.policy, unroll, fixed)
    kl, prior_kl = outputs.kl.mean(), outputs.prior_kl.mean()
    costs = {name: fixed.hyperparameters.get(name, getattr(config, name))
             for name in ("kl_cost", "prior_cost")}
    return found._replace(
      loss=found.loss + costs["kl_cost"] * kl + costs["prior_cost"] * prior_kl,
      metrics={**found.metrics, "loss/kl": kl, "loss/prior_kl": prior_kl})

  return System("ftw", init, network.initial_state, act, loss, learnt=_weights)


def _weights(params: Tree) -> Tree:
  return {name: value for name, value in params.items() if name != "schedule"}
