"""A run of a companion system on this machine: training, evaluation, report."""

import dataclasses
import json
import pathlib
import threading
from collections.abc import Callable

from starleague.common import files, run_files
from starleague.common.errors import UserError
from starleague.companions import evaluation, training
from starleague.companions.system import inputs_spec
from starleague.companions.tasks import registry as tasks
from starleague.experiments.run.companions.system_flags import Chosen
from starleague.experiments.run.processes import supervision
from starleague.viewers.report import page

# Options that a resumed run may change.
_MAY_CHANGE = {"steps", "evaluation_episodes"}


def prepare(chosen: Chosen, run_dir: pathlib.Path) -> None:
  """Writes the config of a new run, or checks that of a resumed one.

  Raises:
    UserError: the directory holds a run of another kind, another system or other values.
  """
  path = run_dir / run_files.CONFIG
  values = {"system": chosen.entry.name, **dataclasses.asdict(chosen.options),
            chosen.entry.name: dataclasses.asdict(chosen.config)}
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
  with files.replacing(path) as file:
    json.dump(values, file, indent=2)


def execute(chosen: Chosen, run_dir: pathlib.Path, stop: threading.Event,
            report: Callable[[int, str], object]) -> dict[str, evaluation.Evaluation] | None:
  """Trains a system, evaluates it and writes its report; resumes where it was stopped.

  Args:
    chosen: the system and its options.
    run_dir: of the run.
    stop: ends the training when set, after a checkpoint.
    report: called once a round with the steps done and figures in a few words.

  Returns:
    The evaluation by part of the task; None if the run was stopped.

  Raises:
    UserError: another program runs it, the run is of another system, or the task is unknown.
  """
  task = tasks.make_task(chosen.options.task, chosen.options.copies, chosen.options.seed)
  system = chosen.entry.make(chosen.config, task, inputs_spec(task))
  with supervision.only_one(run_dir):
    prepare(chosen, run_dir)
    trained = training.train(system, task, chosen.options, dataclasses.asdict(chosen.config),
                             run_dir, stop, report)
    if stop.is_set():
      return None
    found = evaluation.evaluate(system, task, trained.params, chosen.options)
    evaluation.record(run_dir, found, trained.counts.seconds, trained.counts.updates)
    page.write_report(run_dir)
    return found
