"""Self-imitation: A2C that also learns from its own past transitions of high return.

Source: Oh et al. 2018, "Self-imitation learning".
"""

import dataclasses

import jax
import jax.numpy as jnp

from starleague.agent import distributions
from starleague.agent.types import Array
from starleague.companions import impala, networks
from starleague.companions.system import (
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

# A batch holds one part of A2C and four parts of replay, as four updates of self-imitation for each
# of A2C (Table 3). Unrolls overlap, so that most episodes of a short task are in one of them whole.
OPTIONS = {
  "task": "bsuite-deep_sea:size=10", "steps": 1_000_000, "copies": 16, "unroll_length": 20,
  "period": 10, "batch_size": 80, "replay_share": 0.8, "replay_table": "prioritised",
  "replay_size": 10_000, "min_replay": 64, "exponent": 0.6}


@dataclasses.dataclass(frozen=True)
class Config(impala.Config):
  """The choices of self-imitation, beside those of A2C, which is IMPALA without correction.

  Attributes:
    imitate: whether replayed unrolls are imitated; without, `replay_share` should be 0.
    imitation_cost: weight of the imitation loss.
    imitation_value_cost: weight of the value in the imitation loss, beta.
  """

  correction: str = impala.NONE
  torso: str = networks.DENSE
  size: int = 64
  clip_reward: bool = False
  imitate: bool = True
  imitation_cost: float = 1.0
  imitation_value_cost: float = 0.01


def make(config: Config, task: Task, inputs: Inputs) -> System:
  """Makes the system for a task of one agent.

  Raises:
    UserError: several agents act in the task.
  """
  require_one_agent(task, "self_imitation")
  network = impala.make_network(config, task, inputs)

  def loss(params: Tree, key: Array, unroll: Unroll, fixed: Fixed) -> Losses:
    del key
    outputs, _ = networks.unroll_batch(
      network, params, unroll.steps.inputs, unroll.initial_state)
    fresh = 1.0 - jnp.asarray(unroll.replayed).astype(jnp.float32)
    found, _ = impala.actor_critic_loss(config, outputs, unroll, fixed, weight=fresh)
    found = found._replace(metrics={**found.metrics, "fresh_unrolls": fresh.mean()})
    if not config.imitate:
      return found
    imitation, priorities = imitation_loss(config, outputs, unroll)
    replayed = ((1.0 - fresh) * imitation).mean()
    return found._replace(
      loss=found.loss + config.imitation_cost * replayed, priorities=priorities,
      metrics={**found.metrics, "loss/imitation": replayed,
               "update/imitated_return": priorities.mean()})

  return System("self_imitation", network.init, network.initial_state, impala.make_act(network),
                loss)


def finished_returns(reward: Array, discount: Array) -> tuple[Array, Array]:
  """Computes the returns of steps whose episode ends within an unroll.

  Args:
    reward: [T] float, of the actions.
    discount: [T] float, 0 where an action ended the episode.

  Returns:
    [T] returns, and [T] bool: the episode ends at this step or at a later one of the unroll.
  """
  ends = jnp.asarray(discount) == 0.0
  finished = jnp.cumsum(ends[::-1])[::-1] > 0
  return losses.discounted_returns(reward, discount), finished


def imitation_loss(config: Config, outputs: impala.Outputs,
                   unroll: Unroll) -> tuple[jax.Array, jax.Array]:
  """Computes the self-imitation loss of unrolls, and their priorities.

  Args:
    config: choices.
    outputs: of the network, [T + 1, B, ...].
    unroll: a batch.

  Returns:
    [T, B], 0 where the return is not above the value or not known; and [B], the mean over an
    unroll's steps of max(R - V, 0). The table draws unrolls in proportion to a power of it, the
    option `exponent`.
  """
  action, reward, discount = transitions(unroll, config.discount)
  if config.clip_reward:  # as the value's targets
    reward = jnp.clip(reward, -1.0, 1.0)
  returns, finished = jax.vmap(finished_returns, 1, 1)(reward, discount)
  values = outputs.value[:-1]
  log_prob = distributions.categorical_log_prob(outputs.logits[:-1], action)
  loss = losses.self_imitation_loss(log_prob, values, returns, config.imitation_value_cost)
  priority = losses.self_imitation_priority(values, returns)
  return jnp.where(finished, loss, 0.0), jnp.where(finished, priority, 0.0).mean(axis=0)
