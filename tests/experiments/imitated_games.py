"""A dataset of random games with legal actions, for imitation."""

import jax

from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.data import wire
from starleague.data.games import files
from tests.learner.random_batches import random_batch


def write(path, games, decisions, preset="mini", tier="mini"):
  """Writes games of two episodes each; player 0 has MMR 6500 and wins, from either side."""
  config = agent_config.preset(preset)
  with files.GamesWriter(path, config, tier, ["open"], "random") as writer:
    for game in range(games):
      steps = random_batch(game, config, decisions, 2).steps
      steps.weight[...] = steps.discount[...] = 1.0
      steps.weight[-1], steps.discount[-2:] = 0.0, 0.0
      episodes = []
      for player in (0, 1):
        packed = wire.pack(types.Trajectory(
          jax.tree.map(lambda x, b=player: x[:, b], steps),
          types.zeros(types.core_state_spec(config))))
        episodes.append(files.Episode(
          game=game, player=player, name="random", map_index=0, race=1, away_race=1,
          side=(game + player) % 2,
          mmr=6500 - 3000 * player, result=1 - 2 * player,
          z=_some_z(), steps=wire.Columns(*packed[:-1])))
      writer.add(episodes)
  return path


def _some_z():
  """A z with one unit: those without any are of games that were played without z."""
  z = types.zeros(types.statistics_spec())
  z.units[0] = True
  return z
