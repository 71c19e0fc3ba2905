"""The plots of a report in plotly's JSON format. Pure functions of results rows."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from starleague.common.results import Row
from starleague.viewers import plots
from starleague.viewers.plots import Figure, Style

MAX_POINTS = 600  # of a curve; a panel is narrower in pixels
SMOOTHED_FROM = 60  # points from which a running mean is drawn over the curve
EVALUATION, TRAINING, INITIAL = "#2563eb", "#d97706", "#64748b"


class TimeAxis(NamedTuple):
  """The common time axis of a section's plots."""

  unit: str
  seconds: float  # per unit
  begin: float  # of the axis, in units since the start of the run
  end: float


def time_axis(end_s: float, begin_s: float = 0.0) -> TimeAxis:
  """Returns a time axis in the largest unit of which three have passed at its end.

  Args:
    end_s: its end, in seconds since the start of the run.
    begin_s: its begin. If it is not before the end, the axis begins at 0.
  """
  begin_s = begin_s if begin_s < end_s else 0.0
  for time, scale in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
    if end_s >= 3 * scale:
      return TimeAxis(time, scale, begin_s / scale, end_s / scale)
  return TimeAxis("s", 1.0, begin_s, max(end_s, begin_s + 1.0))


def curves(
    found: Mapping[str, Sequence[Row]], time: TimeAxis, *, legend: bool = False,
    from_zero: bool = False, share: bool = False,
    styles: Mapping[str, Style] | None = None) -> Figure:
  """Returns curves over time on common axes.

  Args:
    found: rows by curve.
    time: the time axis.
    legend: whether to show the names of the curves.
    from_zero: whether the value axis begins at 0.
    share: whether values are fractions, shown from 0 to 100%.
    styles: of the curves of several figures, which give each name its looks and place; by default
      of those in `found`.
  """
  data = []
  styles = styles or plots.styles(found)
  for name in (name for name in styles if name in found):
    rows, style = found[name], styles[name]
    x, y, updates = _thin(rows, time)
    faint = len(y) >= SMOOTHED_FROM
    line = _line(x, y, updates, name, style, time, share)
    if faint:
      data.append({**line, "opacity": 0.25, "showlegend": False, "hoverinfo": "skip",
                   "hovertemplate": None, "customdata": None, "line": {**line["line"], "width": 1}})
      line = _line(x, running_mean(y, max(3, len(y) // 30)), updates, name, style, time, share)
    if len(y) == 1:
      line["mode"] = "markers"
    data.append({**line, "showlegend": legend})
  layout = _layout(time, height=320 if legend else 220)
  layout["showlegend"] = legend
  if share:
    layout["yaxis"].update(range=[0, 1.02], tickformat=".0%")
  elif from_zero:
    layout["yaxis"] |= {"rangemode": "tozero", "exponentformat": "SI"}
  return {"data": data, "layout": layout}


def score(evaluation: Sequence[Row], training: Sequence[Row], initial: Sequence[Row],
             time: TimeAxis) -> Figure:
  """Returns the scores against one opponent with their intervals as bands.

  The score of the initial weights is a line over the whole width.
  """
  data: list[dict[str, Any]] = []
  ends = [plots.rounded(time.begin), plots.rounded(time.end)]
  if initial and math.isfinite(initial[-1].value):
    level = initial[-1]
    if bounds := _bounds(level):
      data += plots.band(ends, [bounds[0]] * 2, [bounds[1]] * 2, INITIAL)
    data.append({
      "type": "scatter", "mode": "lines", "x": ends, "y": [level.value] * 2,
      "name": "initial weights",
      "line": {"color": INITIAL, "width": 1.5, "dash": "dash"}, "showlegend": False,
      "hovertemplate": f"initial weights {level.value:.1%}<extra></extra>"})
  for rows, colour, label, width in ((training, TRAINING, "training", 1.5),
                                     (evaluation, EVALUATION, "evaluation", 2.5)):
    rows = _every(rows)
    bounded: list[Any] = [row for row in rows if _bounds(row)]
    if bounded:
      data += plots.band([plots.rounded(row.seconds / time.seconds) for row in bounded],
                         [row.low for row in bounded], [row.high for row in bounded], colour)
    if rows:
      x, y, updates = _columns(rows, time)
      line = _line(x, y, updates, label, Style(colour), time, True)
      line["line"]["width"] = width
      line["mode"] = "lines+markers" if len(rows) <= 40 else "lines"
      line["marker"] = {"size": 5, "color": colour}
      line["showlegend"] = False
      data.append(line)
  layout = _layout(time, height=240)
  layout["yaxis"].update(range=[-0.02, 1.02], tickformat=".0%", tickvals=[0, 0.25, 0.5, 0.75, 1])
  return {"data": data, "layout": layout}


def interval_svg(initial: Row | None, first: Row | None, last: Row) -> str:
  """Returns scores with intervals on a line from 0 to 1, as SVG.

  Random play is grey, the first score hollow, the last one filled.
  """
  width, height, margin = 220, 30, 8

  def place(score: float) -> float:
    return margin + min(1.0, max(0.0, score)) * (width - 2 * margin)

  parts = [f"<line x1='{margin}' x2='{width - margin}' y1='15' y2='15' stroke='#e2e8f0'/>"]
  parts += [f"<line x1='{place(at):g}' x2='{place(at):g}' y1='11' y2='19' stroke='#cbd5e1'/>"
            for at in (0, 0.5, 1)]
  for row, y, colour, fill in ((initial, 6, INITIAL, INITIAL), (first, 15, EVALUATION, "#fff"),
                               (last, 24, EVALUATION, EVALUATION)):
    if row is None or not math.isfinite(row.value):
      continue
    if bounds := _bounds(row):
      parts.append(
        f"<line x1='{place(bounds[0]):.1f}' x2='{place(bounds[1]):.1f}' y1='{y}' y2='{y}' "
        f"stroke='{colour}' stroke-width='3' stroke-opacity='0.35' stroke-linecap='round'/>")
    parts.append(f"<circle cx='{place(row.value):.1f}' cy='{y}' r='3.5' fill='{fill}' "
                 f"stroke='{colour}' stroke-width='1.5'/>")
  return (f"<svg width='{width}' height='{height}' viewBox='0 0 {width} {height}' "
          "aria-hidden='true'>"  # the table's numbers say the same
          f"{''.join(parts)}</svg>")


def running_mean(values: Sequence[float | None], window: int) -> list[float | None]:
  """Returns the mean of the values in a window around each index; None values are gaps."""
  y = np.array([math.nan if value is None else value for value in values])
  there = np.isfinite(y)
  sums = np.concatenate([[0.0], np.cumsum(np.where(there, y, 0.0))])
  counts = np.concatenate([[0], np.cumsum(there)])
  places = np.arange(len(y))
  begin = np.maximum(places - window // 2, 0)
  end = np.minimum(places + window // 2 + 1, len(y))
  number = counts[end] - counts[begin]
  means = (sums[end] - sums[begin]) / np.maximum(number, 1)
  return [plots.rounded(mean) if n else None
          for mean, n in zip(means.tolist(), number, strict=True)]


def _bounds(row: Row) -> tuple[float, float] | None:
  """Returns the bounds of a row if both are finite; results files accept others."""
  if row.low is None or row.high is None:
    return None
  return (row.low, row.high) if math.isfinite(row.low) and math.isfinite(row.high) else None


def _thin(rows: Sequence[Row], time: TimeAxis) -> tuple[list, list, list]:
  """Returns times, values and updates of at most MAX_POINTS points, each a mean of rows."""
  x, y, updates = _columns(rows, time)
  if len(rows) <= MAX_POINTS:
    return x, y, updates
  thin = []
  for part in np.array_split(np.arange(len(rows)), MAX_POINTS):
    values = [y[i] for i in part if y[i] is not None]
    mean = plots.rounded(sum(values) / len(values)) if values else None
    thin.append((x[part[len(part) // 2]], mean, updates[part[len(part) // 2]]))
  return tuple(list(column) for column in zip(*thin, strict=True))  # type: ignore[return-value]


def _every(rows: Sequence[Row]) -> list[Row]:
  """Returns at most MAX_POINTS of the rows with their intervals, the last row among them."""
  step = max(1, math.ceil(len(rows) / MAX_POINTS))
  return list(rows[::-1][::step][::-1])


def _columns(rows: Sequence[Row], time: TimeAxis) -> tuple[list, list, list]:
  """Returns times, values and updates; None, a gap in the curve, for values that are not finite."""
  x = [plots.rounded(row.seconds / time.seconds) for row in rows]
  y = [plots.rounded(row.value) if math.isfinite(row.value) else None for row in rows]
  return x, y, [row.update for row in rows]


def _line(x: list, y: list, updates: list, label: str, style: Style, time: TimeAxis,
          share: bool) -> dict[str, Any]:
  """Returns a curve; its hover text shows value, time and update."""
  shown = "%{y:.1%}" if share else "%{y:.4g}"
  return {
    "type": "scatter", "mode": "lines", "x": x, "y": y, "customdata": updates,
    "name": plots.plain(label), "legendgroup": label,
    "line": {"color": style.colour, "width": 2, "dash": style.dash},
    "hovertemplate": (f"{plots.plain(label)} <b>{shown}</b><br>%{{x:.4g}} {time.unit}, "
                      "update %{customdata:,}<extra></extra>")}


def _layout(time: TimeAxis, height: int) -> dict[str, Any]:
  layout = plots.layout(height)
  margin = 0.02 * (time.end - time.begin)
  layout["xaxis"] |= {
    "ticksuffix": f" {time.unit}", "nticks": 6,
    "range": [plots.rounded(max(time.begin - margin, 0)), plots.rounded(time.end + margin)]}
  layout["yaxis"] |= {"nticks": 6, "exponentformat": "e"}
  return {**layout, "legend": plots.LEGEND_BELOW}
