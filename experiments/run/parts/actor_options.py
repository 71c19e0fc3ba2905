"""The options of actors and evaluators, from a run's config."""

import ml_collections
import numpy as np

from starleague.actor.loops.options import ActorOptions
from starleague.agent import types
from starleague.experiments.run.config import objectives


def active_probabilities(config: ml_collections.ConfigDict) -> np.ndarray:
  """Returns the probability that each pseudo-reward is active in a training game, [4] float32."""
  names = config.actor.pseudo_rewards.split(",")
  return np.array([config.actor.pseudo_probability * (name in names)
                   for name in types.PSEUDO_REWARDS], np.float32)


def actor_options(config: ml_collections.ConfigDict) -> ActorOptions:
  """Returns the options of a run's actors and evaluators."""
  actor, league = config.actor, config.league
  opponents = config.environment.opponents.split(",")
  return ActorOptions(
    seed=config.seed, unroll_length=config.unroll_length, niceness=actor.niceness,
    games=actor.games, inference_batch=actor.inference_batch, iterations=actor.iterations,
    parameter_interval_s=actor.parameter_interval_s, timeout_s=config.data.timeout_s,
    self_play=actor.self_play, uniform=actor.uniform, matchmaking=actor.matchmaking,
    race_matchmaking=actor.race_matchmaking, draw_reward=actor.draw_reward,
    objective=objectives.parse_objective(actor.objective, config.environment.tier),
    demonstrators=tuple(opponents.index(name)
                        for name in filter(None, actor.demonstrators.split(","))),
    active=active_probabilities(config), pseudo_scale=actor.pseudo_scale,
    league_places=league.places, league_games=league.games, league_chunk=league.chunk,
    exploiter_minimax=league.exploiter_minimax, exploiter_goals=league.exploiter_goals,
    objectives=objectives.of_league(config), snapshots_z=league.snapshots_z,
    lease_s=league.lease_s, evaluation_games=league.evaluation_games,
    evaluator_niceness=league.evaluator_niceness)
