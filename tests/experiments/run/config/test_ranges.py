"""The ranges of config values."""

import math

import pytest

from starleague.experiments.run.config.ranges import RANGES


@pytest.mark.parametrize("key, inside, outside", [
  ("seed", [0, 2**31 - 1], [-1, 2**31]), ("seconds", [1e-3, 1e9], [0.0, 1.1e9, math.nan]),
  ("imitation.seconds", [0.0, 1e9], [-1.0]), ("learner.b1", [0.0, 0.999], [1.0]),
  ("learner.learning_rate", [1e-9], [0.0, math.inf]), ("learner.entropy", [0.0], [-1e-9, math.inf]),
  ("actor.draw_reward", [-1.0, 1.0], [-1.1]), ("imitation.costs.delay", [0.0], [-1.0])])
def test_ranges_hold_the_valid_values(key, inside, outside):
  assert all(value in RANGES[key] for value in inside)
  assert not any(value in RANGES[key] for value in outside)
