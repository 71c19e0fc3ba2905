"""Scores of each race of an agent against each scripted player, by which its races are drawn."""

import numpy as np

from starleague import league
from starleague.actor import rollouts

DECAY = 0.99  # of the counts of a race and an opponent, at each of their games


class RaceScores:
  """Scores of a race against a scripted player, over about the last hundred of their games.

  An actor keeps them to itself: a restarted one begins with equal scores.
  """

  def __init__(self, races: tuple[int, ...], opponents: int):
    """Starts without games.

    Args:
      races: of the agent, indices of types.RACES.
      opponents: number of scripted players.
    """
    self._races = np.asarray(races)
    self._games = np.zeros((opponents, len(races)))
    self._won = np.zeros((opponents, len(races)))  # a draw is half a win

  def add(self, batch: rollouts.Results) -> None:
    """Counts finished games against scripted players; those in self-play are left out."""
    scripted = np.asarray(batch.over) & (np.asarray(batch.opponent) > rollouts.SELF_PLAY)
    homes = np.asarray(batch.race)[scripted][:, 0]
    scores = (1 + np.sign(np.asarray(batch.reward)[scripted][:, 0])) / 2
    for opponent, home, score in zip(
        np.asarray(batch.opponent)[scripted] - 1, homes, scores, strict=True):
      cell = opponent, int(np.flatnonzero(self._races == home)[0])
      self._games[cell] = DECAY * self._games[cell] + 1
      self._won[cell] = DECAY * self._won[cell] + score

  @property
  def scores(self) -> np.ndarray:
    """[opponents, races] float64 in (0, 1); one win and one loss are added to each."""
    return (self._won + 1) / (self._games + 2)

  def probabilities(self, weighting: str, uniform: float) -> np.ndarray:
    """Returns the probability of each race of the agent, by its opponent.

    Args:
      weighting: of a race by its score; see `starleague.league.pfsp`.
      uniform: share that is split evenly between the races.

    Returns:
      [1 + opponents, races] float32; row 0 is self-play, with equal probabilities.
    """
    races = len(self._races)
    weighted = np.stack([np.full(races, 1 / races),
                         *(league.pfsp(row, weighting) for row in self.scores)])
    weighted[1:] = uniform / races + (1 - uniform) * weighted[1:]
    return weighted.astype(np.float32)
