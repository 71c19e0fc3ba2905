"""Libraries of z for runs of `mini`."""

from starleague.agent import types
from starleague.data.z.statistics_library import PlayedGame, StatisticsLibrary
from starleague.environments.skirmish.games import dm_environment

TERRAN = types.RACES.index("terran")


def save_library(path, sides=(0, 1), map_name=None) -> None:
  map_name = map_name or dm_environment.map_names("mini")[0]
  played = [PlayedGame(map_name, TERRAN, TERRAN, side, types.zeros(types.statistics_spec()))
            for side in sides]
  StatisticsLibrary.from_games(played).save(path)
