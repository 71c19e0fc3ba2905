"""Writes `report.html` of a run: one page with its figures and curves, readable without a network.

Reads `results.csv` (see `results` for the tags) and, where there is one, `config.json` (any nested
object). A run that goes on can be reported at any time; the page is replaced at once.
"""

import html
import json
import math
import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from plotly.offline import get_plotlyjs

from starleague.common import files, results
from starleague.common.results import Row
from starleague.common.text import count, duration
from starleague.viewers.report import figures

FILE_NAME = "report.html"
CONFIG_NAME = "config.json"

# Kinds of tags whose curves share a panel, in order. A kind that is named nowhere here is drawn
# too, last, each tag in a panel of its own.
_SHARED = {
  "entropy": "Entropy by argument, of the largest possible",
  "kl": "KL divergence from the teacher by argument, nats",
  "mean_value": "Values by reward, mean prediction",
  "value": "Loss of the values by reward",
  "explained_variance": "Variance of the returns that values explain, by reward",
  "clipped_fraction": "Ratios that are clipped, share by group of arguments",
  "illegal": "Actions that masks rule out, share by argument",
}
# Win rates count wins only; the report shows scores.
_DRAWN_BY_NAME = ("score", "win_rate", "loss", *_SHARED, "speed", "total")


class Standing(NamedTuple):
  """An opponent's line of the table: how the agent did against it, before and after."""

  opponent: str
  random: Row | None  # random play's
  first: Row | None  # None where there is one measurement only
  last: Row
  evaluated: bool  # else the scores are those of training games


def write_report(run_dir: str | os.PathLike[str]) -> pathlib.Path:
  """Writes RUN_DIR/report.html and returns its path.

  Raises:
    FileNotFoundError: no such folder, or no results.csv in it.
    ValueError: results.csv or config.json is not what it should be; says where.
  """
  folder = pathlib.Path(run_dir)
  if not folder.is_dir():
    raise FileNotFoundError(f"{folder}: no such folder; name the folder of a run, as runs/NAME")
  rows = results.read(folder / results.FILE_NAME)
  config = _read_config(folder / CONFIG_NAME)
  page = render_page(folder.resolve().name, rows, config)
  with files.replacing(folder / FILE_NAME) as file:
    file.write(page)
  return folder / FILE_NAME


def render_page(name: str, rows: Sequence[Row], config: Mapping[str, Any]) -> str:
  """The page as HTML. Pure."""
  tags = results.by_tag(rows)
  time = figures.time_axis(max((row.seconds for row in rows), default=0.0))
  body = [_header(name, config), _tiles(key_figures(tags)), _standings(standings(tags))]
  if not rows:
    body.append("<p class='empty'>No figures have been recorded yet.</p>")
  body.append(_score_section(tags, time))
  body.append(_section("Losses", _of_kind("loss", tags), time))
  shared = [(title, _of_kind(kind, tags)) for kind, title in _SHARED.items()]
  body.append(_cards("Policy and values", "", [
    _panel(title, figures.curves(found, time, legend=True), found)
    for title, found in shared if found]))
  body.append(_speed_section(tags, time))
  for kind in sorted({tag.split("/")[0] for tag in tags} - set(_DRAWN_BY_NAME)):
    body.append(_section(kind.replace("_", " ").capitalize(), _of_kind(kind, tags), time))
  body.append(_config(config))
  template = pathlib.Path(__file__).with_name("report.html")
  parts = {"TITLE": html.escape(name), "BODY": "\n".join(filter(None, body)),
           "PLOTLY": get_plotlyjs()}
  # In one pass: a name or a setting may itself look like a place.
  return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]],
                template.read_text(encoding="utf-8"))


def key_figures(tags: Mapping[str, Sequence[Row]]) -> list[tuple[str, str, str]]:
  """(name, value, remark) of the figures to show first, of those that were recorded."""
  rows = [row for found in tags.values() for row in found]
  if not rows:
    return []
  seconds = max(row.seconds for row in rows)
  found = [("time", duration(seconds), "")]
  last = {tag: tagged[-1] for tag, tagged in tags.items()}
  for tag, name, remark in (("total/steps", "agent steps played", "by the actors"),
                            ("total/steps_learnt", "agent steps learnt", "each use counted"),
                            ("total/games", "games", "finished")):
    if tag in last:
      found.append((name, count(last[tag].value), remark))
  found.append(("updates", count(max(row.update for row in rows)), "of the learner"))
  for tag, total, name in (("speed/actor", "total/steps", "played a second"),
                           ("speed/learner", "total/steps_learnt", "learnt a second")):
    if total in last and last[total].seconds > 0:
      mean = last[total].value / last[total].seconds
      found.append((name, count(mean), "steps, run average"))
    elif tag in last:
      found.append((name, count(last[tag].value), "steps, at the end"))
  return found


def standings(tags: Mapping[str, Sequence[Row]]) -> list[Standing]:
  """The table of opponents, in order of their first appearance."""
  found = []
  for opponent in _opponents(tags):
    evaluated = f"score/eval/{opponent}" in tags
    rates = tags.get(f"score/{'eval' if evaluated else 'train'}/{opponent}")
    if rates:
      random = tags.get(f"score/random/{opponent}", [None])[-1]
      first = rates[0] if len(rates) > 1 else None
      found.append(Standing(opponent, random, first, rates[-1], evaluated))
  return found


def _opponents(tags: Mapping[str, Sequence[Row]]) -> list[str]:
  return list(dict.fromkeys(
    tag.split("/", 2)[2] for tag in tags if tag.startswith("score/") and tag.count("/") >= 2))


def _read_config(path: pathlib.Path) -> dict[str, Any]:
  if not path.is_file():
    return {}
  try:
    config = json.loads(path.read_text(encoding="utf-8"))
  except (ValueError, UnicodeDecodeError) as error:
    raise ValueError(f"{path}: not JSON: {error}; the run writes it at its start") from None
  if not isinstance(config, dict):
    raise ValueError(f"{path}: expected a JSON object, found {type(config).__name__}")
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
  return html.escape(text if len(text) <= 120 else text[:117] + "...")


def _header(name: str, config: Mapping[str, Any]) -> str:
  """The run's name, and what of its config is neither nested nor long."""
  brief = [f"<span><b>{html.escape(key)}</b> {_shown(value)}</span>"
           for key, value in config.items()
           if isinstance(value, (str, int, float, bool)) and len(str(value)) <= 40][:12]
  return (f"<header><h1>{html.escape(name)}</h1>"
          f"<p class='brief'>{''.join(brief)}</p></header>")


def _tiles(found: Sequence[tuple[str, str, str]]) -> str:
  tiles = "".join(
    f"<div class='tile'><div class='name'>{html.escape(name)}</div>"
    f"<div class='figure'>{html.escape(value)}</div>"
    f"<div class='remark'>{html.escape(remark)}</div></div>" for name, value, remark in found)
  return f"<div class='tiles'>{tiles}</div>" if tiles else ""


def _standings(found: Sequence[Standing]) -> str:
  """Scores before and after, as text and drawn."""
  if not found:
    return ""
  lines = []
  for standing in found:
    before = standing.first or standing.random
    lines.append(
      f"<tr><th>{html.escape(standing.opponent)}"
      f"{'' if standing.evaluated else ' <small>training games</small>'}</th>"
      f"<td>{_score(standing.random)}</td><td>{_score(standing.first)}</td>"
      f"<td class='last'>{_score(standing.last)}</td>"
      f"<td>{_change(before, standing.last)}</td>"
      f"<td>{figures.interval_svg(standing.random, standing.first, standing.last)}</td></tr>")
  return (
    "<section><h2>Scores</h2><p>Draws count as half a win. Intervals hold the true score with "
    "95% confidence; a change is coloured where the intervals before and after do not overlap. "
    "Drawn: random play grey, the first measurement hollow, the last full.</p>"
    "<div class='card'><table><thead><tr><th>against</th><td>random play</td>"
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
  """In points, from the first measurement, or from random play where there is but one."""
  if before is None or not math.isfinite(after.value - before.value):
    return "<span class='none'>unknown</span>"
  points = round(100 * after.value) - round(100 * before.value)
  kind = "same"
  if None not in (before.low, before.high, after.low, after.high):
    kind = "up" if after.low > before.high else "down" if after.high < before.low else "same"
  return f"<span class='{kind}'>{points:+d} points</span>"


def _score_section(tags: Mapping[str, Sequence[Row]], time: figures.TimeAxis) -> str:
  panels = []
  for opponent in _opponents(tags):
    evaluation, training, random = (
      tags.get(f"score/{kind}/{opponent}", []) for kind in ("eval", "train", "random"))
    if evaluation or training:
      panels.append(_panel(opponent, figures.score(evaluation, training, random, time)))
  legend = ("<p class='legend'><i class='eval'></i>evaluation <i class='train'></i>training games "
            "<i class='random'></i>random play; bands are 95% intervals</p>")
  return _cards("Scores over time", legend, panels)


def _of_kind(kind: str, tags: Mapping[str, Sequence[Row]]) -> dict[str, Sequence[Row]]:
  """The curves of a kind by the rest of their tags."""
  return {tag.partition("/")[2] or tag: rows for tag, rows in tags.items()
          if tag.split("/")[0] == kind}


def _section(title: str, found: Mapping[str, Sequence[Row]], time: figures.TimeAxis) -> str:
  """A panel for each curve."""
  return _cards(title, "", [_panel(name, figures.curves({name: rows}, time), {name: rows})
                            for name, rows in found.items()])


def _speed_section(tags: Mapping[str, Sequence[Row]], time: figures.TimeAxis) -> str:
  found = _of_kind("speed", tags)
  rates = {name: found.pop(name) for name in ("actor", "learner") if name in found}
  waiting = {name: found.pop(name) for name in ("waiting",) if name in found}
  panels = []
  if rates:
    panels.append(_panel("Agent steps a second",
                         figures.curves(rates, time, legend=True, from_zero=True), rates))
  if waiting:
    panels.append(_panel("Learner's time spent waiting for data",
                         figures.curves(waiting, time, legend=True, share=True), waiting))
  panels += [_panel(name, figures.curves({name: rows}, time, from_zero=True), {name: rows})
             for name, rows in found.items()]
  return _cards("Speed", "", panels)


def _panel(
    title: str, figure: figures.Figure, curves: Mapping[str, Sequence[Row]] | None = None) -> str:
  """A card with a plot, and a warning where values are not finite: a curve would hide them."""
  bad = sum(not math.isfinite(row.value) for rows in (curves or {}).values() for row in rows)
  values = "1 value is" if bad == 1 else f"{bad} values are"
  warning = f"<p class='warning'>{values} not finite</p>" if bad else ""
  heading = f"<h3>{html.escape(title.replace('_', ' '))}</h3>" if title else ""
  # Inside a script element nothing but "</" could end the data.
  data = json.dumps(figure, allow_nan=False).replace("<", "\\u003c")
  return (f"<div class='card'>{heading}{warning}<div class='plot'>"
          f"<script type='application/json'>{data}</script></div></div>")


def _cards(title: str, note: str, panels: Sequence[str]) -> str:
  """A section of panels in a grid; nothing where there is none."""
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
          f"<summary>{len(flat)} settings</summary>"
          f"<div class='card'><table class='config'>{lines}</table></div></details></section>")
