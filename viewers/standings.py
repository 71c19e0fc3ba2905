"""Standings of a round robin: scores, ratings with intervals and cycles, as text and as a page."""

import csv
import io
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from starleague import league
from starleague.agent import types
from starleague.data.z import openings
from starleague.environments.skirmish.bots import tournament
from starleague.viewers import pages

Games = TypeVar("Games", tournament.Fixture, tournament.Outcomes)

RESAMPLES = 200  # bootstrap samples of the outcomes, for the ratings' intervals
EDGE = 0.6  # score from which a pair counts as decided


class Standing(NamedTuple):
  """The table of a tournament of N players. Scores are wins plus half the draws, over games.

  A table of two different races has no ratings: `ratings`, `low` and `high` are empty. Its rows
  have the first race, its columns the second.
  """

  names: tuple[str, ...]
  score: np.ndarray  # [N, N] of the row's player against the column's; 0.5 without games
  games: np.ndarray  # [N, N]
  ratings: np.ndarray  # [N] Elo ratings with base 10 and mean 0
  low: np.ndarray  # [N] bounds of the ratings' 95% bootstrap interval
  high: np.ndarray


def _ratings(points: np.ndarray, games: np.ndarray) -> np.ndarray:
  found = league.elo_ratings(points, games, base=10.0)
  return found - found.mean()


def standing(names: Sequence[str], fixtures: tournament.Fixture, outcomes: tournament.Outcomes,
             seed: int) -> Standing:
  """Computes the table of a tournament.

  Args:
    names: of the N players.
    fixtures: the games; players are indices of `names`.
    outcomes: of the fixtures.
    seed: of the bootstrap.
  """
  count, total = len(names), len(outcomes.winner)
  points, games = tournament.payoff(fixtures, outcomes, count)
  rng = np.random.default_rng(seed)
  resampled = []
  for _ in range(RESAMPLES):
    chosen = rng.integers(0, total, total)
    resampled.append(_ratings(*tournament.payoff(
      select(fixtures, chosen), select(outcomes, chosen), count)))
  low, high = np.percentile(resampled, (2.5, 97.5), axis=0)
  score = np.where(games > 0, points / np.maximum(games, 1), 0.5)
  return Standing(tuple(names), score, games, _ratings(points, games), low, high)


def of_races(names: Sequence[str], fixtures: tournament.Fixture, outcomes: tournament.Outcomes,
             seed: int, races: tuple[int, int]) -> Standing:
  """Computes the table of the games of two races, which may be equal; see `standing`.

  A game between different races is an entry of two tables: of either order of the races.
  """
  if races[0] == races[1]:
    mirrors = (fixtures.races == races).all(axis=1)
    return standing(names, select(fixtures, mirrors), select(outcomes, mirrors), seed)
  points, games = tournament.race_payoff(fixtures, outcomes, len(names), races)
  score = np.where(games > 0, points / np.maximum(games, 1), 0.5)
  return Standing(tuple(names), score, games, *np.zeros((3, 0)))


def select(games: Games, chosen: np.ndarray) -> Games:
  """Returns some of the games; `chosen` indexes their first axis."""
  return type(games)(*(values[chosen] for values in games))


def cycles(table: Standing) -> list[tuple[str, str, str]]:
  """Returns triples A, B, C in which A beats B, B beats C and C beats A, each by EDGE or more."""
  if not table.ratings.size:
    return []  # a player's row and its column have different races
  beats, names = table.score >= EDGE, table.names
  return [(names[a], names[b], names[c])
          for i, j, k in itertools.combinations(range(len(names)), 3)
          for a, b, c in ((i, j, k), (i, k, j)) if beats[a, b] and beats[b, c] and beats[c, a]]


def lines(title: str, table: Standing) -> list[str]:
  """Returns a table as lines of Markdown."""
  columns = (*table.names, "Elo") if table.ratings.size else table.names
  found = [f"**{title}**", "", f"| | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
  for i, name in enumerate(table.names):
    cells = [f"{100 * score:.0f}%" if table.games[i, j] else ""
             for j, score in enumerate(table.score[i])]
    if table.ratings.size:
      cells.append(f"{table.ratings[i]:+.0f} [{table.low[i]:+.0f}, {table.high[i]:+.0f}]")
    found.append(f"| {name} | {' | '.join(cells)} |")
  for triple in cycles(table):
    edges = []
    for a, b in itertools.pairwise((*triple, triple[0])):
      i, j = table.names.index(a), table.names.index(b)
      games = int(table.games[i, j])
      low, high = league.wilson_interval(table.score[i, j] * games, games)
      edges.append(f"{a} beats {b} {100 * table.score[i, j]:.0f}% [{100 * low:.0f}, "
                   f"{100 * high:.0f}]")
    found.append(f"\nCycle: {', '.join(edges)}.")
  return found


def race_lines(fixtures: tournament.Fixture, outcomes: tournament.Outcomes) -> list[str]:
  """Returns the score of each race against each other one, over all players and both sides."""
  points, games = tournament.payoff(
    fixtures._replace(players=fixtures.races), outcomes, len(types.RACES))
  found = ["**Races**", ""]
  for i, j in itertools.combinations(range(len(types.RACES)), 2):
    if games[i, j]:
      low, high = league.wilson_interval(points[i, j], games[i, j])
      found.append(f"- {race_title((i, j))}: {100 * points[i, j] / games[i, j]:.0f}% "
                   f"[{100 * low:.0f}, {100 * high:.0f}] of {int(games[i, j])} games")
  return found


def opening_line(names: Sequence[str], fixtures: tournament.Fixture,
                 outcomes: tournament.Outcomes) -> str:
  """Returns the entropy of each player's openings, in bits; players are indices of `names`."""
  played = [outcomes.openings[fixtures.players == i] for i in range(len(names))]
  return f"Entropy of the first {tournament.OPENING} units and buildings, bits: " + ", ".join(
    f"{name} {openings.opening_entropy(built, tournament.OPENING):.1f}"
    for name, built in zip(names, played, strict=True) if len(built)) + "."


def race_title(races: tuple[int, int]) -> str:
  """Returns the title of a match of two races, indices of `types.RACES`."""
  return " against ".join(types.RACES[race].capitalize() for race in races)


def table_csv(tables: Mapping[str, Standing]) -> str:
  """Returns the games and points (wins plus half the draws) of all pairs as CSV."""
  text = io.StringIO()
  writer = csv.writer(text, lineterminator="\n")
  writer.writerow(("races", "row", "column", "games", "points"))
  for title, table in tables.items():
    for i, j in itertools.permutations(range(len(table.names)), 2):
      games = table.games[i, j]
      writer.writerow((title, table.names[i], table.names[j], int(games),
                       f"{table.score[i, j] * games:g}"))
  return text.getvalue()


def page(tables: Mapping[str, Standing]) -> str:
  """Returns a self-contained page with a heat map of scores and the ratings of each table."""
  return pages.charts_page(
    "Round robin",
    "Scores are wins plus half the draws, over games; the row's player against the column's.",
    [pages.Charts(title, [_score_plot(table), *(
      [_rating_plot(table)] if table.ratings.size else [])]) for title, table in tables.items()])


def _layout(title: str) -> dict[str, Any]:
  return {"title": {"text": title, "font": {"size": 14}}, "height": 420,
          "margin": {"l": 90, "r": 20, "t": 40}}


def _score_plot(table: Standing) -> dict[str, Any]:
  names = list(table.names)
  # Plotly leaves cells of None empty, without hover text.
  percent = [[round(100 * score, 1) if games else None
              for score, games in zip(*rows, strict=True)]
             for rows in zip(table.score[::-1].tolist(), table.games[::-1], strict=True)]
  heat = {"type": "heatmap", "z": percent, "x": names, "hoverongaps": False,
          "y": names[::-1], "zmin": 0, "zmax": 100, "colorscale": "RdBu", "reversescale": True,
          "texttemplate": "%{z:.0f}", "hovertemplate": "%{y} against %{x}: %{z}%<extra></extra>"}
  return {"data": [heat], "layout": _layout("score, %")}


def _rating_plot(table: Standing) -> dict[str, Any]:
  dots = {"type": "scatter", "mode": "markers", "x": np.round(table.ratings).tolist(),
          "y": list(table.names), "marker": {"size": 9, "color": "#2563eb"}, "error_x": {
            "type": "data", "symmetric": False,
            "array": np.round(table.high - table.ratings).tolist(),
            "arrayminus": np.round(table.ratings - table.low).tolist()}}
  return {"data": [dots], "layout": _layout("Elo rating, 95% interval")}
