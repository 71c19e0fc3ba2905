"""Bar charts of values with intervals: an SVG picture, and the same panels for a page."""

import html
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from starleague.viewers import plots, svg

_LABEL, _VALUE = 200, 124  # widths of labels and values, pixels
_TITLE, _ROW = 30, 26  # heights, pixels
_COLOUR = plots.COLOURS[0]


class Bar(NamedTuple):
  """A value, its interval, and the single measurements behind it. Not finite: not reached."""

  label: str
  value: float
  low: float
  high: float
  points: tuple[float, ...]


class Panel(NamedTuple):
  """Bars of one measure."""

  title: str
  bars: tuple[Bar, ...]
  digits: int = 0  # decimals of printed values


def text(bar: Bar, digits: int) -> str:
  """Returns a value with its interval, `12 (10 to 14)`."""
  if not math.isfinite(bar.value):
    reached = sum(map(math.isfinite, bar.points))
    return f"reached by {reached} of {len(bar.points)}" if reached else "not reached"
  value = f"{bar.value:.{digits}f}"
  if not math.isfinite(bar.low) or not math.isfinite(bar.high):
    return value
  return f"{value} ({bar.low:.{digits}f} to {bar.high:.{digits}f})"


def _range(panel: Panel) -> tuple[float, float]:
  """Returns the least and the greatest value to draw, 0 among them."""
  values = [x for bar in panel.bars for x in (bar.value, bar.low, bar.high, *bar.points)
            if math.isfinite(x)]
  low, high = min([0.0, *values]), max([0.0, *values])
  return low, high if high > low else low + 1.0


def picture(panels: Sequence[Panel], columns: int = 2) -> str:
  """Returns panels of horizontal bars as an SVG picture; see `svg.picture`."""
  return svg.picture([drawing(panel) for panel in panels], columns)


def drawing(panel: Panel) -> svg.Drawing:
  """Returns a panel of horizontal bars."""
  return svg.Drawing(_elements(panel), _TITLE + _ROW * len(panel.bars))


def _elements(panel: Panel) -> str:
  low, high = _range(panel)
  room = svg.WIDTH - _LABEL - _VALUE

  def place(value: float) -> float:
    return _LABEL + room * (min(max(value, low), high) - low) / (high - low)

  parts = [f'<text x="0" y="14" font-size="13" font-weight="600">{html.escape(panel.title)}</text>']
  for number, bar in enumerate(panel.bars):
    middle = _TITLE + _ROW * number + _ROW / 2
    parts.append(f'<text x="{_LABEL - 8}" y="{middle + 4:.1f}" text-anchor="end">'
                 f'{html.escape(bar.label)}</text>')
    if math.isfinite(bar.value):
      begin, end = sorted((place(0.0), place(bar.value)))
      parts.append(f'<rect x="{begin:.1f}" y="{middle - 8:.1f}" width="{end - begin:.1f}" '
                   f'height="16" fill="{_COLOUR}" fill-opacity="0.55"/>')
      if math.isfinite(bar.low) and math.isfinite(bar.high):
        parts.append(f'<path d="M{place(bar.low):.1f} {middle:.1f}H{place(bar.high):.1f}" '
                     f'stroke="{svg.INK}" stroke-width="1.5"/>')
    parts += [f'<circle cx="{place(x):.1f}" cy="{middle:.1f}" r="2.5" fill="white" '
              f'stroke="{svg.INK}"/>' for x in bar.points if math.isfinite(x)]
    parts.append(f'<text x="{svg.WIDTH - _VALUE + 10}" y="{middle + 4:.1f}" fill="{svg.GREY}" '
                 f'font-size="11">{text(bar, panel.digits)}</text>')
  return "".join(parts)


def plot(panel: Panel) -> dict[str, Any]:
  """Returns a panel as a plot of a page: its data and layout."""
  shown = [bar for bar in panel.bars[::-1] if math.isfinite(bar.value)]

  def reach(bar: Bar, bound: float) -> float:
    return abs(bound - bar.value) if math.isfinite(bound) else 0.0

  dots = [(x, bar.label) for bar in shown for x in bar.points if math.isfinite(x)]
  return {
    "data": [
      {"type": "bar", "orientation": "h", "x": [bar.value for bar in shown],
       "y": [bar.label for bar in shown], "marker": {"color": _COLOUR, "opacity": 0.55},
       "text": [text(bar, panel.digits) for bar in shown], "textposition": "none",
       "hovertemplate": "%{y}: %{text}<extra></extra>",
       "error_x": {"type": "data", "symmetric": False, "color": svg.INK,
                   "array": [reach(bar, bar.high) for bar in shown],
                   "arrayminus": [reach(bar, bar.low) for bar in shown]}},
      {"type": "scatter", "mode": "markers", "x": [x for x, _ in dots],
       "y": [label for _, label in dots], "hovertemplate": "one seed: %{x}<extra></extra>",
       "marker": {"color": "white", "line": {"color": svg.INK, "width": 1.5}, "size": 7}}],
    "layout": {"title": {"text": panel.title, "font": {"size": 14}}, "showlegend": False,
               "height": 130 + 34 * len(panel.bars), "margin": {"l": 200, "r": 20, "t": 40}}}
