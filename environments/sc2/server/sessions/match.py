"""A match: a game with its participants, who advance it together.

All methods run in one event loop. In step mode the game advances once every participant has asked
for it; in real time it advances by the clock.
"""

import asyncio
import base64
import contextlib
import dataclasses
import time
from typing import NamedTuple

from starleague.agent import types
from starleague.environments.sc2.protocol import debug_pb, sc_pb
from starleague.environments.sc2.server.game.battlefields import Battlefield
from starleague.environments.sc2.server.game.client_commands import SUCCESS
from starleague.environments.sc2.server.game.game import DRAW, Deaths, Game, ScriptedBot
from starleague.environments.sc2.server.game.version import VERSION
from starleague.environments.sc2.server.sessions import debug_requests, recordings
from starleague.environments.sc2.server.views import (
  gamedata,
  gameinfo,
  interface_actions,
  queries,
  response_observation,
)
from starleague.environments.sc2.server.views.seats import ServerSeat
from starleague.environments.skirmish.rules.tables.constants import LOOPS_PER_STEP

LOOPS_PER_SECOND = types.GAME_LOOPS_PER_SECOND
WAIT_SECONDS = 120.0  # for another participant, or for a game loop in real time
_CHANGES = ("step", "action", "debug")  # requests that need the scripted players' commands
_MOST_STEP = 1 << 16  # game loops that one request may ask for


class Refused(Exception):
  """A refused request; the message becomes the response's `error`."""


def internal_error(error: Exception) -> sc_pb.Response:
  """Returns the response to a request that has met an error of the server."""
  return sc_pb.Response(error=[f"Internal error: {type(error).__name__}: {error}"])


class MatchSetup(NamedTuple):
  """The settings of a match, from `create_game`."""

  battlefield: Battlefield
  map_name: str
  players: tuple[sc_pb.PlayerSetup, ...]  # participants and computers, two at most
  bots: dict[int, ScriptedBot]  # by player
  seed: int
  realtime: bool
  disable_fog: bool


class ServerMatch:
  """A game and the seats of its participants."""

  def __init__(self, setup: MatchSetup, races: tuple[int, int], seats: list[ServerSeat],
               wait_seconds: float = WAIT_SECONDS):
    """Starts the game.

    Args:
      setup: of `create_game`.
      races: indices of types.RACES; random ones are drawn already.
      seats: of the participants.
      wait_seconds: for another participant's step, or for a game loop in real time.
    """
    self._wait_seconds, self._entries = wait_seconds, list[recordings.Entry]()
    self.setup, self.seats = setup, {seat.player: seat for seat in seats}
    self.game = Game(setup.battlefield, races, setup.seed, setup.bots)
    if len(setup.players) == 1 and setup.battlefield.marines:
      self.game.reinforce(0, setup.battlefield.marines)
    self.loop = 0
    self._targets = dict.fromkeys(self.seats, 0)
    self._loser: int | None = None  # who has left first, or lost by a debug request
    self._revealed: dict[int, int] = {}  # players that see the whole map -> from which loop
    self._changed = asyncio.Condition()
    self._clock: asyncio.Task | None = None
    for seat in seats:
      home = self.game.rules.tier.home
      x, y = self.game.world.to_world(*(self.game.state.side[seat.player] * p for p in home))
      seat.camera = float(x), float(y)
      seat.note(interface_actions.FIRST_CAMERA_LOOP, "action",
                interface_actions.first_camera(self.game, seat))

  # The result.

  @property
  def over(self) -> bool:
    """Whether the game has a result."""
    return self.game.winner >= 0 or self._loser is not None

  def results(self) -> list[sc_pb.PlayerResult]:
    """Returns the result of each player, none during the game. Who leaves a running game loses."""
    if not self.over:
      return []
    winner = self.game.winner if self._loser is None else 1 - self._loser
    return [sc_pb.PlayerResult(
      player_id=player + 1,
      result=sc_pb.Tie if winner == DRAW else sc_pb.Victory if winner == player else sc_pb.Defeat)
      for player in range(len(self.setup.players))]

  # Time.

  async def step(self, player: int, count: int) -> int:
    """Advances the game by game loops, together with the others; returns its loop.

    Raises:
      Refused: the game is over or in real time, or another participant did not step in time.
    """
    if self.over:
      raise Refused("Game has already ended")
    if self.setup.realtime:
      raise Refused("step is not possible in real time")
    target = self.loop + min(count, _MOST_STEP)
    self._targets[player] = target
    async with self._changed:
      self._advance()
      self._changed.notify_all()
    await self._reach(target)
    return self.loop

  async def _reach(self, target: int) -> None:
    """Waits until the game has reached a loop or is over."""
    deadline = time.monotonic() + self._wait_seconds
    async with self._changed:
      while self.loop < target and not self.over:
        left = deadline - time.monotonic()
        if left <= 0:
          raise Refused(f"game loop {target} was not reached within {self._wait_seconds:.0f} s: "
                        f"the game is at {self.loop}, and another player did not step")
        with contextlib.suppress(TimeoutError):
          await asyncio.wait_for(self._changed.wait(), left)

  def _advance(self) -> None:
    """Plays up to the lowest loop that participants have asked for."""
    self._play(min(self._targets.values()))

  def _play(self, target: int) -> None:
    """Plays up to a game loop, or to the end of the game."""
    if self.over or target <= self.loop:
      return
    steps = target // LOOPS_PER_STEP - self.game.steps
    for changes in self.game.play(steps):
      self.loop = changes.loops[-1]
      for seat in self.seats.values():
        response_observation.note_changes(self.game.rules, seat, changes)
    if not self.over:
      self.loop = target
    if not steps:
      self._note_deaths(self.game.show_commands(), self.loop)

  def _note_deaths(self, deaths: Deaths, loop: int) -> None:
    for player, seat in self.seats.items():
      for tag in deaths[player]:
        seat.note(loop, "dead", tag)

  def start_clock(self) -> None:
    """Starts the clock of a game in real time."""
    if self.setup.realtime and self._clock is None:
      self._clock = asyncio.get_running_loop().create_task(self._run_clock())

  async def _run_clock(self) -> None:
    await self.game.prepare()
    start = time.monotonic() - self.loop / LOOPS_PER_SECOND
    while not self.over:
      await asyncio.sleep(max(0.0, (self.loop + 1) / LOOPS_PER_SECOND + start - time.monotonic()))
      async with self._changed:
        self._play(self.loop + 1)
        self._changed.notify_all()

  def close(self) -> None:
    """Stops the clock."""
    if self._clock is not None:
      self._clock.cancel()

  # Requests of a participant.

  @property
  def status(self) -> sc_pb.Status.ValueType:
    """The API's status, `in_game` or `ended`."""
    return sc_pb.ended if self.over else sc_pb.in_game

  async def answer(self, player: int, request: sc_pb.Request) -> sc_pb.Response:
    """Answers one of `link.FORWARDED`.

    Raises:
      Refused: the request is not possible now.
    """
    kind = request.WhichOneof("request")
    if kind in _CHANGES:
      await self.game.prepare()
    if kind == "observation":
      return sc_pb.Response(observation=await self.observe(player, request.observation))
    if kind == "step":
      return sc_pb.Response(step=sc_pb.ResponseStep(
        simulation_loop=await self.step(
          player, request.step.count if request.step.HasField("count") else 1)))
    if kind in ("action", "debug"):
      if not self.over:
        self._entries.append((self.loop, player, request.SerializeToString()))
      response = self.perform(player, request)
      if kind == "debug":  # it may have ended the game
        async with self._changed:
          self._changed.notify_all()
      return response
    if kind == "query":
      return sc_pb.Response(query=queries.answer(self.game, player, request.query))
    if kind == "data":
      return sc_pb.Response(data=gamedata.make_data(self.game.rules, request.data))
    if kind == "game_info":
      return sc_pb.Response(game_info=gameinfo.game_info(
        self.game, self.seats[player], self.setup.map_name, self.player_info()))
    if kind == "save_replay":
      return sc_pb.Response(save_replay=sc_pb.ResponseSaveReplay(data=await self.recording()))
    raise Refused(f"{kind} is not possible in a game")

  def perform(self, player: int, request: sc_pb.Request) -> sc_pb.Response:
    """Answers `action` and `debug`, which change the game. Raises Refused as `act` does."""
    if request.HasField("action"):
      return sc_pb.Response(action=self.act(player, request.action))
    self.debug(player, request.debug)
    return sc_pb.Response(debug=sc_pb.ResponseDebug())

  async def observe(self, player: int,
                    request: sc_pb.RequestObservation) -> sc_pb.ResponseObservation:
    """Answers `observation`; waits for the requested game loop.

    Raises:
      Refused: the loop was not reached in time.
    """
    # In step mode only the participant itself could make the game reach a later loop.
    if self.setup.realtime or self._targets[player] >= request.game_loop:
      await self._reach(request.game_loop)
    response = response_observation.observe(
      self.game, self.seats[player], self.loop,
      request.disable_fog or self.setup.disable_fog
      or self.loop >= self._revealed.get(player, self.loop + 1))
    response.player_result.extend(self.results())
    return response

  def act(self, player: int, request: sc_pb.RequestAction) -> sc_pb.ResponseAction:
    """Performs the actions of a participant; failures show in its next observation, too."""
    if self.over:
      raise Refused("Game has already ended")
    seat, response = self.seats[player], sc_pb.ResponseAction()
    for action in request.actions:
      with seat.acting():
        if seat.selected and not action.HasField("action_raw"):
          interface_actions.drop_unlisted(self.game, seat)
        result, ability = interface_actions.perform(self.game, seat, action)
      response.result.append(result)  # type: ignore[arg-type]
      if action.HasField("action_chat"):
        self._chat(player, action.action_chat)
      if result == SUCCESS:
        seat.note(
          self.loop + 1, "action", interface_actions.reported(self.game, seat, action, self.loop))
      else:
        tags = action.action_raw.unit_command.unit_tags
        seat.note(self.loop + 1, "error", sc_pb.ActionError(
          unit_tag=tags[0] if tags else 0, ability_id=max(ability, 0),
          result=result))  # type: ignore[arg-type]
    return response

  def _chat(self, player: int, chat: sc_pb.ActionChat) -> None:
    """Shows a message to all participants, or to its sender if it is for the team."""
    for other, seat in self.seats.items():
      if other == player or chat.channel != sc_pb.ActionChat.Team:
        seat.note(self.loop + 1, "chat", sc_pb.ChatReceived(
          player_id=player + 1, message=chat.message))

  def player_info(self) -> list[sc_pb.PlayerInfo]:
    """Returns the players of the game."""
    found = []
    for player, setup in enumerate(self.setup.players):
      info = sc_pb.PlayerInfo(
        player_id=player + 1, type=setup.type, race_requested=setup.race,
        player_name=setup.player_name,
        race_actual=self.game.races[player])  # type: ignore[arg-type]
      if setup.type == sc_pb.Computer:
        info.difficulty, info.ai_build = setup.difficulty, setup.ai_build
      elif player in self.seats:
        info.player_name = self.seats[player].name
      found.append(info)
    return found

  def debug(self, player: int, request: sc_pb.RequestDebug) -> None:
    """Executes debug commands; drawings and other commands have no effect.

    They are those of `debug_requests`, the whole map, control of the opponent's units and the end
    of the game.
    """
    for command in request.debug:
      self._note_deaths(debug_requests.change(self.game, player, command), self.loop + 1)
      state = command.game_state if command.HasField("game_state") else None
      if state == debug_pb.show_map:
        # From the next step on: clients cache what they see of a game loop.
        shown = self._revealed.pop(player, None)
        self._revealed |= {} if shown is not None else {player: self.loop + 1}
      if state == debug_pb.control_enemy:
        self.seats[player].controls_enemy ^= True
      if command.HasField("end_game") and not self.over:
        surrenders = command.end_game.end_result != debug_pb.DebugEndGame.DeclareVictory
        self._loser = player if surrenders else 1 - player

  async def recording(self) -> bytes:
    """Returns the file of the game so far."""
    # In a thread: the digest of the rules may take seconds.
    rules = await asyncio.to_thread(recordings.rules_of, self.setup.battlefield)
    return recordings.encode({
      **rules, "version": VERSION, "map": self.setup.map_name, "seed": self.setup.seed,
      "battlefield": dataclasses.asdict(self.setup.battlefield), "loops": self.loop,
      "players": [base64.b64encode(info.SerializeToString()).decode()
                  for info in self.player_info()],
      "interfaces": [base64.b64encode(
        self.seats[player].options.SerializeToString() if player in self.seats else b"").decode()
        for player in range(len(self.setup.players))],
      "results": [int(result.result) for result in self.results()]}, self._entries,
      self.game.world.size)

  async def leave(self, player: int) -> None:
    """Takes a participant out of the game; during the game it loses."""
    async with self._changed:
      if not self.over:
        self._loser = player
      self._changed.notify_all()
