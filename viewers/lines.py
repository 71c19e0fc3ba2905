"""Curves with bands around them: an SVG picture, and the same panels for a page."""

import html
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from starleague.common.text import count
from starleague.viewers import plots, svg

_LEFT, _RIGHT, _TITLE, _HEIGHT, _AXIS, _LEGEND = 56, 12, 30, 220, 40, 20  # pixels
_TICKS = 5  # of an axis, at most


class Curve(NamedTuple):
  """A curve, and the bounds of its band; bounds that are not finite: no band there."""

  label: str
  x: tuple[float, ...]
  y: tuple[float, ...]
  low: tuple[float, ...]
  high: tuple[float, ...]


class Panel(NamedTuple):
  """Curves of one measure; on logarithmic axes all values are positive, and points are marked."""

  title: str
  x_title: str
  curves: tuple[Curve, ...]
  logarithmic: bool = False  # both axes


class _Axes(NamedTuple):
  """The ranges that a panel shows: bands that leave them are cut. Logarithms are decimal."""

  right: float
  low: float
  high: float
  left: float = 0.0
  logarithmic: bool = False

  def x(self, value: float) -> float:
    share = (self._scaled(value) - self.left) / (self.right - self.left)
    return _LEFT + (svg.WIDTH - _LEFT - _RIGHT) * share

  def y(self, value: float) -> float:
    inside = min(max(self._scaled(value), self.low), self.high)
    return _TITLE + _HEIGHT * (self.high - inside) / (self.high - self.low)

  def x_ticks(self) -> list[float]:
    return self._ticks(self.left, self.right)

  def y_ticks(self) -> list[float]:
    return self._ticks(self.low, self.high)

  def _scaled(self, value: float) -> float:
    return math.log10(value) if self.logarithmic else value

  def _ticks(self, low: float, high: float) -> list[float]:
    return log_ticks(low, high) if self.logarithmic else ticks(low, high)


def axes(panel: Panel) -> _Axes:
  """Returns the ranges of a panel: y those of the curves, and half as much for bands.

  x begins at 0, or at the least one on logarithmic axes.
  """
  scaled = math.log10 if panel.logarithmic else float
  x = [scaled(x) for curve in panel.curves for x in curve.x]
  values = [scaled(y) for curve in panel.curves for y in curve.y]
  bounds = [scaled(bound) for curve in panel.curves for bound in (*curve.low, *curve.high)
            if math.isfinite(bound)]
  low, high = min(values, default=0.0), max(values, default=1.0)
  room = 0.5 * (high - low)
  low, high = max(min([low, *bounds]), low - room), min(max([high, *bounds]), high + room)
  if not high > low:
    low, high = low - 0.5, high + 0.5
  left = min(x, default=0.0) if panel.logarithmic else 0.0
  right = max(x, default=left)
  return _Axes(right if right > left else left + 1, low, high, left, panel.logarithmic)


def ticks(low: float, high: float) -> list[float]:
  """Returns round numbers within a range: at most five, multiples of 1, 2 or 5 powers of ten."""
  scale = 10.0 ** math.floor(math.log10((high - low) / _TICKS))
  step = next(step for step in (scale, 2 * scale, 5 * scale, 10 * scale)
              if math.floor(high / step) - math.ceil(low / step) < _TICKS)
  return [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
  """Returns round numbers between two decimal logarithms.

  Powers of ten; where fewer than three, also their multiples by 2 and 5; then any round numbers.
  """
  rounding = 1e-9  # of logarithms
  for factors in ((1,), (1, 2, 5)):
    found = [factor * 10.0 ** n for n in range(math.floor(low), math.floor(high + rounding) + 1)
             for factor in factors
             if low - rounding <= n + math.log10(factor) <= high + rounding]
    if len(found) >= 3:
      return found
  return ticks(10.0 ** low, 10.0 ** high)


def drawing(panel: Panel) -> svg.Drawing:
  """Returns a panel as SVG, the names of its curves below it."""
  shown = axes(panel)
  bottom, right = _TITLE + _HEIGHT, svg.WIDTH - _RIGHT
  parts = [f'<text x="0" y="14" font-size="13" font-weight="600">{html.escape(panel.title)}</text>']
  for value in shown.y_ticks():
    parts.append(f'<path d="M{_LEFT} {shown.y(value):.1f}H{right}" stroke="#e2e8f0"/>'
                 f'<text x="{_LEFT - 6}" y="{shown.y(value) + 4:.1f}" text-anchor="end" '
                 f'fill="{svg.GREY}" font-size="11">{value:g}</text>')
  for value in shown.x_ticks():
    parts.append(f'<text x="{shown.x(value):.1f}" y="{bottom + 16}" text-anchor="middle" '
                 f'fill="{svg.GREY}" font-size="11">{count(value)}</text>')
  parts.append(f'<path d="M{_LEFT} {bottom}H{right}" stroke="{svg.GREY}"/>'
               f'<text x="{right}" y="{bottom + 32}" text-anchor="end" fill="{svg.GREY}" '
               f'font-size="11">{html.escape(panel.x_title)}</text>')
  for number, curve in enumerate(panel.curves):
    colour, below = _colour(number), bottom + _AXIS + _LEGEND * (number // 2)
    parts += _curve(curve, shown, colour)
    left = _LEFT + (right - _LEFT) / 2 * (number % 2)
    parts.append(f'<path d="M{left:g} {below + 10}h18" stroke="{colour}" stroke-width="2"/>'
                 f'<text x="{left + 24:g}" y="{below + 14}">{html.escape(curve.label)}</text>')
  rows = -(-len(panel.curves) // 2)
  return svg.Drawing("".join(parts), _TITLE + _HEIGHT + _AXIS + _LEGEND * rows)


def _curve(curve: Curve, shown: _Axes, colour: str) -> list[str]:
  def points(values: Sequence[float], x: Sequence[float]) -> str:
    return " ".join(f"{shown.x(at):.1f},{shown.y(value):.1f}"
                    for at, value in zip(x, values, strict=True))

  x, low, high = bounds(curve)
  band = [f'<polygon points="{points(high, x)} {points(low[::-1], x[::-1])}" fill="{colour}" '
          'fill-opacity="0.15"/>'] if x else []
  marks = [f'<circle cx="{shown.x(at):.1f}" cy="{shown.y(value):.1f}" r="3" fill="{colour}"/>'
           for at, value in zip(curve.x, curve.y, strict=True)] if shown.logarithmic else []
  return [*band, f'<polyline points="{points(curve.y, curve.x)}" fill="none" stroke="{colour}" '
          'stroke-width="2"/>', *marks]


def bounds(curve: Curve) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
  """Returns x, low and high where the band is finite."""
  found = [row for row in zip(curve.x, curve.low, curve.high, strict=True)
           if all(map(math.isfinite, row))]
  x, low, high = zip(*found, strict=True) if found else ((), (), ())
  return x, low, high


def _colour(number: int) -> str:
  return plots.COLOURS[number % len(plots.COLOURS)]


def plot(panel: Panel) -> plots.Figure:
  """Returns a panel as a plot of a page: its data and layout."""
  data: list[dict[str, Any]] = []
  shown = axes(panel)
  for number, curve in enumerate(panel.curves):
    x, low, high = bounds(curve)
    if x:
      data += plots.band(x, low, high, _colour(number))
    label = plots.plain(curve.label)
    data.append({
      "type": "scatter", "mode": "lines+markers" if panel.logarithmic else "lines",
      "x": list(curve.x),
      "y": [plots.rounded(y) for y in curve.y], "name": label,
      "line": {"color": _colour(number), "width": 2},
      "hovertemplate": f"{label} <b>%{{y:.4g}}</b> at %{{x:,}}<extra></extra>"})
  layout = plots.layout(360)
  layout |= {"title": {"text": html.escape(panel.title), "font": {"size": 14}},
             "showlegend": True, "legend": plots.LEGEND_BELOW}
  layout["margin"] = {**layout["margin"], "t": 40}
  layout["xaxis"]["title"] = {"text": html.escape(panel.x_title)}
  layout["yaxis"]["range"] = [plots.rounded(shown.low), plots.rounded(shown.high)]
  if panel.logarithmic:  # plotly's ranges are then decimal logarithms too
    layout["xaxis"]["type"] = layout["yaxis"]["type"] = "log"
  return {"data": data, "layout": layout}
