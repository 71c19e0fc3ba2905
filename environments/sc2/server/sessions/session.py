"""A client's session: the state machine of the API, and the answer to each request.

Every response has the session's status and the request's id. A request that the game would refuse
gets the game's kind of error, and never ends the server.
"""

import asyncio
import contextlib
import logging
import pathlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from google.protobuf.message import DecodeError

from starleague.environments.sc2.protocol import sc_pb
from starleague.environments.sc2.server.game import battlefields
from starleague.environments.sc2.server.game.version import BUILD, DATA_VERSION, VERSION
from starleague.environments.sc2.server.sessions import link, recordings
from starleague.environments.sc2.server.sessions.guest import GuestGame
from starleague.environments.sc2.server.sessions.join_checks import (
  Join,
  join_problem,
  participants,
  resolution_problem,
)
from starleague.environments.sc2.server.sessions.match import (
  WAIT_SECONDS,
  MatchSetup,
  Refused,
  ServerMatch,
  internal_error,
)
from starleague.environments.sc2.server.sessions.observing import Observed
from starleague.environments.sc2.server.sessions.playback import Playback, check_rules
from starleague.environments.sc2.server.sessions.setups import SetupError, draw_races, make_setup
from starleague.environments.sc2.server.views.seats import ServerSeat

_NO_GAME = (sc_pb.launched, sc_pb.init_game)
_PLAYED = (sc_pb.in_game, sc_pb.in_replay, sc_pb.ended)
_IN_GAME = (*link.FORWARDED, "restart_game", "leave_game")
# Requests that start or end games: one at a time. Others are answered while one of them, or a step,
# waits for another participant.
_EXCLUSIVE = ("create_game", "join_game", "start_replay", "restart_game", "leave_game", "quit")
# Of these, requests that end another client's wait for a participant. The others are refused then.
_ENDS_JOIN = ("create_game", "start_replay", "quit")
_UNSUPPORTED = ("obs_action", "map_command", "quick_save", "quick_load")

Handler = Callable[[Any], Awaitable[sc_pb.Response]]
T = TypeVar("T")


class Session:
  """The state of one process of the game: its status, and its match or the link to its host."""

  def __init__(self, data_folder: pathlib.Path | None = None, address: str = "127.0.0.1",
               wait_seconds: float = WAIT_SECONDS):
    """Makes a session that has no game.

    Args:
      data_folder: the installation, with a folder `Maps`; None: every map name is accepted.
      address: to listen on for the process of a second participant, and where to look for a host.
      wait_seconds: for another participant, or for a game loop in real time.
    """
    self.status: sc_pb.Status.ValueType = sc_pb.launched
    self.quits = asyncio.Event()
    self._address, self._wait_seconds = address, wait_seconds
    self._maps = data_folder / "Maps" if data_folder else None
    self._saved: dict[str, bytes] = {}
    self._setup: MatchSetup | None = None
    self._seats: dict[int, ServerSeat] = {}
    self._races: dict[int, int] = {}
    self._joined = asyncio.Event()
    self._ends_join: asyncio.Event | None = None  # set: the client that joins waits no longer
    self._match: ServerMatch | None = None
    self._player = 0
    self._host = link.HostEnd()
    self._guest: GuestGame | None = None
    self._client: object = None  # the connection that has joined the game, or waits for that
    self._lock = asyncio.Lock()  # of `_EXCLUSIVE` requests

  async def answer(self, data: bytes, client: object = None) -> bytes:
    """Answers a request.

    Args:
      data: a serialised Request; anything else gets an error.
      client: identifies the connection, for `client_left`.
    """
    request = sc_pb.Request()
    try:
      request.ParseFromString(data)
    except DecodeError as error:
      return sc_pb.Response(error=[f"Could not parse the request: {error}"],
                            status=self.status).SerializeToString()
    kind = request.WhichOneof("request")
    if self._ends_join is not None and kind in _ENDS_JOIN:
      self._ends_join.set()
    exclusive = _EXCLUSIVE if self._ends_join is None else _ENDS_JOIN
    async with self._lock if kind in exclusive else contextlib.nullcontext():
      joins = kind == "join_game" and self.status in _NO_GAME and self._ends_join is None
      if joins:
        self._client = client  # it may leave while it waits
      response = await self.respond(request)
      if joins and self.status in _NO_GAME:
        self._client = None  # it has not joined: the game does not end with its connection
      return response.SerializeToString()

  async def client_left(self, client: object) -> None:
    """Leaves a game of two participants whose client has closed its connection: a defeat."""
    async with self._lock:
      if client is self._client:
        self._client = None
        if self._guest or (self._setup and len(participants(self._setup)) > 1):
          await self.drop(keep_guests=True)

  async def respond(self, request: sc_pb.Request) -> sc_pb.Response:
    """Answers a parsed request; errors become part of the response."""
    kind = request.WhichOneof("request")
    try:
      response = await self._dispatch(kind, request)
    except (link.LinkError, Refused) as error:
      response = sc_pb.Response(error=[str(error)])
    except Exception as error:  # the server outlives every request
      logging.exception("request=%s failed", kind)
      response = internal_error(error)
    if request.HasField("id"):
      response.id = request.id
    else:
      response.ClearField("id")
    if self._match is not None and self.status in _PLAYED:
      self.status = self._match.status
    response.status = self.status
    return response

  async def _dispatch(self, kind: str | None, request: sc_pb.Request) -> sc_pb.Response:
    if kind is None:
      raise Refused("Request is missing: expected one of its fields to be set")
    if kind in _UNSUPPORTED:
      raise Refused(f"{kind} is not supported")
    if kind in _IN_GAME and self.status not in _PLAYED:
      raise Refused("Not in a game")
    if kind == "join_game" and self.status not in _NO_GAME:
      raise Refused("Already in a game")
    if kind == "join_game" and self._ends_join is not None:
      raise Refused("Another client is joining a game")
    if kind in link.FORWARDED and self._guest is not None:
      return await self._forward(self._guest, request)
    if kind in link.FORWARDED and self._match is not None:
      return await self._match.answer(self._player, request)
    handler: Handler = getattr(self, f"_{kind}")
    return await handler(getattr(request, kind))

  async def _forward(self, guest: GuestGame, request: sc_pb.Request) -> sc_pb.Response:
    """Answers a guest's request. Another connection may leave the game meanwhile."""
    try:
      response = await guest.answer(request)
    except link.LinkError:
      async with self._lock:
        if self._guest is guest:
          await self.drop()
      raise
    if self._guest is guest:
      self.status = guest.status
    return response

  async def drop(self, keep_guests: bool = False) -> None:
    """Leaves the game and closes all links, unless `keep_guests` lets guests read their result."""
    self.status = sc_pb.launched
    match, self._match = self._match, None
    if match is not None:
      keep_guests |= match.over  # guests that are closed out take it for a victory
      await match.leave(self._player)
      match.close()
    guest, self._guest = self._guest, None
    if guest is not None:
      await guest.leave()
    await self._host.close(keep_guests)
    self._setup, self._client, self._seats, self._races = None, None, {}, {}
    self._joined = asyncio.Event()

  # Without a game.

  async def _ping(self, request: sc_pb.RequestPing) -> sc_pb.Response:
    return sc_pb.Response(ping=sc_pb.ResponsePing(
      game_version=VERSION, data_version=DATA_VERSION, data_build=BUILD, base_build=BUILD))

  async def _available_maps(self, request: sc_pb.RequestAvailableMaps) -> sc_pb.Response:
    return sc_pb.Response(available_maps=sc_pb.ResponseAvailableMaps(
      local_map_paths=battlefields.paths(self._maps),
      battlenet_map_names=battlefields.battle_net_names()))

  async def _save_map(self, request: sc_pb.RequestSaveMap) -> sc_pb.Response:
    response = sc_pb.ResponseSaveMap()
    if not request.map_data:
      response.error = sc_pb.ResponseSaveMap.InvalidMapData
    self._saved = {request.map_path: request.map_data}  # one is enough, and bounds the memory
    return sc_pb.Response(save_map=response)

  async def _quit(self, request: sc_pb.RequestQuit) -> sc_pb.Response:
    await self.drop()
    self.status = sc_pb.quit
    self.quits.set()
    return sc_pb.Response(quit=sc_pb.ResponseQuit())

  async def _start_replay(self, request: sc_pb.RequestStartReplay) -> sc_pb.Response:
    error = sc_pb.ResponseStartReplay
    if request.WhichOneof("replay") is None:
      return sc_pb.Response(start_replay=error(error=error.MissingReplay))
    if not request.HasField("options"):
      return sc_pb.Response(start_replay=error(error=error.MissingOptions))
    try:
      if (problem := resolution_problem(request.options)) is not None:
        raise ValueError(problem)
      recording = recordings.decode(recordings.bytes_of(request))
      if not 0 <= request.observed_player_id <= len(recording.settings["players"]):
        return sc_pb.Response(start_replay=error(error=error.InvalidObservedPlayerId))
      await check_rules(recording.settings)
      match = Playback(recording, request, self._wait_seconds)
    except recordings.PathError as found:
      return sc_pb.Response(start_replay=error(
        error=error.InvalidReplayPath, error_details=str(found)))
    except (ValueError, KeyError, TypeError, OverflowError, DecodeError) as found:
      return sc_pb.Response(start_replay=error(
        error=error.InvalidReplayData, error_details=str(found)))
    await self.drop()
    self._match, self._player, self.status = match, match.viewer, match.status
    match.start_clock()
    return sc_pb.Response(start_replay=error())

  async def _replay_info(self, request: sc_pb.RequestReplayInfo) -> sc_pb.Response:
    return sc_pb.Response(replay_info=recordings.replay_info(request))

  # Starting and leaving a game.

  async def _create_game(self, request: sc_pb.RequestCreateGame) -> sc_pb.Response:
    error = sc_pb.ResponseCreateGame
    try:
      setup = make_setup(request, self._saved, self._maps)
    except (FileNotFoundError, battlefields.MapError, SetupError) as problem:
      number = error.InvalidPlayerSetup if request.player_setup else error.MissingPlayerSetup
      if not isinstance(problem, SetupError):
        file = request.local_map
        named = file.map_path or file.map_data or request.battlenet_map_name
        number = error.InvalidMapPath if named else error.MissingMap
      return sc_pb.Response(create_game=error(error=number, error_details=str(problem)))
    await self.drop()
    self._setup, self.status = setup, sc_pb.init_game
    return sc_pb.Response(create_game=error())

  async def _join_game(self, request: sc_pb.RequestJoinGame) -> sc_pb.Response:
    if self._setup is None and not request.server_ports.game_port:
      raise Refused("No game to join: create one, or name the host's server_ports")
    problem = join_problem(request, self._setup)
    if problem is not None:
      return sc_pb.Response(join_game=problem)
    if self._setup is None:
      return await self._join_as_guest(request)
    if request.HasField("observed_player_id"):
      return self._watch(self._setup, request)
    seats = participants(self._setup)
    self._player = seats[0]
    self._seat(self._player, request)
    if len(seats) > 1:
      try:
        await self._host.listen(self._address, request.server_ports.game_port, self._welcome)
        await self._unless_ended(asyncio.wait_for(self._joined.wait(), self._wait_seconds))
      except (OSError, TimeoutError, Refused) as error:
        await self._host.close()
        reason = f"no second participant: {str(error) or 'none in time'}"  # of a TimeoutError
        return sc_pb.Response(join_game=Join(error=Join.NetworkError, error_details=reason))
    self._start()
    return sc_pb.Response(join_game=Join(player_id=self._player + 1))

  async def _unless_ended(self, waiting: Coroutine[Any, Any, T]) -> T:
    """Waits for a participant's process, until another client's request ends that.

    Raises:
      Refused: another client's request has ended it.
    """
    task = asyncio.ensure_future(waiting)
    ends = self._ends_join = asyncio.Event()
    end = asyncio.ensure_future(ends.wait())
    try:
      await asyncio.wait((task, end), return_when=asyncio.FIRST_COMPLETED)
      if not task.done():
        raise Refused("another client's request has ended the wait")
      return task.result()
    finally:
      self._ends_join = None
      task.cancel()
      end.cancel()

  def _watch(self, setup: MatchSetup, request: sc_pb.RequestJoinGame) -> sc_pb.Response:
    """Starts a game of computer players for an observer."""
    self._match = match = Observed(
      setup, draw_races(setup, {}), request.options, request.observed_player_id,
      self._wait_seconds)
    self._player, self.status = match.viewer, match.status
    match.start_clock()
    return sc_pb.Response(join_game=Join(player_id=len(setup.players) + 1))

  def _seat(self, player: int, request: sc_pb.RequestJoinGame) -> None:
    options = sc_pb.InterfaceOptions()
    options.CopyFrom(request.options)
    self._seats[player] = ServerSeat(player, options, request.player_name)
    self._races[player] = request.race

  def _start(self) -> None:
    """Starts the match once all participants have a seat."""
    if self._match is None:
      assert self._setup is not None
      races = draw_races(self._setup, self._races)
      for player, race in self._races.items():
        self._setup.players[player].race = race  # type: ignore[assignment]
      self._match = ServerMatch(
        self._setup, races, list(self._seats.values()), self._wait_seconds)
      self._match.start_clock()
      self.status = sc_pb.in_game

  async def _join_as_guest(self, request: sc_pb.RequestJoinGame) -> sc_pb.Response:
    address = request.host_ip or self._address or "127.0.0.1"  # empty: it listens on all
    guest = await self._unless_ended(link.GuestEnd.connect(
      address, request.server_ports.game_port, self._wait_seconds))
    try:
      response = await self._unless_ended(guest.ask(sc_pb.Request(join_game=request)))
    except (link.LinkError, Refused, asyncio.CancelledError):  # cancelled: the client is gone
      await guest.close()
      raise
    if response.error or response.join_game.HasField("error"):
      await guest.close()
      return response
    self._guest = GuestGame(guest, response.join_game.player_id)
    self.status = sc_pb.in_game
    return response

  def _welcome(self) -> tuple[link.Answer, Callable[[], Awaitable[None]]]:
    """Returns a guest's callbacks: for its requests, and for the end of its link."""
    # The guest's seat and match. The match may outlast the host's part in it.
    admitted: list[tuple[int, ServerMatch]] = []

    async def answer(request: sc_pb.Request) -> sc_pb.Response:
      if request.HasField("join_game"):
        return await self._admit(request.join_game, admitted)
      if not admitted:
        return sc_pb.Response(error=["Not in a game"], status=sc_pb.launched)
      player, match = admitted[0]
      if request.HasField("leave_game"):
        await match.leave(player)
        admitted.clear()
        return sc_pb.Response(leave_game=sc_pb.ResponseLeaveGame(), status=sc_pb.launched)
      try:
        response = await match.answer(player, request)
      except Refused as error:
        response = sc_pb.Response(error=[str(error)])
      except Exception as error:  # the link outlives every request
        logging.exception("guest's request=%s failed", request.WhichOneof("request"))
        response = internal_error(error)
      response.status = match.status
      return response

    async def gone() -> None:
      if admitted:
        player, match = admitted[0]
        await match.leave(player)

    return answer, gone

  async def _admit(self, request: sc_pb.RequestJoinGame,
                   admitted: list[tuple[int, ServerMatch]]) -> sc_pb.Response:
    """Gives a guest the second seat."""
    seats = participants(self._setup) if self._setup else []
    free = [seat for seat in seats if seat not in self._seats]
    if not free:
      return sc_pb.Response(join_game=Join(error=Join.GameFull))
    self._seat(free[0], request)
    self._start()
    assert self._match is not None
    admitted.append((free[0], self._match))
    self._joined.set()
    return sc_pb.Response(join_game=Join(player_id=free[0] + 1), status=sc_pb.in_game)

  async def _leave_game(self, request: sc_pb.RequestLeaveGame) -> sc_pb.Response:
    await self.drop(keep_guests=True)
    return sc_pb.Response(leave_game=sc_pb.ResponseLeaveGame())

  async def _restart_game(self, request: sc_pb.RequestRestartGame) -> sc_pb.Response:
    setup, match = self._setup, self._match
    if match is None or setup is None or len(match.seats) > 1 or isinstance(match, Observed):
      return sc_pb.Response(restart_game=sc_pb.ResponseRestartGame(
        error=sc_pb.ResponseRestartGame.LaunchError,
        error_details="only a game of one participant can be restarted"))
    await match.leave(self._player)  # wakes requests that wait for a game loop
    match.close()
    self._setup = setup._replace(seed=(setup.seed + 1) % 2 ** 31)
    old = self._seats[self._player]
    self._seats[self._player] = ServerSeat(old.player, old.options, old.name)
    self._match = None
    self._start()
    return sc_pb.Response(restart_game=sc_pb.ResponseRestartGame())
