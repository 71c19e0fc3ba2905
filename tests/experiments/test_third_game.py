"""A game that another package registers plays a league."""

import sqlite3
import sys

import pytest

from starleague.common import run_files
from starleague.experiments import train
from tests.experiments.launch import refusal
from tests.experiments.runs import SIZES, output_of, running, saved_steps

# Equal programs of the learner as in other whole runs.
SETTINGS = ("environment.name=counting", *(size for size in SIZES if "opponents" not in size))


@pytest.fixture
def registered(tmp_path, monkeypatch):
  """Registers the game as an installed package does, for this process and its children."""
  folder = tmp_path / "installed" / "counting-1.0.dist-info"
  folder.mkdir(parents=True)
  (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: counting\nVersion: 1.0\n")
  (folder / "entry_points.txt").write_text(
    "[starleague.games]\ncounting = tests.experiments.counting_game:GAME\n")
  monkeypatch.setenv("PYTHONPATH", f"{folder.parent}:{':'.join(filter(None, sys.path[:1]))}")
  return tmp_path / "runs"


def command(runs_dir, *words):
  return (f"--runs_dir={runs_dir}", "--run=counting", *words,
          *(f"--config.{setting}" for setting in SETTINGS))


def test_a_game_that_is_not_registered_is_refused(tmp_path):
  message = refusal(train, f"--runs_dir={tmp_path}", "--config.environment.name=counting")
  assert message.startswith(
    "error: config key 'environment.name' must be one of skirmish, sc2, found 'counting'")
  assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_it_plays_a_league(registered):
  with running("league", *command(
      registered, "--config.init=pretrained", "--config.learner.updates=3",
      "--config.league.composition=terran:1:0:0", "--config.league.places=2",
      "--config.league.chunk=8", "--config.league.games=4",
      "--config.league.snapshot_steps=256", "--config.league.timeout_steps=512")) as process:
    output_of(process)
  run_dir = registered / "counting"
  with sqlite3.connect(run_dir / run_files.LEAGUE) as connection:
    homes = [home for home, in connection.execute("SELECT home FROM results")]
  assert set(homes) == {"terran-main-0"} and len(homes) > 10
  learner = run_files.learner_dir(run_dir, "terran-main-0")
  assert saved_steps(learner / run_files.CHECKPOINTS)[-1] == 3
