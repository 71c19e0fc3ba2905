"""What the plots of all pages share, in plotly's JSON format.

Plots are plain data instead of plotly's classes, which take a second to import.
"""

import html
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

Figure = dict[str, Any]  # data and layout, the arguments of Plotly.newPlot

COLOURS = ("#2563eb", "#d97706", "#059669", "#db2777", "#7c3aed", "#0891b2", "#65a30d", "#b91c1c",
           "#475569", "#a16207")
_DASHES = ("solid", "dash", "dot", "dashdot")  # by turn of the colours
_SYMBOLS = ("circle", "square", "diamond", "cross")
# Of the container: plotly then keeps the legend's room free below the names of the axis.
LEGEND_BELOW = {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0}
FONT_SIZE = 12  # pixels, the least on any page


class Style(NamedTuple):
  """The looks of a name's curves, in all plots of a page."""

  colour: str
  dash: str = "solid"
  symbol: str = "circle"


def styles(names: Iterable[str]) -> dict[str, Style]:
  """Returns a style for each name; all differ for 40 names."""
  found = {}
  for i, name in enumerate(names):
    turn, place = divmod(i, len(COLOURS))
    found[name] = Style(COLOURS[place], _DASHES[turn % len(_DASHES)],
                        _SYMBOLS[turn % len(_SYMBOLS)])
  return found


def layout(height: int) -> dict[str, Any]:
  """Returns the layout of a plot of a height in pixels, without a legend."""
  axis = {"gridcolor": "#f1f5f9", "zerolinecolor": "#cbd5e1", "linecolor": "#cbd5e1",
          "ticks": "outside", "tickcolor": "#cbd5e1", "ticklen": 4, "automargin": True}
  return {
    "height": height, "margin": {"l": 44, "r": 12, "t": 8, "b": 28},
    "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
    "font": {"family": "system-ui, sans-serif", "size": FONT_SIZE, "color": "#475569"},
    "xaxis": {**axis, "showgrid": False, "zeroline": False}, "yaxis": axis, "showlegend": False,
    "hoverlabel": {"bgcolor": "#fff", "bordercolor": "#cbd5e1", "font": {"color": "#0f172a"}}}


def faint(colour: str, opacity: float) -> str:
  """Returns a colour `#rrggbb` with an opacity."""
  red, green, blue = (int(colour[i:i + 2], 16) for i in (1, 3, 5))
  return f"rgba({red},{green},{blue},{opacity})"


def plain(label: str) -> str:
  """Escapes a label for hover texts, in which plotly reads markup and %{...}."""
  return label.replace("&", "&amp;").replace("<", "&lt;").replace("%{", "% {")


def rounded(value: float) -> float:
  """Returns six digits of a number: a fifth of a page's size less."""
  return float(f"{value:.6g}")


def band(x: Sequence[float], low: Sequence[float], high: Sequence[float],
         colour: str) -> list[dict[str, Any]]:
  """Returns the area between two curves."""
  edge = {"type": "scatter", "mode": "lines", "x": list(x), "line": {"width": 0},
          "hoverinfo": "skip", "showlegend": False}
  return [{**edge, "y": [rounded(value) for value in low]},
          {**edge, "y": [rounded(value) for value in high], "fill": "tonexty",
           "fillcolor": faint(colour, 0.15)}]


def alternative(title: str, figure: Figure) -> str:
  """Returns the text that stands for a plot: its title, and the ends of its curves."""
  named = {trace["name"]: trace for trace in figure["data"] if trace.get("name")}  # smoothed: last
  parts = []
  for name, trace in named.items():
    values = [value for value in trace.get("y", []) if isinstance(value, (int, float))]
    if trace["type"] != "scatter" or not values:
      parts.append(name)
      continue
    axis = figure["layout"].get(trace.get("yaxis", "y").replace("y", "yaxis"), {})
    percent = axis.get("tickformat") == ".0%"
    first, last = (f"{value:.0%}" if percent else f"{value:.3g}" for value in
                   (values[0], values[-1]))
    parts.append(f"{name} {last}" if first == last else f"{name} {first} to {last}")
  text = html.unescape(", ".join(parts))
  return ": ".join(filter(None, [title, text])) or "plot"
