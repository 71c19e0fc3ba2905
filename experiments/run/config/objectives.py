"""Rewards for units, and the matchmaking of a league's players, by the text of config keys."""

import functools
from collections.abc import Mapping, Sequence

import ml_collections
import numpy as np

from starleague.agent import vocabulary
from starleague.common.errors import UserError
from starleague.environments.skirmish.rules.tables import tiers
from starleague.experiments.run.config import compositions
from starleague.league import matchmaking, players

BUILT, LOST = EVENTS = ("built", "lost")  # units of the player, and of its opponent
FORM = "PLAYER=EVENT.TYPE:REWARD[+EVENT.TYPE:REWARD...]"


def parse_objective(text: str, tier: str) -> np.ndarray:
  """Returns rewards for units, [2, types] float32: built, lost by the opponent.

  Args:
    text: EVENT.TYPE:REWARD, several joined by "+"; empty: none.
    tier: of Skirmish.

  Raises:
    UserError: a part has another form, or names an unknown event or type, one that the tier lacks,
      or one a second time.
  """
  table = np.zeros((len(EVENTS), vocabulary.NUM_UNIT_TYPES), np.float32)
  seen = set[str]()
  for part in filter(None, text.split("+")):
    what, _, reward = part.partition(":")
    event, _, unit = what.partition(".")
    try:
      row, column, number = EVENTS.index(event), vocabulary.UNIT_TYPES.index(unit), float(reward)
    except (KeyError, ValueError):
      row = column = number = -1
    if column < 1 or not np.isfinite(number):
      raise UserError(f"found {part!r}, expected EVENT.TYPE:REWARD with an "
                      f"event of {', '.join(EVENTS)}, a unit type such as Marine, and a number")
    if unit not in tiers.TIERS[tier].types:
      raise UserError(f"found {part!r}, expected a unit type of tier {tier!r}: "
                      f"{', '.join(tiers.TIERS[tier].types)}")
    if what in seen:
      raise UserError(f"found {part!r}, expected one reward for {what}, not a second one")
    seen.add(what)
    table[row, column] = number
  return table


def parse_objectives(text: str, names: Sequence[str], tier: str) -> dict[str, np.ndarray]:
  """Returns the rewards of players for units, [2, types] float32: built, lost by the opponent.

  Args:
    text: entries in `FORM`, separated by commas; empty: none.
    names: of the players that may have objectives.
    tier: of Skirmish.

  Raises:
    UserError: an entry has another form, or names an unknown player, event or type.
  """
  found = {}
  for name, value in _entries(text, names, FORM).items():
    try:
      found[name] = parse_objective(value, tier)
    except UserError as error:
      raise UserError(f"the objective of {name}: {error}") from error
  return found


def parse_matchmaking(text: str, names: Sequence[str]) -> dict[str, str]:
  """Returns the matchmaking schemes of main agents that have one of their own.

  Args:
    text: entries PLAYER=SCHEME, separated by commas; empty: none.
    names: of the main agents.

  Raises:
    UserError: an entry has another form, or names an unknown player or scheme.
  """
  found = _entries(text, names, "PLAYER=SCHEME")
  for name, scheme in found.items():
    if scheme not in matchmaking.SCHEMES:
      raise UserError(f"the matchmaking of {name} is {scheme!r}, expected one of "
                      f"{', '.join(matchmaking.SCHEMES)}")
  return found


def of_league(config: ml_collections.ConfigDict) -> Mapping[str, np.ndarray]:
  """Returns the objectives of a league's players. Raises UserError as `parse_objectives`."""
  return parse_objectives(
    config.league.objectives, compositions.learners(config), config.environment.tier)


def check(config: ml_collections.ConfigDict, composition: Sequence[players.Player]) -> None:
  """Checks the objectives and the own matchmaking of a league's players.

  Args:
    config: of the run.
    composition: the players of its league.

  Raises:
    UserError: names the key, and what is wrong.
  """
  learners = [player.name for player in composition if player.learns]
  mains = [player.name for player in composition if player.kind == players.MAIN]
  of_tier = functools.partial(parse_objectives, tier=config.environment.tier)
  for key, parse, names in (("objectives", of_tier, learners),
                            ("own_matchmaking", parse_matchmaking, mains)):
    try:
      parse(config.league[key], names)
    except UserError as error:
      raise UserError(f"config key 'league.{key}': {error}.") from error


def _entries(text: str, names: Sequence[str], form: str) -> dict[str, str]:
  """Returns the values of comma-separated entries NAME=VALUE."""
  found: dict[str, str] = {}
  for entry in filter(None, text.split(",")):
    name, equals, value = entry.partition("=")
    if not equals or not value or name in found:
      raise UserError(f"expected one entry {form} a player, found {entry!r}")
    if name not in names:
      raise UserError(f"there is no player {name!r} that could have it, expected one of "
                      f"{', '.join(names)}")
    found[name] = value
  return found
