"""Options of learners: refused values."""

import dataclasses

import pytest

from starleague.common.errors import UserError
from starleague.experiments.run.config import settings
from starleague.experiments.run.parts import learner_options


def test_imitation_without_a_limit_is_refused():
  options = learner_options.imitation_options(settings.complete({}))
  assert options.steps_per_update == 32 * 16
  dataclasses.replace(options, seconds=0.0, epochs=1)
  with pytest.raises(UserError, match="seconds and epochs must not both be 0"):
    dataclasses.replace(options, seconds=0.0, epochs=0)
