"""Bar charts of values with intervals: an SVG picture, and the same panels for a page."""

import html
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

_WIDTH, _LABEL, _VALUE = 510, 200, 124  # of a panel, its labels and its values, pixels
_TITLE, _ROW, _GAP = 30, 26, 18  # heights, pixels
_COLOUR, _INK, _GREY = "#2563eb", "#0f172a", "#64748b"
_FONT = 'font-family="system-ui, Segoe UI, DejaVu Sans, sans-serif"'


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


def svg(panels: Sequence[Panel], columns: int = 2) -> str:
  """Returns panels of horizontal bars as an SVG picture.

  Args:
    panels: in reading order.
    columns: panels side by side.
  """
  rows = [panels[i:i + columns] for i in range(0, len(panels), columns)]
  parts, top = [], _GAP
  for row in rows:
    parts += [_panel(panel, _GAP + i * (_WIDTH + _GAP), top) for i, panel in enumerate(row)]
    top += _TITLE + _ROW * max(len(panel.bars) for panel in row) + _GAP
  width = _GAP + min(columns, len(panels)) * (_WIDTH + _GAP)
  return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top}" width="{width}" '
          f'height="{top}" {_FONT} font-size="12" fill="{_INK}">\n'
          f'<rect width="100%" height="100%" fill="white"/>\n{"".join(parts)}</svg>\n')


def _panel(panel: Panel, left: float, top: float) -> str:
  low, high = _range(panel)
  room = _WIDTH - _LABEL - _VALUE

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
                     f'stroke="{_INK}" stroke-width="1.5"/>')
    parts += [f'<circle cx="{place(x):.1f}" cy="{middle:.1f}" r="2.5" fill="white" '
              f'stroke="{_INK}"/>' for x in bar.points if math.isfinite(x)]
    parts.append(f'<text x="{_WIDTH - _VALUE + 10}" y="{middle + 4:.1f}" fill="{_GREY}" '
                 f'font-size="11">{text(bar, panel.digits)}</text>')
  return f'<g transform="translate({left} {top})">{"".join(parts)}</g>\n'


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
       "error_x": {"type": "data", "symmetric": False, "color": _INK,
                   "array": [reach(bar, bar.high) for bar in shown],
                   "arrayminus": [reach(bar, bar.low) for bar in shown]}},
      {"type": "scatter", "mode": "markers", "x": [x for x, _ in dots],
       "y": [label for _, label in dots], "hovertemplate": "one seed: %{x}<extra></extra>",
       "marker": {"color": "white", "line": {"color": _INK, "width": 1.5}, "size": 7}}],
    "layout": {"title": {"text": panel.title, "font": {"size": 14}}, "showlegend": False,
               "height": 130 + 34 * len(panel.bars), "margin": {"l": 200, "r": 20, "t": 40}}}
