"""Requests that set up a game: interface, maps, races, built-in bots."""

import difflib
from collections.abc import Sequence
from typing import Any, NamedTuple

from starleague.agent import types
from starleague.agent.config import AgentConfig
from starleague.common.errors import UserError
from starleague.environments.sc2.protocol import sc_pb

CAMERA_WIDTH = 24  # game units: the width of the game's own screen
MAP_SUFFIX = ".sc2map"
_BOT_EXAMPLE = "zerg:hard:macro"


class GameSetupError(UserError):
  """A map, race or bot that the game does not have."""


class GameMap(NamedTuple):
  """A map for two players."""

  name: str
  path: str  # below $SC2PATH/Maps; "" for a map that only Battle.net has
  battle_net: str  # its name there, "" if it has none


class BuiltInBot(NamedTuple):
  """A computer player of the game, by the protocol's numbers."""

  race: int
  difficulty: int
  build: int


def interface(config: AgentConfig) -> sc_pb.InterfaceOptions:
  """Returns the interface options of agents: raw units, scores, minimap planes.

  Planes have the config's size. Cloaked units, burrowed shadows and placed buildings are shown, as
  people see them.
  """
  options = sc_pb.InterfaceOptions(
    raw=True, score=True, raw_affects_selection=True, show_cloaked=True, show_placeholders=True,
    show_burrowed_shadows=True, raw_crop_to_playable_area=False)
  layer = options.feature_layer
  layer.width, layer.crop_to_playable_area, layer.allow_cheating_layers = CAMERA_WIDTH, False, False
  layer.resolution.x = layer.resolution.y = 1  # the screen is not used; the game wants a size
  layer.minimap_resolution.x = layer.minimap_resolution.y = config.map_size
  return options


def find_map(name: str) -> GameMap:
  """Returns a map by pysc2's name, by its ladder name, or by a path below $SC2PATH/Maps.

  Raises:
    GameSetupError: there is no such map for two players.
  """
  if name.lower().endswith(MAP_SUFFIX):
    return GameMap(name.replace("\\", "/").rpartition("/")[2][:-len(MAP_SUFFIX)], name, "")
  from pysc2 import maps
  found: dict = {key: map_() for key, map_ in maps.get_maps().items()
                 if map_.players is None or map_.players >= 2}
  ladder = {map_.battle_net: key for key, map_ in found.items() if map_.battle_net}
  key = ladder.get(name, name)
  if key not in found:
    close = difflib.get_close_matches(name, [*found, *ladder], 3, 0.4)
    raise GameSetupError(
      f"map: expected a ladder map or a path that ends in .SC2Map, found {name!r}; "
      f"close names: {', '.join(close) or 'none'}")
  return GameMap(key, found[key].path or "", found[key].battle_net or "")


def parse_race(name: str) -> int:
  """Returns the protocol's number of a race, which is its index in `types.RACES`.

  Raises:
    GameSetupError: it is not terran, zerg, protoss or random.
  """
  if name.lower() not in types.RACES[1:]:
    raise GameSetupError(f"race: expected one of {', '.join(types.RACES[1:])}, found {name!r}")
  return types.RACES.index(name.lower())


def parse_bot(text: str) -> BuiltInBot:
  """Parses a built-in bot, race, difficulty and build: "zerg:hard:macro".

  The build may be left out; the bot then chooses it.

  Raises:
    GameSetupError: the text has another form, or a name that the game does not have.
  """
  parts = text.split(":")
  if len(parts) not in (2, 3):
    raise GameSetupError(f"bot: expected RACE:DIFFICULTY or RACE:DIFFICULTY:BUILD such as "
                         f"{_BOT_EXAMPLE}, found {text!r}")
  build = parts[2] if len(parts) == 3 else "RandomBuild"
  return BuiltInBot(parse_race(parts[0]), _value("difficulty", sc_pb.Difficulty, parts[1]),
             _value("build", sc_pb.AIBuild, build))


def _value(thing: str, enum: Any, name: str) -> int:
  names = {key.lower(): value for key, value in enum.items()}
  if name.lower() not in names:
    raise GameSetupError(f"{thing} of a bot: expected one of {', '.join(names)}, found {name!r}")
  return names[name.lower()]


def create_game(
    game_map: GameMap, bots: Sequence[BuiltInBot] = (), participants: int = 1,
    map_data: bytes | None = None, seed: int | None = None,
    realtime: bool = False) -> sc_pb.RequestCreateGame:
  """Returns the request that creates a game.

  Args:
    game_map: the map; one without a path is taken from Battle.net's cache.
    bots: computer players.
    participants: players that join.
    map_data: content of the map's file; None where every player has saved it under its path.
    seed: of the game; None: a new one for each game.
    realtime: whether the game runs by the clock instead of by steps.
  """
  request = sc_pb.RequestCreateGame(realtime=realtime, disable_fog=False)
  if game_map.path:
    request.local_map.map_path = game_map.path
    if map_data is not None:
      request.local_map.map_data = map_data
  else:
    request.battlenet_map_name = game_map.battle_net
  if seed is not None:
    request.random_seed = seed
  for _ in range(participants):
    request.player_setup.add(type=sc_pb.Participant)
  for bot in bots:
    request.player_setup.add(type=sc_pb.Computer, race=bot.race, difficulty=bot.difficulty,
                             ai_build=bot.build)
  return request


def join_game(race: int, config: AgentConfig, name: str = "",
              ports: Sequence[int] = ()) -> sc_pb.RequestJoinGame:
  """Returns the request that joins a game.

  Args:
    race: the protocol's number, `parse_race`.
    config: sizes of the player's observations.
    name: of the player, for replays.
    ports: free ports of a game of several processes: two of the host, then two of each other
      process. The same in all requests.
  """
  request = sc_pb.RequestJoinGame(
    options=interface(config), player_name=name, race=race)  # type: ignore[arg-type]
  if ports:
    request.shared_port = 0  # unused, but the game wants it
    request.server_ports.game_port, request.server_ports.base_port = ports[:2]
    for game_port, base_port in zip(ports[2::2], ports[3::2], strict=True):
      request.client_ports.add(game_port=game_port, base_port=base_port)
  return request
