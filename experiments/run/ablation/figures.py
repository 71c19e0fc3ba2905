"""The figures of an ablation: speed of learning and ratings, from games and results."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from starleague import league
from starleague.actor.evaluation import Counts
from starleague.common import results

LEAST_GAMES = 20  # of the training games behind a score that counts


class Reached(NamedTuple):
  """When training reached a score; infinite if it did not."""

  seconds: float  # since the first update
  updates: float


def time_to_score(rows: Sequence[results.Row], opponents: Sequence[str],
                  score: float = 0.5) -> Reached:
  """Finds when the mean training score against some opponents first reached a level.

  Args:
    rows: of a run's results. Scores are those of the latest minute of training games.
    opponents: names of the scripted players.
    score: the level.
  """
  tags = results.by_tag(rows)
  learnt = tags.get("total/steps_learnt", [])
  begin = learnt[0].seconds if learnt else 0.0
  newest: dict[str, float] = {}
  games: dict[str, float] = {}
  for row in sorted(rows, key=lambda row: row.seconds):
    kind, _, name = row.tag.rpartition("/")
    if kind == "games":
      games[name] = row.value
    elif kind == "score/train":
      newest[name] = row.value
    if all(games.get(name, 0) >= LEAST_GAMES and name in newest for name in opponents) and (
        np.mean([newest[name] for name in opponents]) >= score):
      return Reached(max(0.0, row.seconds - begin), row.update)
  return Reached(math.inf, math.inf)


def equally_many(past: Mapping[str, Sequence[Counts]],
                 seeds: Mapping[str, int]) -> dict[str, tuple[Counts, ...]]:
  """Returns equally many past selves of all agents of a seed, evenly spaced in time.

  The lowest of more observed scores lies further below the lowest true one: agents with different
  numbers of snapshots would not compare.

  Args:
    past: counts against each past self, oldest first, by agent.
    seeds: of the agents.
  """
  least: dict[int, int] = {}
  for name, played in past.items():
    least[seeds[name]] = min(len(played), least.get(seeds[name], len(played)))
  return {name: tuple(played[place] for place in np.linspace(
    0, len(played) - 1, least[seeds[name]]).round().astype(int)) for name, played in past.items()}


def ratings(played: Mapping[tuple[str, str], Counts], anchor: str) -> dict[str, float]:
  """Computes Elo ratings in the paper's form, base e, from the results of pairs of players.

  Args:
    played: counts of the first player of each pair against the second; pairs of scripted players
      need not have met.
    anchor: the player with rating 0.

  Returns:
    Ratings by player.
  """
  names = sorted({name for pair in played for name in pair})
  scores, games = np.zeros((2, len(names), len(names)))
  for (one, other), counts in played.items():
    i, j = names.index(one), names.index(other)
    scores[i, j] += counts.wins + 0.5 * counts.draws
    scores[j, i] += counts.losses + 0.5 * counts.draws
    games[i, j] += counts.games
    games[j, i] += counts.games
  found = league.elo_ratings(scores, games, anchor=names.index(anchor))
  return dict(zip(names, map(float, found), strict=True))
