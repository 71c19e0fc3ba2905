"""A game that another package registers trains, is evaluated and plays a league."""

import sqlite3
import sys

import pytest

from starleague.common import results, run_files
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


@pytest.mark.nightly
@pytest.mark.slow
def test_it_trains_and_is_evaluated(registered):
  with running("train", *command(
      registered, "--config.learner.updates=3", "--config.evaluation.games=4")) as process:
    output_of(process)
  run_dir = registered / "counting"
  rows = results.by_tag(results.read(run_dir / results.FILE_NAME))
  assert rows["score/eval/idle"][-1].update == 3
  # No player queues more than the eager one.
  assert rows["win_rate/eval/eager"][-1].value == 0.0
  assert rows["score/eval/idle"][-1].value >= rows["score/eval/eager"][-1].value
  assert (run_dir / "report.html").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("composition, learners", [
  ("terran:1:0:0", ["terran-main-0"]),
  pytest.param("terran:1:1:0", ["terran-main-0", "terran-main_exploiter-0"],
               marks=pytest.mark.nightly)])
def test_it_plays_a_league(registered, composition, learners):
  total = 3 * len(learners)
  with running("league", *command(
      registered, "--config.init=pretrained", f"--config.learner.updates={total}",
      f"--config.league.composition={composition}", "--config.league.places=2",
      "--config.league.chunk=8", "--config.league.games=4",
      "--config.league.snapshot_steps=256", "--config.league.timeout_steps=512")) as process:
    output_of(process)
  run_dir = registered / "counting"
  with sqlite3.connect(run_dir / run_files.LEAGUE) as connection:
    homes = {home for home, in connection.execute("SELECT DISTINCT home FROM results")}
    played = connection.execute("SELECT COUNT(*) FROM results").fetchone()[0]
  assert set(learners) <= homes and played > 10 * len(learners)
  updates = [saved_steps(run_files.learner_dir(run_dir, name) / run_files.CHECKPOINTS)[-1]
             for name in learners]
  assert sum(updates) == total and min(updates) >= 1
