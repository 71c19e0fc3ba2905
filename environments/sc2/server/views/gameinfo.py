"""The answer to `game_info`: map, players, interface."""

import functools

import numpy as np

from starleague.environments.sc2.protocol import common_pb, raw_pb, sc_pb
from starleague.environments.sc2.server.game.game import Game
from starleague.environments.sc2.server.game.world import (
  World,
  image,
  make_world,
  shown_resources,
  shown_start,
)
from starleague.environments.sc2.server.views import raw_units
from starleague.environments.sc2.server.views.seats import ServerSeat
from starleague.environments.sc2.server.views.view import View
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import PATCH_RADIUS

_CLEARANCE = 0.5  # structures' radii are wider than their squares by a quarter


def start_raw(game: Game, player: int) -> raw_pb.StartRaw:
  """Returns the terrain, and the opponent's starting position.

  Resources block cells of the pathing grid and of the placement grid, structures that the player
  knows those of the pathing grid.
  """
  setting = game.rules, game.battlefield.map_index, game.battlefield.realistic
  found = raw_pb.StartRaw()
  found.CopyFrom(_ground(*setting))
  found.pathing_grid.data = np.packbits(
    _open(*setting) & ~_under_structures(game, player)).tobytes()
  home = shown_start(game.rules, game.battlefield.realistic) * game.state.side[1 - player]
  x, y = game.world.to_world(home[0], home[1])
  found.start_locations.add(x=float(x), y=float(y))
  return found


@functools.cache
def _ground(rules: tables.Rules, map_index: int, realistic: bool) -> raw_pb.StartRaw:
  """Returns the terrain alone. python-sc2 asks for it at every step, and it never changes."""
  world = make_world(rules, map_index, realistic)
  free, size = ~_under_resources(rules, world, realistic), world.size
  return raw_pb.StartRaw(
    map_size=common_pb.Size2DI(x=size, y=size), pathing_grid=image(world.passable & free),
    terrain_height=image(world.height), placement_grid=image(world.buildable & free),
    playable_area=common_pb.RectangleI(
      p0=common_pb.PointI(x=world.border, y=world.border),
      p1=common_pb.PointI(x=size - world.border, y=size - world.border)))


@functools.cache
def _open(rules: tables.Rules, map_index: int, realistic: bool) -> np.ndarray:
  """Passable cells without resources: [size, size] bool, rows upwards."""
  world = make_world(rules, map_index, realistic)
  return world.passable & ~_under_resources(rules, world, realistic)


def _under_structures(game: Game, player: int) -> np.ndarray:
  """Cells under the structures that a player knows: [size, size] bool, rows upwards.

  They form squares of whole cells.
  """
  frame, s = game.frame(), game.rules.tier.structures
  view = View(game, frame, player, (), (0.0, 0.0, 0.0, 0.0))
  state, memory = frame.state, frame.state.memory
  own, known = state.kind[player, :s], frame.known_tags[player, :s] > 0
  seen = memory.seen[player, :s]
  kind, x, y = (np.concatenate([values[player, :s], np.where(
    seen, values[1 - player, :s], remembered[player, :s])]) for values, remembered in (
      (state.kind, memory.kind), (state.x, memory.x), (state.y, memory.y)))
  found = np.zeros((game.world.size, game.world.size), bool)
  there = np.concatenate([own > 0, known])
  kind, x, y = kind[there], x[there], y[there]
  raw_units.move_to_shown_places(view, kind, x, y)
  sides = np.maximum(np.rint(2 * game.rules.types.radius[kind] - _CLEARANCE), 2)
  lefts, lows = (np.maximum(np.rint(middle - sides / 2), 0).astype(int)
                 for middle in game.world.to_world(x, y))
  for left, low, side in zip(lefts.tolist(), lows.tolist(), sides.astype(int).tolist(),
                             strict=True):
    found[low:low + side, left:left + side] = True
  return found


def _under_resources(rules: tables.Rules, world: World, realistic: bool) -> np.ndarray:
  """Cells under the resources that a map starts with: [size, size] bool, rows upwards."""
  half = shown_resources(rules, realistic)
  x, y = world.to_world(*np.concatenate([half, -half], axis=1))
  middles = np.arange(world.size) + 0.5
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
