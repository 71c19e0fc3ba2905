"""The options of actors come from the config's keys of their names."""

import numpy as np

from starleague.experiments.run.config import settings
from starleague.experiments.run.parts.actor_options import actor_options

CHANGES = {
  "seed": 11, "unroll_length": 12, "actor.niceness": 13, "actor.games": 140,
  "actor.inference_batch": 15, "actor.iterations": 16, "actor.parameter_interval_s": 17.0,
  "data.timeout_s": 18.0, "actor.self_play": 0.19, "actor.uniform": 0.20,
  "actor.race_matchmaking": "linear", "actor.draw_reward": -0.22,
  "actor.matchmaking": "squared", "actor.demonstrators": "builder,rusher",
  "actor.pseudo_scale": 0.21, "league.places": 22, "league.games": 23, "league.chunk": 24,
  "league.lease_s": 25.0, "league.evaluation_games": 26, "league.evaluator_niceness": 7,
  "actor.pseudo_probability": 0.5, "actor.pseudo_rewards": "built_units"}


def test_options_are_the_values_of_the_config():
  found = actor_options(settings.complete({}, CHANGES))
  assert (found.seed, found.unroll_length, found.niceness, found.games) == (11, 12, 13, 140)
  assert (found.inference_batch, found.iterations, found.parameter_interval_s) == (15, 16, 17.0)
  assert (found.timeout_s, found.self_play, found.uniform) == (18.0, 0.19, 0.20)
  assert (found.matchmaking, found.pseudo_scale) == ("squared", 0.21)
  assert (found.race_matchmaking, found.draw_reward) == ("linear", -0.22)
  assert found.demonstrators == (2, 1)  # of passive, rusher, builder, random_player
  assert (found.league_places, found.league_games, found.league_chunk) == (22, 23, 24)
  assert (found.lease_s, found.evaluation_games, found.evaluator_niceness) == (25.0, 26, 7)
  np.testing.assert_array_equal(found.active, np.float32([0, 0.5, 0, 0]))


def test_no_pseudo_reward_is_active_without_a_probability():
  found = actor_options(settings.complete({}, {"actor.pseudo_probability": 0.0}))
  np.testing.assert_array_equal(found.active, np.zeros(4, np.float32))
