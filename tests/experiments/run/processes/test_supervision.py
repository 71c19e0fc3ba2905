"""The directory of a run."""

import io
import sys

import numpy as np
import pytest

from starleague.agent import config as agent_config
from starleague.common import disk, results, run_files
from starleague.common.errors import UserError
from starleague.data import checkpoints
from starleague.experiments.run.config import settings
from starleague.experiments.run.processes import graph, process_runner, supervision
from starleague.experiments.run.progress import display
from starleague.learner import wandb_run
from starleague.learner.loops import imitation_setup
from starleague.learner.loops.imitation_setup import Position
from tests import processes
from tests.data.games import recorded_games
from tests.experiments.run.small_programs import python_process


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


@pytest.mark.parametrize("runs_dir, run, message", [
  ("runs", "lr=1e-3,bs=4", "--run must be a name without '/' and ',', found 'lr=1e-3,bs=4'."),
  ("runs", "a/b", "--run must be a name without '/' and ',', found 'a/b'."),
  ("a,b", "mini", "--runs_dir must name a directory without ',', found 'a,b'."),
  (" ", "mini", "--runs_dir must name a directory without ',', found ' '."),
])
def test_a_run_whose_games_could_not_be_read_has_no_directory(runs_dir, run, message):
  with pytest.raises(settings.SettingsError) as error:
    supervision.run_dir_of(runs_dir, run)
  assert str(error.value) == message
  assert str(supervision.run_dir_of("runs", "lr=1e-3")) == "runs/lr=1e-3"


def test_a_resumed_run_may_change_its_evaluation_but_not_its_learning(tmp_path):
  supervision.prepare(settings.complete({}), tmp_path)
  supervision.prepare(settings.complete({}, {"evaluation.temperature": 0.5}), tmp_path)
  assert settings.load(tmp_path).evaluation.temperature == 0.5
  with pytest.raises(settings.SettingsError, match="was started with learner.learning_rate"):
    supervision.prepare(settings.complete({}, {"learner.learning_rate": 0.5}), tmp_path)


def test_the_limits_of_stages_may_change_until_the_first_one_is_over(tmp_path):
  def prepare(**limits):
    supervision.prepare(settings.complete({"learner": {"stages": 2}}, limits), tmp_path)

  prepare(seconds=600.0)
  prepare(seconds=900.0)
  (tmp_path / run_files.STAGES / "1").mkdir(parents=True)
  prepare(seconds=900.0)
  for limits, found in (({"seconds": 2400.0}, "seconds = 900.0, found 2400.0"),
                        ({"seconds": 900.0, "learner.updates": 9}, "learner.updates = 0, found 9")):
    with pytest.raises(settings.SettingsError) as error:
      prepare(**limits)
    assert str(error.value) == (
      f"run {str(tmp_path)!r} was started with {found}, but the first of its 2 stages is over: "
      f"keep {found.split()[2][:-1]}, or choose another --run.")
  assert settings.load(tmp_path).seconds == 900.0


def test_a_run_has_at_most_the_updates_that_it_should_get(tmp_path):
  supervision.check_updates(tmp_path, 5, 5, "--updates")
  with pytest.raises(settings.SettingsError, match=(
      f"^run '{tmp_path}' has 6 updates, expected at most 5; raise --updates, or choose another "
      "--run.$")):
    supervision.check_updates(tmp_path, 6, 5, "--updates")


def test_a_package_for_metrics_that_is_not_installed_is_named_before_the_run(
    tmp_path, monkeypatch):
  monkeypatch.setitem(sys.modules, "wandb", None)
  config = settings.complete({"learner": {"wandb": "project"}})
  with pytest.raises(wandb_run.WandbError, match=r"; pip install 'starleague\[wandb\]'$"):
    supervision.prepare(config, tmp_path / "run")
  assert not (tmp_path / "run").exists()


def test_recorded_games_that_lack_z_are_not_imitated(tmp_path, monkeypatch):
  ran = []

  def run(running, watch, place):
    ran.append(running.until)
    recorded_games.write(tmp_path / "demonstrations", agent_config.mini(), [5] * 9)

  monkeypatch.setattr(supervision, "run_processes", run)
  with pytest.raises(UserError, match="demonstrations lacks z for 'actor.pseudo_probability'"):
    supervision.imitate(settings.complete({}), tmp_path, 0.0, None)
  assert ran == [("demonstrator",)]


@pytest.mark.parametrize("dataset, position, expected", [
  ("", None, [("demonstrator", "demonstrations"), ("imitator", "--first_phase"),
              ("labeller", "labels"), ("imitator", "--labelled")]),
  ("games", None, [("imitator", "--first_phase"), ("labeller", "labels"),
                   ("imitator", "--labelled")]),
  # Killed while the imitator played, or in a later phase.
  ("games", Position(complete=True), [("imitator", "--first_phase"), ("labeller", "labels"),
                                      ("imitator", "--labelled")]),
  ("games", Position(phase=1), [("imitator", "--labelled")]),
  ("games", Position(phase=2), [("imitator", "--labelled")]),
])
def test_the_imitators_games_are_labelled_between_two_phases(
    tmp_path, monkeypatch, dataset, position, expected):
  ran = []

  def run(running, watch, place):
    argv = running.processes[0].argv
    ran.append((running.until[0], next(
      word for word in ("--first_phase", "--labelled", "labels", "demonstrations")
      if word in argv or str(tmp_path / word) in argv)))

  if position is not None:
    checkpoints.Checkpoints(tmp_path / run_files.IMITATION, agent_config.mini()).save(
      1, imitation_setup.Best({"m": {"w": np.zeros(2, np.float32)}}), position._asdict())
  monkeypatch.setattr(supervision, "run_processes", run)
  config = settings.complete({}, {
    "demonstrations.dataset": dataset, "demonstrations.labels": 8,
    "actor.pseudo_probability": 0.0})
  supervision.imitate(config, tmp_path, 0.0, None)
  assert ran == expected


def test_a_run_restarts_all_processes_but_those_that_end_it(tmp_path):
  """An actor that ends with status 0, as at SIGTERM, is dead; the learner of this status is not."""
  done = tmp_path / "done"
  actor = python_process(tmp_path, "actor", f"""
    import os, time
    if os.path.exists({str(done)!r}): time.sleep(60)
    open({str(done)!r}, "w").close()
  """, restarts=1)
  learner = python_process(tmp_path, "learner", f"""
    import os, time
    while not os.path.exists({str(done)!r}): time.sleep(0.01)
    time.sleep(1.0)
  """)
  printed = io.StringIO()
  watch = supervision.Watch(tmp_path, 0.0, display.Display(printed))
  supervision.run_processes(graph.Graph((actor, learner), ("learner",)), watch, None)
  assert printed.getvalue().splitlines()[0] == (
    "process=actor exited with status 0; it is started again (deaths so far: 1)")


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
