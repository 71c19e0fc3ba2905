"""The page of decoded replays, `replays.html`: one self-contained file.

Openings as a tree, build timelines, lengths, action rates, ratings and refusals.
"""

import collections
import html
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from starleague.common import files
from starleague.common.text import count
from starleague.data.replays import library
from starleague.viewers import pages
from starleague.viewers.replays import figures, summary

FILE_NAME = "replays.html"
TEMPLATE = pathlib.Path(__file__).with_name("replays.html")
_MAPS = 12
_LISTED = 200  # refused files and games with their own line


def write(folder: str | os.PathLike[str]) -> pathlib.Path:
  """Writes the page of a folder of tables and returns its path.

  Raises:
    tables.TablesError: a table is missing or damaged.
  """
  path = pathlib.Path(folder) / FILE_NAME
  with files.replacing(path) as file:
    file.write(render(pathlib.Path(folder).resolve().name, summary.load(folder)))
  return path


def render(name: str, rows: summary.Inputs) -> str:
  """Returns the page as HTML."""
  body = [f"<header><h1>{html.escape(name)}</h1></header>", pages.tiles(_tiles(rows))]
  if rows.games:
    found = summary.openings(rows.players, rows.builds)
    body += [_openings(found), _timelines(found), _inputs(rows), _games(rows)]
  else:
    body.append("<p class='empty'>No file was read.</p>")
  body.append(_refusals(rows.refused))
  return pages.fill(TEMPLATE, {
    "TITLE": html.escape(name), "BODY": "\n".join(filter(None, body)),
    "PLOTLY": pages.plotly_elements()})


def _tiles(rows: summary.Inputs) -> list[tuple[str, str, str]]:
  resolved = sum(game["resolved"] for game in rows.games)
  commands = sum(game["commands"] for game in rows.games)
  minutes = sum(game["loops"] for game in rows.games) / summary.LOOPS_PER_MINUTE
  return [("games", count(len(rows.games)), f"{count(minutes / 60)} hours of play"),
          ("refused files", count(len(rows.refused)), ""),
          ("maps", count(len(set(_titles(rows).values()))), ""),
          ("commands", count(commands), ""),
          ("with a function", f"{resolved / commands:.1%}" if commands else "none",
           "of the commands")]


def _openings(found: Sequence[summary.Opening]) -> str:
  return _section(
    "Openings", "Race, match-up, then the first entries of the build order, with median times. "
    "Width is the number of players, blue branches win more often than red ones. Click a branch "
    "to enlarge it.", "one", [_panel("", figures.openings(summary.tree(found)))])


def _timelines(found: Sequence[summary.Opening]) -> str:
  panels = []
  for race in figures.RACES:
    rows = summary.timelines(found, race)
    if rows:
      panels.append(_panel(race.capitalize(), figures.timelines(rows, race)))
  return _section("Build timelines", "First start of each type among the first twenty entries: "
                  "medians, and the middle half of the players.", "three", panels)


def _inputs(rows: summary.Inputs) -> str:
  loops = {game["replay"]: game["loops"] for game in rows.games}
  rates = {race: summary.action_rates(rows.players, loops, race) for race in figures.RACES}
  ratings: dict[str, list[int]] = {race: [] for race in figures.RACES}
  for player in rows.players:
    if player["mmr"] is not None:
      ratings[player["race"]].append(player["mmr"])
  panels = [_panel("Actions per minute over the game", figures.action_rates(
    {race: found for race, found in rates.items() if found}))]
  if any(ratings.values()):
    known = sum(map(len, ratings.values()))
    panels.append(_panel(f"MMR of {known} of {len(rows.players)} players",
                         figures.ratings(ratings)))
  return _section("Players", "Selections, control groups and commands count as actions, camera "
                  "moves do not. Bands are the middle half of the players.", "two", panels)


def _titles(rows: summary.Inputs) -> dict[str, str]:
  """Returns the title of each map by its digest; versions of a map have one title."""
  return library.map_titles([(game["map_digest"], game["map"]) for game in rows.games])


def _games(rows: summary.Inputs) -> str:
  titles = _titles(rows)
  maps = collections.Counter(titles[game["map_digest"]] for game in rows.games)
  title = f"The {_MAPS} most played of {len(maps)} maps" if len(maps) > _MAPS else "Maps"
  versions = collections.Counter(
    ".".join(game["version"].split(".")[:2]) for game in rows.games)
  ordered = dict(sorted(versions.items(), key=lambda item: [*map(int, item[0].split("."))]))
  return _section("Games", "", "three", [
    _panel("Length by match-up", figures.lengths(summary.lengths(rows.games))),
    _panel(title, figures.counts(dict(maps.most_common(_MAPS)))),
    _panel("Versions", figures.counts(ordered))])


def _refusals(refused: Sequence[Mapping[str, Any]]) -> str:
  if not refused:
    return ""
  reasons = dict(collections.Counter(row["reason"] for row in refused).most_common())
  rows = "".join(
    f"<tr><th>{html.escape(pathlib.PurePath(row['file']).name)}</th>"
    f"<td>{html.escape(row['reason'])}</td><td>{html.escape(row['detail'])}</td></tr>"
    for row in refused[:_LISTED])
  more = (f"<p>{len(refused) - _LISTED} more are in refused.parquet.</p>"
          if len(refused) > _LISTED else "")
  table = (f"<div class='card'><details{' open' if len(refused) <= 20 else ''}><summary>"
           f"{len(refused)} file{'s' * (len(refused) != 1)}</summary>"
           f"<table class='stack'><tbody>{rows}</tbody></table>{more}</details></div>")
  return _section("Refused files", "", "two", [
    _panel("By reason", figures.counts(reasons, "#b91c1c")), table])


def _panel(title: str, figure: figures.Figure) -> str:
  heading = f"<h3>{html.escape(title)}</h3>" if title else ""
  return f"<div class='card'>{heading}{pages.plot_element(title or 'Openings', figure)}</div>"


def _section(title: str, note: str, columns: str, panels: Iterable[str]) -> str:
  inside = "".join(panels)
  text = f"<p>{note}</p>" if note else ""
  return (f"<section><h2>{title}</h2>{text}<div class='cards {columns}'>{inside}</div></section>"
          if inside else "")
