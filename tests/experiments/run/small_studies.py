"""A small study of IMPALA on Catch, and its finished runs without training."""

import json

from starleague.common import files, results
from starleague.companions.evaluation import Evaluation
from starleague.experiments.configs.studies import Arm, Metric, Study
from starleague.experiments.run.companions import populations, runs, studies

STUDY = Study(
  title="Small & fast", system="impala", seeds=(3, 5), metrics=(Metric(digits=1),),
  overrides={"task": "bsuite-catch", "steps": 2048, "copies": 16, "unroll_length": 8,
             "batch_size": 16, "evaluation_episodes": 16, "impala.size": 16,
             "learning_rate": 1e-2},
  arms=(Arm("plain", "V-trace", {}),
        Arm("none", "<no> correction", {"impala.correction": "none", "learning_rate": 2e-3})))


def finish(run, value, curve=((100, 0.0), (200, 1.0))):
  """Writes the results of a run that has finished: its outcome, and its training returns."""
  run.path.mkdir(parents=True)
  rows = []
  for number, (steps, shown) in enumerate(curve):
    rows += [results.Row(5.0 * number, number, "total/steps", steps),
             results.Row(5.0 * number, number, "return/train", shown)]
  results.append(run.path / results.FILE_NAME, [
    *rows, results.Row(60.0, 30, "return/evaluation", value, value - 1, value + 1)])
  runs.prepare(run.chosen, run.path)
  runs.write_outcome(run.path, outcome(value, run.chosen.options.steps))


def finish_population(run, scores, curve):
  """Writes the results of a population: the first member has the curve, the others return 0."""
  names = [f"m{number}" for number in range(len(scores))]
  for number, (name, score) in enumerate(zip(names, scores, strict=True)):
    member = run._replace(path=run.path / name, chosen=populations.member_of(run.chosen, number))
    finish(member, score, curve if number == 0 else [(steps, 0.0) for steps, _ in curve])
  with files.replacing(run.path / populations.RESULT) as file:
    json.dump({"scores": dict(zip(names, scores, strict=True))}, file)
  runs.prepare(run.chosen, run.path)
  runs.write_outcome(run.path, populations.outcome(run.path, names, names[0]))


def outcome(value, steps):
  return runs.Outcome({"": Evaluation(value, value - 1, value + 1, 16)}, steps, 30, 60.0, 90.0,
                      "abc", "2026-11-24", "a machine", 4321)


def make_runs(folder, **given):
  return studies.make_runs(STUDY, given, folder)
