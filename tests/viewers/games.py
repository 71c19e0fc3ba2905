"""Games and their constants for the tests of viewers."""

from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS

RULES = tables.make_rules(*GAME_CONFIGS["mini"])
DEFAULT_RULES = tables.make_rules(*GAME_CONFIGS["default"])
STRUCTURES = RULES.tier.structures
KIND = {name: i for i, name in enumerate(RULES.types.names)}  # local types of mini
FUNCTION = {name: i for i, name in enumerate(RULES.functions.names)}  # local functions of mini
