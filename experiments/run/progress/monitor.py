"""The state of a run, accumulated from the rows that its processes append to the results file."""

import collections
from collections.abc import Iterable, Mapping

from starleague.common.progress import IMITATION, Progress
from starleague.common.results import Row
from starleague.experiments.run.progress import display

WINDOW_S = 30.0  # window of rates
SILENCE_S = 20.0  # after which a learner that records nothing waits, at least
_INTERVALS = 3  # between its records, in which it may be silent
_SHOWN = ("loss/total", "loss/policy", "loss/value", "loss/entropy")
_SCORE = "score/train/"
_IMITATION = f"{IMITATION}/"  # prefix of the tags of imitation, which counts its own updates
_SHOWN_OF_IMITATION = ("loss/cross_entropy", "loss/held_out")


class Monitor:
  """Accumulates results rows; each row is read once, however long the run is."""

  def __init__(self, name: str):
    """Starts empty; `name` is the run's, for the display."""
    self._name = name
    self._newest: dict[str, Row] = {}  # by tag
    self._interval: dict[str, float] = {}  # seconds between the newest two rows, by tag
    self._recent: collections.deque[tuple[float, float]] = collections.deque()  # seconds, steps
    self._steps = self._games = 0.0
    self._update = self._imitated = 0

  def add(self, rows: Iterable[Row]) -> None:
    """Adds rows in the order of the results file."""
    for row in rows:
      if row.tag not in self._newest or row.seconds >= self._newest[row.tag].seconds:
        if row.tag in self._newest:
          self._interval[row.tag] = row.seconds - self._newest[row.tag].seconds
        self._newest[row.tag] = row
      if row.tag.startswith(_IMITATION):
        self._imitated = max(self._imitated, row.update)
      else:
        self._update = max(self._update, row.update)
      if row.tag == "count/steps":
        self._steps += row.value
        self._recent.append((row.seconds, row.value))
      elif row.tag == "count/games":
        self._games += row.value

  def actor_rate(self, seconds: float) -> float:
    """Returns the agent steps per second of all actors together over the last `WINDOW_S`.

    Args:
      seconds: now, since the start of the run; it does not decrease between calls.
    """
    window = min(WINDOW_S, max(seconds, 1.0))
    while self._recent and self._recent[0][0] <= seconds - WINDOW_S:
      self._recent.popleft()
    return sum(steps for at, steps in self._recent if at > seconds - window) / window

  def totals(self, seconds: float) -> list[Row]:
    """Returns the totals of all actors as rows to append to the results file; none before any.

    Args:
      seconds: now, since the start of the run.
    """
    if not self._steps:
      return []
    return [Row(seconds, self._update, "total/steps", self._steps),
            Row(seconds, self._update, "total/games", self._games),
            Row(seconds, self._update, "speed/actor", self.actor_rate(seconds))]

  def snapshot(self, seconds: float, progress: Progress,
               processes: Mapping[str, str]) -> display.Snapshot:
    """Returns the state to display.

    Args:
      seconds: now, since the start of the run.
      progress: of the current phase.
      processes: their states by name.
    """
    imitates = progress.phase == IMITATION
    prefix, shown = (_IMITATION, _SHOWN_OF_IMITATION) if imitates else ("", _SHOWN)
    return display.Snapshot(
      name=self._name, elapsed_seconds=seconds, progress=progress,
      updates=self._imitated if imitates else self._update,
      steps_produced=int(self._steps), steps_learnt=int(self._value(f"{prefix}total/steps_learnt")),
      games=int(self._games), actor_rate=self.actor_rate(seconds),
      learner_rate=self._rate(f"{prefix}speed/learner", seconds, 0.0),
      waiting=self._rate(f"{prefix}speed/waiting", seconds, 1.0),
      losses={tag.removeprefix("loss/"): self._value(prefix + tag) for tag in shown
              if prefix + tag in self._newest},
      scores=self._scores(), processes=processes)

  def _rate(self, tag: str, seconds: float, silent: float) -> float:
    """Returns a figure of the learner, or `silent` if nothing has come for several intervals.

    The learner records at updates: without trajectories it is silent.
    """
    if tag not in self._newest:
      return 0.0
    age = seconds - self._newest[tag].seconds
    patience = max(SILENCE_S, _INTERVALS * self._interval.get(tag, 0.0))
    return self._newest[tag].value if age <= patience else silent

  def _value(self, tag: str) -> float:
    return self._newest[tag].value if tag in self._newest else 0.0

  def _scores(self) -> dict[str, display.Score]:
    """Returns the newest training scores by opponent."""
    found = {}
    for tag, row in self._newest.items():
      if tag.startswith(_SCORE):
        opponent = tag.removeprefix(_SCORE)
        found[opponent] = display.Score(
          row.value, 0.0 if row.low is None else row.low, 1.0 if row.high is None else row.high,
          int(self._value(f"games/{opponent}")))
    return found
