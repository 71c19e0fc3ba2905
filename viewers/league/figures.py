"""The plots of a league beside its payoff matrix, in plotly's JSON format."""

import collections
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from starleague.common.results import Row
from starleague.common.text import count
from starleague.league import players as kinds
from starleague.league.league_file import BranchCount
from starleague.league.players import Player
from starleague.viewers import plots
from starleague.viewers.league.facts import Facts, kind_name
from starleague.viewers.plots import COLOURS, Figure, Style, plain

_OF_THE_RUN = Style("#0f172a")
BRANCHES = {
  "pfsp": "PFSP over the past", "self_play": "self-play", "self_play_past": "self-play, past",
  "verification_exploiters": "verification, exploiters",
  "verification_forgotten": "verification, forgotten", "exploit": "live main agents",
  "exploit_past": "past main agents", "evaluation": "evaluation"}
_STEPS_AXIS = {"title": {"text": "agent steps", "standoff": 6}, "exponentformat": "SI", "nticks": 6}
_MOST_MARKED = 300  # players; the markers of more hide the lines
_OPENINGS_S = 1800.0  # age of an actor's report, beyond the newest one, that no longer counts
_TRUNK = 0.32  # distance of a learner's supervised weights below its row


def styles(facts: Facts) -> dict[str, Style]:
  """Returns the looks of each learner and of the run as a whole, in all plots of the page."""
  return {**plots.styles(learner.name for learner in facts.learners), facts.name: _OF_THE_RUN}


def ratings(facts: Facts) -> Figure:
  """Returns the ratings of snapshots over the steps of their learners, with 95% intervals."""
  looks = styles(facts)
  value, low, high = (np.round(part, 1) for part in facts.ratings)
  mode = "lines+markers" if len(facts.players) <= _MOST_MARKED else "lines"
  index = {player.name: i for i, player in enumerate(facts.players)}
  data: list[dict[str, Any]] = []
  for learner in facts.learners:
    chosen = [i for i in (*facts.snapshots(learner), index[learner.name])
              if i == facts.anchor or facts.games[i].any()]  # others could have any rating
    steps = [_steps(facts, learner) if i == index[learner.name] else facts.players[i].steps
             for i in chosen]
    style = looks[learner.name]
    edge = {"type": "scatter", "mode": "lines", "x": steps, "line": {"width": 0},
            "hoverinfo": "skip", "showlegend": False, "legendgroup": learner.name}
    data += [
      {**edge, "y": low[chosen].tolist()},
      {**edge, "y": high[chosen].tolist(), "fill": "tonexty",
       "fillcolor": plots.faint(style.colour, 0.07)},
      {"type": "scatter", "mode": mode, "name": plain(learner.name), "x": steps,
       "y": value[chosen].tolist(), "legendgroup": learner.name,
       "line": {"color": style.colour, "width": 2 if learner.kind == kinds.MAIN else 1.2,
                "dash": style.dash},
       "marker": {"size": 5, "symbol": style.symbol},
       "customdata": [[plain(facts.players[i].name), low[i], high[i]] for i in chosen],
       "hovertemplate": "%{customdata[0]}: <b>%{y:.0f}</b> (%{customdata[1]:.0f} to "
                        "%{customdata[2]:.0f})<br>%{x:.3~s} steps<extra></extra>"}]
  layout = plots.layout(320)
  layout["xaxis"] |= {"rangemode": "tozero", **_STEPS_AXIS}
  layout["uirevision"] = "ratings"
  return {"data": data, "layout": layout}


def family(facts: Facts) -> Figure:
  """Returns the family tree: a row for each learner, branches from its supervised weights.

  The dotted trunk of a row stands for the supervised weights. A branch leaves it at the start of
  the run and at each reset; its nodes are snapshots, coloured by rating.
  """
  learners, looks = facts.learners, styles(facts)
  end = max([_steps(facts, learner) for learner in learners], default=0)
  trunks: dict[str, list] = {"x": [], "y": []}
  resets: dict[str, list] = {"x": [], "y": [], "text": []}
  nodes: list[tuple[int, float, int]] = []  # steps, row, player
  data: list[dict[str, Any]] = []
  line = {"type": "scatter", "mode": "lines", "hoverinfo": "skip"}
  for row, learner in enumerate(learners):
    branches: dict[str, list] = {"x": [], "y": []}
    _add(trunks, (0, row + _TRUNK), (end, row + _TRUNK))
    at = [(0, row + _TRUNK)]
    for i in facts.snapshots(learner):
      player = facts.players[i]
      nodes.append((player.steps, row, i))
      at.append((player.steps, row))
      if player.name in facts.resets:
        _add(branches, *at)
        resets["x"].append(player.steps)
        resets["y"].append(row + _TRUNK)
        resets["text"].append(f"{plain(learner.name)} reset after {plain(player.name)}")
        at = [(player.steps, row + _TRUNK)]
    _add(branches, *at, (_steps(facts, learner), row))
    style = looks[learner.name]
    data.append({**line, **branches, "legendgroup": learner.name,
                 "line": {"color": style.colour, "width": 2, "dash": style.dash}})
  values = facts.ratings.value
  data = [
    {**line, **trunks, "line": {"color": "#94a3b8", "width": 1, "dash": "dot"}}, *data,
    {"type": "scatter", "mode": "markers", **resets,
     "marker": {"symbol": "x-thin", "size": 8, "line": {"width": 2, "color": "#b91c1c"}},
     "hovertemplate": "%{text}<br>%{x:.3~s} steps<extra></extra>"},
    {"type": "scatter", "mode": "markers", "x": [steps for steps, _, _ in nodes],
     "y": [row for _, row, _ in nodes],
     "marker": {"size": 9, "color": [round(float(values[i]), 1) for *_, i in nodes],
                "colorscale": "Viridis", "line": {"width": 1, "color": "#fff"},
                "colorbar": {"title": {"text": "Elo", "side": "right"}, "thickness": 10,
                             "orientation": "h", "y": 1, "yanchor": "bottom", "nticks": 5}},
     "customdata": [[plain(facts.players[i].name), kind_name(facts.players[i])]
                    for *_, i in nodes],
     "hovertemplate": "%{customdata[0]}, %{customdata[1]}<br>%{x:.3~s} steps, Elo "
                      "%{marker.color:.0f}<extra></extra>"}]
  layout = plots.layout(130 + 34 * len(learners))
  layout["xaxis"] |= {"range": [-0.015 * max(end, 1), 1.02 * max(end, 1)], **_STEPS_AXIS}
  layout["yaxis"] |= {"tickvals": list(range(len(learners))), "showgrid": False,
                      "ticktext": [plain(learner.name) for learner in learners],
                      "range": [len(learners) - 0.4, -0.5], "zeroline": False}
  layout["uirevision"] = "family"
  return {"data": data, "layout": layout}


def shares(branches: Sequence[BranchCount], learners: Sequence[Player]) -> Figure:
  """Returns the shares of each learner's matches by the rule that made them."""
  found: dict[str, dict[str, int]] = collections.defaultdict(dict)
  for branch in branches:
    found[branch.branch][branch.player] = branch.assignments
  names = [learner.name for learner in learners]
  known = [branch for branch in BRANCHES if branch in found]
  parts = {BRANCHES.get(branch, branch): [found[branch].get(name, 0) for name in names]
           for branch in (*known, *sorted(found.keys() - set(known)))}
  return stacked(parts, names)


def stacked(parts: Mapping[str, Sequence[float]], names: Sequence[str]) -> Figure:
  """Returns the shares of parts as bars that end at 100%, one for each of [N] names."""
  amounts = np.array(list(parts.values()), float).reshape(len(parts), len(names))
  total = amounts.sum(0)
  data = []
  for i, (part, values) in enumerate(zip(parts, amounts, strict=True)):
    data.append({
      "type": "bar", "orientation": "h", "name": plain(part), "y": [plain(name) for name in names],
      "x": np.round(values / np.where(total > 0, total, 1), 4).tolist(),
      "customdata": [count(value) for value in values],
      "marker": {"color": COLOURS[i % len(COLOURS)]},
      "hovertemplate": f"%{{y}}: {plain(part)} <b>%{{x:.0%}}</b>, %{{customdata}}"
                       "<extra></extra>"})
  layout = _with_legend(110 + 22 * len(names))
  layout |= {"barmode": "stack", "bargap": 0.25}
  layout["xaxis"] |= {"range": [0, 1], "tickformat": ".0%"}
  layout["yaxis"] |= {"autorange": "reversed", "type": "category", "dtick": 1}
  return {"data": data, "layout": layout}


def openings(curves: Mapping[str, Mapping[str, Sequence[Row]]]) -> Figure | None:
  """Returns the latest shares of openings by player, from rows `opening/ACTOR/NAME`.

  Shares are means over the newest reports of the actors. Players stand in the order of `curves`.
  Returns None without any rows.
  """
  latest = {player: found for player, tags in curves.items() if (found := _opened(tags))}
  if not latest:
    return None
  total: collections.Counter[str] = collections.Counter()
  for found in latest.values():
    total.update(found)
  kept = [name for name, _ in total.most_common(len(COLOURS) - 1)]
  parts = {name: [found.get(name, 0.0) for found in latest.values()] for name in kept}
  if len(total) > len(kept):
    parts["others"] = [sum(value for name, value in found.items() if name not in kept)
                       for found in latest.values()]
  return stacked(parts, list(latest))


def _opened(tags: Mapping[str, Sequence[Row]]) -> dict[str, float]:
  """Returns the shares of a player's openings: the mean of its actors' newest reports.

  The rows of a report have one time. Reports much older than the newest one are of actors that
  the run has no more. Earlier versions wrote `opening/NAME`, without an actor.
  """
  prefix = "opening/"
  reports: dict[str, dict[str, Row]] = collections.defaultdict(dict)
  for tag, rows in tags.items():
    if tag.startswith(prefix) and rows:
      actor, _, name = tag.removeprefix(prefix).rpartition("/")
      reports[actor][name] = rows[-1]
  times = {actor: max(row.seconds for row in report.values()) for actor, report in reports.items()}
  newest = [actor for actor, seconds in times.items()
            if seconds >= max(times.values()) - _OPENINGS_S]
  found: dict[str, float] = collections.defaultdict(float)
  for actor in newest:
    for name, row in reports[actor].items():
      if row.seconds == times[actor] and row.value > 0:
        found[name] += row.value / len(newest)
  return found


def _steps(facts: Facts, learner: Player) -> int:
  return facts.progress[learner.name].steps if learner.name in facts.progress else 0


def _add(line: dict[str, list], *points: tuple[float, float]) -> None:
  """Adds a line to a trace of lines, which None separates."""
  for axis, values in zip(("x", "y"), zip(*points, strict=True), strict=True):
    line[axis] += [*values, None]


def _with_legend(height: int) -> dict[str, Any]:
  return {**plots.layout(height), "showlegend": True,
          "legend": {**plots.LEGEND_BELOW, "traceorder": "normal"}}
