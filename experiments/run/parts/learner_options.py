"""The options of learners, from a run's config."""

import dataclasses
import pathlib
from typing import Any

import ml_collections

from starleague.actor.parts import Parts
from starleague.agent import pretrained, types
from starleague.agent.vocabulary import Arguments
from starleague.common import run_files
from starleague.common.errors import UserError
from starleague.data import checkpoints
from starleague.experiments.run.config import populations, settings
from starleague.experiments.run.parts import saved_agents
from starleague.learner import offline, supervised, weights
from starleague.learner.loops.options import (
  CLONING,
  EMPHATIC,
  WINNERS,
  ImitationOptions,
  LearningAgent,
  OfflineOptions,
  ReinforcementOptions,
)


def learning_agent(parts: Parts, config: ml_collections.ConfigDict,
                   run_dir: pathlib.Path) -> LearningAgent:
  """Returns the agent of reinforcement learning, which starts from the weights of `config.init`."""
  def initial_params() -> Any:
    if config.init == settings.IMITATION:
      return checkpoints.load_params(run_dir / run_files.IMITATED, parts.config)
    if config.init == settings.PRETRAINED:
      return pretrained.load_pretrained(config.preset).params
    return saved_agents.initial_params(parts, config)

  return LearningAgent(parts.config, parts.policy, initial_params)


def imitating_agent(parts: Parts, config: ml_collections.ConfigDict) -> LearningAgent:
  """Returns the agent of imitation; it starts from random weights, or from those of another run."""
  def initial_params() -> Any:
    if config.demonstrations.imitator:
      return saved_agents.load_imitator(parts, config)
    return saved_agents.initial_params(parts, config)

  return LearningAgent(parts.config, parts.policy, initial_params)


def offline_agent(parts: Parts, config: ml_collections.ConfigDict) -> LearningAgent:
  """Returns the agent of offline learning; it starts from a clone, or cloning from random weights.

  Raises:
    UserError: the method needs a clone, and the config names none; or the run has no weights.
  """
  source = config.offline.behaviour
  if not source and config.offline.method != CLONING:
    raise UserError(f"config key 'offline.method' = {config.offline.method!r} needs a cloned "
                    "behaviour policy: name a run of cloning in 'offline.behaviour'.")

  def initial_params() -> Any:
    if not source:
      return saved_agents.initial_params(parts, config)
    run_dir = pathlib.Path(source)
    # The players of a league have the checkpoints, not the league itself.
    trained = any((run_dir / name).is_dir() for name in (run_files.CHECKPOINTS, run_files.LEARNERS))
    found = saved_agents.TRAINED if trained else saved_agents.IMITATOR
    return saved_agents.load(parts, run_dir, found)[0]

  return LearningAgent(parts.config, parts.policy, initial_params)


def reinforcement_options(config: ml_collections.ConfigDict) -> ReinforcementOptions:
  """Returns the options of reinforcement learning; those of `config.learner` by their names."""
  return ReinforcementOptions(
    weights=rl_weights(config), seed=config.seed, seconds=config.seconds,
    league_seconds=config.league.seconds, main_updates=config.league.main_updates,
    unroll_length=config.unroll_length, timeout_s=config.data.timeout_s,
    population=populations.of_league(config),
    **_by_name(config.learner, ReinforcementOptions))


def imitation_options(config: ml_collections.ConfigDict) -> ImitationOptions:
  """Returns the options of imitation; those of `config.imitation` by their names."""
  imitation, costs = config.imitation, config.imitation.costs
  arguments = Arguments(
    function=costs.function, delay=costs.delay, queued=costs.queued, repeat=costs.repeat,
    units=costs.units, target_unit=costs.target_unit, location=costs.location)
  return ImitationOptions(
    objective=supervised.Options(
      weights.SLWeights(arguments, imitation.l2), keep_build_order=imitation.keep_build_order,
      keep_cumulative=imitation.keep_cumulative, carry_state=imitation.carry_state),
    preset=config.preset, tier=config.environment.tier, environment=config.environment.name,
    seed=config.seed, timeout_s=config.data.timeout_s,
    log_interval_s=config.learner.log_interval_s, wandb=config.learner.wandb,
    keep_last=config.learner.keep_last, max_skipped=config.learner.max_skipped,
    **_by_name(imitation, ImitationOptions))


def offline_options(config: ml_collections.ConfigDict) -> OfflineOptions:
  """Returns the options of offline learning: those of its method.

  Raises:
    UserError: importance ratios are chosen for a method without any.
  """
  imitation, method = imitation_options(config), config.offline.method
  clones = method in (CLONING, WINNERS)
  if clones and config.offline.ratios == settings.RECORDED:
    raise UserError(f"config key 'offline.ratios': expected {settings.CLONED!r} with "
                    f"'offline.method' = {method!r}, which has no importance ratios; found "
                    f"{config.offline.ratios!r}.")

  def winloss(cost: float) -> tuple[float, ...]:
    return cost, 0.0, 0.0, 0.0, 0.0

  costs = weights.RLWeights(
    policy=winloss(0.0 if clones else config.offline.policy_cost),
    baseline=winloss(config.offline.value_cost), upgo=winloss(0.0), entropy=0.0,
    teacher_kl=0.0 if clones else config.offline.kl_cost, function_kl=0.0,
    td_lambda=config.learner.td_lambda, vtrace_lambda=config.learner.vtrace_lambda)
  return OfflineOptions(
    objective=offline.Options(
      imitation.objective, costs, cloning=float(clones),
      emphatic_steps=config.offline.emphatic_steps if method == EMPHATIC else 0,
      recorded_ratios=config.offline.ratios == settings.RECORDED,
      opponent_values=config.learner.opponent_values),
    imitation=imitation, winners=method == WINNERS, updates=config.offline.updates,
    learning_rate=(imitation.fine_tune_learning_rate if config.offline.behaviour
                   else imitation.learning_rate))


def rl_weights(config: ml_collections.ConfigDict) -> weights.RLWeights:
  """Returns the weights of the RL objective. Unused reward streams have zero weight.

  `learner.weights` has the scale of pseudo-rewards.
  """
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
    teacher_kl=learner.teacher_kl, function_kl=learner.function_kl if pseudo else 0.0,
    td_lambda=learner.td_lambda, vtrace_lambda=learner.vtrace_lambda)


def _by_name(group: ml_collections.ConfigDict, options: type) -> dict[str, Any]:
  """Returns the values of a config group that options have a field for."""
  return {field.name: group[field.name] for field in dataclasses.fields(options)
          if field.name in group}
