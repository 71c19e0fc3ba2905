"""The key figures and the scores of a run, from its results. Pure functions of results rows."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from starleague.common.results import Row
from starleague.common.text import count, duration


class KeyFigure(NamedTuple):
  """A figure at the top of the report."""

  name: str
  value: str
  remark: str


class OpponentScores(NamedTuple):
  """The agent's scores against an opponent: of the initial weights, first and last measured."""

  opponent: str
  initial: Row | None
  first: Row | None  # None if there is one measurement only
  last: Row
  evaluated: bool  # False for scores of training games


def key_figures(tags: Mapping[str, Sequence[Row]]) -> list[KeyFigure]:
  """Returns the recorded figures that the report shows first."""
  rows = [row for tagged in tags.values() for row in tagged]
  if not rows:
    return []
  found = [KeyFigure("time", duration(max(row.seconds for row in rows)), "")]
  last = {tag: tagged[-1] for tag, tagged in tags.items()}
  for tag, name, remark in (("total/steps", "agent steps played", "by the actors"),
                            ("total/steps_learnt", "agent steps learnt", "each use counted"),
                            ("total/games", "games", "finished")):
    if tag in last:
      found.append(KeyFigure(name, count(last[tag].value), remark))
  for name, remark, chosen in (
      ("updates", "of the learner", [row for row in rows if not _of_imitation(row)]),
      ("imitation", "updates", [row for row in rows if _of_imitation(row)])):
    if chosen:
      found.append(KeyFigure(name, count(max(row.update for row in chosen)), remark))
  for tag, total, name in (("speed/actor", "total/steps", "played per second"),
                           ("speed/learner", "total/steps_learnt", "learnt per second")):
    if total in last and last[total].seconds > 0:
      mean = last[total].value / last[total].seconds
      found.append(KeyFigure(name, count(mean), "steps, run average"))
    elif tag in last:
      found.append(KeyFigure(name, count(last[tag].value), "steps, at the end"))
  return found


def _of_imitation(row: Row) -> bool:
  """Returns whether a row belongs to imitation, which counts its own updates."""
  return row.tag.startswith("imitation/")


def opponents(tags: Mapping[str, Sequence[Row]]) -> list[str]:
  """Returns the opponents with recorded scores, in order of their first appearance."""
  return list(dict.fromkeys(
    tag.split("/", 2)[2] for tag in tags if tag.startswith("score/") and tag.count("/") >= 2))


def opponent_scores(tags: Mapping[str, Sequence[Row]]) -> list[OpponentScores]:
  """Returns the scores against each opponent: evaluated ones, else those of training games."""
  found = []
  for opponent in opponents(tags):
    evaluated = f"score/eval/{opponent}" in tags
    scores = tags.get(f"score/{'eval' if evaluated else 'train'}/{opponent}")
    if scores:
      initial = tags.get(f"score/initial/{opponent}")
      found.append(OpponentScores(
        opponent, initial[-1] if initial else None, scores[0] if len(scores) > 1 else None,
        scores[-1], evaluated))
  return found
