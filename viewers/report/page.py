"""The report of a run, `report.html`: one self-contained page with its figures and curves.

Reads `results.csv` (see `common.results` for the tags) and, if it exists, `config.json` (any nested
object). The report of an unfinished run can be written at any time; the file is replaced
atomically.
"""

import html
import json
import math
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from starleague.common import files, results
from starleague.common.errors import UserError
from starleague.common.results import Row
from starleague.common.text import count
from starleague.viewers import pages, plots
from starleague.viewers.report import figures, panels
from starleague.viewers.report.summary import (
  OpponentScores,
  key_figures,
  opponent_scores,
  opponents,
)

FILE_NAME = "report.html"
CONFIG_NAME = "config.json"
TEMPLATE = pathlib.Path(__file__).with_name("report.html")
_BRIEF_LENGTH, _BRIEF_COUNT = 40, 12  # limits of the config values in the header
_VALUE_LENGTH = 120  # characters shown of a config value


def write_report(run_dir: str | os.PathLike[str]) -> pathlib.Path:
  """Writes RUN_DIR/report.html and returns its path.

  Raises:
    FileNotFoundError: no such folder, or no results.csv in it.
    UserError: results.csv or config.json is damaged; names the file and the line.
  """
  folder = pathlib.Path(run_dir)
  if not folder.is_dir():
    raise FileNotFoundError(
      f"{folder}: no such folder; expected the folder of a run, such as runs/NAME")
  rows = results.read(folder / results.FILE_NAME)
  config = _read_config(folder / CONFIG_NAME)
  page = render_page(folder.resolve().name, rows, config)
  with files.replacing(folder / FILE_NAME) as file:
    file.write(page)
  return folder / FILE_NAME


def render_page(name: str, rows: Sequence[Row], config: Mapping[str, Any]) -> str:
  """Returns the report as HTML."""
  tags = results.by_tag(rows)
  body = [_header(name, _options_of(tags, config)), pages.tiles(key_figures(tags)),
          _scores_table(opponent_scores(tags))]
  if not rows:
    body.append("<p class='empty'>No figures are recorded yet.</p>")
  scores, sections = _score_section(tags), panels.sections(tags)
  body.append(scores)
  # A phone's screen shows the scores alone. A run without scores and losses is young: it shows the
  # first of what it has.
  open_, wide = " open", " open class='wide'"
  states = {"Losses": wide if scores else open_}
  if not scores and all(section.title not in states for section in sections):
    states = {section.title: open_ for section in sections[:1]}
  body += [_section(section, states.get(section.title, "")) for section in sections]
  return pages.fill(TEMPLATE, {
    "TITLE": html.escape(name), "BODY": "\n".join(filter(None, [*body, _config(config)])),
    "PLOTLY": pages.plotly_elements()})


def _read_config(path: pathlib.Path) -> dict[str, Any]:
  if not path.is_file():
    return {}
  try:
    config = json.loads(path.read_text(encoding="utf-8"))
  except (ValueError, RecursionError) as error:
    raise UserError(f"{path}: not JSON: {error}; the run writes it at its start") from None
  if not isinstance(config, dict):
    raise UserError(f"{path}: expected a JSON object, found {type(config).__name__}")
  return config


def _flatten(config: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
  flat: list[tuple[str, Any]] = []
  for key, value in config.items():
    if isinstance(value, Mapping) and value:
      flat += _flatten(value, f"{prefix}{key}.")
    else:
      flat.append((f"{prefix}{key}", value))
  return flat


def _shown(value: Any) -> str:
  text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
  return html.escape(text if len(text) <= _VALUE_LENGTH else text[:_VALUE_LENGTH - 3] + "...")


def _options_of(tags: Mapping[str, Sequence[Row]], config: Mapping[str, Any]) -> Mapping[str, Any]:
  """Returns the values that the header shows: of offline learning, where the run is that."""
  offline = config.get("offline")
  if not any(tag.startswith(panels.OFFLINE) for tag in tags) or not isinstance(offline, Mapping):
    return config
  return {**{key: config[key] for key in ("preset", "seed") if key in config}, **offline}


def _header(name: str, config: Mapping[str, Any]) -> str:
  """Returns the run's name and the short values of its config."""
  brief = [f"<span><b>{html.escape(key)}</b> {_shown(value)}</span>"
           for key, value in config.items()
           if isinstance(value, (str, int, float, bool)) and len(str(value)) <= _BRIEF_LENGTH
           ][:_BRIEF_COUNT]
  return (f"<header><h1>{html.escape(name)}</h1>"
          f"<p class='brief'>{''.join(brief)}</p></header>")


def _scores_table(found: Sequence[OpponentScores]) -> str:
  """Returns the table of scores before and after training, with intervals as text and drawing.

  Columns without any score are left out. On narrow screens a row stands as a block, in which each
  cell names its column.
  """
  if not found:
    return ""
  shown = [column for column in ("initial", "first")
           if any(_is_known(getattr(scores, column)) for scores in found)]
  names = {"initial": "initial weights", "first": "first measured"}
  lines = []
  for scores in found:
    before = scores.first or scores.initial
    cells = [(names[column], "", _score(getattr(scores, column))) for column in shown]
    cells.append(("last measured", "last", _score(scores.last)))
    if shown:
      cells.append(("change", "", _change(before, scores.last)))
    lines.append(
      f"<tr><th>{html.escape(scores.opponent)}"
      f"{'' if scores.evaluated else ' <small>training games</small>'}</th>"
      + "".join(f"<td class='{kind}' data-column='{column}'>{text}</td>"
                for column, kind, text in cells)
      + "<td class='drawing'>"
      f"{figures.interval_svg(scores.initial, scores.first, scores.last)}</td></tr>")
  header = "".join(f"<th>{column}</th>" for column in (
    "against", *(names[column] for column in shown), "last measured", *(["change"] * bool(shown))))
  return (
    f"<section><h2>Scores</h2><p>{_scores_note(shown)}</p>"
    f"<div class='card'><table class='scores stack'><thead><tr>{header}"
    "<td class='scale'><span>0%</span><span>50%</span><span>100%</span></td></tr></thead>"
    f"<tbody>{''.join(lines)}</tbody></table></div></section>")


def _scores_note(shown: Sequence[str]) -> str:
  note = "Wins plus half the draws, over games, with 95% intervals."
  if not shown:
    return note
  drawn = [{"initial": "the initial weights grey", "first": "first measurement hollow"}[column]
           for column in shown]
  return (f"{note} Changes are in percentage points, coloured where the intervals before and after "
          f"do not overlap. Drawing: {', '.join(drawn)}, last measurement filled.")


def _is_known(row: Row | None) -> bool:
  return row is not None and math.isfinite(row.value)


def _score(row: Row | None) -> str:
  if row is None or not math.isfinite(row.value):
    return "<span class='none'>not measured</span>"
  interval = ""
  if row.low is not None and row.high is not None:
    interval = f" <small>{row.low:.0%} to {row.high:.0%}</small>"
  return f"{row.value:.0%}{interval}"


def _change(before: Row | None, after: Row) -> str:
  """Returns the change in percentage points since the first measurement or the initial weights."""
  if before is None or not math.isfinite(after.value - before.value):
    return "<span class='none'>unknown</span>"
  points = round(100 * after.value) - round(100 * before.value)
  kind = "same"
  if (before.low is not None and before.high is not None
      and after.low is not None and after.high is not None):
    kind = "up" if after.low > before.high else "down" if after.high < before.low else "same"
  return f"<span class='{kind}'>{points:+d} points</span>"


def _score_section(tags: Mapping[str, Sequence[Row]]) -> str:
  cards, found = [], {}
  for opponent in opponents(tags):
    evaluation, training, initial = (
      tags.get(f"score/{kind}/{opponent}", []) for kind in ("eval", "train", "initial"))
    if evaluation or training:
      found[opponent] = (evaluation, training, initial)
  if not found:
    return ""
  times = [row.seconds for evaluation, training, _ in found.values()
           for row in (*evaluation, *training)]
  for opponent, kinds in found.items():
    time = figures.time_axis(max(times), min(times))
    cards.append(_card(opponent, figures.score(*kinds, time)))
  legend = ("<p class='legend'><i class='eval'></i>evaluation <i class='train'></i>training games "
            "<i class='initial'></i>initial weights; bands are 95% intervals</p>")
  return _folded("Scores over time", legend, cards, " open")


def _section(section: panels.Section, state: str) -> str:
  """Returns a section of curves, and one line for those that would be flat."""
  begin, end = section.span
  time, cards = figures.time_axis(end, begin), []
  for panel in section.panels:
    figure = figures.curves(
      panel.curves, time, legend=len(panel.curves) > 1, share=panel.share,
      from_zero=section.title == "Speed",
      styles=plots.styles(section.names) if len(panel.curves) > 1 else None)
    cards.append(_card(panel.title, figure, panel.curves))
  flat = ""
  if section.constant:
    values = "; ".join(f"{html.escape(title)}: {value:.4g}" for title, value in section.constant)
    flat = f"<p class='flat'>Without a change: {values}.</p>"
  return _folded(section.title, flat, cards, state)


def _card(title: str, figure: plots.Figure,
          curves: Mapping[str, Sequence[Row]] | None = None) -> str:
  """Returns a card with a plot, and a warning about values that are not finite, which it omits."""
  bad = sum(not math.isfinite(row.value) for rows in (curves or {}).values() for row in rows)
  values = "1 value is" if bad == 1 else f"{bad} values are"
  warning = f"<p class='warning'>{values} not finite</p>" if bad else ""
  return (f"<div class='card'><h3>{html.escape(title)}</h3>{warning}"
          f"{pages.plot_element(title, figure)}</div>")


def _folded(title: str, note: str, cards: Sequence[str], state: str) -> str:
  """Returns a section that can be folded, with cards in a grid; `state` are its attributes."""
  columns = "two" if len(cards) in (1, 2, 4) else "three"
  number = f"<small>{count(len(cards))} plot{'s' * (len(cards) != 1)}</small>" if cards else ""
  inside = f"<div class='cards {columns}'>{''.join(cards)}</div>" if cards else ""
  return (f"<details{state}><summary><h2>{html.escape(title)}</h2>{number}</summary>"
          f"{note}{inside}</details>")


def _config(config: Mapping[str, Any]) -> str:
  flat = _flatten(config)
  if not flat:
    return ""
  lines = "".join(f"<tr><th>{html.escape(key)}</th><td>{_shown(value)}</td></tr>"
                  for key, value in flat)
  return (f"<details{' open' if len(flat) <= 30 else ''}><summary><h2>Config</h2>"
          f"<small>{len(flat)} values</small></summary>"
          f"<div class='card'><table class='config'>{lines}</table></div></details>")
