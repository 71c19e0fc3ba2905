"""A population trains in processes, survives a killed member, and tells the schedule it found."""

import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from starleague.common import progress, results, run_files
from starleague.common.errors import UserError
from starleague.companions import registry, training
from starleague.companions.evaluation import Evaluation
from starleague.experiments import population
from starleague.experiments.run.companions import populations, runs, system_flags
from starleague.learner.population import Change
from tests.experiments import launch
from tests.experiments.run import small_studies
from tests.experiments.runs import pids_of

SIZES = populations.Sizes(2, 1000, "truncation", "perturb")


def chosen(**values):
  return system_flags.choose(registry.find("impala"), {"task": "bsuite-catch", **values})


def test_what_a_run_can_tune():
  assert set(populations.tunable(chosen())) == {"learning_rate", "entropy_cost"}
  ftw = system_flags.choose(registry.find("ftw"), {})
  assert set(populations.tunable(ftw)) == {
    "learning_rate", "entropy_cost", "kl_cost", "prior_cost", "tau"}


def test_another_population_is_refused(tmp_path):
  populations.open_population(tmp_path, chosen(), SIZES, ["learning_rate=1e-4:1e-2"]).close()
  with pytest.raises(UserError, match="expected for the hyperparameter 'learning_rate'"):
    populations.open_population(tmp_path, chosen(), SIZES, ["learning_rate=1e-3:1e-2"])


@pytest.mark.parametrize("text, message", [
  ("tau=0.1:0.45", "range of 'tau': found 0.1 to 0.45, expected numbers in [1, 2147483647]"),
  ("tau=0.6:20", "range of 'tau': found 0.6 to 20, expected numbers in [1, 2147483647]"),
  ("entropy_cost=-1:1:linear",
   "range of 'entropy_cost': found -1 to 1, expected numbers at least 0"),
  ("learning_rate=0:1:linear", "range of 'learning_rate': found 0 to 1, expected numbers above 0")])
def test_ranges_beyond_those_of_the_options_are_refused(tmp_path, text, message):
  ftw = system_flags.choose(registry.find("ftw"), {})
  with pytest.raises(UserError) as error:
    populations.open_population(tmp_path, ftw, SIZES, [text])
  assert str(error.value) == message and not list(tmp_path.iterdir())


def test_ranges_within_those_of_the_options_are_accepted(tmp_path):
  ftw = system_flags.choose(registry.find("ftw"), {})
  populations.open_population(
    tmp_path, ftw, SIZES, ["tau=1:20", "entropy_cost=0:1:linear", "kl_cost=1e-4:1e-2"]).close()


@pytest.mark.parametrize("changed, message", [
  ({"members": 3}, "expected --members 3, found 2. Open it as it was made"),
  ({"interval": 500}, "expected --interval 500, found 1000"),
  ({"selection": "none"}, "expected --selection 'none', found 'truncation'"),
  ({"exploration": "resample"}, "expected --exploration 'resample', found 'perturb'"),
])
def test_other_choices_are_refused_before_any_work(changed, message, tmp_path):
  ranges = ["learning_rate=1e-4:1e-2"]
  populations.open_population(tmp_path, chosen(), SIZES, ranges).close()
  populations.open_population(tmp_path, chosen(), SIZES, ranges).close()
  with pytest.raises(UserError, match=f"{populations.FILE}: {message}"):
    populations.execute(tmp_path, chosen(), SIZES._replace(**changed), ranges, [],
                        lambda *report: None)
  assert not (tmp_path / "logs").exists()


def test_a_population_of_an_earlier_version_takes_the_choices_of_its_resumption(tmp_path):
  ranges = ["learning_rate=1e-4:1e-2"]
  populations.open_population(tmp_path, chosen(), SIZES, ranges).close()
  with sqlite3.connect(tmp_path / populations.FILE) as file:
    file.execute("DROP TABLE choices")
  others = SIZES._replace(members=3)
  populations.open_population(tmp_path, chosen(), others, ranges).close()
  populations.open_population(tmp_path, chosen(), others, ranges).close()
  with pytest.raises(UserError, match="expected --members 2, found 3"):
    populations.open_population(tmp_path, chosen(), SIZES, ranges)


def test_a_seed_whose_members_have_none_is_refused(tmp_path):
  assert populations.member_of(chosen(seed=2147482), 999).options.seed == 2147482999 < 2**31
  populations.check(chosen(seed=2147482), tmp_path)
  with pytest.raises(UserError, match="^seed: found 2147483, expected at most 2147482 for a pop"):
    populations.check(chosen(seed=2147483), tmp_path)


def test_a_population_of_other_values_is_refused_before_any_work(tmp_path):
  runs.prepare(populations.member_of(chosen(), 0), tmp_path / "m0")
  populations.check(chosen(steps=9), tmp_path)
  with pytest.raises(UserError, match="m0/config.json: copies: found 64, expected 32; resume"):
    populations.execute(tmp_path, chosen(copies=32), SIZES, ["learning_rate=1e-4:1e-2"], [],
                        lambda *report: None)
  assert [path.name for path in tmp_path.iterdir()] == ["m0"]


def test_a_schedule_follows_the_copied_weights():
  changes = [Change("m0", 0, None, {"rate": 1.0}), Change("m1", 0, None, {"rate": 2.0}),
             Change("m0", 10, "m1", {"rate": 3.0}), Change("m1", 10, "m0", {"rate": 4.0}),
             Change("m0", 20, "m1", {"rate": 5.0})]
  assert populations.schedule(changes, "m0") == [
    {"member": "m1", "step": 0, "rate": 2.0}, {"member": "m0", "step": 10, "rate": 3.0},
    {"member": "m1", "step": 10, "rate": 4.0}, {"member": "m0", "step": 20, "rate": 5.0}]
  assert populations.schedule(changes[:2], "m1") == [{"member": "m1", "step": 0, "rate": 2.0}]


def test_an_outcome_has_the_best_evaluation_and_the_work_of_all(tmp_path):
  for number, score in enumerate((1.0, 5.0)):
    found = small_studies.outcome(score, 2048)._replace(seconds=60.0 + number)
    (tmp_path / f"m{number}").mkdir()
    runs.write_outcome(tmp_path / f"m{number}", found)
  found = populations.outcome(tmp_path, ["m0", "m1"], "m1")
  assert (found.evaluation[""].mean, found.steps, found.updates) == (5.0, 4096, 60)
  assert (found.seconds, found.cpu_seconds, found.commit) == (61.0, 180.0, "abc")


@pytest.mark.parametrize("found, complete", [(None, False), ({}, True)])
def test_a_stopped_member_is_not_complete(tmp_path, monkeypatch, found, complete):
  """A member that ends with status 0 counts as finished, and has an outcome."""
  monkeypatch.setattr(runs, "execute", lambda *arguments: found)
  assert populations.work(tmp_path, chosen(), SIZES, ["learning_rate=1e-4:1e-2"], 0,
                          threading.Event(), lambda *_: None) is complete
  monkeypatch.setattr(population.stopping, "stop_event", threading.Event)
  status = launch.launch(population, "impala", "--runs_dir", tmp_path, "--member=0")
  assert status == (0 if complete else 130)


def test_the_members_of_a_population_play_one_task(tmp_path, monkeypatch):
  """The seed of a task decides which action goes right in each cell of `deep_sea`."""
  trained, evaluated = [], []

  def train(system, task, options, *_):
    trained.append((task.seed, options.seed))
    return training.Trained({}, training.Counts(8, 1, 1.0, 1.0))

  def evaluate(system, task, *_):
    evaluated.append((task.name, task.seed))
    return {"": Evaluation(0.0, 0.0, 0.0, 1)}

  monkeypatch.setattr(runs.training, "train", train)
  monkeypatch.setattr(runs.evaluation, "evaluate", evaluate)
  name, further = "bsuite-deep_sea:size=4", "bsuite-deep_sea:size=4,scale=2.0"
  own = chosen(task=name, seed=3, evaluation_tasks=further)
  for number in (0, 1):
    assert populations.work(tmp_path, own, SIZES, ["learning_rate=1e-4:1e-2"], number,
                            threading.Event(), lambda *_: None)
  assert trained == [(3, 3000), (3, 3001)]
  assert evaluated == 2 * [(name, 3), (further, 3)]
  runs.execute(own, tmp_path / "alone", threading.Event(), lambda *_: None)
  assert trained[2:] == [(3, 3)]


@pytest.mark.slow
def test_a_killed_member_comes_back(tmp_path):
  command = [
    sys.executable, "-m", "starleague.experiments.population", "impala", "--runs_dir",
    str(tmp_path), "--members=2", "--interval=3000", "--set.task=bsuite-catch",
    "--set.steps=20000", "--set.copies=16", "--set.unroll_length=8", "--set.batch_size=16",
    "--set.evaluation_episodes=16", "--set.impala.size=16"]
  folder = tmp_path / "impala_population"
  program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
  try:
    killed = False
    end = time.monotonic() + 550
    while program.poll() is None and time.monotonic() < end:
      time.sleep(0.5)
      if not killed and reports(folder) >= 2:
        killed = kill_member(tmp_path, 1)
    output = program.communicate(timeout=10)[0]
  finally:
    program.kill()
  assert killed and program.returncode == 0, output
  result = json.loads((folder / populations.RESULT).read_text())
  assert set(result["scores"]) == {"m0", "m1"}
  assert result["schedule"][-1]["member"] == result["best"]
  outcome = runs.read_outcome(folder)
  assert outcome.steps == 2 * 20096
  config = json.loads((folder / run_files.CONFIG).read_text())
  assert (config["task"], config["seed"], config["impala"]["size"]) == ("bsuite-catch", 0, 16)
  assert outcome.evaluation[""].mean == populations.figures(folder)["return/evaluation"]
  assert progress.read(folder).total == 2 * 20000
  with sqlite3.connect(folder / populations.FILE) as file:
    assert file.execute("SELECT incarnation FROM members WHERE name = 'm1'").fetchone()[0] >= 2
    assert [row[0] for row in file.execute("SELECT step FROM members")] == [20096, 20096]


def reports(folder):
  try:
    with sqlite3.connect(f"file:{folder / populations.FILE}?mode=ro", uri=True) as file:
      return file.execute("SELECT reports FROM population").fetchone()[0]
  except (sqlite3.Error, TypeError):
    return 0


def kill_member(runs_dir, number):
  """Kills the process of a member of a run in `runs_dir`; returns whether there was one."""
  found = [pid for pid in pids_of(runs_dir, "population") if is_member(pid, number)]
  assert len(found) <= 1, f"processes of member {number}: expected at most one, found {found}"
  for pid in found:
    os.kill(pid, signal.SIGKILL)
  return bool(found)


def is_member(pid, number):
  """Returns whether the command line of a process ends with a member's number."""
  try:
    words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
  except OSError:  # it has ended
    return False
  return words[-3:] == [b"--member", str(number).encode(), b""]


def test_only_the_member_of_this_folder_is_killed(tmp_path):
  def member(folder, number):
    return subprocess.Popen([
      sys.executable, "-c", "import time; print(flush=True); time.sleep(300)",
      "starleague.experiments.population", "--runs_dir", str(folder), "--member", str(number)],
      stdout=subprocess.PIPE)

  one, other, elsewhere = started = [
    member(tmp_path / "a", 1), member(tmp_path / "a", 2), member(tmp_path / "b", 1)]
  try:
    for process in started:
      process.stdout.readline()
    assert kill_member(tmp_path / "a", 1)
    assert one.wait(60) == -signal.SIGKILL
    assert not kill_member(tmp_path / "a", 1)
    assert (other.poll(), elsewhere.poll()) == (None, None)
  finally:
    for process in started:
      process.kill()
      process.communicate()


def test_a_curve_is_that_of_all_members(tmp_path):
  """m0 has 1 at all of 10 to 30 steps, m1 rises from 0 at 10 steps to 4 at 30."""
  (tmp_path / populations.RESULT).write_text('{"scores": {"m0": 1.0, "m1": 2.0}}')
  for name, returns in (("m0", (1.0, 1.0)), ("m1", (0.0, 4.0))):
    (tmp_path / name).mkdir()
    results.append(tmp_path / name / results.FILE_NAME, [
      row for update, (steps, value) in enumerate(zip((10.0, 30.0), returns, strict=True))
      for row in (results.Row(update, update, "total/steps", steps),
                  results.Row(update, update, "return/train", value))])
  steps, best = populations.curve_of(tmp_path, "return/train/best")
  _, mean = populations.curve_of(tmp_path, "return/train/mean")
  assert (steps[0], steps[-1]) == (10.0, 30.0)
  np.testing.assert_allclose(best, np.maximum(1.0, (steps - 10.0) / 5.0))
  np.testing.assert_allclose(mean, (1.0 + (steps - 10.0) / 5.0) / 2.0)


def test_a_member_without_finished_episodes_has_no_curve(tmp_path):
  (tmp_path / populations.RESULT).write_text('{"scores": {"m0": 1.0}}')
  (tmp_path / "m0").mkdir()
  results.append(tmp_path / "m0" / results.FILE_NAME, [results.Row(1.0, 1, "total/steps", 10.0)])
  assert [len(part) for part in populations.curve_of(tmp_path, "return/train/mean")] == [0, 0]
