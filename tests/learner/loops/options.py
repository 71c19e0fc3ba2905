"""Options of learners in tests: those of the default config."""

import dataclasses

from starleague.experiments.run.config import settings
from starleague.experiments.run.parts import learner_options
from starleague.learner.loops.options import ReinforcementOptions


def reinforcement_options(**changes) -> ReinforcementOptions:
  """Returns the options of the default config with changed fields."""
  return dataclasses.replace(
    learner_options.reinforcement_options(settings.complete({})), **changes)
