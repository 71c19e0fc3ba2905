"""A run of a companion system on this machine: training, evaluation, report."""

import contextlib
import dataclasses
import json
import math
import pathlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from starleague.common import files, progress, provenance, results, run_files
from starleague.common.errors import UserError
from starleague.companions import evaluation, pbt, training
from starleague.companions.options import RunOptions
from starleague.companions.system import inputs_spec, size
from starleague.companions.tasks import registry as tasks
from starleague.companions.tasks.task import Task
from starleague.companions.workers import actor as hosted
from starleague.data import checkpoints, packages
from starleague.experiments.run.companions.system_flags import Chosen
from starleague.experiments.run.processes import supervision
from starleague.viewers.report import page

_OF_EVALUATION = {"evaluation_episodes", "evaluation_tasks"}
# Options that a resumed run may change.
_MAY_CHANGE = {"steps", "workers"} | _OF_EVALUATION
OUTCOME = "outcome.json"  # of a finished run
_REPORT_INTERVAL_S = 1.0


class Outcome(NamedTuple):
  """The result of a finished run and its provenance."""

  evaluation: dict[str, evaluation.Evaluation]  # by part of the task, as `evaluate` returns it
  steps: int
  updates: int
  seconds: float  # of training
  cpu_seconds: float  # of training, of all cores
  commit: str | None
  date: str  # of the end, as 2026-11-24
  machine: str
  parameters: int = 0  # that learn; 0 in files of earlier versions


def read_outcome(run_dir: pathlib.Path) -> Outcome | None:
  """Returns the outcome of a run; None if it has not finished.

  Raises:
    UserError: the file is damaged.
  """
  path = run_dir / OUTCOME
  if not path.exists():
    return None
  try:
    values = json.loads(path.read_text(encoding="utf-8"))
    return Outcome(**{**values, "evaluation": {
      name: evaluation.Evaluation(**part) for name, part in values["evaluation"].items()}})
  except (ValueError, TypeError, KeyError, AttributeError) as error:
    raise UserError(f"{path}: not the outcome of a run: {error}; remove it, and the run is "
                    "evaluated again") from None


def json_of(outcome: Outcome) -> dict[str, object]:
  """Returns an outcome as JSON values."""
  return {**outcome._asdict(), "evaluation": {
    name: part._asdict() for name, part in outcome.evaluation.items()}}


def write_outcome(run_dir: pathlib.Path, outcome: Outcome) -> None:
  """Writes the outcome of a run."""
  with files.replacing(run_dir / OUTCOME) as file:
    json.dump(json_of(outcome), file, indent=2)


def values_of(chosen: Chosen) -> dict[str, object]:
  """Returns the complete config of a run, as JSON values."""
  return {"system": chosen.entry.name, **dataclasses.asdict(chosen.options),
          chosen.entry.name: dataclasses.asdict(chosen.config)}


def check(chosen: Chosen, run_dir: pathlib.Path) -> None:
  """Checks the config of a run that may be resumed.

  Raises:
    UserError: the directory holds a run of another kind, another system or other values.
  """
  path, values = run_dir / run_files.CONFIG, values_of(chosen)
  if path.exists():
    try:
      found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
      raise UserError(f"{path}: not JSON: {error}; choose another --run") from None
    if not isinstance(found, dict) or found.get("system") != chosen.entry.name:
      other = found.get("system", "an agent") if isinstance(found, dict) else "something else"
      raise UserError(f"{run_dir} is a run of {other}, expected one of {chosen.entry.name}; choose "
                      "another --run")
    for key in values:
      if key not in _MAY_CHANGE and found.get(key) != values[key]:
        raise UserError(f"{path}: {key}: found {found.get(key)!r}, expected {values[key]!r}; "
                        "resume the run with its own values, or choose another --run")


def has_evaluation_of(chosen: Chosen, run_dir: pathlib.Path) -> bool:
  """Returns whether a run that passed `check` has the same options of the evaluation."""
  path, values = run_dir / run_files.CONFIG, values_of(chosen)
  if not path.exists():
    return False
  found = json.loads(path.read_text(encoding="utf-8"))
  return all(found.get(key) == values[key] for key in _OF_EVALUATION)


def check_steps(chosen: Chosen, run_dir: pathlib.Path) -> None:
  """Checks that a run has not trained longer than its options say, also if it is not finished.

  Raises:
    UserError: its outcome or a checkpoint has more steps.
  """
  outcome, size = read_outcome(run_dir), chosen.options.steps_per_iteration
  done = [0 if outcome is None else outcome.steps]
  for path in checkpoints.find(run_dir / run_files.CHECKPOINTS).values():
    with contextlib.suppress(*checkpoints.UNUSABLE):  # the run will skip or refuse it
      done.append(checkpoints.read_manifest(path)["extra"].get("steps", 0))
  expected = -(-chosen.options.steps // size) * size  # whole rounds
  if max(done) > expected:
    raise UserError(f"run {str(run_dir)!r} has {max(done)} steps, expected at most {expected}; "
                    "raise --set.steps, or choose another --runs_dir")


def prepare(chosen: Chosen, run_dir: pathlib.Path) -> None:
  """Writes the config of a new run, or checks that of a resumed one; see `check`.

  The outcome of an evaluation with other options is removed: the config no longer describes it.
  """
  check(chosen, run_dir)
  if not has_evaluation_of(chosen, run_dir):
    (run_dir / OUTCOME).unlink(missing_ok=True)
  with files.replacing(run_dir / run_files.CONFIG) as file:
    json.dump(values_of(chosen), file, indent=2)


def execute(chosen: Chosen, run_dir: pathlib.Path, stop: threading.Event,
            report: Callable[[int, str], object],
            worker: pbt.Worker | None = None) -> dict[str, evaluation.Evaluation] | None:
  """Trains a system, evaluates it and writes its report; resumes where it was stopped.

  Args:
    chosen: the system and its options.
    run_dir: of the run.
    stop: ends the training when set, after a checkpoint, or the evaluation.
    report: called once a round with the steps done and figures in a few words.
    worker: of a member of a population, which the run is; None: it stands alone.

  Returns:
    The evaluation by part of the task; None if the run was stopped.

  Raises:
    UserError: another program runs it, the run is of another system, a task is unknown, workers
      cannot step it, or Reverb is not installed.
  """
  packages.require("reverb")
  commit = provenance.commit()  # of the code that runs: the tree may move on during the run
  seed = chosen.options.seed if worker is None else worker.seed  # of the tasks
  task = tasks.make_task(chosen.options.task, chosen.options.copies, seed)
  hosted.check(chosen.options, task)
  system = chosen.entry.make(chosen.config, task, inputs_spec(task))
  others = other_tasks(chosen.options, task, seed)
  if not (run_dir / run_files.CONFIG).exists():  # else the run was checked as it began
    training.check(system, task, chosen.options)
  with supervision.only_one(run_dir):
    prepare(chosen, run_dir)
    if worker is not None:
      worker.discard_later(run_dir)
    trained = training.train(system, task, chosen.options, dataclasses.asdict(chosen.config),
                             run_dir, stop, _Reports(run_dir, chosen.options.steps, report),
                             worker.member.hyperparameters if worker else None, worker)
    if stop.is_set():
      return None
    found: dict[str, evaluation.Evaluation] = {}
    for name, each in {"": task, **others}.items():
      parts = evaluation.evaluate(system, each, trained.params, chosen.options, stop)
      if parts is None:
        return None
      found |= {f"{name}{part}": value for part, value in parts.items()}
    evaluation.record(run_dir, found, trained.counts.seconds, trained.counts.updates)
    page.write_report(run_dir)
    write_outcome(run_dir, Outcome(
      found, **trained.counts._asdict(), commit=commit,
      date=time.strftime("%Y-%m-%d", time.gmtime()), machine=provenance.machine(),
      parameters=size(system, trained.params)))
    return found


def curve_of(rows: Sequence[results.Row], tag: str) -> tuple[np.ndarray, np.ndarray]:
  """Returns the values of a tag over the steps of the task, [N] each.

  Where a run was killed and resumed, steps that it took twice count with their last values.
  """
  steps: dict[tuple[float, int], float] = {}
  found: dict[float, float] = {}
  for row in rows:
    at = row.seconds, row.update
    if row.tag == "total/steps":
      steps[at] = row.value
      found = {step: value for step, value in found.items() if step < row.value}
    elif row.tag == tag and at in steps and math.isfinite(row.value):
      found[steps[at]] = row.value
  return np.array(list(found)), np.array(list(found.values()))


def other_tasks(options: RunOptions, task: Task, seed: int) -> dict[str, Task]:
  """Returns the further tasks of the evaluation, by the names of their parts of it.

  Args:
    options: of the run.
    task: that is trained.
    seed: of the tasks; that of a population in its members.

  Raises:
    UserError: a task is unknown, or a policy of `task` cannot play it.
  """
  found = {}
  for name in tasks.split_names(options.evaluation_tasks):
    other = tasks.make_task(name, options.copies, seed)
    for what, here, there in (("observation", task.observation, other.observation),
                              ("actions", task.num_actions, other.num_actions)):
      if here != there:
        raise UserError(f"evaluation_tasks: {name!r} has the {what} {there}, expected {here}, "
                        f"as {task.name!r}")
    found[f"/{name}"] = other
  return found


class _Reports:
  """Passes reports on, and writes them as the run's progress, about once a second."""

  def __init__(self, run_dir: pathlib.Path, steps: int, report: Callable[[int, str], object]):
    self._run_dir, self._steps, self._report = run_dir, steps, report
    self._written = 0.0

  def __call__(self, steps: int, text: str) -> None:
    self._report(steps, text)
    now = time.monotonic()
    if now - self._written >= _REPORT_INTERVAL_S or steps >= self._steps:
      self._written = now
      progress.write(self._run_dir, progress.Progress(
        progress.TRAINING, steps, self._steps, "steps", text))
