"""Debug requests that change the game: money, units created, killed and changed."""

import math

from starleague.environments.sc2.protocol import debug_pb
from starleague.environments.sc2.server.game.game import Deaths, Game
from starleague.environments.sc2.server.views import raw_units

_GRANT = 5000  # minerals or vespene, as in the real game
_VALUES = {debug_pb.DebugSetUnitValue.Life: "health",
           debug_pb.DebugSetUnitValue.Shields: "shield",
           debug_pb.DebugSetUnitValue.Energy: "energy"}
_MOST_CREATED = 256  # units by one debug request


def change(game: Game, player: int, command: debug_pb.DebugCommand) -> Deaths:
  """Executes a debug command; those of other kinds have no effect.

  Args:
    game: the game.
    player: 0 or 1, who gets money.
    command: of the request.

  Returns:
    The tags that each player saw die.
  """
  state = command.game_state if command.HasField("game_state") else None
  if state in (debug_pb.all_resources, debug_pb.minerals):
    game.grant(player, minerals=_GRANT)
  if state in (debug_pb.all_resources, debug_pb.gas):
    game.grant(player, vespene=_GRANT)
  if command.HasField("create_unit"):
    _create(game, command.create_unit)
  wanted = command.unit_value
  if (command.HasField("unit_value") and wanted.unit_value in _VALUES
      and math.isfinite(wanted.value)):
    game.set_value(wanted.unit_tag, _VALUES[wanted.unit_value], wanted.value)
  if not command.HasField("kill_unit"):
    return frozenset(), frozenset()
  return game.kill(command.kill_unit.tag)


def _create(game: Game, wanted: debug_pb.DebugCreateUnit) -> None:
  """Creates units; types that the game lacks, or that need a geyser, are left out."""
  player = wanted.owner - 1
  kind = raw_units.local_type(game, wanted.unit_type)
  if player not in (0, 1) or not kind or game.rules.types.gas[kind]:
    return
  if not (math.isfinite(wanted.pos.x) and math.isfinite(wanted.pos.y)):
    return
  x, y = game.world.to_skirmish(wanted.pos.x, wanted.pos.y)
  game.create(player, kind, (x, y), min(max(wanted.quantity, 1), _MOST_CREATED))
