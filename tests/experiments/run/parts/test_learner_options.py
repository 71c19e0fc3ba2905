"""Options of learners from a run's config."""

import pytest

from starleague.experiments.run.config import ranges, settings
from starleague.experiments.run.parts import learner_options

BASE = settings.flat(settings.complete({}).to_dict())
KEYS = [key for key in BASE if key.startswith(("learner.", "imitation."))]


def other(key, value):
  """Returns another valid value of a key."""
  if isinstance(value, bool):
    return not value
  if isinstance(value, str):
    return f"{value}x"
  found = next(x for x in (value / 2, value * 2, 0.5, 3)
               if type(value)(x) != value and type(value)(x) in ranges.RANGES[key])
  return type(value)(found)


@pytest.mark.parametrize("key", KEYS)
def test_every_key_of_the_learners_changes_their_options(key):
  config = settings.complete({}, {key: other(key, BASE[key])})
  make = (learner_options.reinforcement_options if key.startswith("learner.")
          else learner_options.imitation_options)
  assert make(config) != make(settings.complete({}))


def test_options_of_reinforcement_learning_are_those_of_the_config():
  config = settings.complete({}, {
    "learner.batch_size": 24, "seconds": 90.0, "league.seconds": 70.0, "unroll_length": 8,
    "data.timeout_s": 5.0, "seed": 3})
  options = learner_options.reinforcement_options(config)
  assert (options.batch_size, options.seconds, options.league_seconds, options.timeout_s,
          options.seed, options.steps_per_update) == (24, 90.0, 70.0, 5.0, 3, 192)


def test_streams_that_no_game_plays_for_have_no_weight():
  weights = learner_options.rl_weights(settings.complete({}, {"learner.policy_cost": 2.0}))
  assert weights.policy == (2.0, 4.0, 6.0, 0.0, 0.0)
  assert weights.baseline == (10.0, 1.0, 1.0, 0.0, 0.0)
  assert weights.function_kl == 0.1
  weights = learner_options.rl_weights(settings.complete({}, {"actor.pseudo_probability": 0.0}))
  assert weights.policy == (5.0, 0.0, 0.0, 0.0, 0.0) and weights.function_kl == 0.0
