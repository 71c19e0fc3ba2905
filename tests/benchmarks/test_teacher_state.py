"""The cost of the teacher's state: the episodes that it names are those that it measured."""

import sys

import numpy as np
import pytest

from benchmarks import teacher_state
from starleague.agent import config as agent_config
from starleague.data import checkpoints
from starleague.learner.terms import ARGUMENTS
from tests.data.games import recorded_games


def run(path, monkeypatch):
  monkeypatch.setattr(sys, "argv", ["teacher_state", "--dataset", str(path), "--student", "a",
                                    "--teacher", "b"])
  monkeypatch.setattr(checkpoints, "load_params", lambda path, config: {})
  asked = []

  def measure(data, student, teacher, episodes, unroll_length):
    asked.append(episodes)
    return teacher_state.Sums(
      np.ones((3, unroll_length, len(ARGUMENTS))), np.ones((unroll_length, len(ARGUMENTS))),
      np.ones(unroll_length))

  monkeypatch.setattr(teacher_state, "measure", measure)
  teacher_state.main()
  return asked


def test_it_names_the_episodes_that_the_dataset_has(tmp_path, monkeypatch, capsys):
  path = recorded_games.write(tmp_path / "games", agent_config.mini(), [5, 4])
  assert run(path, monkeypatch) == [4]
  assert capsys.readouterr().out.startswith("4 episodes, 16 decisions, chunks of 16;")


def test_a_dataset_without_episodes_is_refused(tmp_path, monkeypatch, capsys):
  path = recorded_games.write(tmp_path / "games", agent_config.mini(), [])
  with pytest.raises(SystemExit):
    run(path, monkeypatch)
  assert "error: --dataset, --episodes: no episode to compare on\n" in capsys.readouterr().err
