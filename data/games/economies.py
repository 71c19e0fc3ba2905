"""Economies of players in recorded games: resources, supply, workers.

A score does not say why an agent loses. Its economy often does: a player that banks minerals while
it is supply-blocked has not learnt to build supply.
"""

from collections.abc import Sequence

import numpy as np

from starleague.agent import types
from starleague.data import wire
from starleague.data.games import reading

# Of `types.PLAYER_COLUMNS`.
COLUMNS = ("minerals", "vespene", "food_used", "food_cap", "food_army", "food_workers")
_PLACES = [types.PLAYER_COLUMNS.index(name) for name in COLUMNS]


def economies(dataset: reading.GamesDataset, rows: np.ndarray,
              loops: Sequence[int]) -> np.ndarray:
  """Returns players' economies, as observed at their last decision before each time.

  Args:
    dataset: the recorded games.
    rows: [N] indices of episodes.
    loops: [T] game loops, each at least 0.

  Returns:
    [N, T, 6] float32: `COLUMNS`; NaN where the game was over.

  Raises:
    GamesError: an episode cannot be read.
  """
  found = np.full((len(rows), len(loops), len(COLUMNS)), np.nan, np.float32)
  for out, row in zip(found, rows, strict=True):
    steps = reading.steps(dataset, int(row))
    times, players = (wire.summed(steps, path, dataset.config)
                      for path in ("observation.game_loop", "observation.player"))
    times = times[:, 0]
    for i, loop in enumerate(loops):
      if times[0] <= loop <= times[-1]:
        out[i] = players[np.searchsorted(times, loop, side="right") - 1][_PLACES]
  return found
