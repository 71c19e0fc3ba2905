"""Measures of agents that were trained alike but for one choice: panels and tables."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from starleague.experiments.run.evaluation import estimates, evaluating
from starleague.viewers import bars


class Measure(NamedTuple):
  """One figure of every kind of agent."""

  title: str
  digits: int  # decimals that are printed
  values: dict[str, tuple[float, ...]]  # of each seed, by kind; infinite: not reached


def panel(measure: Measure, titles: Mapping[str, str]) -> bars.Panel:
  """Returns a measure as a panel of bars: means over the seeds with 95% t intervals."""
  shown = []
  for kind, values in measure.values.items():
    reached = np.isfinite(values).all()
    mean = estimates.mean(values) if reached else evaluating.Measured(*[float("inf")] * 3)
    shown.append(bars.Bar(titles[kind], *mean, points=values))
  return bars.Panel(measure.title, tuple(shown), measure.digits)


def table(panels: Sequence[bars.Panel]) -> list[str]:
  """Returns panels as lines of Markdown, a row for each bar of the first one."""
  cells = {bar.label: [""] * len(panels) for bar in panels[0].bars}
  for column, shown in enumerate(panels):
    for bar in shown.bars:
      cells[bar.label][column] = bars.text(bar, shown.digits)
  return [f"| | {' | '.join(shown.title for shown in panels)} |", f"|---|{'---|' * len(panels)}",
          *(f"| {label} | {' | '.join(row)} |" for label, row in cells.items())]


def differences(found: Sequence[Measure], pairs: Sequence[tuple[str, str]]) -> list[list[Any]]:
  """Returns the differences of pairs of kinds, where they can be tested.

  Args:
    found: measures.
    pairs: of a kind and one that it is compared with: (compared with, kind).

  Returns:
    Rows of (title of the measure, kind, compared with, *estimates.Difference). Welch's test over
    the seeds.
  """
  return [[measure.title, kind, before, *estimates.difference(
    measure.values[kind], measure.values[before])]
    for measure in found for before, kind in pairs
    if {before, kind} <= set(measure.values)
    and min(len(measure.values[kind]), len(measure.values[before])) > 1
    and np.isfinite((*measure.values[kind], *measure.values[before])).all()]


def step_table(rows: Sequence[Sequence[Any]], titles: Mapping[str, str]) -> list[str]:
  """Returns rows of `differences` as lines of Markdown."""
  lines = ["| step | measure | difference | p |", "|---|---|---|---|"]
  for title, kind, before, value, low, high, p_value in rows:
    lines.append(f"| {titles[before]} -> {titles[kind]} | {title} | {value:+.3g} "
                 f"({low:+.3g} to {high:+.3g}) | {p_value:.2g} |")
  return lines
