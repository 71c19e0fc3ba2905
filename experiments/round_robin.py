"""What Skirmish's scripted players are worth against one another.

  python -m starleague.experiments.round_robin --games_a_kind 2
  python -m starleague.experiments.round_robin --entrants L0,L1,L2,L3,L4,L5,L6,L7,L8 --apart 2

Everyone meets everyone, from both sides, on all maps, in each race's mirror match (or, with
--cross, each pair of different races). Prints the shares of points, the ratings with 95% intervals
and the cycles, and writes them as `round_robin.csv` and a page, `round_robin.html`.
"""

import csv
import io
import itertools
import json
import pathlib
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from absl import flags
from plotly.offline import get_plotlyjs

from starleague import league
from starleague.actor import files
from starleague.actor.environments.skirmish import maps, scripts, tournament
from starleague.agent import types
from starleague.experiments import entry, run_flags, settings

for _name in ("seed", "tier"):
  flags.declare_key_flag(_name)
_ENTRANTS = flags.DEFINE_list("entrants", list(scripts.STRATEGIES), "Scripted players.")
_GAMES = flags.DEFINE_integer(
  "games_a_kind", 2, "Games of each pair, races, map and side.", lower_bound=1)
_CROSS = flags.DEFINE_boolean("cross", False, "Different races instead of mirror matches.")
_OUTPUT = flags.DEFINE_string("tables_folder", "runs/round_robin", "Folder of the table and the page.")

_APART = flags.DEFINE_integer(
  "apart", None, "Only pairs so many places apart in --entrants: 2 for a ladder's levels against the "
  "one two below.", lower_bound=1)

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


def standing(names: Sequence[str], fixtures: tournament.Fixture, result: tournament.Result,
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
      tournament.Result(*(values[chosen] for values in result)), count)))
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


def race_lines(fixtures: tournament.Fixture, result: tournament.Result) -> list[str]:
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


def _csv(tables: dict[str, Standing]) -> str:
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


def _title(races: tuple[int, int]) -> str:
  return " against ".join(types.RACES[race].capitalize() for race in races)


def main() -> None:
  tier, names = run_flags.TIER.value or "default", _ENTRANTS.value
  try:
    players = tournament.indices(tier, names)
  except ValueError as error:
    raise settings.SettingsError(str(error)) from error
  if len(names) < 2:
    raise settings.SettingsError(f"entrants: expected two or more, found {names}")
  races = tournament.race_pairs(tier, mirrors=not _CROSS.value)
  fixtures = tournament.round_robin(len(names), races, range(len(maps.NAMES)), _GAMES.value)
  if _APART.value is not None:
    kept = fixtures.players[:, 1] - fixtures.players[:, 0] == _APART.value
    fixtures = tournament.Fixture(*(values[kept] for values in fixtures))
    if not len(fixtures.map_index):
      raise settings.SettingsError(f"apart: expected less than {len(names)} entrants, found "
                                   f"{_APART.value}")
  begin = time.perf_counter()
  result = tournament.play(
    fixtures._replace(players=players[fixtures.players]), run_flags.SEED.value, tier=tier)
  seconds = time.perf_counter() - begin
  tables = {"All": standing(names, fixtures, result, run_flags.SEED.value)}
  for pair in races:
    mine = (fixtures.races == pair).all(axis=1)
    tables[_title(pair)] = standing(
      names, tournament.Fixture(*(values[mine] for values in fixtures)),
      tournament.Result(*(values[mine] for values in result)), run_flags.SEED.value)
  for title, table in tables.items():
    print("\n".join(lines(title, table)), end="\n\n")
  if _CROSS.value:
    print("\n".join(race_lines(fixtures, result)), end="\n\n")
  print(f"games={len(result.winner)} draws={np.mean(result.winner == 2):.2f} "
        f"game_loops={result.loops.mean():.0f} seconds={seconds:.0f}")
  output = pathlib.Path(_OUTPUT.value)
  output.mkdir(parents=True, exist_ok=True)
  for name, text in (("round_robin.csv", _csv(tables)), ("round_robin.html", page(tables))):
    with files.replacing(output / name, "w") as file:
      file.write(text)
  print(f"page={output / 'round_robin.html'}")


if __name__ == "__main__":
  entry.run(main)
