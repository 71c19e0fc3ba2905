"""Skirmish: an embedded real-time strategy game with StarCraft II's observations and actions."""

from starleague.actor.environments.skirmish.skirmish import make_skirmish

__all__ = ["make_skirmish"]
