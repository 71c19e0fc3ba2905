"""The page of a league as one self-contained file, `league.html`."""

import html
import os
import pathlib
from collections.abc import Mapping

from starleague.common import files
from starleague.viewers import pages
from starleague.viewers.league.facts import Facts
from starleague.viewers.league.games import ReplayPages
from starleague.viewers.league.reading import LeagueReader
from starleague.viewers.league.sections import (
  SORTS,
  Panel,
  Section,
  Table,
  border_of,
  columns,
  games,
  key_figures,
  sections,
)
from starleague.viewers.plots import Style

FILE_NAME = "league.html"
TEMPLATE = pathlib.Path(__file__).with_name("league.html")


def write(run_dir: str | os.PathLike[str], path: str | os.PathLike[str] | None = None,
          replays: int = 4) -> pathlib.Path:
  """Writes the page of a run's league atomically and returns its path.

  Args:
    run_dir: folder of the run.
    path: file to write; RUN_DIR/league.html by default.
    replays: number of kept replays, the newest, that the file holds.

  Raises:
    UserError: the folder has no league, or a file in it is damaged; names the file.
  """
  facts = LeagueReader(run_dir).facts()
  kept = ReplayPages(run_dir).pages(facts.replays, replays)
  path = pathlib.Path(run_dir) / FILE_NAME if path is None else pathlib.Path(path)
  with files.replacing(path) as file:
    file.write(render(facts, kept))
  return path


def render(facts: Facts, replays: Mapping[str, str]) -> str:
  """Returns the page as HTML; `replays` are pages of replays by id."""
  held = [replay if replay.id in replays else replay._replace(path=None)
          for replay in facts.replays]
  facts = facts._replace(replays=held)
  body = [f"<main><header><h1>{html.escape(facts.name)}</h1></header>",
          pages.tiles(key_figures(facts)), *map(_section, sections(facts)),
          _section(games(facts.replays)),
          "<iframe id='viewer' title='Game' sandbox='allow-scripts' hidden></iframe></main>"]
  kept = "".join(
    f"<script type='application/json' id='replay-{html.escape(identifier)}'>"
    f"{pages.json_element(page)}</script>" for identifier, page in replays.items())
  return pages.fill(TEMPLATE, {
    "TITLE": html.escape(facts.name), "BODY": "\n".join(body),
    "SCRIPTS": f"{kept}{pages.plotly_elements()}"})


def _section(section: Section) -> str:
  note = f"<p>{html.escape(section.note)}</p>" if section.note else ""
  panels = "".join(_panel(section.title, panel) for panel in section.panels)
  if panels:
    panels = f"<div class='cards {columns(section)}'>{panels}</div>"
  table = _table(section.table) if section.table else ""
  return (f"<section id='{section.name}'><h2>{html.escape(section.title)}</h2>{note}"
          f"{_key(section.key)}{panels}{table}</section>")


def _key(key: Mapping[str, Style]) -> str:
  """Returns the names of players with their looks; a click on one hides its curves."""
  items = "".join(
    f"<button data-player='{html.escape(name, quote=True)}' aria-pressed='true'>"
    f"<i style='border-top: {border_of(style)}'></i>{html.escape(name)}</button>"
    for name, style in key.items())
  return f"<div class='key'>{items}</div>" if items else ""


def _panel(section: str, panel: Panel) -> str:
  options = "".join(f"<option>{name}</option>" for name in SORTS)
  sort = (f"<label>sorted by <select id='sort'>{options}</select></label><p id='pair'></p>"
          if panel.sortable else "")
  numbers = "<ol id='numbers'></ol>" if panel.sortable else ""
  title = f"<h3>{html.escape(panel.title)}</h3>" if panel.title else ""
  plot = pages.plot_element(panel.title or section, panel.figure)
  return f"<div class='card'>{title}{sort}{plot}{numbers}</div>"


def _table(table: Table) -> str:
  header = "".join(f"<th>{html.escape(name)}</th>" for name in table.header)
  lines = []
  for row, replay in zip(table.rows, table.replays, strict=True):
    cells = [f"<th>{html.escape(row[0])}</th>"]
    cells += [f"<td data-column='{html.escape(name)}'>{html.escape(text)}</td>"
              for name, text in zip(table.header[1:], row[1:], strict=True)]
    if replay:
      cells.append(f"<td><button data-replay='{html.escape(replay)}'>watch</button></td>")
    lines.append(f"<tr>{''.join(cells)}</tr>")
  return (f"<div class='card'><table class='stack'><thead><tr>{header}</tr></thead>"
          f"<tbody>{''.join(lines)}</tbody></table></div>")
