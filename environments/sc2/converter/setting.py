"""A player's settings of a game, fixed from its start."""

from typing import NamedTuple

from starleague.agent import types
from starleague.agent.config import AgentConfig
from starleague.environments.base import AGENT_MMR
from starleague.environments.sc2.protocol import common_pb, sc_pb

_RANDOM = types.RACES.index("random")


class Setting(NamedTuple):
  """A player's settings: sizes, races, MMR, z, camera."""

  config: AgentConfig
  map_width: int  # game units
  map_height: int
  home_race: int  # index of types.RACES, the player's own
  away_race: int  # the opponent's at the start; 0: unknown until a unit is seen
  mmr: int
  z: types.Statistics
  opponent_z: types.Statistics
  camera: bool  # whether enemies outside the virtual camera lose their details


def make_setting(
    config: AgentConfig, game_info: sc_pb.ResponseGameInfo, player_id: int,
    z: types.Statistics | None = None, opponent_z: types.Statistics | None = None,
    mmr: int = AGENT_MMR, camera: bool = True) -> Setting:
  """Makes a player's setting.

  The opponent's race is the requested one, unknown if that is random, as on the ladder.

  Args:
    config: sizes of observations and actions.
    game_info: of the game, as sent to this player.
    player_id: the player's id in the game, 1 or 2.
    z: the player's; unconditional if not given.
    opponent_z: the opponent's, for value functions.
    mmr: of the player, as its observations show it.
    camera: whether enemies outside the virtual camera lose their details.
  """
  size = game_info.start_raw.map_size
  none = types.zeros(types.statistics_spec())
  home, away = _races(game_info, player_id)
  return Setting(
    config, max(size.x, 1), max(size.y, 1), home, away, mmr,
    none if z is None else z, none if opponent_z is None else opponent_z, camera)


def _races(game_info: sc_pb.ResponseGameInfo, player_id: int) -> tuple[int, int]:
  """Returns the player's actual race and the opponent's requested one, 0 where unknown."""
  home = away = common_pb.NoRace
  for info in game_info.player_info:
    if info.type == sc_pb.Observer:
      continue
    if info.player_id == player_id:
      home = info.race_actual or info.race_requested
    elif info.race_requested != _RANDOM:
      away = info.race_requested
  return int(home), int(away)

