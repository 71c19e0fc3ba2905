"""Races, slots and places of scenes of the default tier."""

from tests.environments.skirmish.default_games import RACES, TIER, S

TERRAN, PROTOSS, ZERG = RACES
HOME = (-16.0, -16.0)
UNIT = S  # the first slot of a unit
BUNKER = TIER.unarmed  # the first slot of a structure that shoots
GEYSER = 4  # the first base's resources: four patches and a geyser
GAS_PLACE = TIER.patches[GEYSER]
