"""The answer to `game_info`: map, players, interface."""

import numpy as np

from starleague.environments.sc2.protocol import common_pb, raw_pb, sc_pb
from starleague.environments.sc2.server.game.game import Game
from starleague.environments.sc2.server.game.world import image, shown_resources, shown_start
from starleague.environments.sc2.server.views.seats import ServerSeat
from starleague.environments.skirmish.rules.tables.constants import PATCH_RADIUS


def start_raw(game: Game, player: int) -> raw_pb.StartRaw:
  """Returns the terrain, and the opponent's starting position.

  Resources block cells of the pathing grid and of the placement grid; structures do not.
  """
  ground, size = game.world, game.world.size
  free = ~_under_resources(game)
  home = shown_start(game.rules, game.battlefield.realistic) * game.state.side[1 - player]
  x, y = ground.to_world(home[0], home[1])
  return raw_pb.StartRaw(
    map_size=common_pb.Size2DI(x=size, y=size), pathing_grid=image(ground.passable & free),
    terrain_height=image(ground.height), placement_grid=image(ground.buildable & free),
    playable_area=common_pb.RectangleI(
      p0=common_pb.PointI(x=0, y=0), p1=common_pb.PointI(x=size, y=size)),
    start_locations=[common_pb.Point2D(x=float(x), y=float(y))])


def _under_resources(game: Game) -> np.ndarray:
  """Cells under the resources that a map starts with: [G, G] bool, rows upwards."""
  half = shown_resources(game.rules, game.battlefield.realistic)
  x, y = game.world.to_world(*np.concatenate([half, -half], axis=1))
  middles = np.arange(game.world.size) + 0.5
  square = (middles - x[:, None, None]) ** 2 + (middles[:, None] - y[:, None, None]) ** 2
  return (square <= PATCH_RADIUS ** 2).any(axis=0)


def game_info(game: Game, seat: ServerSeat, map_name: str,
              players: list[sc_pb.PlayerInfo]) -> sc_pb.ResponseGameInfo:
  """Returns the answer to `game_info`.

  Args:
    game: the game.
    seat: of the participant that asks.
    map_name: the path that the client gave.
    players: with the races that are played; the opponent's stays hidden.
  """
  shown = []
  for info in players:
    known = sc_pb.PlayerInfo()
    known.CopyFrom(info)
    if info.player_id != seat.player + 1:
      known.ClearField("race_actual")
    shown.append(known)
  path = map_name.replace("\\", "/")
  return sc_pb.ResponseGameInfo(
    map_name=path.rsplit("/", 1)[-1].removesuffix(".SC2Map"), local_map_path=map_name,
    player_info=shown, start_raw=start_raw(game, seat.player), options=seat.options)
