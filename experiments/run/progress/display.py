"""The display of a running run: a table on a terminal, one line every 10 s elsewhere.

    with Display() as display:
      while ...:
        display.update(snapshot)   # as often as is convenient
"""

import math
import sys
import time
from collections.abc import Callable, Mapping
from typing import IO, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from starleague.common.progress import IMITATION, PHASES, TRAINING, Progress
from starleague.common.text import count, duration

LOG_INTERVAL_SECONDS = 10.0
_BAR_WIDTH = 20


class Score(NamedTuple):
  """A score (wins plus half the draws, over games) with its 95% interval."""

  score: float
  low: float
  high: float
  games: int


class Snapshot(NamedTuple):
  """The state of a run. Steps are agent steps; rates are per second."""

  name: str
  elapsed_seconds: float
  progress: Progress  # of the current phase
  updates: int  # by the learner
  steps_produced: int  # by the actors
  steps_learnt: int  # by the learner, each use counted
  games: int  # finished training games
  actor_rate: float  # agent steps produced per second
  learner_rate: float  # agent steps learnt per second
  waiting: float  # fraction of the learner's time spent waiting for data
  losses: Mapping[str, float]
  scores: Mapping[str, Score]  # by opponent
  processes: Mapping[str, str] = {}  # states by name, as `process_runner.Runner` gives them


def render(snapshot: Snapshot) -> RenderableType:
  """Returns the table of a snapshot, at most 80 columns wide. Pure."""
  parts: list[RenderableType] = [_phase(snapshot), _figures(snapshot)]
  if snapshot.scores:
    parts.append(_scores(snapshot.scores))
  if snapshot.losses:
    parts.append(_losses(snapshot.losses))
  if snapshot.processes:
    parts.append(_processes(snapshot.processes))
  return Panel(Group(*parts), title=Text(snapshot.name, style="bold"), title_align="left",
               border_style="blue")


def log_line(snapshot: Snapshot) -> str:
  """Returns a snapshot as one line of key=value.

  Figures of learning appear in its phases only: later they no longer change.
  """
  progress = snapshot.progress
  fields = [
    f"run={_word(snapshot.name)}",
    f"elapsed={duration(snapshot.elapsed_seconds)}",
    f"phase={progress.phase}",
  ]
  if progress.unit == "s":
    fields.append(f"progress={duration(progress.done)}/{duration(progress.total)}")
  elif progress.total:
    fields.append(f"progress={progress.done:.0f}/{progress.total:.0f}_{_word(progress.unit)}")
  if progress.detail:
    fields.append(f"doing={_word(progress.detail)}")
  if progress.phase == TRAINING:
    fields += _played_fields(snapshot)
  if progress.phase in (IMITATION, TRAINING):
    fields += _learnt_fields(snapshot)
  if progress.phase == TRAINING:
    fields += [f"score/{_word(name)}={found.score:.2f}[{found.low:.2f},{found.high:.2f}]"
               for name, found in snapshot.scores.items()]
  fields += [f"process/{_word(name)}={state}" for name, state in snapshot.processes.items()
             if state != "running"]
  return " ".join(fields)


def _played_fields(snapshot: Snapshot) -> list[str]:
  return [f"steps={snapshot.steps_produced}", f"games={snapshot.games}",
          f"actor_rate={snapshot.actor_rate:.0f}/s"]


def _learnt_fields(snapshot: Snapshot) -> list[str]:
  return [f"updates={snapshot.updates}", f"learnt={snapshot.steps_learnt}",
          f"learner_rate={snapshot.learner_rate:.0f}/s", f"waiting={snapshot.waiting:.0%}",
          *(f"loss/{_word(name)}={number(value)}" for name, value in snapshot.losses.items())]


class Display:
  """Context that shows snapshots: live on a terminal, else as log lines."""

  def __init__(
      self,
      file: IO[str] | None = None,
      *,
      interval_seconds: float = LOG_INTERVAL_SECONDS,
      clock: Callable[[], float] = time.monotonic,
  ):
    """Opens the display.

    Args:
      file: the output; default: standard output.
      interval_seconds: between log lines. A new phase is logged at once.
      clock: seconds, monotonic.
    """
    self._file = sys.stdout if file is None else file
    self._console = Console(file=self._file)
    self._interval = interval_seconds
    self._clock = clock
    self._live: Live | None = None
    self._logged_at = -math.inf
    self._logged_phase = ""
    self._last: Snapshot | None = None  # the newest snapshot, until it is logged

  def __enter__(self) -> "Display":
    if self._console.is_terminal and not self._console.is_dumb_terminal:
      self._live = Live(console=self._console, refresh_per_second=4, transient=False)
      self._live.start()
    return self

  def __exit__(self, *exc_info: object) -> None:
    if self._live is not None:
      self._live.stop()
      self._live = None
    elif self._last is not None:
      self._log(self._last)  # the final state

  def update(self, snapshot: Snapshot) -> None:
    """Shows a snapshot now (terminal) or at the next log interval or phase."""
    if self._live is not None:
      self._live.update(render(snapshot))
      return
    self._last = snapshot
    due = self._clock() - self._logged_at >= self._interval
    if due or snapshot.progress.phase != self._logged_phase:
      self._log(snapshot)

  def print(self, text: str) -> None:
    """Prints a line above the live table, or between log lines."""
    if self._live is not None:
      self._console.print(Text(text))
    else:
      print(text, file=self._file, flush=True)

  def _log(self, snapshot: Snapshot) -> None:
    print(log_line(snapshot), file=self._file, flush=True)
    self._logged_at, self._logged_phase = self._clock(), snapshot.progress.phase
    self._last = None


def number(value: float) -> str:
  """Returns a number with three significant digits; nan and inf stay visible."""
  return format(value, ".3g")


def _amount(value: float, unit: str) -> str:
  return duration(value) if unit == "s" else count(value)


def _phase(snapshot: Snapshot) -> RenderableType:
  """Renders the phases, the progress of the current one, and the elapsed time."""
  progress = snapshot.progress
  names = Text()
  for name in PHASES:
    names.append(name, style="bold" if name == progress.phase else "dim")
    names.append("  ")
  grid = Table.grid(padding=(0, 2))
  grid.add_row(Text("phase", style="dim"), names)
  line: list[RenderableType] = []
  if progress.total > 0:
    done, total = (_amount(x, progress.unit) for x in (progress.done, progress.total))
    unit = "" if progress.unit == "s" else f" {progress.unit}"
    line += [ProgressBar(total=progress.total, completed=min(progress.done, progress.total),
                         width=_BAR_WIDTH),
             Text(f"{done} of {total}{unit}")]
  if progress.detail:
    line.append(Text(progress.detail))
  if line:
    grid.add_row("", Columns(line, padding=(0, 2)))
  grid.add_row(Text("time", style="dim"), Text(duration(snapshot.elapsed_seconds), style="bold"))
  return grid


def _figures(snapshot: Snapshot) -> RenderableType:
  """Renders the amounts and rates of play and learning."""
  grid = Table.grid(padding=(0, 2))
  for _ in range(3):
    grid.add_column(style="dim")
    grid.add_column(justify="right", style="bold")
  if snapshot.progress.phase != IMITATION:
    grid.add_row("steps played", count(snapshot.steps_produced), "per second",
                 count(snapshot.actor_rate), "games", count(snapshot.games))
  grid.add_row("steps learnt", count(snapshot.steps_learnt), "per second",
               count(snapshot.learner_rate), "updates", count(snapshot.updates))
  # Above one half the learner starves: add actors, or faster ones.
  style = "bold yellow" if snapshot.waiting > 0.5 else "bold"
  grid.add_row("learner waits", Text(f"{snapshot.waiting:.0%}", style=style), "", "", "", "")
  return grid


def _scores(scores: Mapping[str, Score]) -> RenderableType:
  table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="dim")
  table.add_column("against", overflow="ellipsis", no_wrap=True, max_width=18)
  table.add_column("score", justify="right", no_wrap=True)
  table.add_column("95% interval", justify="right", no_wrap=True)
  table.add_column("games", justify="right")
  table.add_column("", no_wrap=True, min_width=_BAR_WIDTH + 1)
  for name, found in scores.items():
    # Colour only where the interval excludes 0.5.
    style = "green" if found.low > 0.5 else "red" if found.high < 0.5 else ""
    table.add_row(Text(name), Text(f"{found.score:.0%}", style=style),
                  f"{found.low:.0%} to {found.high:.0%}", count(found.games),
                  _interval_bar(found, style))
  return table


def _interval_bar(found: Score, style: str) -> Text:
  """Returns the interval on a line from 0 to 1, with the score and 0.5 marked."""
  cells = ["·"] * (_BAR_WIDTH + 1)
  cells[_BAR_WIDTH // 2] = "┊"
  place = [round(min(1.0, max(0.0, x)) * _BAR_WIDTH) if math.isfinite(x) else 0 for x in found[:3]]
  for i in range(place[1], place[2] + 1):
    cells[i] = "━"
  cells[place[0]] = "●"
  text = Text("".join(cells), style="dim")
  text.stylize(f"not dim {style}".strip(), place[1], place[2] + 1)
  return text


def _losses(losses: Mapping[str, float]) -> RenderableType:
  grid = Table.grid(padding=(0, 2))
  for _ in range(3):
    grid.add_column(style="dim", overflow="ellipsis", no_wrap=True, max_width=16)
    grid.add_column(justify="right")
  cells = []
  for name, value in losses.items():
    cells += [Text(name), Text(number(value), style="" if math.isfinite(value) else "bold red")]
  for i in range(0, len(cells), 6):
    grid.add_row(*cells[i:i + 6])
  return grid


def _processes(states: Mapping[str, str]) -> RenderableType:
  style = {"running": "green", "waiting": "yellow", "failed": "bold red"}
  text = Text()
  for name, state in states.items():
    text.append("● ", style=style.get(state, "dim"))
    text.append(name)
    text.append("  " if state == "running" else f" {state}  ", style="dim")
  return Group(Text(""), text)


def _word(name: str) -> str:
  """Returns a name as one word: log lines are split at spaces."""
  return "_".join(name.split())
