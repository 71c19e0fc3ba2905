"""Skirmish: an embedded real-time strategy game with StarCraft II's observations and actions."""

from starleague.environments.skirmish.games.dm_environment import SkirmishEnvironment
from starleague.environments.skirmish.rules.environment import make_skirmish

__all__ = ["SkirmishEnvironment", "make_skirmish"]
