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

from plotly.offline import get_plotlyjs

from starleague.common import files, results
from starleague.common.errors import UserError
from starleague.common.results import Row
from starleague.viewers import pages
from starleague.viewers.report import figures
from starleague.viewers.report.summary import (
  KeyFigure,
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

# Kinds of tags whose curves share a panel, in order. All other kinds follow with one panel per tag.
_BY_ARGUMENT = {
  "entropy": "Normalised entropy by argument",
  "kl": "KL divergence from the teacher by argument, nats",
  "clipped_fraction": "Fraction of clipped importance ratios by argument group",
  "illegal": "Fraction of actions that the masks exclude, by argument",
  "used": "Fraction of steps that use the argument",
}
_BY_REWARD = {
  "mean_value": "Mean value prediction by reward",
  "value": "Value loss by reward",
  "explained_variance": "Explained variance of the returns by reward",
}
# Kinds of imitation's tags, in order; those of training and of held-out games have panels each.
_IMITATION = {
  "loss": "Loss: cross-entropy of learnt and held-out games, L2",
  "accuracy": "Accuracy by argument, learnt games",
  "held_out/accuracy": "Accuracy by argument, held-out games",
  "cross_entropy": "Cross-entropy by argument, nats, learnt games",
  "held_out/cross_entropy": "Cross-entropy by argument, nats, held-out games",
  "illegal": "Fraction of labels that the masks exclude, learnt games",
  "held_out/illegal": "Fraction of labels that the masks exclude, held-out games",
  "used": "Fraction of steps that use the argument, learnt games",
}
# Win rates count wins only; the report shows scores.
_DRAWN_BY_NAME = ("score", "win_rate", "loss", *_BY_ARGUMENT, *_BY_REWARD, "speed", "total",
                  "imitation")


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
  time = figures.time_axis(max((row.seconds for row in rows), default=0.0))
  body = [_header(name, config), _tiles(key_figures(tags)), _scores_table(opponent_scores(tags))]
  if not rows:
    body.append("<p class='empty'>No figures are recorded yet.</p>")
  body.append(_score_section(tags, time))
  body.append(_imitation_section(_of_kind("imitation", tags), time))
  body.append(_section("Losses", _of_kind("loss", tags), time))
  body.append(_cards("Policy and values", "", [
    panel for kinds in (_BY_ARGUMENT, _BY_REWARD) for panel in _shared_panels(
      {title: _of_kind(kind, tags) for kind, title in kinds.items()}, time)]))
  body.append(_speed_section(tags, time))
  for kind in sorted({tag.split("/")[0] for tag in tags} - set(_DRAWN_BY_NAME)):
    body.append(_section(kind.replace("_", " ").capitalize(), _of_kind(kind, tags), time))
  body.append(_config(config))
  return pages.fill(TEMPLATE, {
    "TITLE": html.escape(name), "BODY": "\n".join(filter(None, body)), "PLOTLY": get_plotlyjs()})


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


def _header(name: str, config: Mapping[str, Any]) -> str:
  """Returns the run's name and the short values of its config."""
  brief = [f"<span><b>{html.escape(key)}</b> {_shown(value)}</span>"
           for key, value in config.items()
           if isinstance(value, (str, int, float, bool)) and len(str(value)) <= _BRIEF_LENGTH
           ][:_BRIEF_COUNT]
  return (f"<header><h1>{html.escape(name)}</h1>"
          f"<p class='brief'>{''.join(brief)}</p></header>")


def _tiles(found: Sequence[KeyFigure]) -> str:
  tiles = "".join(
    f"<div class='tile'><div class='name'>{html.escape(name)}</div>"
    f"<div class='figure'>{html.escape(value)}</div>"
    f"<div class='remark'>{html.escape(remark)}</div></div>" for name, value, remark in found)
  return f"<div class='tiles'>{tiles}</div>" if tiles else ""


def _scores_table(found: Sequence[OpponentScores]) -> str:
  """Returns the table of scores before and after training, with intervals as text and drawing."""
  if not found:
    return ""
  lines = []
  for scores in found:
    before = scores.first or scores.initial
    lines.append(
      f"<tr><th>{html.escape(scores.opponent)}"
      f"{'' if scores.evaluated else ' <small>training games</small>'}</th>"
      f"<td>{_score(scores.initial)}</td><td>{_score(scores.first)}</td>"
      f"<td class='last'>{_score(scores.last)}</td>"
      f"<td>{_change(before, scores.last)}</td>"
      f"<td>{figures.interval_svg(scores.initial, scores.first, scores.last)}</td></tr>")
  return (
    "<section><h2>Scores</h2><p>Wins plus half the draws, over games, with 95% intervals. Changes "
    "are in percentage points, coloured where the intervals before and after do not overlap. "
    "Drawing: the initial weights grey, first measurement hollow, last measurement filled.</p>"
    "<div class='card'><table><thead><tr><th>against</th><td>initial weights</td>"
    "<td>first measured</td><td>last measured</td><td>change</td>"
    "<td class='scale'><span>0%</span><span>50%</span><span>100%</span></td></tr></thead>"
    f"<tbody>{''.join(lines)}</tbody></table></div></section>")


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


def _score_section(tags: Mapping[str, Sequence[Row]], time: figures.TimeAxis) -> str:
  panels = []
  for opponent in opponents(tags):
    evaluation, training, initial = (
      tags.get(f"score/{kind}/{opponent}", []) for kind in ("eval", "train", "initial"))
    if evaluation or training:
      panels.append(_panel(opponent, figures.score(evaluation, training, initial, time)))
  legend = ("<p class='legend'><i class='eval'></i>evaluation <i class='train'></i>training games "
            "<i class='initial'></i>initial weights; bands are 95% intervals</p>")
  return _cards("Scores over time", legend, panels)


def _of_kind(kind: str, tags: Mapping[str, Sequence[Row]]) -> dict[str, Sequence[Row]]:
  """Returns the curves of a kind of tags by the rest of the tag."""
  return {tag.partition("/")[2] or tag: rows for tag, rows in tags.items()
          if tag.split("/")[0] == kind}


def _section(title: str, found: Mapping[str, Sequence[Row]], time: figures.TimeAxis) -> str:
  """Returns a section with a panel per curve."""
  return _cards(title, "", [_panel(name, figures.curves({name: rows}, time), {name: rows})
                            for name, rows in found.items()])


def _shared_panels(
    found: Mapping[str, Mapping[str, Sequence[Row]]], time: figures.TimeAxis) -> list[str]:
  """Returns a panel for each title that has curves; a name has one colour in all of them."""
  names = sorted({name for curves in found.values() for name in curves})
  return [_panel(title, figures.curves(
    curves, time, legend=True, share=title.startswith("Accuracy"), names=names), curves)
    for title, curves in found.items() if curves]


def _imitation_section(tags: Mapping[str, Sequence[Row]], time: figures.TimeAxis) -> str:
  """Returns the section of imitation: a panel per kind, whose curves differ in their last name."""
  panels = _shared_panels({
    title: {tag.rpartition("/")[2]: rows for tag, rows in tags.items()
            if tag.rpartition("/")[0] == kind} for kind, title in _IMITATION.items()}, time)
  others = {tag: rows for tag, rows in tags.items() if tag.rpartition("/")[0] not in _IMITATION}
  panels += [_panel(tag, figures.curves({tag: rows}, time), {tag: rows})
             for tag, rows in others.items()]
  return _cards("Imitation", "", panels)


def _speed_section(tags: Mapping[str, Sequence[Row]], time: figures.TimeAxis) -> str:
  found = _of_kind("speed", tags)
  rates: dict[str, Sequence[Row]] = {
    name: found.pop(name) for name in ("actor", "learner") if name in found}
  waiting: dict[str, Sequence[Row]] = {
    name: found.pop(name) for name in ("waiting",) if name in found}
  panels = []
  if rates:
    panels.append(_panel("Agent steps per second",
                         figures.curves(rates, time, legend=True, from_zero=True), rates))
  if waiting:
    panels.append(_panel("Fraction of time the learner waits for data",
                         figures.curves(waiting, time, legend=True, share=True), waiting))
  panels += [_panel(name, figures.curves({name: rows}, time, from_zero=True), {name: rows})
             for name, rows in found.items()]
  return _cards("Speed", "", panels)


def _panel(
    title: str, figure: figures.Figure, curves: Mapping[str, Sequence[Row]] | None = None) -> str:
  """Returns a card with a plot, and a warning about values that are not finite, which it omits."""
  bad = sum(not math.isfinite(row.value) for rows in (curves or {}).values() for row in rows)
  values = "1 value is" if bad == 1 else f"{bad} values are"
  warning = f"<p class='warning'>{values} not finite</p>" if bad else ""
  heading = f"<h3>{html.escape(title.replace('_', ' '))}</h3>" if title else ""
  data = pages.json_element(figure)
  return (f"<div class='card'>{heading}{warning}<div class='plot'>"
          f"<script type='application/json'>{data}</script></div></div>")


def _cards(title: str, note: str, panels: Sequence[str]) -> str:
  """Returns a section of panels in a grid; "" without panels."""
  if not panels:
    return ""
  columns = "two" if len(panels) in (1, 2, 4) else "three"
  return (f"<section><h2>{html.escape(title)}</h2>{note}"
          f"<div class='cards {columns}'>{''.join(panels)}</div></section>")


def _config(config: Mapping[str, Any]) -> str:
  flat = _flatten(config)
  if not flat:
    return ""
  lines = "".join(f"<tr><th>{html.escape(key)}</th><td>{_shown(value)}</td></tr>"
                  for key, value in flat)
  return (f"<section><h2>Config</h2><details{' open' if len(flat) <= 30 else ''}>"
          f"<summary>{len(flat)} values</summary>"
          f"<div class='card'><table class='config'>{lines}</table></div></details></section>")
