"""Standings of a round robin: shares of points, ratings with intervals, cycles; as text and page."""

import csv
import io
import itertools
import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from plotly.offline import get_plotlyjs

from starleague import league
from starleague.agent import types
from starleague.environments.skirmish.bots import tournament

RESAMPLES = 200  # of the results, for the ratings' intervals
EDGE = 0.6  # share of points from which a pair counts as decided


class Standing(NamedTuple):
  """A table of results; N entrants."""

  names: tuple[str, ...]
  share: np.ndarray  # [N, N] of points, row against column; 0.5 on the diagonal
  games: np.ndarray  # [N, N]
  ratings: np.ndarray  # [N] Elo with base 10, the mean is 0
  low: np.ndarray  # [N] bounds of 95% of resampled ratings
  high: np.ndarray


def _ratings(points: np.ndarray, games: np.ndarray) -> np.ndarray:
  found = league.elo_ratings(points, games, base=10.0)
  return found - found.mean()


def standing(names: Sequence[str], fixtures: tournament.Fixture, result: tournament.Outcomes,
             seed: int) -> Standing:
  """The table of a tournament whose players are numbered as in `names`."""
  count, total = len(names), len(result.winner)
  points, games = tournament.payoff(fixtures, result, count)
  rng = np.random.default_rng(seed)
  resampled = []
  for _ in range(RESAMPLES):
    chosen = rng.integers(0, total, total)
    resampled.append(_ratings(*tournament.payoff(
      tournament.Fixture(*(values[chosen] for values in fixtures)),
      tournament.Outcomes(*(values[chosen] for values in result)), count)))
  low, high = np.percentile(resampled, (2.5, 97.5), axis=0)
  share = np.where(games > 0, points / np.maximum(games, 1), 0.5)
  return Standing(tuple(names), share, games, _ratings(points, games), low, high)


def cycles(table: Standing) -> list[tuple[str, str, str]]:
  """Triples A, B, C of which A beats B, B beats C and C beats A, each by EDGE or more."""
  beats = table.share >= EDGE
  return [tuple(table.names[i] for i in triple)  # type: ignore[misc]
          for i, j, k in itertools.combinations(range(len(table.names)), 3)
          for triple in ((i, j, k), (i, k, j))
          if all(beats[a, b] for a, b in itertools.pairwise((*triple, triple[0])))]


def lines(title: str, table: Standing) -> list[str]:
  """A table as a page of docs has it."""
  found = [f"**{title}**", "", f"| | {' | '.join(table.names)} | Elo |",
           f"|---|{'---|' * (len(table.names) + 1)}"]
  for i, name in enumerate(table.names):
    cells = [f"{100 * share:.0f}%" if table.games[i, j] else "" for j, share in enumerate(
      table.share[i])]
    rating = f"{table.ratings[i]:+.0f} [{table.low[i]:+.0f}, {table.high[i]:+.0f}]"
    found.append(f"| {name} | {' | '.join(cells)} | {rating} |")
  for triple in cycles(table):
    edges = []
    for a, b in itertools.pairwise((*triple, triple[0])):
      i, j = table.names.index(a), table.names.index(b)
      games = int(table.games[i, j])
      low, high = league.wilson_interval(table.share[i, j] * games, games)
      edges.append(f"{a} beats {b} {100 * table.share[i, j]:.0f}% [{100 * low:.0f}, "
                   f"{100 * high:.0f}]")
    found.append(f"\nCycle: {', '.join(edges)}.")
  return found


def race_lines(fixtures: tournament.Fixture, result: tournament.Outcomes) -> list[str]:
  """Each race's share of points against each other one, over all entrants and both sides."""
  points, games = tournament.payoff(
    fixtures._replace(players=fixtures.races), result, len(types.RACES))
  found = ["**Races**", ""]
  for i, j in itertools.combinations(range(len(types.RACES)), 2):
    if games[i, j]:
      low, high = league.wilson_interval(points[i, j], games[i, j])
      found.append(f"- {types.RACES[i].capitalize()} against {types.RACES[j].capitalize()}: "
                   f"{100 * points[i, j] / games[i, j]:.0f}% [{100 * low:.0f}, {100 * high:.0f}] of "
                   f"{int(games[i, j])} games")
  return found


def table_csv(tables: dict[str, Standing]) -> str:
  text = io.StringIO()
  writer = csv.writer(text, lineterminator="\n")
  writer.writerow(("races", "row", "column", "games", "points"))
  for title, table in tables.items():
    for i, j in itertools.permutations(range(len(table.names)), 2):
      games = table.games[i, j]
      writer.writerow((title, table.names[i], table.names[j], int(games),
                       f"{table.share[i, j] * games:g}"))
  return text.getvalue()


def page(tables: dict[str, Standing]) -> str:
  """A self-contained page: a heat map and the ratings of each table."""
  panels = []
  for title, table in tables.items():
    names = list(table.names)
    heat = {"type": "heatmap", "z": np.round(100 * table.share[::-1], 1).tolist(), "x": names,
            "y": names[::-1], "zmin": 0, "zmax": 100, "colorscale": "RdBu", "reversescale": True,
            "texttemplate": "%{z:.0f}", "hovertemplate": "%{y} against %{x}: %{z}%<extra></extra>"}
    rating = {"type": "scatter", "mode": "markers", "x": np.round(table.ratings).tolist(),
              "y": names, "marker": {"size": 9, "color": "#2563eb"}, "error_x": {
                "type": "data", "symmetric": False,
                "array": np.round(table.high - table.ratings).tolist(),
                "arrayminus": np.round(table.ratings - table.low).tolist()}}
    panels.append({"title": title, "plots": [
      {"data": [heat], "layout": {"title": "share of points, row against column", "height": 420}},
      {"data": [rating], "layout": {"title": "Elo, 95% interval", "height": 420}}]})
  return (
    "<!doctype html><meta charset='utf-8'><title>Round robin</title><style>body{font:15px system-ui;"
    "max-width:1100px;margin:2em auto}section div{display:inline-block;width:49%}</style>"
    f"<h1>Round robin</h1><script>{get_plotlyjs()}</script><main></main><script>"
    f"for(const p of {json.dumps(panels)}){{const s=document.createElement('section');"
    "const h=document.createElement('h2');h.textContent=p.title;s.append(h);"
    "document.querySelector('main').append(s);for(const f of p.plots){"
    "const d=document.createElement('div');s.append(d);f.layout.margin={l:90,t:40};"
    "Plotly.newPlot(d,f.data,f.layout,{displayModeBar:false})}}</script>")


def title(races: tuple[int, int]) -> str:
  return " against ".join(types.RACES[race].capitalize() for race in races)
