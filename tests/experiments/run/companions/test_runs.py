"""A run of a companion system trains, evaluates, reports, resumes, and refuses other runs."""

import json
import math
import shutil
import threading

import numpy as np
import pytest

from starleague.common import progress, provenance, results, run_files
from starleague.common.errors import UserError
from starleague.common.results import Row
from starleague.companions import registry, training
from starleague.companions.tasks.task import TaskError
from starleague.experiments.run.companions import runs, system_flags
from tests.experiments.run import small_studies

VALUES = {"task": "bsuite-catch", "steps": 4096, "copies": 16, "unroll_length": 8,
          "batch_size": 16, "evaluation_episodes": 16, "impala.size": 16}


def chosen(**changes):
  return system_flags.choose(registry.find("impala"), VALUES | changes)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
  folder = tmp_path_factory.mktemp("runs") / "impala"
  return folder, runs.execute(chosen(), folder, threading.Event(), lambda steps, text: None)


def test_a_run_leaves_its_files(finished):
  folder, found = finished[0], finished[1][""]
  assert -1.0 <= found.low <= found.mean <= found.high <= 1.0
  tags = results.by_tag(results.read(folder / results.FILE_NAME))
  assert tags["return/evaluation"][-1].value == pytest.approx(found.mean)
  config = json.loads((folder / run_files.CONFIG).read_text())
  assert (config["system"], config["steps"], config["impala"]["size"]) == ("impala", 4096, 16)
  page = (folder / "report.html").read_text()
  assert "return" in page.lower() and "impala" in page


def test_a_finished_run_is_only_evaluated(finished):
  folder, found = finished
  seen = []
  again = runs.execute(chosen(), folder, threading.Event(), lambda steps, text: seen.append(steps))
  assert seen == [] and again == found


def test_a_stop_ends_the_evaluation_of_a_run(finished, monkeypatch):
  folder, _ = finished
  stop, evaluate = threading.Event(), runs.evaluation.evaluate
  written = [(folder / name).read_bytes() for name in (results.FILE_NAME, runs.OUTCOME)]

  def stop_and_evaluate(*arguments):
    stop.set()
    return evaluate(*arguments)

  monkeypatch.setattr(runs.evaluation, "evaluate", stop_and_evaluate)
  assert runs.execute(chosen(), folder, stop, lambda *_: None) is None
  assert written == [(folder / name).read_bytes() for name in (results.FILE_NAME, runs.OUTCOME)]


def test_further_tasks_are_played_in_the_evaluation(finished):
  folder, found = finished
  name = "bsuite-catch:scale=3"
  again = runs.execute(chosen(evaluation_tasks=name), folder, threading.Event(), lambda *_: None)
  assert set(again) == {"", f"/{name}"} and again[""] == found[""]
  assert again[f"/{name}"].mean == pytest.approx(3 * found[""].mean)
  tags = results.by_tag(results.read(folder / results.FILE_NAME))
  assert tags[f"return/evaluation/{name}"][-1].value == pytest.approx(3 * found[""].mean)
  runs.write_outcome(folder, runs.read_outcome(folder)._replace(evaluation=found))


def test_further_tasks_of_other_kinds_are_refused(tmp_path):
  with pytest.raises(UserError, match="evaluation_tasks: 'bsuite-cartpole' has the observation .*, "
                                      "expected .*, as 'bsuite-catch'"):
    runs.execute(chosen(evaluation_tasks="bsuite-cartpole"), tmp_path / "run", threading.Event(),
                 lambda *_: None)
  assert not (tmp_path / "run").exists()


def test_the_outcome_names_the_work_and_the_provenance(finished):
  folder, found = finished
  outcome = runs.read_outcome(folder)
  assert outcome.evaluation == found and outcome.steps == 4096
  # 16 copies complete 16 unrolls a round of 128 steps, the learner's batch; 32 rounds act, the
  # unrolls of the last are not learnt, and a bootstrap step comes with the next round.
  assert outcome.updates == 30
  assert 0 < outcome.cpu_seconds and 0 < outcome.seconds
  # Catch's map of 10 x 5 cells in two layers of 16, 3 actions, a value.
  assert outcome.parameters == 50 * 16 + 16 + 16 * 16 + 16 + 16 * 3 + 3 + 16 + 1
  assert outcome.commit == provenance.commit() and outcome.machine == provenance.machine()
  now = progress.read(folder)
  assert (now.phase, now.done, now.total, now.unit) == ("training", 4096, 4096, "steps")


def test_curves_count_repeated_steps_once():
  rows = [Row(0, 0, "total/steps", 10), Row(0, 0, "return/train", 1.0),
          Row(5, 1, "total/steps", 20), Row(5, 1, "return/train", 2.0),
          Row(9, 2, "total/steps", 30), Row(9, 2, "return/train", math.nan),
          # Killed, and resumed from step 10.
          Row(6, 1, "total/steps", 15), Row(6, 1, "return/train", 5.0),
          Row(8, 2, "loss/value", 3.0)]
  steps, values = runs.curve_of(rows, "return/train")
  np.testing.assert_array_equal(steps, [10, 15])
  np.testing.assert_array_equal(values, [1.0, 5.0])


def test_the_commit_is_that_of_the_start(tmp_path, monkeypatch):
  commits = iter(["first", "second"])
  monkeypatch.setattr(provenance, "commit", lambda: next(commits))

  def train(*arguments):
    assert next(commits) == "second"
    return training.Trained({}, training.Counts(8, 1, 1.0, 1.0))

  monkeypatch.setattr(runs.training, "train", train)
  monkeypatch.setattr(runs.evaluation, "evaluate", lambda *arguments: {
    "": runs.evaluation.Evaluation(0.0, 0.0, 0.0, 1)})
  assert runs.execute(chosen(), tmp_path, threading.Event(), lambda *_: None) is not None
  assert runs.read_outcome(tmp_path).commit == "first"


def test_an_outcome_of_one_episode_is_strict_json(tmp_path):
  found = small_studies.outcome(1.0, 9)._replace(
    evaluation={"": runs.evaluation.Evaluation(1.0, None, None, 1)})
  runs.write_outcome(tmp_path, found)
  assert json.loads((tmp_path / runs.OUTCOME).read_text(), parse_constant=pytest.fail)[
    "evaluation"][""] == {"mean": 1.0, "low": None, "high": None, "episodes": 1}
  assert runs.read_outcome(tmp_path) == found


@pytest.mark.parametrize("changes", [{"evaluation_episodes": 17}, {"evaluation_tasks": "boxworld"}])
def test_the_outcome_of_another_evaluation_is_removed(tmp_path, changes):
  runs.prepare(chosen(), tmp_path)
  runs.write_outcome(tmp_path, small_studies.outcome(1.0, 4096))
  runs.prepare(chosen(steps=8192, workers=1), tmp_path)
  assert runs.read_outcome(tmp_path).steps == 4096
  assert runs.has_evaluation_of(chosen(), tmp_path)
  assert not runs.has_evaluation_of(chosen(**changes), tmp_path)
  runs.prepare(chosen(**changes), tmp_path)
  assert runs.read_outcome(tmp_path) is None
  assert runs.has_evaluation_of(chosen(**changes), tmp_path)


def test_a_run_of_more_steps_is_refused(finished):
  runs.check_steps(chosen(), finished[0])
  runs.check_steps(chosen(steps=4000), finished[0])  # 32 whole rounds of 128 steps
  with pytest.raises(UserError) as error:
    runs.check_steps(chosen(steps=3900), finished[0])
  assert str(error.value) == (
    f"run '{finished[0]}' has 4096 steps, expected at most 3968; raise --set.steps, or choose "
    "another --runs_dir")


def test_steps_are_also_those_of_an_unfinished_run(finished, tmp_path):
  shutil.copytree(finished[0] / run_files.CHECKPOINTS, tmp_path / run_files.CHECKPOINTS)
  with pytest.raises(UserError, match="has 4096 steps, expected at most 2048"):
    runs.check_steps(chosen(steps=2048), tmp_path)
  for path in (tmp_path / run_files.CHECKPOINTS).iterdir():
    (path / "manifest.json").write_text("{}")
  runs.check_steps(chosen(steps=2048), tmp_path)  # training will name the damage


def test_a_damaged_outcome_is_named(tmp_path):
  assert runs.read_outcome(tmp_path) is None
  for text in ("{", "[]", '{"steps": 1}'):
    (tmp_path / runs.OUTCOME).write_text(text)
    with pytest.raises(UserError, match="not the outcome of a run: .*; remove it"):
      runs.read_outcome(tmp_path)


@pytest.mark.parametrize("changes, message", [
  ({"seed": 1}, "seed: found 0, expected 1; resume the run with its own values"),
  ({"impala.size": 8}, "impala: found "),
])
def test_other_values_are_refused(finished, changes, message):
  with pytest.raises(UserError) as error:
    runs.execute(chosen(**changes), finished[0], threading.Event(), lambda *_: None)
  assert message in str(error.value)


@pytest.mark.parametrize("text, message", [
  ("{", "not JSON"), ("[]", "is a run of something else, expected one of impala"),
  ('{"preset": "mini"}', "is a run of an agent, expected one of impala"),
  ('{"system": "r2d2"}', "is a run of r2d2, expected one of impala")])
def test_runs_of_others_are_refused(tmp_path, text, message):
  (tmp_path / run_files.CONFIG).write_text(text)
  with pytest.raises(UserError) as error:
    runs.prepare(chosen(), tmp_path)
  assert message in str(error.value)


def test_an_unknown_task_is_refused_before_any_work(tmp_path):
  with pytest.raises(TaskError, match="unknown task 'minatar-brakeout'"):
    runs.execute(chosen(task="minatar-brakeout"), tmp_path / "run", threading.Event(),
                 lambda *_: None)
  assert not (tmp_path / "run").exists()


def test_a_network_that_cannot_be_built_is_refused_before_any_work(tmp_path):
  with pytest.raises(UserError, match="torso: found 'x', expected one of shallow, deep, dense"):
    runs.execute(chosen(**{"impala.torso": "x"}), tmp_path / "run", threading.Event(),
                 lambda *_: None)
  assert not (tmp_path / "run").exists()  # a config.json would refuse the corrected command


def test_a_batch_that_the_devices_cannot_share_is_refused_before_any_work(tmp_path):
  with pytest.raises(UserError, match="batch_size: found 12, expected a multiple of 8, the number"):
    runs.execute(chosen(batch_size=12), tmp_path / "run", threading.Event(), lambda *_: None)
  assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("changes, message", [
  ({"workers": 17}, "workers: found 17, expected at most the copies, 16"),
  ({"workers": -1}, "workers: found -1, expected a number in [0, 2147483647]"),
  ({"workers": 2, "task": "minatar-breakout"}, "workers: found 2, but task 'minatar-breakout' is "),
  ({"workers": 2, "task": "bsuite-catch+bsuite-catch:scale=2"},
   "workers: found 2, but task 'bsuite-")])
def test_impossible_workers_are_refused_before_any_work(tmp_path, changes, message):
  with pytest.raises(UserError) as error:
    runs.execute(chosen(**changes), tmp_path / "run", threading.Event(), lambda *_: None)
  assert str(error.value).startswith(message) and "\n" not in str(error.value)
  assert not (tmp_path / "run").exists()


def test_a_resumed_run_may_have_another_number_of_workers(finished, tmp_path):
  runs.check(chosen(workers=2), finished[0])
  config = json.loads((finished[0] / run_files.CONFIG).read_text())
  del config["workers"]  # as in runs of earlier versions
  (tmp_path / run_files.CONFIG).write_text(json.dumps(config))
  runs.check(chosen(), tmp_path)
