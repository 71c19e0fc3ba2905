"""COMA: counterfactual advantages of cooperating agents, from a centralised critic.

Source: Foerster et al. 2018, "Counterfactual multi-agent policy gradients".
"""

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import distributions, linear
from starleague.agent.types import Array
from starleague.common.errors import UserError
from starleague.companions import networks
from starleague.companions.options import check_numbers
from starleague.companions.system import (
  Acted,
  Fixed,
  Inputs,
  Losses,
  System,
  Unroll,
  require_target,
  transitions,
)
from starleague.companions.tasks.task import Task
from starleague.data.trees import Tree
from starleague.learner import losses

COMA, CENTRAL, INDEPENDENT = CRITICS = ("coma", "central", "independent")
OPTIONS = {
  "task": "jaxmarl-simple_spread:clock=true", "steps": 3_000_000, "copies": 32,
  "unroll_length": 26,  # of one episode
  # The paper's critic learns each step of a batch in an update of its own, and its target network
  # follows after 150 of them. Here an update learns all steps of a batch at once.
  "batch_size": 16, "target_period": 6}


@dataclasses.dataclass(frozen=True)
class Config:
  """The choices of COMA.

  Attributes:
    critic: "coma": Q of the joint action with the counterfactual baseline; "central": V of all
      observations; "independent": V of the agent's own observation.
    torso: of the actor; see `networks.observe`.
    size: units of dense layers, of actor and critic.
    lstm: units of the actor's LSTM.
    discount: of a step.
    lambda_: of the critic's TD(lambda) targets.
    entropy_cost: weight of the entropy bonus.
    critic_cost: weight of the critic's loss.
    epsilon: share of the uniform policy that each policy keeps, for exploration.
    policy_rate: factor of the policy's learning rate; the critic's is 1.
  """

  critic: str = COMA
  torso: str = networks.DENSE
  size: int = 64
  lstm: int = 64
  discount: float = 0.99
  lambda_: float = 0.8
  entropy_cost: float = 0.01
  critic_cost: float = 0.5
  epsilon: float = 0.02
  policy_rate: float = 1.0

  def __post_init__(self) -> None:
    check_numbers(self)
    if self.critic not in CRITICS:
      raise UserError(f"coma.critic: found {self.critic!r}, expected one of {', '.join(CRITICS)}")


class AgentInputs(NamedTuple):
  """Inputs of one agent's policy, unbatched; arrays or their specs."""

  observation: Any  # its own
  last_action: Any  # [] int32, its own
  first: Any  # [] bool
  agent: Any  # [] int32


class Behaviour(NamedTuple):
  """Record of the acting policies."""

  log_prob: Array  # [agents] float32


def of_agents(inputs: Inputs, agents: int) -> AgentInputs:
  """Returns the inputs of all agents, with their axis in front: leaves [agents, ...].

  Args:
    inputs: leaves [..., agents, ...] behind `leading` axes for observation and action.
    agents: number of agents.
  """
  leading = jnp.ndim(inputs.first)
  front = functools.partial(jnp.moveaxis, source=leading, destination=0)
  first = jnp.broadcast_to(inputs.first, (agents, *jnp.shape(inputs.first)))
  numbers = jnp.arange(agents).reshape(agents, *[1] * leading)
  return AgentInputs(jax.tree.map(front, inputs.observation), front(inputs.last_action), first,
                     jnp.broadcast_to(numbers, first.shape))


def make_actor(config: Config, task: Task, inputs: Inputs) -> networks.Network:
  """Makes the policy network, whose parameters all agents share."""
  agents, = task.action_shape

  def forward(inputs: AgentInputs, state: Any) -> tuple[jax.Array, Any]:
    x = jnp.concatenate([
      networks.observe(inputs.observation, config.torso, config.size, task.symbols),
      jax.nn.one_hot(inputs.last_action, task.num_actions),
      jax.nn.one_hot(inputs.agent, agents)], axis=-1)
    x, states = networks.lstm(x, inputs.first, state, config.lstm)
    logits = linear.Linear(
      task.num_actions, w_init=hk.initializers.VarianceScaling(0.01), name="policy")(x)
    return explore(logits, config.epsilon), states

  one = AgentInputs(
    jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), inputs.observation),
    jax.ShapeDtypeStruct((), np.int32), inputs.first, jax.ShapeDtypeStruct((), np.int32))
  return networks.make_network(one, forward, lambda: networks.lstm_state(config.lstm))


def explore(logits: Array, epsilon: float) -> jax.Array:
  """Mixes policies with the uniform one, as `(1 - epsilon) pi + epsilon / n` (section 5).

  Args:
    logits: [..., n] float.
    epsilon: share of the uniform policy.

  Returns:
    The log-probs of the mixture, [..., n] float, which are logits too.
  """
  share = jnp.log(jnp.array([1.0 - epsilon, epsilon / logits.shape[-1]]))
  return jnp.logaddexp(share[0] + jax.nn.log_softmax(logits), share[1])


def rates(config: Config, params: Tree) -> Tree:
  """Returns factors of the learning rate: `policy_rate`, and 1 for the critic."""
  return {module: dict.fromkeys(leaves, 1.0 if module.startswith("critic_") else config.policy_rate)
          for module, leaves in params.items()}


def critic_inputs(config: Config, task: Task, unroll: Unroll) -> jax.Array:
  """Returns the critic's inputs for each agent, [agents, T + 1, B, n] float32.

  "coma": all observations, the actions of the other agents and the agent's index; "central": all
  observations; "independent": the agent's own observation and its index.
  """
  agents, = task.action_shape
  observation = jnp.concatenate([
    _flat(networks.one_hot(leaf, task.symbols) if task.symbols else leaf, 3)
    for leaf in jax.tree.leaves(unroll.steps.inputs.observation)], axis=-1)  # [T + 1, B, agents, n]
  identity = jnp.eye(agents)

  def of(agent: int) -> jax.Array:
    name = jnp.broadcast_to(identity[agent], (*observation.shape[:2], agents))
    if config.critic == INDEPENDENT:
      return jnp.concatenate([observation[:, :, agent], name], axis=-1)
    everything = _flat(observation, 2)
    if config.critic == CENTRAL:
      return everything
    actions = jax.nn.one_hot(unroll.steps.action, task.num_actions)
    others = _flat(actions * (1.0 - identity[agent])[:, None], 2)
    return jnp.concatenate([everything, others, name], axis=-1)

  return jnp.stack([of(agent) for agent in range(agents)])


def _flat(x: jax.Array, leading: int) -> jax.Array:
  return x.reshape(*x.shape[:leading], math.prod(x.shape[leading:])).astype(jnp.float32)


def make_critic(config: Config, task: Task) -> Any:
  """Makes the critic, a Haiku transform: [..., n] -> [..., num_actions], [..., 1] for a V."""
  outputs = task.num_actions if config.critic == COMA else 1

  def forward(x: jax.Array) -> jax.Array:
    for layer in range(2):
      x = jax.nn.relu(linear.Linear(config.size, name=f"critic_{layer}")(x))
    return linear.Linear(outputs, name="critic_values")(x)

  return hk.without_apply_rng(hk.transform(forward))


def make(config: Config, task: Task, inputs: Inputs) -> System:
  """Makes the system for a task of several agents.

  Raises:
    UserError: one agent acts in the task.
  """
  if not task.action_shape:
    raise UserError(f"task {task.name!r}: one agent acts in it, coma is several")
  agents, = task.action_shape
  actor, critic = make_actor(config, task, inputs), make_critic(config, task)

  def init(key: Array) -> Tree:
    actor_key, critic_key = jax.random.split(key)
    zeros = jax.tree.map(lambda x: jnp.zeros((2, 1, *x.shape), x.dtype), inputs)
    steps = _Steps(zeros, zeros.last_action)
    seen = critic_inputs(config, task, Unroll(steps, (), ()))  # type: ignore[arg-type]
    return actor.init(actor_key) | critic.init(critic_key, seen)

  def initial_state() -> Any:
    return jax.tree.map(lambda x: jnp.zeros((agents, *x.shape)), actor.initial_state())

  def act(params: Tree, key: Array, inputs: Inputs, state: Any, copy: Array) -> Acted:
    del copy  # the policies explore by themselves, in evaluation too
    logits, state = jax.vmap(functools.partial(networks.step, actor, params))(
      of_agents(inputs, agents), state)
    action = jax.vmap(distributions.sample)(jax.random.split(key, agents), logits)
    return Acted(action, Behaviour(distributions.categorical_log_prob(logits, action)), state)

  def loss(params: Tree, key: Array, unroll: Unroll, fixed: Fixed) -> Losses:
    del key
    require_target(fixed, "coma")
    logits, _ = jax.vmap(functools.partial(networks.unroll_batch, actor, params), in_axes=(0, 1))(
      of_agents(unroll.steps.inputs, agents), unroll.initial_state)
    seen = critic_inputs(config, task, unroll)
    return coma_losses(config, logits, critic.apply(params, seen),
                       critic.apply(fixed.target, seen), unroll, fixed)

  return System("coma", init, initial_state, act, loss,
                rates=functools.partial(rates, config))


class _Steps(NamedTuple):
  """The parts of steps that a critic observes."""

  inputs: Inputs
  action: Any


def coma_losses(config: Config, logits: Array, values: Array, target_values: Array,
                unroll: Unroll, fixed: Fixed) -> Losses:
  """Computes the losses of actor and critic.

  Args:
    config: choices.
    logits: [agents, T + 1, B, num_actions], of the policies.
    values: [agents, T + 1, B, num_actions] of the critic for each action of the agent; [.., 1] for
      a value of the state.
    target_values: the same, of the target network.
    unroll: a batch.
    fixed: `hyperparameters` may hold `entropy_cost`, which precedes the config's.
  """
  action, reward, discount = transitions(unroll, config.discount)
  taken = jnp.moveaxis(jnp.asarray(unroll.steps.action), -1, 0)  # [agents, T + 1, B]
  index = taken[..., None] if config.critic == COMA else jnp.zeros_like(taken[..., None])
  chosen, target = (
    jnp.take_along_axis(x, index, axis=-1)[..., 0] for x in (values, target_values))
  # One return for each agent: their critics differ in what they observe.
  returns = jax.vmap(jax.vmap(functools.partial(
    losses.td_lambda_returns, lambda_=config.lambda_), 1, 1), (0, None, None))(
      target[:, 1:], reward, discount)
  critic = 0.5 * jnp.square(returns - chosen[:, :-1]).mean()
  own = jnp.moveaxis(action, -1, 0)
  if config.critic == COMA:
    policy = losses.coma_loss(values[:, :-1], logits[:, :-1], own).mean()
  else:
    advantage = reward + discount * chosen[:, 1:] - chosen[:, :-1]  # Foerster et al., section 5
    policy = losses.policy_gradient_loss(
      distributions.categorical_log_prob(logits[:, :-1], own), advantage).mean()
  entropy = losses.action_entropy(logits[:, :-1]).mean()
  cost = fixed.hyperparameters.get("entropy_cost", config.entropy_cost)
  total = policy + config.critic_cost * critic - cost * entropy
  return Losses(total, {
    "loss/policy": policy, "loss/value": critic, "entropy/action": entropy},
    jnp.ones(reward.shape[1]))
