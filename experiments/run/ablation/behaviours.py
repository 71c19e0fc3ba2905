"""Behavioural variety of a league's main agents: the archive of their evaluation games.

Unlike the archive on a league's page, it has equally many games of each agent and each league, and
its qualities are scores against fixed opponents.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from starleague.actor import behaviour, evaluation, rollouts
from starleague.experiments.run.evaluation import evaluating
from starleague.league.ratings import archive

AGENT = 0  # the player of an evaluation game that is described


class Variety(NamedTuple):
  """Measures of the archive of several agents."""

  coverage: float  # share of the cells
  qd_score: float  # sum of the qualities of their holders, each 0 to 1


def describe(played: rollouts.Results) -> dict[str, Any]:
  """Returns an agent's score against all opponents, and its games by cell: JSON.

  Args:
    played: of `evaluation.play`, the agent is player 0; equally many games against each opponent.
  """
  counts = evaluation.count(played).values()
  cells = Counter(archive.cell(each[AGENT]) for each in behaviour.of_results(played))
  return {"score": float(np.mean([evaluating.score_of(each).value for each in counts])),
          "cells": [[*cell, games] for cell, games in sorted(cells.items())]}


def measure(agents: Mapping[str, Mapping[str, Any]]) -> Variety:
  """Returns the measures of the archive of agents.

  Args:
    agents: `describe` of each, by name.
  """
  found = archive.EMPTY
  for number, agent in enumerate(agents.values()):
    for *cell, games in agent["cells"]:
      if games >= archive.FEWEST_GAMES:
        found = archive.add(found, archive.Cell(*cell), agent["score"], number)
  return Variety(archive.coverage(found), archive.qd_score(found))
