"""The plots of the page of replays, in plotly's JSON format."""

import collections
from collections.abc import Mapping, Sequence
from typing import Any

from starleague.agent import types
from starleague.viewers import catalog, plots
from starleague.viewers.plots import Figure
from starleague.viewers.replays.summary import Node, Rate, Timeline

RACES = types.RACES[1:4]
# Colours that the colour-blind tell apart (Okabe and Ito); lines and bars also differ in pattern.
COLOURS = {"terran": "#0072b2", "zerg": "#cc79a7", "protoss": "#d55e00"}
_DASHES = {"terran": "solid", "zerg": "dash", "protoss": "dot"}
_PATTERNS = {"terran": "", "zerg": "/", "protoss": "."}
_WINS = [[0.0, "#b2182b"], [0.4, "#f4a582"], [0.5, "#f1f5f9"], [0.6, "#92c5de"], [1.0, "#2166ac"]]
_BIN = 250  # of MMR
_BARS = "#2563eb"


def openings(nodes: Sequence[Node]) -> Figure:
  """Returns the tree of openings as an icicle: width is frequency, colour the share of wins."""
  # Rare branches are pale: four games with equal results are added to each.
  colours = [(node.wins + 2) / (node.decided + 4) for node in nodes]
  texts = [clock(node.seconds) if node.seconds else "" for node in nodes]
  data = {
    "type": "icicle", "ids": [str(i) for i in range(len(nodes))],
    "labels": [_label(node) for node in nodes],
    "parents": ["" if node.parent < 0 else str(node.parent) for node in nodes],
    "values": [node.players for node in nodes], "branchvalues": "total", "maxdepth": 5,
    "text": texts, "textinfo": "label+text",
    "customdata": [[node.players, _won(node)] for node in nodes],
    "hovertemplate": ("%{label} %{text}<br>%{customdata[0]} players, %{percentParent:.0%} of the "
                      "branch<br>%{customdata[1]}<extra></extra>"),
    "marker": {"colors": colours, "colorscale": _WINS, "cmin": 0.2, "cmax": 0.8, "showscale": False,
               "line": {"width": 1, "color": "#fff"}},
    "tiling": {"orientation": "v", "pad": 1}, "pathbar": {"visible": True}}
  layout = _layout(520)
  layout |= {"margin": {"l": 0, "r": 0, "t": 26, "b": 4},
             "uniformtext": {"minsize": plots.FONT_SIZE, "mode": "hide"}}
  return {"data": [data], "layout": layout}


def timelines(rows: Sequence[Timeline], race: str) -> Figure:
  """Returns when each type is first started: medians with the middle half of the players."""
  low, middle, high = zip(*(row.seconds for row in rows), strict=True)
  dots = {
    "type": "scatter", "mode": "markers", "x": _rounded(middle),
    "y": [catalog.unit_name(row.unit) for row in rows],
    "marker": {"size": 8, "color": COLOURS[race]},
    "error_x": {"type": "data", "symmetric": False, "thickness": 5, "width": 0,
                "color": plots.faint(COLOURS[race], 0.3),
                "array": _rounded(b - a for a, b in zip(middle, high, strict=True)),
                "arrayminus": _rounded(b - a for a, b in zip(low, middle, strict=True))},
    "customdata": [[clock(row.seconds[1]), row.players] for row in rows],
    "hovertemplate": "%{y}: median %{customdata[0]}, %{customdata[1]} players<extra></extra>"}
  layout = _layout(60 + 20 * len(rows))
  layout["margin"] = {"l": 8, "r": 12, "t": 8, "b": 30}
  ends = range(0, int(max(high)) + 61, 60)
  kept = list(ends)[::-(-len(ends) // 6)]
  layout["xaxis"] |= {"tickvals": kept, "ticktext": [clock(end) for end in kept],
                      "rangemode": "tozero", "showgrid": True}
  layout["yaxis"] |= {"autorange": "reversed", "type": "category", "dtick": 1, "showgrid": True}
  return {"data": [dots], "layout": layout}


def lengths(found: Mapping[str, Sequence[float]]) -> Figure:
  """Returns the lengths of games by match-up, as boxes with all games beside them."""
  data = [{"type": "box", "name": name, "y": _rounded(values), "boxpoints": "all", "jitter": 0.4,
           "pointpos": 0, "marker": {"size": 3, "opacity": 0.5, "color": _BARS},
           "line": {"width": 1.5, "color": _BARS}, "showlegend": False,
           "hovertemplate": "%{y:.1f} min<extra>%{x}</extra>"} for name, values in found.items()]
  layout = _layout(260)
  layout["yaxis"] |= {"ticksuffix": " min", "rangemode": "tozero"}
  return {"data": data, "layout": layout}


def action_rates(rates: Mapping[str, Sequence[Rate]]) -> Figure:
  """Returns medians of the action rates over time by race, with the middle half as bands."""
  data: list[dict[str, Any]] = []
  for race, rows in rates.items():
    minutes = [row.minute + 0.5 for row in rows]
    edge = {"type": "scatter", "mode": "lines", "x": minutes, "line": {"width": 0},
            "hoverinfo": "skip", "showlegend": False}
    data += [
      {**edge, "y": _rounded(row.actions[0] for row in rows)},
      {**edge, "y": _rounded(row.actions[2] for row in rows), "fill": "tonexty",
       "fillcolor": plots.faint(COLOURS[race], 0.15)},
      {"type": "scatter", "mode": "lines", "name": race, "x": minutes,
       "y": _rounded(row.actions[1] for row in rows),
       "line": {"width": 2, "color": COLOURS[race], "dash": _DASHES[race]},
       "customdata": [row.players for row in rows],
       "hovertemplate": f"{race} <b>%{{y:.0f}}</b> actions a minute, %{{customdata}} players"
                        "<extra></extra>"}]
  layout = _layout(280)
  layout["xaxis"] |= {"ticksuffix": " min", "rangemode": "tozero"}
  layout["yaxis"] |= {"rangemode": "tozero"}
  layout |= {"showlegend": True, "legend": plots.LEGEND_BELOW}
  return {"data": data, "layout": layout}


def ratings(found: Mapping[str, Sequence[int]]) -> Figure:
  """Returns the distribution of MMR by race."""
  data = [{"type": "histogram", "name": race, "x": list(values),
           "xbins": {"start": 0, "end": 8000, "size": _BIN},
           "marker": {"color": COLOURS[race], "pattern": {"shape": _PATTERNS[race]}},
           "hovertemplate": f"{race}: %{{y}} players with %{{x}}<extra></extra>"}
          for race, values in found.items() if values]
  highest = max(collections.Counter(
    value // _BIN for values in found.values() for value in values).values())
  layout = _layout(280)
  layout["yaxis"] |= _whole_ticks(highest)
  layout |= {"barmode": "stack", "bargap": 0.05, "showlegend": True,
             "legend": plots.LEGEND_BELOW}
  return {"data": data, "layout": layout}


def counts(found: Mapping[str, int], colour: str = _BARS) -> Figure:
  """Returns counts as horizontal bars, the largest first."""
  names, values = list(map(plots.plain, found)), list(found.values())  # titles are of strangers
  bars = {"type": "bar", "orientation": "h", "x": values, "y": names, "text": values,
          "textposition": "auto", "textangle": 0, "width": 0.7, "marker": {"color": colour},
          "hovertemplate": "%{y}: %{x}<extra></extra>"}
  layout = _layout(56 + 26 * len(names))
  layout["margin"] = {"l": 8, "r": 12, "t": 8, "b": 26}
  layout["yaxis"] |= {"autorange": "reversed", "type": "category", "dtick": 1}
  layout["xaxis"] |= {"rangemode": "tozero", "showgrid": True, **_whole_ticks(max(values))}
  return {"data": [bars], "layout": layout}


def _whole_ticks(highest: int) -> dict[str, Any]:
  """Returns the ticks of an axis of counts: at most six, at whole numbers."""
  return {"tick0": 0, "dtick": max(1, -(-highest // 5))}


def clock(seconds: float) -> str:
  """Returns a game time as `m:ss`."""
  return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _label(node: Node) -> str:
  if node.seconds:
    return catalog.unit_name(node.label)
  return node.label if len(node.label) == 3 else node.label.capitalize()  # PvZ stays


def _won(node: Node) -> str:
  """Returns the share of wins of a branch as a phrase."""
  if not node.decided:
    return "results unknown"
  return f"{node.wins / node.decided:.0%} of {node.decided} won"


def _rounded(values: Any) -> list[float]:
  return [round(float(value), 2) for value in values]


def _layout(height: int) -> dict[str, Any]:
  layout = plots.layout(height)
  layout["xaxis"]["nticks"] = 8
  return layout
