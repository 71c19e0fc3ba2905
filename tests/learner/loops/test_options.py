"""Options of learners: refused values."""

import dataclasses

import pytest

from starleague.common.errors import UserError
from starleague.experiments.run.config import settings
from starleague.experiments.run.parts import learner_options


def test_imitation_without_a_limit_is_refused():
  config = settings.complete({"imitation": {"batch_size": 3, "unroll_length": 5}})
  options = learner_options.imitation_options(config)
  assert options.steps_per_update == 3 * 5
  dataclasses.replace(options, seconds=0.0, epochs=1)
  with pytest.raises(UserError, match="seconds and epochs must not both be 0"):
    dataclasses.replace(options, seconds=0.0, epochs=0)
