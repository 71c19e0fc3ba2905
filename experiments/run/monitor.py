"""How a run stands, from the figures that its processes write: pure functions of results rows."""

from collections.abc import Mapping, Sequence

from starleague.common import results
from starleague.experiments.run import display

WINDOW_S = 30.0  # over which rates are taken
_SHOWN = ("loss/total", "loss/policy", "loss/value", "loss/entropy")


def _last(tags: Mapping[str, Sequence[results.Row]], tag: str, default: float = 0.0) -> float:
  return tags[tag][-1].value if tag in tags else default


def _sum_since(tags: Mapping[str, Sequence[results.Row]], tag: str, since: float) -> float:
  return sum(row.value for row in tags.get(tag, ()) if row.seconds > since)


def actor_rate(tags: Mapping[str, Sequence[results.Row]], seconds: float) -> float:
  """Agent steps a second that all actors together have produced of late."""
  window = min(WINDOW_S, max(seconds, 1.0))
  return _sum_since(tags, "count/steps", seconds - window) / window


def totals(rows: Sequence[results.Row], seconds: float) -> list[results.Row]:
  """What all actors together have done so far, as rows to be appended.

  Args:
    rows: of the run until now.
    seconds: since the run began.
  """
  tags = results.by_tag(rows)
  update = max((row.update for row in rows), default=0)
  return [
    results.Row(seconds, update, "total/steps", _sum_since(tags, "count/steps", -1.0)),
    results.Row(seconds, update, "total/games", _sum_since(tags, "count/games", -1.0)),
    results.Row(seconds, update, "speed/actor", actor_rate(tags, seconds))]


def snapshot(rows: Sequence[results.Row], name: str, seconds: float, budget: float | None,
             processes: Mapping[str, str]) -> display.Snapshot:
  """What the display shows.

  Args:
    rows: of the run until now.
    name: of the run.
    seconds: since it began.
    budget: seconds it may take, None where it has no bound.
    processes: their states by name.
  """
  tags = results.by_tag(rows)
  prefix = "score/train/"
  scores = {}
  for tag, found in tags.items():
    if tag.startswith(prefix):
      row = found[-1]
      scores[tag.removeprefix(prefix)] = display.Score(
        row.value, 0.0 if row.low is None else row.low, 1.0 if row.high is None else row.high,
        int(_last(tags, "games/" + tag.removeprefix(prefix))))
  return display.Snapshot(
    name=name, elapsed_seconds=seconds, budget_seconds=budget,
    updates=max((row.update for row in rows), default=0),
    steps_produced=int(_sum_since(tags, "count/steps", -1.0)),
    steps_learnt=int(_last(tags, "total/steps_learnt")),
    games=int(_sum_since(tags, "count/games", -1.0)),
    actor_rate=actor_rate(tags, seconds), learner_rate=_last(tags, "speed/learner"),
    waiting=_last(tags, "speed/waiting"),
    losses={tag.removeprefix("loss/"): _last(tags, tag) for tag in _SHOWN if tag in tags},
    scores=scores, processes=processes)
