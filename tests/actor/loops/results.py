"""Results of games, for tests."""

import numpy as np

from starleague.actor import rollouts
from starleague.agent import types

NAMES = ("passive", "rusher", "builder")
ZERG = types.RACES.index("zerg")


def results(opponent, reward, over=True) -> rollouts.Results:
  """Returns one iteration with a game per opponent; unit type 7 marks the first game."""
  games = len(opponent)
  executed = types.zeros(types.statistics_spec())
  executed = types.Statistics(*(np.stack([np.stack([x, x])] * games)[None] for x in executed))
  executed.units[0, 0, 1, 7] = True
  reward = np.array(reward, np.float32)
  return rollouts.Results(
    over=np.broadcast_to(np.asarray(over), (1, games)), opponent=np.array([opponent], np.int32),
    reward=np.stack([reward, -reward], axis=-1)[None], executed=executed,
    z=executed, race=np.full((1, games, 2), ZERG), side=np.zeros((1, games, 2), np.int32),
    map_index=np.zeros((1, games), np.int32))
