"""The runs of a study: their values, command lines, and their training in turn."""

import json
import shutil
import sys

import pytest
from absl import flags

from starleague.common import results
from starleague.common.errors import UserError
from starleague.companions import evaluation, registry
from starleague.experiments.configs.studies import STUDIES, Arm
from starleague.experiments.run.companions import runs, studies, system_flags
from starleague.experiments.run.processes import process_runner
from tests.experiments.run import small_studies

# In the place of `companion`: writes an outcome of so many steps.
_TRAIN = """
import json, pathlib, sys
path, text = pathlib.Path(sys.argv[1]), sys.argv[2]
path.mkdir(parents=True, exist_ok=True)
(path / "outcome.json").write_text(text)
"""


@pytest.fixture
def train(monkeypatch):
  """Replaces the child processes; returns the names of the runs that were started."""
  started = []

  def command(run):
    started.append(run.path.name)
    steps = 2048 if run.arm.name == "plain" or started.count(run.path.name) > 1 else 1024
    outcome = runs.json_of(small_studies.outcome(1.0, steps))
    run.path.mkdir(exist_ok=True)
    runs.prepare(run.chosen, run.path)
    return (sys.executable, "-c", _TRAIN, str(run.path), json.dumps(outcome))

  monkeypatch.setattr(studies, "command", command)
  monkeypatch.setattr(studies, "POLL_S", 0.01)
  return started


def test_the_command_line_precedes_the_study_and_reaches_all_arms(tmp_path):
  found = small_studies.make_runs(tmp_path, **{"copies": 32, "impala.size": 8})
  assert [run.path.name for run in found] == ["plain_3", "none_3", "plain_5", "none_5"]
  assert [run.chosen.options.seed for run in found] == [3, 3, 5, 5]
  assert [run.chosen.options.learning_rate for run in found[:2]] == [1e-2, 2e-3]
  assert {(run.chosen.options.copies, run.chosen.options.unroll_length, run.chosen.config.size)
          for run in found} == {(32, 8, 8)}
  assert [run.chosen.config.correction for run in found[:2]] == ["vtrace", "none"]


@pytest.mark.parametrize("given, message", [
  ({"seed": 1}, "--set.seed: a study has several seeds; choose them by --seeds"),
  ({"r2d2.size": 1}, "--set.r2d2.size: the study trains impala; expected a key of it"),
  ({"stepz": 1}, "config key 'stepz' is no key of the system 'impala'"),
  ({"steps": 0}, "steps: found 0, expected a number in [1, 2147483647]"),
  ({"learning_rate": 5e-3}, "--set.learning_rate: the arm 'none' sets it to 0.002; expected a key "
                            "that no arm sets, or other --arms")])
def test_wrong_values_are_refused(given, message, tmp_path):
  with pytest.raises(UserError) as error:
    small_studies.make_runs(tmp_path, **given)
  assert message in str(error.value)


def test_a_key_of_an_arm_that_is_not_chosen_is_accepted(tmp_path):
  study = studies.select(small_studies.STUDY, ["plain"])
  found = studies.make_runs(study, {"learning_rate": 5e-3}, tmp_path)
  assert [run.chosen.options.learning_rate for run in found] == [5e-3, 5e-3]


def test_a_folder_with_another_run_is_refused_before_any_work(tmp_path):
  found = small_studies.make_runs(tmp_path)
  small_studies.finish(found[3], 1.0)
  with pytest.raises(UserError, match="none_5/config.json: copies: found 16, expected 32"):
    small_studies.make_runs(tmp_path, copies=32)


def make_population(folder, **given):
  arm = Arm("many", "population", population={"members": 2, "interval": 512})
  run, = studies.make_runs(small_studies.STUDY._replace(arms=(arm,), seeds=(3,)), given, folder)
  return run


def test_a_population_counts_the_steps_of_each_member(tmp_path):
  run = make_population(tmp_path)
  assert not run.finished
  small_studies.finish_population(run, (1.0, 0.0), ((100, 0.0), (200, 1.0)))
  assert runs.read_outcome(run.path).steps == 2 * 2048 and run.finished
  assert not make_population(tmp_path, steps=2049).finished


def test_runs_of_more_steps_than_the_study_are_refused(tmp_path):
  small_studies.finish(small_studies.make_runs(tmp_path)[0], 1.0)
  with pytest.raises(UserError, match="plain_3' has 2048 steps, expected at most 1024; raise "
                                      "--set.steps, or choose another --runs_dir"):
    small_studies.make_runs(tmp_path, steps=1024)


def test_populations_of_more_steps_than_the_study_are_refused(tmp_path):
  run = make_population(tmp_path)
  small_studies.finish_population(run, (1.0, 0.0), ((100, 0.0), (200, 1.0)))
  shutil.rmtree(run.path / "m0")  # any member counts
  (run.path / "outcome.json").unlink()
  with pytest.raises(UserError, match="many_3/m1' has 2048 steps, expected at most 1024; "):
    make_population(tmp_path, steps=1024)


def test_another_evaluation_evaluates_finished_runs_again(tmp_path):
  run, many = small_studies.make_runs(tmp_path)[0], make_population(tmp_path)
  small_studies.finish(run, 1.0)
  small_studies.finish_population(many, (1.0, 0.0), ((100, 0.0), (200, 1.0)))
  for given, finished in (({}, True), ({"evaluation_episodes": 1000}, False),
                          ({"evaluation_tasks": "bsuite-catch:scale=2"}, False)):
    assert small_studies.make_runs(tmp_path, **given)[0].finished == finished
    assert make_population(tmp_path, **given).finished == finished


@pytest.mark.parametrize("given, message", [
  ({"task": "minatar-breakout"}, "task: found 'bsuite-catch', expected 'minatar-breakout'; "),
  ({"learning_rate": 0.5}, "learning_rate: found 0.01, expected 0.5; ")])
@pytest.mark.parametrize("where", ["", "m0/"])  # of this version, or of an earlier one
def test_a_population_with_other_values_is_refused(given, message, where, tmp_path):
  run = make_population(tmp_path)
  small_studies.finish_population(run, (1.0, 0.0), ((100, 0.0), (200, 1.0)))
  if where:
    (run.path / "config.json").unlink()
  with pytest.raises(UserError, match=f"many_3/{where}config.json: {message}"):
    make_population(tmp_path, **given)


def test_arms_are_selected_by_name_in_the_order_of_the_study():
  study = small_studies.STUDY
  assert studies.select(study, None) == study
  assert [arm.name for arm in studies.select(study, ["none", "plain"]).arms] == ["plain", "none"]
  assert [arm.name for arm in studies.select(study, ["none"]).arms] == ["none"]
  with pytest.raises(UserError, match="--arms: 'all' is no arm; expected some of plain, none"):
    studies.select(study, ["all"])
  with pytest.raises(UserError, match="--arms: found none; expected some of plain, none"):
    studies.select(study, [])


@pytest.mark.parametrize("study", STUDIES.values(), ids=list(STUDIES))
def test_the_command_line_of_a_run_gives_its_values(study, tmp_path):
  for run in studies.make_runs(study, {"min_replay": 7}, tmp_path):
    words, name = studies.command(run), run.chosen.entry.name
    program = "population" if run.arm.population else "companion"
    start = ["-m", f"starleague.experiments.{program}", name, "--run", run.path.name, "--runs_dir",
             str(tmp_path), *(f"--{key}={value}" for key, value in run.arm.population.items())]
    assert list(words[1:1 + len(start)]) == start
    found, defined = flags.FlagValues(), {}
    for key, value in studies._flat(system_flags.choose(registry.find(name), {})).items():
      defined[key] = system_flags._DEFINE[type(value)](
        f"set.{key}", None, "", flag_values=found)
    found(["companion", *(word for word in words if str(word).startswith("--set."))])
    given = {key: flag.value for key, flag in defined.items() if flag.value is not None}
    assert system_flags.choose(run.chosen.entry, given) == run.chosen
    assert run.chosen.options.min_replay == 7


@pytest.mark.parametrize("study", STUDIES.values(), ids=list(STUDIES))
def test_arms_of_a_study_have_names_of_their_own(study):
  names = [arm.name for arm in study.arms]
  assert bool(study.teachers) == bool(study.teachers_key)
  assert len(set(names)) == len(names) > 1 and len({arm.title for arm in study.arms}) == len(names)


@pytest.mark.parametrize("study", STUDIES.values(), ids=list(STUDIES))
def test_the_runs_of_a_study_record_its_metrics(study, tmp_path):
  for run in studies.make_runs(study, {}, tmp_path):
    if run.arm.population:
      continue  # their figures are in the report of the population
    task, further = run.chosen.options.task, run.chosen.options.evaluation_tasks
    parts = [*(task.split("+") if "+" in task else ()), *filter(None, further.split("+"))]
    run.path.mkdir()
    evaluation.record(run.path, {
      name: evaluation.Evaluation(1.0, 0.5, 1.5, 9)
      for name in ("", *(f"/{part}" for part in parts))}, 60.0, 30)
    tags = {row.tag for row in results.read(run.path / results.FILE_NAME)}
    assert {metric.tag for metric in study.metrics if metric.tag} <= tags


def test_keys_of_a_system_reach_its_arms_only(tmp_path, monkeypatch):
  entry = registry.find("impala")
  monkeypatch.setattr(registry, "systems", lambda: {
    "impala": entry, "twin": entry._replace(name="twin")})
  study = small_studies.STUDY._replace(arms=(Arm("one", "1"), Arm("two", "2", system="twin")))
  found = studies.make_runs(study, {"impala.size": 8, "twin.size": 9}, tmp_path)
  assert [run.chosen.config.size for run in found[:2]] == [8, 9]
  assert [studies.command(run)[3] for run in found[:2]] == ["impala", "twin"]


def test_the_arms_of_a_study_get_the_directories_of_its_teachers(tmp_path):
  study = small_studies.STUDY._replace(
    arms=(Arm("student", "1", {"copies": 8}, system="policy_distillation"), Arm("plain", "2")),
    teachers=tuple(Arm(name, name, {"task": f"minatar-{name}", "steps": 512}, system="impala")
                   for name in ("breakout", "asterix")),
    teachers_key="policy_distillation.teachers", overrides={"task": "minatar-breakout"})
  teachers = studies.make_teachers(study, tmp_path)
  assert [(run.path.name, run.seed, run.chosen.options.task) for run in teachers] == [
    ("teacher_breakout", 0, "minatar-breakout"), ("teacher_asterix", 0, "minatar-asterix")]
  found = studies.make_runs(study, {"steps": 99, "impala.size": 8}, tmp_path)
  assert [run.chosen.options.steps for run in teachers + found] == [512, 512, 99, 99, 99, 99]
  assert found[0].chosen.config.teachers == f"{teachers[0].path},{teachers[1].path}"
  assert [run.chosen.config.size for run in (teachers[0], found[1])] == [128, 8]
  small_studies.finish(teachers[0], 1.0)
  changed = study._replace(teachers=(study.teachers[0]._replace(
    overrides={"task": "minatar-freeway"}),))
  with pytest.raises(UserError, match="teacher_breakout/config.json: task: found 'minatar-break"):
    studies.make_runs(changed, {}, tmp_path)


def test_arms_learn_from_teachers_of_their_own_task(tmp_path):
  """The seed decides the actions of `deep_sea`: a teacher for each. Other tasks have one."""
  study = small_studies.STUDY._replace(
    arms=(Arm("student", "1", system="policy_distillation"),),
    teachers=(Arm("sea", "sea", {"task": "bsuite-deep_sea:size=4"}, system="impala"),
              Arm("catch", "catch", {"task": "bsuite-catch"}, system="impala")),
    teachers_key="policy_distillation.teachers", overrides={"copies": 8})
  found = studies.make_teachers(study, tmp_path)
  assert [(run.path.name, run.seed, run.chosen.options.seed) for run in found] == [
    ("teacher_sea_3", 3, 3), ("teacher_catch", 0, 0), ("teacher_sea_5", 5, 5)]
  students = studies.make_runs(study, {}, tmp_path)
  assert [(run.seed, run.chosen.config.teachers) for run in students] == [
    (seed, f"{tmp_path}/teacher_sea_{seed},{tmp_path}/teacher_catch") for seed in (3, 5)]


def test_runs_are_trained_in_turn_and_finished_ones_skipped(tmp_path, train):
  found = small_studies.make_runs(tmp_path)
  small_studies.finish(found[0], 1.0)
  reported, finished = [], []
  arguments = (lambda *report: reported.append(report), lambda: finished.append(len(train)))
  with pytest.raises(UserError, match="none_3 ended without an evaluation; see its logs"):
    studies.train(found, *arguments)
  assert train == ["none_3"] and finished == []  # too few steps
  studies.train(found[:3], *arguments)
  assert train == ["none_3", "none_3", "plain_5"] and finished == [2, 3]
  assert reported[-1] == (3 * 2048, "plain_5")


def test_more_steps_resume_a_finished_run(tmp_path):
  run = small_studies.make_runs(tmp_path)[0]
  small_studies.finish(run, 1.0)
  assert run.finished
  assert not small_studies.make_runs(tmp_path, steps=4096)[0].finished


def test_a_run_that_dies_is_reported_with_its_log(tmp_path, monkeypatch):
  monkeypatch.setattr(studies, "command", lambda run: (
    sys.executable, "-c", "import sys; sys.exit('no room')"))
  with pytest.raises(process_runner.ProcessFailed, match=(
      "'plain_3' exited with status 1(.|\n)*no room")):
    studies.train(small_studies.make_runs(tmp_path), lambda *report: None, lambda: None)
