"""The command that a run's config stands for."""

import pytest

from starleague.common.errors import UserError
from starleague.experiments.configs import small
from starleague.experiments.generate import pretrained
from starleague.experiments.run.config import settings


def test_command_states_what_was_changed():
  config = settings.complete({}, {"seed": 4, "seconds": 60.0, "learner.learning_rate": 1e-4})
  assert pretrained.command_of(config) == (
    "python -m starleague.experiments.train --config=experiments/configs/mini.py "
    "--config.learner.learning_rate=0.0001 --config.seconds=60.0 --config.seed=4")


def test_command_of_another_preset():
  config = settings.complete(small.get_config().to_dict(), {"seed": 1})
  assert pretrained.command_of(config) == (
    "python -m starleague.experiments.train --config=experiments/configs/small.py --config.seed=1")


@pytest.mark.parametrize("init", ["random", "pretrained"])
def test_command_names_the_initial_weights(init):
  config = settings.complete({"init": init}, {"seed": 3})
  assert pretrained.command_of(config) == (
    "python -m starleague.experiments.train --config=experiments/configs/mini.py "
    f"--config.init={init} --config.seed=3")


def test_preset_without_config_file():
  config = settings.complete({})
  config.preset = "full"
  with pytest.raises(UserError, match="expected mini or small, found 'full'"):
    pretrained.command_of(config)
