"""The command that a run's config stands for."""

import types as modules

import pytest

from starleague.actor.evaluation import Counts
from starleague.common.errors import UserError
from starleague.experiments.configs import small
from starleague.experiments.generate import pretrained
from starleague.experiments.run.config import settings
from tests.experiments.launch import launch, refusal


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


@pytest.fixture
def words(tmp_path, monkeypatch):
  """The command line of a run without weights; each play adds to `played`."""
  settings.save(settings.complete({}), tmp_path / "run")
  made = modules.SimpleNamespace(
    engine=modules.SimpleNamespace(make_evaluation=lambda *_: lambda params: None))
  monkeypatch.setattr(pretrained, "registry", modules.SimpleNamespace(
    make_playing_parts=pretrained.registry.make_playing_parts, game_of=lambda config: made))
  monkeypatch.setattr(pretrained.saved_agents, "load", lambda *_: ({}, 7))
  monkeypatch.setattr(
    pretrained.evaluation, "count_by_name", lambda *_: {"rusher": Counts(4, 4, 2)})
  return "--run_dir", tmp_path / "run", "--games", 10, "--commit", "0" * 40


def test_a_folder_that_cannot_be_made_is_refused_before_the_games(words, tmp_path, monkeypatch):
  monkeypatch.setattr(pretrained.evaluation, "count_by_name", lambda *_: pytest.fail("played"))
  (tmp_path / "file").write_text("")
  assert refusal(pretrained, *words, "--pretrained", tmp_path / "file") == (
    f"error: --pretrained: {tmp_path / 'file'} cannot be made: File exists")


def test_scores_are_printed_before_the_weights_are_saved(words, tmp_path, monkeypatch, capsys):
  def full(*_):
    raise OSError("no space")

  monkeypatch.setattr(pretrained.pretrained, "save_pretrained", full)
  assert launch(pretrained, *words, "--pretrained", tmp_path / "data") == "error: no space"
  assert capsys.readouterr().out == (
    "opponent=rusher games=10 score=0.600 score_interval=[0.313,0.832]\n")
