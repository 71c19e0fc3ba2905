"""StarCraft II behind the two-player protocol of `base`: one game at a time, in its own processes.

Its functions have effects: a state is the running game, which `act` and `advance` change in place
and return. Each player has a target loop, its last action's loop plus its delay; `advance` moves to
the next one.
"""

import pathlib
from typing import Any

import jax
import numpy as np

from starleague.agent import types
from starleague.agent.config import AgentConfig
from starleague.common import files
from starleague.environments import base
from starleague.environments.sc2.client import lan, setup_requests
from starleague.environments.sc2.client.installation import InstallationError
from starleague.environments.sc2.client.joined_game import GameSetup, JoinedGame, result_of
from starleague.environments.sc2.client.processes import DEADLINE_S, Processes
from starleague.environments.sc2.converter import actions, memory, observations, rate_limit
from starleague.environments.sc2.converter.setting import Setting, make_setting
from starleague.environments.sc2.protocol import raw_pb, sc_pb

_TOWN_HALLS = (18, 59, 86)  # CommandCenter, Nexus, Hatchery: what players start with


class ClientSeat:
  """A participant's state: newest observation, memory, rate limit, next game loop of action."""

  def __init__(self, setting: Setting):
    """Starts a participant that is due at once."""
    self.setting, self.target = setting, 0
    self.memory = memory.initial(setting)
    self.limit = rate_limit.RateLimit()
    self.parsed = observations.read(sc_pb.ResponseObservation())
    self.tags = np.zeros(0, np.uint64)
    self._errors: list[sc_pb.ActionError] = []

  def watch(self, response: sc_pb.ResponseObservation, due: bool) -> None:
    """Updates the state by an observation. Action errors are kept until the participant is due."""
    self._errors = observations.carry_errors(self._errors, response, due)
    self.parsed = observations.read(response)
    self.memory = memory.watch(self.memory, self.parsed.response, self.parsed.units, self.setting)

  def act(self, action: types.Action, loop: int) -> sc_pb.RequestAction:
    """Notes an action and returns its request, a no_op beyond the rate limit."""
    self.limit, action = rate_limit.limit(
      self.limit, action, loop, self.setting.config.max_entities)
    request = actions.encode(action, self.tags, self.setting)
    self.memory = memory.note(self.memory, action, self.tags, loop, self.setting)
    self.target = loop + max(1, int(action.delay))
    return request


class Running:
  """A running game: the state of the environment."""

  def __init__(self, game: JoinedGame, seats: list[ClientSeat]):
    """Takes the game and its participants, and observes its start."""
    self.game, self.seats = game, seats
    self.agents = [i for i in range(len(seats)) if i not in game.setup.people]
    self.reward = np.zeros(2, np.float32)
    self.over = False
    self.observe()

  def due(self) -> np.ndarray:
    """Returns the players that must act: [2] bool."""
    return np.array([not self.over and player in self.agents
                     and self.seats[player].target <= self.game.loop for player in range(2)])

  def observe(self) -> None:
    """Observes for all participants; value functions use both observations."""
    for seat, response in zip(self.seats, self.game.observe(), strict=True):
      seat.watch(response, seat.target <= self.game.loop)
      self.over |= bool(response.player_result)
    for player, seat in enumerate(self.seats):
      result = result_of(seat.parsed.response, self.game.player_ids[player])
      if result is not None:
        self.reward[player] = result
        if len(self.seats) == 1:
          self.reward[1] = -result

  def save_replay(self, path: pathlib.Path) -> None:
    """Writes the game's replay, atomically. Raises `GameError`."""
    data = self.game.save_replay()
    with files.replacing(path, "wb") as file:
      file.write(data)


class GameHost:
  """Host of consecutive games in the same processes; makes their environment."""

  final_errors: tuple[type[Exception], ...] = (InstallationError, setup_requests.GameSetupError)

  def __init__(self, config: AgentConfig, maps: tuple[str, ...], bot: str = "", *,
               version: str = "", deadline_s: float = DEADLINE_S, camera: bool = True,
               realtime: bool = False, names: tuple[str, ...] = (), people: tuple[int, ...] = (),
               invitation: lan.Invitation | None = None):
    """Starts nothing yet.

    Args:
      config: sizes of observations and actions.
      maps: names of maps, as of `setup_requests.find_map`; a match-up has an index of them.
      bot: the built-in bot that plays player 1, as of `setup_requests.parse_bot`; empty: an agent
        does.
      version: of the game; empty: the newest that is installed.
      deadline_s: seconds of each request; a game that takes longer counts as hanging.
      camera: whether enemies outside the virtual camera lose their details.
      realtime: whether the game runs by the clock.
      names: of the participants, in replays.
      people: participants played by people.
      invitation: to a game that another process hosts, for a single agent; it fixes the map, the
        version and whether the game runs by the clock.

    Raises:
      GameSetupError: a map or a bot that the game does not have.
    """
    self._config, self._camera = config, camera
    if invitation is None:
      self._maps = [setup_requests.find_map(name) for name in maps]
    else:
      self._maps = [invitation.game_map]
      version, realtime = invitation.version, invitation.realtime
    self._setup = GameSetup(self._maps[0], (), realtime=realtime, names=names, people=people,
                        invitation=invitation)
    self.bot = bot
    self.processes = Processes(version, deadline_s)
    self._running: Running | None = None

  @property
  def bot(self) -> str:
    """The built-in bot of the next game, as of `setup_requests.parse_bot`; empty: an agent."""
    return self._bot_text

  @bot.setter
  def bot(self, text: str) -> None:
    self._bot_text, self._bot = text, (setup_requests.parse_bot(text),) if text else ()

  def environment(self) -> base.Environment:
    """Returns the environment. A reset ends the previous game."""
    return base.Environment(
      reset=self.reset, observe=_observe, act=_act, advance=_advance,
      due=lambda state: state.due(), outcome=_outcome)

  def reset(self, key: Any, match_up: base.MatchUp) -> Running:
    """Starts a game.

    Args:
      key: the game's seed as an integer, or a JAX key.
      match_up: of numpy arrays. The game decides the starting positions by its seed, and the
        income of a bot by its difficulty; an odd seed swaps the sides in the server of Skirmish.

    Raises:
      InstallationError: StarCraft II is not installed.
      GameError: the game refuses, hangs or dies; its processes have ended.
    """
    participants = 1 if self._bot or self._setup.invitation else 2
    setup = self._setup._replace(
      game_map=self._maps[int(match_up.map_index)], bots=self._bot,
      races=tuple(int(race) for race in match_up.races[:participants]),
      seed=2 * (_seed(key) >> 1) + int(match_up.swap_sides))
    try:
      if self._running is not None:
        self._running.game.close()
      game = JoinedGame(self.processes, setup, self._config)
      seats = [ClientSeat(self._setting(game, match_up, player)) for player in range(participants)]
      self._running = Running(game, seats)
    except Exception:
      self.close()
      raise
    return self._running

  def _setting(self, game: JoinedGame, match_up: base.MatchUp, player: int) -> Setting:
    own, other = (jax.tree.map(lambda x, i=i: np.asarray(x)[i], match_up.z)
                  for i in (player, 1 - player))
    return make_setting(
      self._config, game.infos[player], game.player_ids[player], own, other,
      int(match_up.mmr[player]), self._camera)

  def sides(self) -> tuple[int, int]:
    """Returns the players' starting sides in the current game, as in libraries of z.

    A player is on side 0 if its starting place comes before its opponent's in the order of (x, y).
    """
    assert self._running is not None
    side = start_side(self._running.game.infos[0], self._running.seats[0].parsed.response)
    return side, 1 - side

  def grid_per_unit(self) -> float:
    """Returns the cells of the 256 x 256 grid per game unit on the map of the current game."""
    assert self._running is not None
    setting = self._running.seats[0].setting
    return types.POSITION_GRID / max(setting.map_width, setting.map_height)

  def show(self, z: types.Statistics) -> None:
    """Sets the z of both players of the current game, [2, ...]; they are observed from now on."""
    assert self._running is not None
    own, other = (jax.tree.map(lambda x, i=i: np.asarray(x)[i], z) for i in range(2))
    for seat, pair in zip(self._running.seats, ((own, other), (other, own)), strict=False):
      seat.setting = seat.setting._replace(z=pair[0], opponent_z=pair[1])

  def save_replay(self, path: pathlib.Path) -> None:
    """Writes the replay of the current game, atomically. Raises `GameError`."""
    assert self._running is not None
    self._running.save_replay(path)

  def close(self) -> None:
    """Ends the processes, those of a hanging game too."""
    running, self._running = self._running, None
    if running is not None:
      running.game.close()
    self.processes.close()
    if self._setup.invitation is not None:
      self._setup.invitation.close()


def start_side(info: sc_pb.ResponseGameInfo, first: sc_pb.ResponseObservation) -> int:
  """Returns a player's starting side, 0 or 1, as `data.replays` finds it; see `GameHost.sides`.

  Args:
    info: of the game; it has the places where opponents may start.
    first: the player's first observation.
  """
  own = [(unit.pos.x, unit.pos.y) for unit in first.observation.raw_data.units
         if unit.alliance == raw_pb.Self and unit.unit_type in _TOWN_HALLS]
  others = [(place.x, place.y) for place in info.start_raw.start_locations]
  return int(bool(own and others) and min(others) < own[0])


def _seed(key: Any) -> int:
  if isinstance(key, jax.Array) and jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key):
    key = jax.random.key_data(key)[-1]
  return int(key) & (2**31 - 1)


def _observe(state: Running, player: Any) -> tuple[types.Observation, types.Privileged]:
  seat = state.seats[int(player)]
  opponent = state.seats[1 - int(player)] if len(state.seats) > 1 else None
  found = observations.convert(
    seat.parsed, opponent.parsed if opponent else None, seat.setting, seat.memory,
    opponent.memory if opponent else None)
  seat.tags = found.tags
  return found.observation, found.privileged


def _act(state: Running, taken: types.Action, acts: Any) -> Running:
  for player in np.flatnonzero(np.asarray(acts)).tolist():
    action = jax.tree.map(lambda x, i=player: np.asarray(x)[i], taken)
    state.game.act(player, state.seats[player].act(action, state.game.loop))
  return state


def _advance(state: Running) -> Running:
  """Advances to the next target loop of a participant, and observes."""
  if not state.over:
    target = min(state.seats[player].target for player in state.agents)
    state.game.advance(max(state.game.loop + 1, target))
    state.observe()
  return state


def _outcome(state: Running) -> base.Outcome:
  return base.Outcome(over=np.asarray(state.over), reward=state.reward)
