"""The players that a league starts with."""

from collections.abc import Sequence

import ml_collections

from starleague.agent import types
from starleague.common.errors import UserError
from starleague.league import players

FORM = "RACE:MAIN_AGENTS:MAIN_EXPLOITERS:LEAGUE_EXPLOITERS[:FROZEN_MAIN_AGENTS]"


def parse(entries: Sequence[str]) -> list[players.Player]:
  """Returns the players of a composition.

  Args:
    entries: one for each race, in `FORM`.

  Raises:
    UserError: an entry has another form.
  """
  found: list[players.Player] = []
  for text in entries:
    race, *counts = text.split(":")
    if race not in types.RACES[1:4] or len(counts) not in (3, 4) or not all(
        each.isdecimal() for each in counts):
      raise UserError(f"expected {FORM} of {', '.join(types.RACES[1:4])}, found "
                      f"{text!r}")
    found += players.initial_players([race], *(int(each) for each in counts))
  return found


def scripted(config: ml_collections.ConfigDict) -> list[str]:
  """Returns the names of the scripted players of a run's league."""
  return [name for name in config.league.scripted.split(",") if name]


def main_agents(config: ml_collections.ConfigDict) -> list[str]:
  """Returns the names of the learning main agents of a run's league."""
  return [player.name for player in _main_agents(config)]


def first_main_agents(config: ml_collections.ConfigDict) -> list[players.Player]:
  """Returns the learning main agents of the first one's race, in the order of the composition."""
  mains = _main_agents(config)
  return [player for player in mains if player.race == mains[0].race]


def learners(config: ml_collections.ConfigDict) -> list[str]:
  """Returns the names of the learning players of a run's league."""
  return [player.name for player in parse(config.league.composition.split(",")) if player.learns]


def _main_agents(config: ml_collections.ConfigDict) -> list[players.Player]:
  return [player for player in parse(config.league.composition.split(","))
          if player.learns and player.kind == players.MAIN]
