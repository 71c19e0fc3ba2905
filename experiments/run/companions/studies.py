"""The runs of a study: each arm and seed is one of `companion`, in a child process."""

import dataclasses
import functools
import pathlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from starleague.common import progress
from starleague.common.errors import UserError
from starleague.companions import registry
from starleague.companions.tasks import registry as tasks
from starleague.experiments.configs.studies import Arm, Study
from starleague.experiments.run.companions import populations, runs, system_flags
from starleague.experiments.run.companions.system_flags import Chosen
from starleague.experiments.run.processes import graph, process_runner, programs, supervision

POLL_S = 0.5
Report = Callable[[int, str], object]  # (steps of all runs, activity)


class Run(NamedTuple):
  """One arm with one seed."""

  arm: Arm
  seed: int
  chosen: Chosen
  path: pathlib.Path

  @property
  def finished(self) -> bool:
    """Whether it has the steps of the study and an evaluation with the study's options."""
    if not runs.has_evaluation_of(self.chosen, self.path):
      return False
    steps = self.chosen.options.steps
    if self.arm.population:
      return populations.finished(self.path, steps)
    outcome = runs.read_outcome(self.path)
    return outcome is not None and outcome.steps >= steps


def select(study: Study, names: Collection[str] | None) -> Study:
  """Returns a study with some of its arms, in its own order; None: all.

  Raises:
    UserError: an arm does not exist.
  """
  if names is None:
    return study
  known = [arm.name for arm in study.arms]
  for name in names:
    if name not in known:
      raise UserError(f"--arms: {name!r} is no arm; expected some of {', '.join(known)}")
  if not names:
    raise UserError(f"--arms: found none; expected some of {', '.join(known)}")
  return study._replace(arms=tuple(arm for arm in study.arms if arm.name in names))


def make_runs(study: Study, given: Mapping[str, Any], folder: pathlib.Path) -> list[Run]:
  """Returns the runs of a study, all arms of the first seed first.

  Args:
    study: its arms and seeds.
    given: values of the command line by key. They precede those of the study, and do not reach its
      teachers. Keys of a system reach the arms of that system.
    folder: of the runs.

  Raises:
    UserError: a key belongs to no arm's system or is set by an arm, a value is invalid, or a folder
      holds another run or one with more steps.
  """
  if "seed" in given:
    raise UserError("--set.seed: a study has several seeds; choose them by --seeds")
  systems = {arm.system or study.system for arm in study.arms}
  for key in given:
    if "." in key and key.partition(".")[0] not in systems:
      raise UserError(f"--set.{key}: the study trains {', '.join(sorted(systems))}; expected a key "
                      "of it, or one without a group")
    for arm in study.arms:
      if key in arm.overrides:
        raise UserError(f"--set.{key}: the arm {arm.name!r} sets it to {arm.overrides[key]!r}; "
                        "expected a key that no arm sets, or other --arms")

  def make(arm: Arm, seed: int) -> Run:
    entry = registry.find(arm.system or study.system)
    teachers = {study.teachers_key: ",".join(str(run.path) for run in taught[seed])
                } if study.teachers else {}
    own = {key: value for key, value in {**study.overrides, **teachers, **given}.items()
           if "." not in key or key.partition(".")[0] == entry.name}
    return _run(entry, arm, seed, {**own, **arm.overrides}, folder / f"{arm.name}_{seed}")

  taught = {seed: _teachers_of(study, seed, folder) for seed in study.seeds}
  return [make(arm, seed) for seed in study.seeds for arm in study.arms]


def make_teachers(study: Study, folder: pathlib.Path) -> list[Run]:
  """Returns the runs of a study that its arms learn from, with their own values.

  A teacher has the seed 0, and one run for the arms of all seeds. If the seed decides its task, it
  has a run for each seed of the study: arms and teachers play one task.

  Raises:
    UserError: a value is invalid, or a folder holds another run or one with more steps.
  """
  found = [run for seed in study.seeds for run in _teachers_of(study, seed, folder)]
  return list({run.path: run for run in found}.values())


def _teachers_of(study: Study, seed: int, folder: pathlib.Path) -> list[Run]:
  """Returns the teachers of the arms of a seed."""
  found = []
  for teacher in study.teachers:
    entry, path = registry.find(teacher.system), folder / f"teacher_{teacher.name}"
    if tasks.depends_on_seed(system_flags.choose(entry, teacher.overrides).options.task):
      found.append(_run(entry, teacher, seed, teacher.overrides,
                        path.with_name(f"{path.name}_{seed}")))
    else:
      found.append(_run(entry, teacher, 0, teacher.overrides, path))
  return found


def _run(entry: registry.Entry, arm: Arm, seed: int, values: Mapping[str, Any],
         path: pathlib.Path) -> Run:
  chosen = system_flags.choose(entry, {**values, "seed": seed})
  kind = populations if arm.population else runs
  kind.check(chosen, path)
  kind.check_steps(chosen, path)
  return Run(arm, seed, chosen, path)


def command(run: Run) -> tuple[programs.Word, ...]:
  """Returns the command line that trains and evaluates a run, or a population of runs."""
  name = run.chosen.entry.name
  defaults = _flat(system_flags.choose(run.chosen.entry, {}))
  changed = {key: value for key, value in _flat(run.chosen).items() if value != defaults[key]}
  return graph.module(
    "population" if run.arm.population else "companion", name, "--run", run.path.name,
    "--runs_dir", str(run.path.parent),
    *(f"--{key}={value}" for key, value in run.arm.population.items()),
    *(f"--set.{key}={value}" for key, value in changed.items()))


def _flat(chosen: Chosen) -> dict[str, Any]:
  """Returns the values of a run by key."""
  name = chosen.entry.name
  return {**dataclasses.asdict(chosen.options),
          **{f"{name}.{key}": value for key, value in dataclasses.asdict(chosen.config).items()}}


def train(every: Sequence[Run], report: Report, finished: Callable[[], object]) -> None:
  """Trains all runs one after the other; skips finished ones and resumes a killed one.

  Args:
    every: from `make_runs`.
    report: called about twice a second.
    finished: called after each run that was trained.

  Raises:
    ProcessFailed: a run died; its log tells why.
    KeyboardInterrupt: Ctrl-C or SIGTERM, after the run has saved a checkpoint.
    UserError: a run ended without an evaluation.
  """
  before = 0
  for run in every:
    if not run.finished:
      child = programs.Process(
        run.path.name, command(run), graph.environment(run.path), run.path / "logs" / "train.log")
      process_runner.run_to_end(
        child, functools.partial(_show, run, before, report), supervision.DEADLINE_S, POLL_S)
      if not run.finished:
        raise UserError(f"{run.path} ended without an evaluation; see its logs")
      finished()
    before += run.chosen.options.steps
    report(before, run.path.name)


def _show(run: Run, before: int, report: Report) -> None:
  """Reports the steps of a run, after those of the runs before it.

  A population counts as one run: its progress is that of its members together.
  """
  now, steps = progress.read(run.path), run.chosen.options.steps
  report(before + min(int(now.done / now.total * steps), steps) if now.total else before,
         f"{run.path.name} {now.detail}".rstrip())
