"""The learner's parts from a run's config."""

import pytest

from starleague.experiments.configs import mini
from starleague.experiments.run import learner_setup


@pytest.mark.parametrize("done, expected", [(0.0, 8e-4), (0.25, 6.5e-4), (1.0, 2e-4)])
def test_the_learning_rate_falls_linearly(done, expected):
  config = mini.get_config()
  config.learner.learning_rate, config.learner.final_rate = 8e-4, 0.25
  assert learner_setup.learning_rate(config, done) == pytest.approx(expected)
