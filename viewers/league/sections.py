"""The contents of a league's page, in reading order, whether it is live or one file."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from starleague.common.results import Row
from starleague.common.text import count, duration
from starleague.league.league_file import Replay
from starleague.viewers.league import archive_figures, figures, matrix
from starleague.viewers.league.facts import Facts, kind_name
from starleague.viewers.plots import Figure, Style
from starleague.viewers.report import figures as report_figures
from starleague.viewers.report.summary import KeyFigure

SORTS = ("rating", "age", "kind", "name")  # of the payoff matrix
# Tags of learning curves and of throughput with their panels' titles, in order.
_LEARNING = {
  "loss/total": "Loss", "entropy/function": "Normalised entropy of the function",
  "kl/function": "KL divergence of the function from the teacher, nats",
  "mean_value/winloss": "Mean value prediction, win-loss",
  "total/steps_learnt": "Agent steps learnt"}
_THROUGHPUT = {
  "speed/actor": "Actors, agent steps per second",
  "speed/learner": "Learner, agent steps per second",
  "speed/waiting": "Fraction of time the learner waits for data"}
_TUNED, _COPIED = "population/", "copied/"  # prefixes of the rows of a population
_RESULTS = {1: "won by home", 0: "drawn", -1: "won by away"}


class Panel(NamedTuple):
  """A plot with its title; `sortable` is that of the payoff matrix."""

  title: str
  figure: Figure
  sortable: bool = False


class Table(NamedTuple):
  """A table. A row's `replay`, if it has one, is a game that can be shown."""

  header: Sequence[str]
  rows: Sequence[Sequence[str]]
  replays: Sequence[str | None]


class Section(NamedTuple):
  """A part of the page under a heading."""

  name: str  # unique, for the id of its element
  title: str
  note: str
  panels: Sequence[Panel] = ()
  key: Mapping[str, Style] = {}  # the names of the panels' curves
  table: Table | None = None


def columns(section: Section) -> str:
  """Returns the class of a section's grid of panels, by the number of its columns."""
  return {1: "one", 3: "three"}.get(len(section.panels), "two")


def border_of(style: Style) -> str:
  """Returns the looks of a player's curves as a border in CSS, for the line before its name."""
  pattern = {"solid": "solid", "dot": "dotted"}.get(style.dash, "dashed")
  return f"3px {pattern} {style.colour}"


def key_figures(facts: Facts) -> list[KeyFigure]:
  """Returns the figures at the top of the page."""
  learners = facts.learners
  steps = sum(progress.steps for progress in facts.progress.values())
  games = sum(branch.games for branch in facts.branches)
  newest = [rows[-1] for tags in facts.curves.values() for rows in tags.values()]
  rate = sum(tags["speed/actor"][-1].value for tags in facts.curves.values()
             if "speed/actor" in tags)
  found = [
    KeyFigure("players", count(len(facts.players)), f"{len(learners)} of them learn"),
    KeyFigure("snapshots", count(sum(bool(player.parent) for player in facts.players)),
              f"{count(len(facts.resets))} resets"),
    KeyFigure("agent steps learnt", count(steps), "by all policies")]
  if games:
    found.append(KeyFigure("games", count(games), f"{count(facts.playing)} matches in play"))
  if newest:
    found.append(KeyFigure("time", duration(max(row.seconds for row in newest)), ""))
  actors = facts.live_actors()
  if actors:
    found.append(KeyFigure("actors", count(len(actors)), "that have reported in the last minute"))
  if rate:
    found.append(KeyFigure("played per second", count(rate), "agent steps, all actors"))
  deaths = facts.deaths()
  if deaths:
    found.append(KeyFigure(
      "deaths and restarts", count(sum(deaths.values())),
      ", ".join(f"{name.replace('_', ' ')}: {number}" for name, number in sorted(deaths.items()))))
  return found


def sections(facts: Facts) -> list[Section]:
  """Returns the sections of the page; those without any facts are left out."""
  looks = figures.styles(facts)
  found = [
    Section("matrix", "Payoff matrix",
            "Decayed scores of the row's player against the column's: wins plus half the draws, "
            "over games. Blue: the row's player is ahead; red: behind; grey: no games. Drag to "
            "enlarge, double-click to return.", [Panel("", matrix.heat_map(facts), sortable=True)]),
    Section("ratings", "Ratings",
            f"Elo, base e as in the paper, from the decayed scores, with 95% intervals. "
            f"{facts.players[facts.anchor].name} has rating 0. The last point of a line is the "
            "live player.", [Panel("", figures.ratings(facts))],
            {learner.name: looks[learner.name] for learner in facts.learners}),
    Section("family", "Family tree",
            "Snapshots of each learning player. Dotted: the supervised weights, to which a reset "
            "(cross) returns.", [Panel("", figures.family(facts))]),
    Section("learners", "Learning players", "", table=_learners(facts))]
  if facts.branches:
    found.append(Section(
      "matchmaking", "Matchmaking", "Share of each player's matches by the rule that made them.",
      [Panel("", figures.shares(facts.branches, facts.learners))]))
  for name, title, tags in (("learning", "Learning curves", _LEARNING),
                            ("throughput", "Actors and throughput", _THROUGHPUT)):
    panels = _curves(facts.curves, tags, looks)
    if panels:
      drawn = {trace["legendgroup"] for panel in panels for trace in panel.figure["data"]}
      found.append(Section(name, title, "", panels, {
        player: style for player, style in looks.items() if player in drawn}))
  found += _population(facts, looks)
  opened = figures.openings(
    {player: facts.curves[player] for player in looks if player in facts.curves})
  if opened:
    found.append(Section("openings", "Openings", "Share of each player's latest games.",
                         [Panel("", opened)]))
  filled = archive_figures.archive_of(facts)
  if filled.points:
    found.append(Section(
      "archive", "Archive of behaviours", archive_figures.NOTE,
      [Panel("Best quality by army, opening (rows) and first kill",
             archive_figures.heat_map(facts, filled)),
       Panel("Coverage and QD score", archive_figures.curves(filled))]))
  return found


def games(replays: Sequence[Replay]) -> Section:
  """Returns the section of the kept replays, newest first; the viewer stands below it."""
  rows = [[replay.home, replay.away, _RESULTS[replay.result],
           ", ".join(reason.replace("_", " ") for reason in replay.reasons)]
          for replay in reversed(replays)]
  note = ("Games whose replays are kept; one opens below." if rows else
          "No replay is kept yet: evaluators keep those of upsets, of first wins against main "
          "agents and of the longest games.")
  shown = [replay.id if replay.path else None for replay in reversed(replays)]
  return Section("games", "Games", note,
                 table=Table(("home", "away", "result", "kept as"), rows, shown) if rows else None)


def _learners(facts: Facts) -> Table:
  index = {player.name: i for i, player in enumerate(facts.players)}
  rows = []
  for learner in facts.learners:
    progress, (value, low, high) = facts.progress.get(learner.name), (
      part[index[learner.name]] for part in facts.ratings)
    taken = facts.snapshots(learner)
    resets = sum(facts.players[i].name in facts.resets for i in taken)
    state = "paused" if learner.name in facts.paused else ""
    rows.append([learner.name, kind_name(learner), learner.race, state,
                 count(progress.steps) if progress else "", count(len(taken)), count(resets),
                 f"{value:.0f} ({low:.0f} to {high:.0f})"
                 if facts.games[index[learner.name]].any() else "no games"])
  return Table(("player", "kind", "race", "state", "steps", "snapshots", "resets", "Elo"), rows,
               [None] * len(rows))


def _population(facts: Facts, looks: Mapping[str, Style]) -> list[Section]:
  """Returns the section of a population, if the league has one."""
  tuned = {tag: tag.removeprefix(_TUNED).replace("_", " ")
           for tag in sorted({tag for tags in facts.curves.values() for tag in tags
                              if tag.startswith(_TUNED)})}
  if not tuned:
    return []
  key = {player: style for player, style in looks.items()
         if tuned.keys() & facts.curves.get(player, {}).keys()}
  return [Section(
    "population", "Population", "Hyperparameters of players of one role and race, drawn at the "
    "start and perturbed at each copy. The table has the copies; the lead is that of the score "
    "against the league's snapshots.", _curves(facts.curves, tuned, looks), key, _copies(facts))]


def _copies(facts: Facts) -> Table | None:
  """Returns the copies of a population, newest first; None without any."""
  rows = sorted(((row, player, tag.removeprefix(_COPIED)) for player, tags in facts.curves.items()
                 for tag, rows in tags.items() if tag.startswith(_COPIED) for row in rows),
                key=lambda each: -each[0].seconds)
  if not rows:
    return None
  return Table(("player", "copied", "time", "update", "lead"), [
    [player, source, duration(row.seconds), count(row.update), f"{row.value:.0%}"]
    for row, player, source in rows], [None] * len(rows))


def _curves(curves: Mapping[str, Mapping[str, Sequence[Row]]],
            tags: Mapping[str, str], styles: Mapping[str, Style]) -> list[Panel]:
  """Returns a panel for each tag that any player has, with a curve for each player."""
  shown = [row.seconds for found in curves.values() for tag in tags for row in found.get(tag, ())]
  time = report_figures.time_axis(max(shown, default=0.0), min(shown, default=0.0))
  panels = []
  for tag, title in tags.items():
    rows = {player: found[tag] for player, found in curves.items() if tag in found}
    if rows:
      panels.append(Panel(title, report_figures.curves(
        rows, time, share=tag == "speed/waiting", styles=styles,
        from_zero=tag.startswith(("speed", "total")))))
  return panels
