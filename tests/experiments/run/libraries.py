"""Weights and libraries of z for runs of `mini`, as after imitation."""

from starleague import agent
from starleague.agent import types
from starleague.common import run_files
from starleague.data import checkpoints
from starleague.data.z.statistics_library import PlayedGame, StatisticsLibrary
from starleague.environments.skirmish.games import dm_environment

TERRAN = types.RACES.index("terran")


def save_library(path, sides=(0, 1), map_name=None) -> None:
  map_name = map_name or dm_environment.map_names("mini")[0]
  played = [PlayedGame(map_name, TERRAN, TERRAN, side, types.zeros(types.statistics_spec()))
            for side in sides]
  StatisticsLibrary.from_games(played).save(path)


def save_imitator(run_dir) -> None:
  """Saves the weights that ship with the agent as a run's initial ones, and a library of z."""
  weights = agent.load_pretrained("mini")
  checkpoints.save_params(run_dir / run_files.INITIAL, weights.params, weights.config)
  save_library(run_dir / run_files.LIBRARY)
