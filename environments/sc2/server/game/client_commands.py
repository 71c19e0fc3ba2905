"""Client commands: conversion of ability, units and target into a command of Skirmish."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from starleague.environments.sc2.server.game import roster
from starleague.environments.sc2.server.game.catalogue import make_catalogue
from starleague.environments.sc2.server.game.game import Game
from starleague.environments.skirmish.rules.interface import action_results
from starleague.environments.skirmish.rules.state.state import Commands
from starleague.environments.skirmish.rules.tables import constants

SUCCESS = 1  # of the game's ActionResult
_MOST_COORDINATE = 1e4  # map units; positions beyond count as errors


class Target(NamedTuple):
  """The target of a command: none, a world position or a unit."""

  x: float = 0.0
  y: float = 0.0
  tag: int = 0
  is_point: bool = False

  @property
  def is_unit(self) -> bool:
    """Whether the target is a unit."""
    return self.tag != 0


class _Aim(NamedTuple):
  """A target in Skirmish's terms."""

  kind: int  # constants.NO_TARGET to constants.RESOURCE
  slot: int
  x: float
  y: float


def issue(game: Game, player: int, ability: int, tags: Iterable[int], target: Target,
          queued: bool = False) -> int:
  """Executes a command of a player and returns the game's ActionResult.

  Args:
    game: the game.
    player: 0 or 1.
    ability: id of the real game, specific or general.
    tags: the units commanded; other players' units are ignored.
    target: of the command.
    queued: whether the units take the order after their current one.
  """
  if game.winner >= 0:
    return action_results.NOT_SUPPORTED
  function = make_catalogue(game.rules).pick(ability, target.is_point, target.is_unit)
  if function is None:
    return action_results.NOT_SUPPORTED
  aim = _aim(game, player, target)
  if aim is None:
    return action_results.CANT_TARGET_THAT_UNIT
  functions = game.rules.functions
  if functions.takes_unit[function] and not target.is_unit and not (
      target.is_point and functions.kind[function] == constants.BUILDING):
    return action_results.CANT_TARGET_THAT_UNIT
  if functions.takes_point[function] and not (target.is_point or target.is_unit):
    return action_results.ERROR
  if functions.takes_point[function] and target.is_unit:
    aim = aim._replace(kind=constants.NO_TARGET)
  results = [_result(game.command(player, _commands(game, player, function, slots, aim, queued)))
             for slots in _selections(game, player, function, list(tags))]
  # Each larva has a command of its own; one success is enough.
  return SUCCESS if SUCCESS in results else results[0]


def issue_to_all(game: Game, player: int, ability: int, tags: Sequence[int], target: Target,
                 queued: bool = False) -> int:
  """Executes a command of a player who controls the opponent's units, too; see `issue`.

  Each player's units take it as their owner's command. One success is enough.
  """
  theirs = set(game.tags[1 - player].tolist()) - {0}
  own, enemy = ([tag for tag in tags if (tag in theirs) == foreign] for foreign in (False, True))
  sides = [(owner, chosen) for owner, chosen in ((player, own), (1 - player, enemy)) if chosen]
  results = [issue(game, owner, ability, chosen, target, queued)
             for owner, chosen in sides or [(player, [])]]
  return SUCCESS if SUCCESS in results else results[0]


def unload_one(game: Game, player: int, transport: int, passenger: int) -> int:
  """Executes a player's command that one passenger leaves; returns the game's ActionResult.

  Args:
    game: the game.
    player: 0 or 1.
    transport: tag of the unit that it is in.
    passenger: slot of the passenger.
  """
  names = game.rules.functions.names
  if game.winner >= 0 or "UnloadUnit_quick" not in names:
    return action_results.NOT_SUPPORTED
  return _result(game.command(player, _commands(
    game, player, names.index("UnloadUnit_quick"), game.tags[player] == transport,
    _Aim(constants.NO_TARGET, passenger, 0.0, 0.0), False)))


def _result(refused: int) -> int:
  return refused if refused else SUCCESS


def _selections(game: Game, player: int, function: int, tags: Sequence[int]) -> list[np.ndarray]:
  """Returns the unit masks [n] bool of the commands: one per larva, one for all other units."""
  own = game.tags[player]
  chosen = np.isin(own, tags) & (own > 0)
  hatcheries = [roster.larva_structure(game.rules, player, tag) for tag in tags]
  product = game.rules.functions.product[function]
  if not product or not game.rules.products.larva[product]:
    return [chosen]
  alone = [np.arange(len(own)) == slot for slot in hatcheries if slot is not None]
  return [*alone, chosen] if chosen.any() or not alone else alone


def _aim(game: Game, player: int, target: Target) -> _Aim | None:
  """Converts a target; None for units that the player does not know."""
  if not target.is_unit:
    x, y = game.world.to_skirmish(np.float32(target.x), np.float32(target.y))
    if not (abs(x) <= _MOST_COORDINATE and abs(y) <= _MOST_COORDINATE):  # False for NaN
      return None
    return _Aim(constants.NO_TARGET, 0, float(x), float(y))
  state = game.state
  for kind, tags, xs, ys in (
      (constants.OWN, game.tags[player], state.x[player], state.y[player]),
      (constants.ENEMY, game.known_tags[player], state.x[1 - player], state.y[1 - player])):
    found = np.flatnonzero(tags == target.tag)
    if found.size:
      slot = int(found[0])
      if kind == constants.OWN and roster.is_passenger(game.rules, state, player, slot):
        return None
      return _Aim(kind, slot, float(xs[slot]), float(ys[slot]))
  found = np.flatnonzero(roster.resource_tags(game.rules, player) == target.tag)
  if found.size and state.memory.patches[player, found[0]] > 0:
    x, y = resource_places(game, player)[:, found[0]]
    return _Aim(constants.RESOURCE, int(found[0]), float(x), float(y))
  return None


def resource_places(game: Game, player: int) -> np.ndarray:
  """Returns the positions of resources in Skirmish, in a player's order: [2, R] float32."""
  half = np.array(game.rules.tier.patches, np.float32)
  return np.concatenate([half, -half]).T * game.state.side[player]


def _commands(game: Game, player: int, function: int, slots: np.ndarray, aim: _Aim,
              queued: bool) -> Commands:
  """Returns the player's command, and an empty one for the opponent: [2, ...]."""
  def both(value: Any, dtype: Any) -> Any:
    values = np.zeros((2, *np.shape(value)), dtype)
    values[player] = value
    return values

  return Commands(
    function=both(function, np.int32), selected=both(slots, bool), x=both(aim.x, np.float32),
    y=both(aim.y, np.float32), target_kind=both(aim.kind, np.int32),
    target=both(aim.slot, np.int32), queued=both(queued, bool), repeat=both(1, np.int32))
