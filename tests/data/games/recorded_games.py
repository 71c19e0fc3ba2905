"""Episodes with known contents, for tests of datasets of games."""

import jax
import numpy as np

from starleague.agent import config as agent_config
from starleague.agent import types, vocabulary
from starleague.data import wire
from starleague.data.games import files

MARINE = vocabulary.UNIT_TYPES.index("Marine")
MINI = agent_config.mini()
# Of the dataset of the fixture `folder`: its first part, and the decisions of its games.
PART = "part-00000.parquet"
LENGTHS = [3, 11, 1, 6, 20, 2, 9, 4]


def columns(config, decisions, number, seed=0):
  """Steps [decisions + 1] with random entities, as columns of absolute values.

  `game_loop` is 1000 * number + step, `player` is 100 * step + its column. The last decision has
  reward 1, discount 0.
  """
  rng = np.random.default_rng([seed, number])
  step = types.zeros(types.step_spec(config.max_entities, config.map_size, config.max_selected))
  size = decisions + 1
  step = jax.tree.map(lambda x: np.repeat(x[None], size, 0), step)
  step.observation.entities[:, :2] = rng.integers(-9, 300, (size, 2, types.NUM_ENTITY_COLUMNS))
  step.observation.minimap[:, 1] = rng.integers(0, 4, step.observation.minimap[:, 1].shape)
  step.observation.game_loop[:] = 1000 * number + np.arange(size)
  step.observation.player[:] = np.add.outer(100 * np.arange(size), np.arange(10))
  step.action.delay[:-1] = 8
  step.discount[:-2], step.weight[:-1], step.reward[-2:-1, 0] = 1, 1, 1
  return wire.pack_steps(step)


def episode(config, decisions, number, *, game=None, player=0, seed=0, **fields):
  """An episode whose z has its number as the first place."""
  absolute = columns(config, decisions, number, seed)
  z = types.zeros(types.statistics_spec())
  z.build_order[0], z.build_order_xy[0] = MARINE, (number % 256, player)
  z.units[number % 9] = True
  values = {
    "name": "demo_2000", "map_index": 0, "race": 1, "away_race": 1, "side": player, "mmr": 2000,
    "result": 1 - 2 * player, "z": z} | fields
  return files.Episode(
    game=number if game is None else game, player=player,
    steps=wire.Columns(*wire.seal(absolute, np.zeros(0, np.float32))[:-1]), **values)


def write(path, config, lengths, *, origin="a test", part_decisions=40):
  """Writes a dataset with two episodes of each length; their numbers are 2 * game + player."""
  with files.GamesWriter(path, config, "mini", ("open",), origin,
                               part_decisions=part_decisions) as writer:
    for game, length in enumerate(lengths):
      writer.add([episode(config, length + player, 2 * game + player, game=game, player=player)
                  for player in (0, 1)])
  return path
