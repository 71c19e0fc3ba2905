"""The plots of a league's archive of behaviours, in plotly's JSON format."""

from typing import Any, NamedTuple

import numpy as np

from starleague.league.ratings import archive, elo_expected_score
from starleague.league.ratings.archive import Archive, Point
from starleague.viewers import plots
from starleague.viewers.league.facts import Facts
from starleague.viewers.plots import Figure, plain

NOTE = (
  "Games by opening (share of structures among the first ten units and structures), army (supply "
  "of a unit of the largest army) and time of the first kill. A player holds a cell with "
  f"{archive.FEWEST_GAMES} games in it, if none of higher quality does. Quality: the score that "
  "its Elo predicts against the player with rating 0; a snapshot without games has its parent's, "
  "unless that was reset since. Coverage: share of the "
  f"{archive.EMPTY.holder.size} cells that are held. QD score: sum of their qualities, as the "
  "ratings are now.")
_COLOURS = plots.COLOURS[0], plots.COLOURS[2]
_HEIGHT = 520  # pixels
_GAP = 0.12  # between the two curves, of the plot's height


class Filled(NamedTuple):
  """The archive of a league, and its measures over time."""

  archive: Archive
  points: list[Point]  # the last one at the present steps; none without a held cell


def archive_of(facts: Facts) -> Filled:
  """Returns the archive of a league.

  Without games a snapshot has its parent's quality, unless the parent was reset since.
  """
  qualities = np.where(facts.games.any(axis=1), elo_expected_score(facts.ratings.value), np.nan)
  found, points = archive.fill(facts.behaviours, [player.name for player in facts.players],
                               qualities.tolist(), facts.former())
  steps = sum(progress.steps for progress in facts.progress.values())
  if points and points[-1].steps < steps:
    points.append(points[-1]._replace(steps=steps))
  return Filled(found, points)


def heat_map(facts: Facts, filled: Filled) -> Figure:
  """Returns the qualities of the cells: rows by army and opening, columns by first attack."""
  openings, armies, attacks = (axis.labels for axis in archive.AXES)
  rows = [(army, opening) for army in range(len(armies)) for opening in range(len(openings))]
  quality, holder = filled.archive
  z: list[list[float | None]] = []
  texts: list[list[str]] = []
  for army, opening in rows:
    found = [(quality[opening, army, attack], holder[opening, army, attack])
             for attack in range(len(attacks))]
    z.append([plots.rounded(float(value)) if who != archive.NOBODY else None
              for value, who in found])
    texts.append([plain(facts.players[who].name) if who != archive.NOBODY else "nobody"
                  for _, who in found])
  data: list[dict[str, Any]] = [{
    "type": "heatmap", "name": "quality", "x": list(attacks), "z": z, "customdata": texts,
    "y": [[armies[army] for army, _ in rows], [openings[opening] for _, opening in rows]],
    "colorscale": "Viridis", "zmin": 0, "zmax": 1, "xgap": 1, "ygap": 1, "hoverongaps": False,
    "colorbar": {"title": {"text": "quality", "side": "right"}, "thickness": 10,
                 "orientation": "h", "y": 1, "yanchor": "bottom", "nticks": 5},
    "hovertemplate": "%{customdata}: quality <b>%{z:.2f}</b><br>army %{y}<br>first kill %{x} s"
                     "<extra></extra>"}]
  layout = plots.layout(_HEIGHT)
  layout["xaxis"] |= {"title": {"text": archive.ATTACK.title, "standoff": 6}, "type": "category"}
  layout["yaxis"] |= {"type": "multicategory", "showgrid": False, "autorange": "reversed"}
  return {"data": data, "layout": layout}


def curves(filled: Filled) -> Figure:
  """Returns coverage and QD score over the agent steps of all learners, one above the other."""
  steps = [point.steps for point in filled.points]
  line = {"type": "scatter", "mode": "lines+markers", "x": steps}
  data: list[dict[str, Any]] = [
    {**line, "name": "coverage", "y": [plots.rounded(point.coverage) for point in filled.points],
     "line": {"color": _COLOURS[0], "shape": "hv"}, "marker": {"size": 5},
     "hovertemplate": "coverage <b>%{y:.1%}</b><br>%{x:.3~s} steps<extra></extra>"},
    {**line, "name": "QD score", "yaxis": "y2",
     "y": [plots.rounded(point.qd_score) for point in filled.points],
     "line": {"color": _COLOURS[1], "shape": "hv"}, "marker": {"size": 5},
     "hovertemplate": "QD score <b>%{y:.2f}</b><br>%{x:.3~s} steps<extra></extra>"}]
  layout = plots.layout(_HEIGHT)
  layout["yaxis2"] = layout["yaxis"] | {
    "title": {"text": "QD score"}, "domain": [0, 0.5 - _GAP / 2], "rangemode": "tozero"}
  layout["yaxis"] = layout["yaxis"] | {
    "title": {"text": "coverage"}, "domain": [0.5 + _GAP / 2, 1], "rangemode": "tozero",
    "tickformat": ".0%"}
  layout["xaxis"] |= {"title": {"text": "agent steps of all learners", "standoff": 6},
                      "exponentformat": "SI", "nticks": 6, "rangemode": "tozero", "anchor": "y2"}
  return {"data": data, "layout": layout}
