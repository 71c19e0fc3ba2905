"""What the launch files share: a run's parts, made from its settings."""

import functools
import signal
import threading
from typing import Any, NamedTuple

import jax
import ml_collections

from starleague import agent
from starleague.actor import rollouts
from starleague.actor.environments import base
from starleague.actor.environments.skirmish import players, skirmish, tables
from starleague.agent import config as agent_config
from starleague.agent import types, wire
from starleague.agent.policy import Policy
from starleague.learner import weights

PLAYER = "main"  # the one player that learns
SCRIPTED = players.SCRIPTED
INITIAL = "initial"  # the snapshot of the weights that a run began with, in the run's folder
CHECKPOINTS = "checkpoints"


class Parts(NamedTuple):
  """What every process of a run needs."""

  config: agent_config.AgentConfig
  policy: Policy
  environment: base.Environment


def make_parts(config: ml_collections.ConfigDict) -> Parts:
  """The agent and the environment that a run's settings ask for."""
  settings = agent_config.preset(config.preset)
  return Parts(
    config=settings, policy=agent.make_policy(settings),
    environment=skirmish.make_skirmish(
      config.environment.tier, max_entities=settings.max_entities, map_size=settings.map_size,
      location_size=settings.location_size, max_selected=settings.max_selected))


def make_rollouts(parts: Parts, config: ml_collections.ConfigDict) -> rollouts.Rollouts:
  """The compiled program of one actor process."""
  sizes = rollouts.RolloutConfig(
    games=config.actor.games, inference_batch=config.actor.inference_batch,
    iterations=config.actor.iterations, pseudo_probability=config.actor.pseudo_probability,
    pseudo_scale=config.actor.pseudo_scale,
    grid_per_unit=types.POSITION_GRID / tables.TIERS[config.environment.tier].map_size)
  return rollouts.make_rollouts(
    parts.environment, parts.policy, sizes, players.scripted_action, pack_step=wire.pack_steps)


def make_weights(config: ml_collections.ConfigDict) -> weights.RLWeights:
  """The objective's weights. Reward streams that no game plays for cost nothing."""
  learner = config.learner
  published = weights.RLWeights()
  pseudo = config.actor.pseudo_probability > 0
  played_for = config.actor.pseudo_rewards.split(",") if pseudo else []
  earned = [name in played_for for name in types.PSEUDO_REWARDS]

  def costs(winloss: float, others: tuple[float, ...]) -> tuple[float, ...]:
    return winloss, *(cost * use for cost, use in zip(others[1:], earned, strict=True))

  return weights.RLWeights(
    policy=costs(learner.policy_cost, published.policy),
    baseline=costs(learner.baseline_cost, published.baseline),
    upgo=costs(learner.upgo_cost, published.upgo), entropy=learner.entropy,
    teacher_kl=learner.teacher_kl, action_type_kl=published.action_type_kl if pseudo else 0.0,
    td_lambda=learner.td_lambda)


def initial_params(parts: Parts, config: ml_collections.ConfigDict) -> Any:
  """The random weights that a run starts from; the same for the same seed."""
  return jax.jit(parts.policy.init)(jax.random.key(config.seed))


@functools.cache
def stop_event() -> threading.Event:
  """An event that SIGTERM and SIGINT set from now on: what a process's loop ends at."""
  event = threading.Event()
  for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda *_: event.set())
  return event
