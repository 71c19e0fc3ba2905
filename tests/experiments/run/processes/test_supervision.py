"""The directory of a run."""

import io
import re
import sys

import numpy as np
import pytest

from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.common import disk, results, run_files
from starleague.common.errors import UserError
from starleague.data import checkpoints
from starleague.data.games import files as games_files
from starleague.experiments.configs import adaptive, mini, small
from starleague.experiments.run.config import settings
from starleague.experiments.run.datasets import demonstrations
from starleague.experiments.run.parts import learner_options
from starleague.experiments.run.processes import process_runner, supervision
from starleague.experiments.run.progress import display
from starleague.learner import wandb_run
from starleague.learner.loops import imitation_setup
from starleague.learner.loops.imitation_setup import Position
from tests import processes
from tests.data.games import recorded_games
from tests.experiments import imitated_games
from tests.experiments.run import libraries


def test_a_league_and_a_run_of_one_agent_do_not_share_a_directory(tmp_path):
  config = settings.complete({})
  run_files.learner_dir(tmp_path / "a", "main").mkdir(parents=True)
  with pytest.raises(settings.SettingsError, match="/a' is a league: continue it with league, or"):
    supervision.prepare(config, tmp_path / "a")
  (tmp_path / "b" / run_files.CHECKPOINTS).mkdir(parents=True)
  with pytest.raises(settings.SettingsError, match="/b' trains one agent: continue it with train"):
    supervision.prepare(config, tmp_path / "b", league=True)
  supervision.prepare(config, tmp_path / "a", league=True)
  assert settings.load(tmp_path / "a").to_dict() == config.to_dict()


def test_a_resumed_run_may_change_its_evaluation_but_not_its_learning(tmp_path):
  supervision.prepare(settings.complete({}), tmp_path)
  supervision.prepare(settings.complete({}, {"evaluation.temperature": 0.5}), tmp_path)
  assert settings.load(tmp_path).evaluation.temperature == 0.5
  with pytest.raises(settings.SettingsError, match="was started with learner.learning_rate"):
    supervision.prepare(settings.complete({}, {"learner.learning_rate": 0.5}), tmp_path)


def test_limits_of_imitation_may_change_until_a_later_phase_begins(tmp_path):
  def prepare(**limits):
    supervision.prepare(settings.complete({}, {
      f"imitation.{key}": value for key, value in limits.items()}), tmp_path)

  saved = checkpoints.Checkpoints(tmp_path / run_files.IMITATION, agent_config.mini())
  params = imitation_setup.Best({"m": {"w": np.zeros(2, np.float32)}})
  over = "but this phase of its imitation is over: keep 600.0, or start another --run from its"
  prepare(seconds=300.0, fine_tune_seconds=0.0)
  saved.save(1, params, Position(batch=9, complete=True)._asdict())
  prepare(seconds=600.0, fine_tune_seconds=0.0)
  prepare(seconds=600.0, fine_tune_seconds=20.0)
  saved.save(2, params, Position(phase=1)._asdict())
  prepare(seconds=600.0, fine_tune_seconds=40.0)
  with pytest.raises(settings.SettingsError, match=over) as error:
    prepare(seconds=900.0, fine_tune_seconds=40.0)
  assert "imitation.seconds = 600.0, found 900.0" in str(error.value)
  assert settings.load(tmp_path).imitation.seconds == 600.0
  # Reinforcement learning has begun.
  (tmp_path / run_files.INITIAL).mkdir()
  with pytest.raises(settings.SettingsError, match="fine_tune_seconds = 40.0, found 80.0, but"):
    prepare(seconds=600.0, fine_tune_seconds=80.0)
  prepare(seconds=600.0, fine_tune_seconds=40.0)


def test_a_package_for_metrics_that_is_not_installed_is_named_before_the_run(
    tmp_path, monkeypatch):
  monkeypatch.setitem(sys.modules, "wandb", None)
  config = settings.complete({"learner": {"wandb": "project"}})
  with pytest.raises(wandb_run.WandbError, match=r"; pip install 'starleague\[wandb\]'$"):
    supervision.prepare(config, tmp_path / "run")
  assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("changes, message", [
  ({"preset": "small"}, r"config key 'environment.tier': expected 'default' to record the games "
   r"that a run of preset 'small' imitates, found 'mini'; give 'demonstrations.dataset', or "
   r"another 'init' than 'imitation'\."),
  ({"preset": "full"}, "config key 'preset': expected 'mini' or 'small' to record the games that a "
   "run of preset 'full' imitates, found 'full'; .*"),
  ({"preset": "full", "environment.tier": "large", "environment.opponents": "rush",
    "actor.demonstrators": "", "demonstrations.players": "rush"},
   "config key 'preset': .*'full'.*"),
])
def test_games_that_cannot_be_recorded_for_a_run_are_named(changes, message):
  config = settings.complete({}, changes)
  with pytest.raises(settings.SettingsError) as error:
    supervision.check_recording(config)
  assert re.fullmatch(message, str(error.value)), error.value


def test_games_are_recorded_at_the_tier_of_each_config():
  for get_config in (mini.get_config, small.get_config, adaptive.get_config):
    supervision.check_recording(settings.complete(get_config().to_dict()))
  assert {preset: sizes.tier for preset, sizes in demonstrations.SIZES.items()} == {
    "mini": "mini", "small": "default"}


def without_z(won=True):
  """Ten games of which the winner, from each side in turn, has no z, or nobody wins."""
  empty = types.zeros(types.statistics_spec())
  return [[recorded_games.episode(
    agent_config.mini(), 5, 2 * game + player, game=game, player=player, side=(game + player) % 2,
    result=(1 - 2 * player) * won, mmr=7000, **({"z": empty} if won else {}))
    for player in (0, 1)] for game in range(10)]


def write(path, played):
  with games_files.GamesWriter(path, agent_config.mini(), "mini", ("open",), "a test") as writer:
    for episodes in played:
      writer.add(episodes)
  return path


def opened(config, path):
  return imitation_setup.read_games(path, learner_options.imitation_options(config))


def test_a_dataset_that_lacks_z_is_refused_before_it_is_imitated(tmp_path):
  config = settings.complete({}, {"imitation.held_out": 0.2, "imitation.fine_tune_seconds": 0.0})
  for name, played in (("drawn", without_z(won=False)), ("without", without_z())):
    with pytest.raises(UserError, match=(
        f"{name} lacks z for 'actor.pseudo_probability' = 0.25, .* at an MMR of at least 6000 .*: "
        "No z for map open, terran against terran, side 0, among 0 games on maps none")):
      supervision.check_z(config, opened(config, write(tmp_path / name, played)))
  without = settings.complete(config.to_dict(), {"actor.pseudo_probability": 0.0})
  supervision.check_z(without, opened(without, tmp_path / "without"))
  supervision.check_z(config, opened(config, imitated_games.write(tmp_path / "won", 8, 5)))
  given = settings.complete(config.to_dict(), {"actor.library": str(tmp_path / "z.npz")})
  with pytest.raises(UserError, match="z.npz"):
    supervision.check_z(given, opened(given, tmp_path / "won"))
  libraries.save_library(tmp_path / "z.npz")
  supervision.check_z(given, opened(given, tmp_path / "without"))


def test_recorded_games_that_lack_z_are_not_imitated(tmp_path, monkeypatch):
  ran = []

  def run(running, watch, place):
    ran.append(running.until)
    write(tmp_path / "demonstrations", without_z())

  monkeypatch.setattr(supervision, "run_processes", run)
  with pytest.raises(UserError, match="demonstrations lacks z for 'actor.pseudo_probability'"):
    supervision.imitate(settings.complete({}), tmp_path, 0.0, None)
  assert ran == [("demonstrator",)]


def test_a_game_without_recordings_needs_a_dataset():
  config = settings.complete({}, {"environment.name": "sc2"})
  with pytest.raises(settings.SettingsError, match=(
      "config key 'demonstrations.dataset' must name recorded games if 'init' is 'imitation' in "
      "sc2, whose games cannot be recorded; found ''.$")):
    supervision.check_recording(config)


def test_deaths_are_printed_and_counted(tmp_path):
  """A process dies twice, another one once."""
  printed = io.StringIO()
  watch = supervision.Watch(tmp_path, 0.0, display.Display(printed))
  watch.report_deaths([])
  watch.report_deaths([process_runner.Death("actor 0", "was killed by SIGKILL (out of memory?)")])
  watch.report_deaths([process_runner.Death("actor 0", "exited with status 1"),
                       process_runner.Death("learner", "exited with status 130")])
  assert printed.getvalue().splitlines() == [
    "process=actor_0 was killed by SIGKILL (out of memory?); it is started again "
    "(deaths so far: 1)",
    "process=actor_0 exited with status 1; it is started again (deaths so far: 2)",
    "process=learner exited with status 130; it is started again (deaths so far: 1)"]
  found = results.by_tag(results.read(tmp_path / results.FILE_NAME))
  assert [row.value for row in found["deaths/actor_0"]] == [1.0, 2.0]
  assert [row.value for row in found["deaths/learner"]] == [1.0]
  # A resumed run counts on.
  resumed = supervision.Watch(tmp_path, 0.0, display.Display(printed))
  resumed.report_deaths([process_runner.Death("actor 0", "exited with status 1")])
  assert printed.getvalue().endswith("(deaths so far: 3)\n")
  found = results.by_tag(results.read(tmp_path / results.FILE_NAME))
  assert results.deaths(found) == {"actor_0": 3, "learner": 1}


def test_a_run_that_is_running_is_refused_until_its_program_dies(tmp_path):
  code = ("import pathlib\n"
          "from starleague.experiments.run.processes import supervision\n"
          "block = supervision.only_one(pathlib.Path(sys.argv[1]))\n"
          "block.__enter__()")
  with processes.holding(code, tmp_path):
    with pytest.raises(settings.SettingsError, match="is running already"):
      with supervision.only_one(tmp_path):
        raise AssertionError
  with supervision.only_one(tmp_path):
    pass


def test_a_report_that_a_full_disk_prevents_does_not_hide_the_runs_error(tmp_path, monkeypatch):
  def full(*arguments):
    raise disk.full(tmp_path)

  results.append(tmp_path / "results.csv", [results.Row(1.0, 1, "loss/a", 0.5)])
  monkeypatch.setattr(supervision.report_page, "write_report", full)
  with pytest.raises(ValueError, match="the learner"), supervision._reported(tmp_path):
    raise ValueError("the learner")
  with pytest.raises(disk.DiskFullError), supervision._reported(tmp_path):
    pass
