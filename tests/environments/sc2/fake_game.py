"""A stand-in for the processes of the game: a clock, one unit a player, and a log of requests."""

import threading
from types import SimpleNamespace
from typing import Any

from starleague.environments.sc2.protocol import raw_pb, sc_pb

SCV = 45
TAGS = (0x100000001, 0x100000002)
SIZE = 64


class Clock:
  """What the processes of a game share."""

  def __init__(self, length: int, participants: int):
    self.length, self.loop = length, 0
    self.steps: list[tuple[int, int]] = []  # loop before, count
    self.actions: list[tuple[int, int, sc_pb.RequestAction]] = []  # player, loop, request
    self.created: list[sc_pb.RequestCreateGame] = []
    self.barrier = threading.Barrier(participants, timeout=60)

  @property
  def over(self) -> bool:
    return self.loop >= self.length


class Controller:
  """The methods of pysc2's RemoteController that a game needs, for one participant."""

  def __init__(self, clock: Clock, player: int):
    self.clock, self.player = clock, player
    self.errors: list[sc_pb.ActionError] = []
    self.state, self.saved = "launched", b""
    self.joined: sc_pb.RequestJoinGame | None = None

  @property
  def status(self) -> Any:
    return SimpleNamespace(name=self.state)

  def save_map(self, path: str, data: bytes) -> None:
    assert self.state == "launched"
    self.saved = data

  def create_game(self, request: sc_pb.RequestCreateGame) -> None:
    self.clock.created.append(request)
    self.clock.loop = 0
    self.state = "init_game"

  def join_game(self, request: sc_pb.RequestJoinGame) -> Any:
    self.clock.barrier.wait()  # returns when all have joined
    self.joined, self.state = request, "in_game"
    return SimpleNamespace(player_id=self.player + 1)

  def leave(self) -> None:
    self.state = "launched"

  def game_info(self) -> sc_pb.ResponseGameInfo:
    info = sc_pb.ResponseGameInfo()
    info.start_raw.map_size.x = info.start_raw.map_size.y = SIZE
    for player in range(2):
      info.player_info.add(player_id=player + 1, type=sc_pb.Participant, race_requested=1,
                           race_actual=1)
    return info

  def observe(self, target_game_loop: int = 0) -> sc_pb.ResponseObservation:
    response = sc_pb.ResponseObservation(action_errors=self.errors)
    self.errors = []
    observation = response.observation
    observation.game_loop = self.clock.loop
    observation.player_common.minerals = self.clock.loop
    for player, tag in enumerate(TAGS):
      mine = player == self.player
      observation.raw_data.units.add(
        tag=tag, unit_type=SCV, alliance=raw_pb.Self if mine else raw_pb.Enemy,
        display_type=raw_pb.Visible, owner=player + 1, health=45, health_max=45,
        pos={"x": 10 + 20 * player, "y": 20})
    observation.raw_data.player.camera.x = observation.raw_data.player.camera.y = 20
    if self.clock.over:
      self.state = "ended"
      for player in range(2):
        response.player_result.add(
          player_id=player + 1, result=sc_pb.Victory if player == 1 else sc_pb.Defeat)
    return response

  def actions(self, request: sc_pb.RequestAction) -> None:
    self.clock.actions.append((self.player, self.clock.loop, request))

  def step(self, count: int) -> None:
    if self.clock.barrier.wait() == 0:
      self.clock.steps.append((self.clock.loop, count))
      self.clock.loop += count
    self.clock.barrier.wait()

  def save_replay(self) -> bytes:
    return b"replay"


class Processes:
  """Instead of `processes.Processes`."""

  def __init__(self, participants: int, length: int = 40):
    self.clock = Clock(length, participants)
    self.all = [Controller(self.clock, player) for player in range(participants)]
    self.closed = 0

  def controllers(self, count: int, windows: Any = ()) -> list[Controller]:
    assert count == len(self.all)
    return self.all

  def map_data(self, path: str) -> bytes:
    return b"the map " + path.encode()

  def close(self) -> None:
    self.closed += 1
