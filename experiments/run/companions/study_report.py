"""The files of a study: JSON, a table, a picture and a page, of the runs that have finished."""

import functools
import json
import math
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from starleague.common import files, results
from starleague.common.errors import UserError
from starleague.experiments.configs.studies import Study
from starleague.experiments.run.companions import populations
from starleague.experiments.run.companions import runs as companion_runs
from starleague.experiments.run.companions.runs import Outcome
from starleague.experiments.run.companions.studies import Run
from starleague.experiments.run.evaluation import estimates, measures
from starleague.viewers import bars, lines, pages, svg

NAME = "study"  # of the files, in the study's folder
POINTS = 60  # of a curve


class Finished(NamedTuple):
  """A run that has finished."""

  run: Run
  outcome: Outcome
  values: tuple[float, ...]  # of the study's metrics
  curves: tuple[tuple[np.ndarray, np.ndarray], ...]  # of the metrics: steps and values, [N] each


def read(study: Study, every: Sequence[Run]) -> list[Finished]:
  """Returns the finished ones of a study's runs.

  Raises:
    UserError: a run has no value of a metric.
  """
  found = []
  for run in every:
    if run.finished:
      outcome = companion_runs.read_outcome(run.path)
      assert outcome is not None
      if run.arm.population:
        path = run.path / populations.RESULT
        last, curve = populations.figures(run.path), functools.partial(
          populations.curve_of, run.path)
      else:
        path = run.path / results.FILE_NAME
        rows = results.read(path)
        last = {row.tag: row.value for row in rows}
        curve = functools.partial(companion_runs.curve_of, rows)
      curves = tuple(curve(metric.curve) for metric in study.metrics)
      for metric in study.metrics:
        if metric.tag and metric.tag not in last:
          raise UserError(f"{path}: no {metric.tag!r}, a metric of the study; found "
                          f"{', '.join(sorted(last))}")
      found.append(Finished(run, outcome, tuple(
        last[metric.tag] if metric.tag else _mean_over_steps(*drawn)
        for metric, drawn in zip(study.metrics, curves, strict=True)), curves))
  return found


def _mean_over_steps(steps: np.ndarray, values: np.ndarray) -> float:
  """Returns the mean of a curve: the log has more points where the machine was slow."""
  if len(steps) < 2:
    return float("inf")  # not reached
  from scipy import integrate  # slow to import

  return float(integrate.trapezoid(values, steps) / (steps[-1] - steps[0]))


def mean_curve(label: str, curves: Sequence[tuple[np.ndarray, np.ndarray]]) -> lines.Curve | None:
  """Returns the mean of curves with 95% t intervals over the steps that all of them have.

  Args:
    label: of the curve.
    curves: steps and values of each seed.

  Returns:
    A curve of `POINTS` points; None if a seed has no values.
  """
  if any(len(steps) == 0 for steps, _ in curves):
    return None
  begin = max(steps[0] for steps, _ in curves)
  x = np.linspace(begin, max(begin, min(steps[-1] for steps, _ in curves)), POINTS)
  means = [estimates.mean(column) for column in np.stack(
    [np.interp(x, steps, values) for steps, values in curves], axis=1)]
  y, low, high = zip(*means, strict=True)
  return lines.Curve(label, tuple(x.tolist()), y, low, high)


def by_arm(study: Study, found: Sequence[Finished],
           value: Callable[[Finished], float]) -> dict[str, tuple[float, ...]]:
  """Returns a value of each finished run, by arm."""
  return {arm.name: values for arm in study.arms
          if (values := tuple(value(each) for each in found if each.run.arm == arm))}


def measures_of(study: Study, found: Sequence[Finished]) -> list[measures.Measure]:
  """Returns the study's metrics by arm."""
  def value(number: int) -> Callable[[Finished], float]:
    return lambda each: each.values[number]

  return [measures.Measure(metric.title, metric.digits, by_arm(study, found, value(number)))
          for number, metric in enumerate(study.metrics)]


def table(study: Study, found: Sequence[Finished]) -> list[str]:
  """Returns the results as lines of Markdown: means over the seeds, and the value of each seed."""
  shown = measures_of(study, found)
  sizes = {"million steps": lambda each: each.outcome.steps / 1e6,
           "thousand updates": lambda each: each.outcome.updates / 1e3,
           "CPU minutes": lambda each: each.outcome.cpu_seconds / 60}
  if all(each.outcome.parameters for each in found):
    sizes["thousand parameters"] = lambda each: each.outcome.parameters / 1e3
  means = [by_arm(study, found, value) for value in sizes.values()]
  head = [cell for measure in shown for cell in (measure.title, "of each seed")]
  rows = [f"| | {' | '.join([*head, *sizes])} |", f"|---|{'---|' * (len(head) + len(sizes))}"]
  titles = {arm.name: arm.title for arm in study.arms}
  panels = [measures.panel(measure, titles) for measure in shown]
  for place, name in enumerate(means[0]):
    cells = [cell for panel in panels for cell in (
      bars.text(panel.bars[place], panel.digits),
      ", ".join(f"{value:.{panel.digits}f}" for value in panel.bars[place].points))]
    cells += [f"{np.mean(size[name]):.2f}" for size in means]
    rows.append(f"| {titles[name]} | {' | '.join(cells)} |")
  return rows


def write(study: Study, every: Sequence[Run], folder: pathlib.Path) -> list[str]:
  """Writes `study.json`, `.md`, `.svg` and `.html`; returns the tables as lines.

  Args:
    study: that the runs belong to.
    every: its runs; those that have not finished are left out.
    folder: of the files.
  """
  found = read(study, every)
  titles = {arm.name: arm.title for arm in study.arms}
  shown = measures_of(study, found)
  kinds = list(shown[0].values)
  curves = [{name: mean_curve(titles[name], [
    each.curves[number] for each in found if each.run.arm.name == name]) for name in kinds}
    for number in range(len(study.metrics))]
  # Metrics of the same curve, such as scores in several tasks, share its panel.
  by_curve: dict[str, list[Any]] = {}
  for metric, measure, curve in zip(study.metrics, shown, curves, strict=True):
    by_curve.setdefault(metric.curve, [lines.Panel(
      metric.curve_title, "steps of the task", tuple(filter(None, curve.values())))]).append(
        measures.panel(measure, titles))
  rows = measures.differences(shown, [(kinds[0], kind) for kind in kinds[1:]])
  text = [f"**{study.title}**", "", *table(study, found), ""]
  text += measures.step_table(rows, titles) if rows else []
  about = (f"{len(found)} of {len(every)} runs have finished. Means over the seeds with 95% t "
           "intervals; dots: seeds.")
  page = pages.charts_page(study.title, about, [
    pages.Charts("", [lines.plot(panel), *map(bars.plot, scores)])
    for panel, *scores in by_curve.values()])
  picture = svg.picture([drawing for panel, *scores in by_curve.values()
                         for drawing in (lines.drawing(panel), *map(bars.drawing, scores))])
  document = _document(study, every, found, rows, curves)
  for suffix, content in ((".json", json.dumps(document, indent=1)), (".html", page),
                          (".md", "\n".join([*text, "", about, ""])), (".svg", picture)):
    with files.replacing(folder / f"{NAME}{suffix}") as file:
      file.write(content)
  return text


def _document(study: Study, every: Sequence[Run], found: Sequence[Finished],
              differences: Sequence[Sequence[Any]],
              curves: Sequence[Mapping[str, lines.Curve | None]]) -> dict[str, Any]:
  """Returns the content of `study.json`."""
  def numbers(values: Sequence[float]) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values]

  return {
    "title": study.title, "metrics": [metric._asdict() for metric in study.metrics],
    "seeds": list(study.seeds),
    "arms": {arm.name: {
      "title": arm.title, "overrides": dict(arm.overrides),
      "config": next(companion_runs.values_of(run.chosen) for run in every if run.arm == arm)}
      for arm in study.arms},
    "runs": [{"arm": each.run.arm.name, "seed": each.run.seed, "values": numbers(each.values),
              **companion_runs.json_of(each.outcome)} for each in found],
    "differences": differences,
    "curves": [{name: {"steps": list(curve.x), "mean": list(curve.y), "low": numbers(curve.low),
                       "high": numbers(curve.high)}
                for name, curve in by_kind.items() if curve is not None} for by_kind in curves]}
