"""A population of runs of one companion system: members in processes of their own, and the result.

A member that dies is started again. It continues from its last report, as all members of a resumed
population do.
"""

import dataclasses
import json
import pathlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from starleague.common import files, progress, ranges, results
from starleague.common.errors import UserError
from starleague.companions import pbt
from starleague.companions.options import valid_range
from starleague.experiments.run.companions import runs
from starleague.experiments.run.companions.system_flags import Chosen
from starleague.experiments.run.processes import graph, process_runner, programs
from starleague.learner import evolution
from starleague.learner.population import Change, Population

FILE, RESULT = "population.sqlite", "population.json"
_POINTS = 60  # of a curve
SELECTIONS = {"t": evolution.t_selection, "truncation": evolution.truncation_selection}
EXPLORATIONS: dict[str, evolution.Explore] = {
  "perturb": evolution.perturb, "resample": evolution.resample}
RANDOM_SEARCH = "none"  # in place of a selection: members never copy
RESTARTS = 5  # in a row
MOST_MEMBERS = 1000
MOST_SEED = ranges.MAX_INT // MOST_MEMBERS - 1  # so that the seeds of all members are int32
DEADLINE_S, POLL_S = 30.0, 0.5
LOSS_COSTS = {"entropy_cost", "kl_cost", "prior_cost", "tau"}  # read from `Fixed`, or a schedule


class Sizes(NamedTuple):
  """The choices of a population, by the names of their flags; a resumed one keeps them."""

  members: int
  interval: int  # steps between two reports
  selection: str  # of SELECTIONS, or RANDOM_SEARCH
  exploration: str  # of EXPLORATIONS


def member_name(number: int) -> str:
  """Returns the name of a member, which is its directory's too."""
  return f"m{number}"


def tunable(chosen: Chosen) -> dict[str, Any]:
  """Returns the hyperparameters of a run that may change without compiling, with their values."""
  costs = {name: getattr(chosen.config, name) for name in sorted(LOSS_COSTS)
           if hasattr(chosen.config, name)}
  return {"learning_rate": chosen.options.learning_rate, **costs}


def open_population(folder: pathlib.Path, chosen: Chosen, sizes: Sizes,
                    ranges: Sequence[str]) -> Population:
  """Opens the file of a population, or creates it.

  Raises:
    UserError: a range or a choice is invalid, or the file holds another population.
  """
  parsed = evolution.parse_ranges(ranges, tunable(chosen))
  for name, (low, high, _) in parsed.items():
    valid = valid_range(f"{chosen.entry.name}.{name}")
    if low not in valid or high not in valid:
      raise UserError(f"range of {name!r}: found {low:g} to {high:g}, expected numbers {valid}")
  select = SELECTIONS.get(sizes.selection, evolution.t_selection)
  try:
    return Population(
      folder / FILE, chosen.entry.name, parsed, sizes.interval, select,
      EXPLORATIONS[sizes.exploration], window=pbt.EVALUATIONS,
      choices={f"--{name}": value for name, value in sizes._asdict().items()})
  except ValueError as error:
    raise UserError(str(error)) from None


def member_of(chosen: Chosen, number: int) -> Chosen:
  """Returns the run of a member of a population, with a seed of its own for weights and actions."""
  options = chosen.options
  return chosen._replace(
    options=dataclasses.replace(options, seed=options.seed * MOST_MEMBERS + number))


def check(chosen: Chosen, folder: pathlib.Path) -> None:
  """Checks the config of a population that may be resumed, and that of its first member.

  An unfinished population has no config yet, and one of an earlier version none at all.

  Raises:
    UserError: the seed is too large, or the directory holds a population of other values.
  """
  if chosen.options.seed > MOST_SEED:
    raise UserError(f"seed: found {chosen.options.seed}, expected at most {MOST_SEED} for a "
                    f"population, whose members have seeds from {MOST_MEMBERS} times this one on")
  runs.check(chosen, folder)
  runs.check(member_of(chosen, 0), folder / member_name(0))


def check_steps(chosen: Chosen, folder: pathlib.Path) -> None:
  """Checks that no member has trained longer than the options say; see `runs.check_steps`."""
  for path in sorted(folder.glob("m[0-9]*")):
    runs.check_steps(chosen, path)


def finished(folder: pathlib.Path, steps: int) -> bool:
  """Returns whether a population has so many steps of each member, and a result."""
  found = runs.read_outcome(folder)  # is written after the result
  return found is not None and found.steps >= steps * len(_scores(folder))


def work(folder: pathlib.Path, chosen: Chosen, sizes: Sizes, ranges: Sequence[str], number: int,
         stop: threading.Event, report: Callable[[int, str], object]) -> bool:
  """Trains one member, in a process of its own; returns whether it was completed."""
  population = open_population(folder, chosen, sizes, ranges)
  options = chosen.options
  worker = pbt.Worker(population, member_name(number), options.seed, number, sizes.interval,
                      sizes.selection != RANDOM_SEARCH)
  return runs.execute(
    member_of(chosen, number), folder / member_name(number), stop, report, worker) is not None


def execute(folder: pathlib.Path, chosen: Chosen, sizes: Sizes, ranges: Sequence[str],
            argv: Sequence[str], report: Callable[[int, str], object]) -> dict[str, Any]:
  """Trains all members at the same time and returns the result; resumes where it was stopped.

  Args:
    folder: of the population.
    chosen: the members' system and options.
    sizes: of the population.
    ranges: of the hyperparameters.
    argv: command line of a member, without its number.
    report: called about twice a second with the steps of all members.

  Returns:
    Scores by member, best first; the best one's name and its schedule of hyperparameters, which
    names the members that it copied; the number of all copies.

  Raises:
    ProcessFailed: a member died more often than it may be restarted.
    UserError: a choice is invalid, or the folder holds a population of other values.
  """
  check(chosen, folder)
  open_population(folder, chosen, sizes, ranges).close()
  names = [member_name(number) for number in range(sizes.members)]
  processes = [programs.Process(
    name, (programs.Placeholder.PYTHON, *argv, "--member", str(number)),
    graph.environment(folder), folder / "logs" / f"{name}.log", restarts=RESTARTS)
    for number, name in enumerate(names)]

  with process_runner.Runner(processes, deadline_seconds=DEADLINE_S) as runner:
    while set(runner.poll().values()) != {process_runner.State.FINISHED}:
      _show(runner, folder, names, sizes.members * chosen.options.steps, report)
      time.sleep(POLL_S)
  found = result(open_population(folder, chosen, sizes, ranges), folder, names)
  with files.replacing(folder / RESULT) as file:
    json.dump(found, file, indent=2)
  runs.prepare(chosen, folder)  # not before: members refuse choices that do not fit
  runs.write_outcome(folder, outcome(folder, names, found["best"]))
  return found


def _show(runner: process_runner.Runner, folder: pathlib.Path, names: Sequence[str], steps: int,
          report: Callable[[int, str], object]) -> None:
  """Reports the progress of all members, and writes it."""
  deaths = sum(runner.restarts().values())
  done = sum(progress.read(folder / name).done for name in names)
  text = f"restarts={deaths}" if deaths else ""
  progress.write(folder, progress.Progress(progress.TRAINING, done, steps, "steps", text))
  report(int(done), text)


def outcome(folder: pathlib.Path, names: Sequence[str], best: str) -> runs.Outcome:
  """Returns the outcome of a population: the best member's evaluation, and the sums of all."""
  members = [_outcome(folder / name) for name in names]
  return _outcome(folder / best)._replace(
    steps=sum(member.steps for member in members),
    updates=sum(member.updates for member in members),
    seconds=max(member.seconds for member in members),
    cpu_seconds=sum(member.cpu_seconds for member in members))


def figures(folder: pathlib.Path) -> dict[str, float]:
  """Returns the evaluation of the best member and the mean of all members', by tag."""
  scores = _scores(folder).values()
  return {"return/evaluation": max(scores),
          "return/evaluation/mean": float(np.mean(list(scores)))}


def curve_of(folder: pathlib.Path, tag: str) -> tuple[np.ndarray, np.ndarray]:
  """Returns training returns of the members over the steps of one, [N] each.

  A member without finished training episodes has none; then N is 0.

  Args:
    folder: of the population.
    tag: "return/train/best" or "return/train/mean", of all members at each step.
  """
  curves = [runs.curve_of(results.read(folder / name / results.FILE_NAME), "return/train")
            for name in _scores(folder)]
  if any(not len(steps) for steps, _ in curves):
    return np.zeros(0), np.zeros(0)
  steps = np.linspace(max(steps[0] for steps, _ in curves), min(steps[-1] for steps, _ in curves),
                      _POINTS)
  values = np.stack([np.interp(steps, *curve) for curve in curves])
  return steps, values.max(axis=0) if tag.endswith("/best") else values.mean(axis=0)


def result(population: Population, folder: pathlib.Path,
           names: Sequence[str]) -> dict[str, Any]:
  """Returns the scores of the members and the schedule of the best one."""
  scores = {name: float(np.mean([
    part.mean for part in _outcome(folder / name).evaluation.values()])) for name in names}
  ranking = dict(sorted(scores.items(), key=lambda item: -item[1]))
  history = population.history()
  best = next(iter(ranking))
  return {"scores": ranking, "best": best, "schedule": schedule(history, best),
          "copies": sum(change.source is not None for change in history)}


def _scores(folder: pathlib.Path) -> dict[str, float]:
  """Returns the scores of a finished population's members, best first."""
  return json.loads((folder / RESULT).read_text(encoding="utf-8"))["scores"]


def _outcome(run_dir: pathlib.Path) -> runs.Outcome:
  found = runs.read_outcome(run_dir)
  assert found is not None, f"{run_dir} has finished without an outcome"
  return found


def schedule(history: Sequence[Change], name: str) -> list[dict[str, Any]]:
  """Returns the hyperparameters that led to a member's weights, oldest first.

  They are the member's own since it last copied, before that those of the member that it copied.

  Args:
    history: changes of a population, oldest first.
    name: of the member.
  """
  found: list[dict[str, Any]] = []
  before: str | None = name
  for change in reversed(history):
    if change.member == before:
      found.insert(0, {"member": before, "step": change.step, **change.hyperparameters})
      before = change.source
  return found
