"""Games and their constants for the tests of viewers."""

from starleague.environments.skirmish.games import replays
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS

RULES = tables.make_rules(*GAME_CONFIGS["mini"])
DEFAULT_RULES = tables.make_rules(*GAME_CONFIGS["default"])
STRUCTURES = RULES.tier.structures
KIND = {name: i for i, name in enumerate(RULES.types.names)}  # local types of mini
FUNCTION = {name: i for i, name in enumerate(RULES.functions.names)}  # local functions of mini


def record():
  """Returns a game of mini, in which each player gets a structure and a fighter."""
  pair = (replays.scripted_player("rusher"), replays.scripted_player("builder"))
  return replays.record(pair, seed=3, max_steps=150)
