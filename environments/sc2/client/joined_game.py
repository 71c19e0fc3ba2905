"""A game of StarCraft II: participants, time, result.

A participant is an agent or a person with a process of its own; built-in bots play inside the first
participant's process. In step mode, the game waits until every participant has asked for the same
game loop.
"""

from collections.abc import Callable
from concurrent import futures
from typing import Any, NamedTuple, TypeVar

import portpicker

from starleague.agent.config import AgentConfig
from starleague.environments.sc2.client import lan, setup_requests
from starleague.environments.sc2.client.processes import Processes, translated
from starleague.environments.sc2.protocol import sc_pb

Result = TypeVar("Result")
# Game loop of a last observation that holds only the result; the one before stays valid.
_STUB_LOOP = 2**32 - 1
_RESULTS = {sc_pb.Victory: 1, sc_pb.Defeat: -1, sc_pb.Tie: 0, sc_pb.Undecided: 0}


class GameSetup(NamedTuple):
  """The settings of a game, fixed from its start."""

  game_map: setup_requests.GameMap
  races: tuple[int, ...]  # of the participants, indices of types.RACES; "random" is one of them
  bots: tuple[setup_requests.BuiltInBot, ...] = ()
  seed: int | None = None  # of the game; None: a new one for each game
  realtime: bool = False  # whether the game runs by the clock, for people
  names: tuple[str, ...] = ()  # of the participants, in replays
  people: tuple[int, ...] = ()  # participants played by people; their processes have a window
  invitation: lan.Invitation | None = None  # to a game that another process hosts


class JoinedGame:
  """A game that has started. All of its methods may raise `GameError`."""

  def __init__(self, processes: Processes, setup: GameSetup, config: AgentConfig):
    """Creates the game, unless another process hosts it, and lets the participants join.

    Args:
      processes: of the participants; they are kept when the game is over.
      setup: of one or two participants.
      config: sizes of the observations.

    Raises:
      InstallationError: StarCraft II is not installed.
      GameError: the game refuses a request, hangs or exits.
    """
    self.setup, self.loop = setup, 0
    count = len(setup.races)
    self._newest = [sc_pb.ResponseObservation() for _ in range(count)]
    self._controllers = processes.controllers(count, setup.people)
    self._pool = futures.ThreadPoolExecutor(count, "starcraft2")
    if setup.invitation is None:
      self._create(processes)
      ports = [portpicker.pick_unused_port() for _ in range(2 * count)] if count > 1 else []
    else:
      self._save_map(setup.invitation.map_data)
      ports = list(setup.invitation.ports)
    names = (*setup.names, *["agent"] * count)
    joined = self._all("joining", lambda i, controller: controller.join_game(
      setup_requests.join_game(setup.races[i], config, names[i], ports)))
    self.player_ids = tuple(response.player_id for response in joined)
    self.infos: list[sc_pb.ResponseGameInfo] = self._all(
      "game_info", lambda i, controller: controller.game_info())

  def _create(self, processes: Processes) -> None:
    """Creates the game in the first process, whatever the states of the processes."""
    setup, several = self.setup, len(self._controllers) > 1
    data = processes.map_data(setup.game_map.path) if setup.game_map.path else None
    if several:
      # A game of several processes starts from `launched`, and each needs the map's file.
      self._all("leaving", lambda i, controller: (
        controller.leave() if controller.status.name in ("in_game", "ended") else None))
      if data is not None:
        self._save_map(data)
    request = setup_requests.create_game(
      setup.game_map, setup.bots, len(setup.races), None if several else data, setup.seed,
      setup.realtime)
    translated("creating a game", lambda: self._controllers[0].create_game(request))

  def _save_map(self, data: bytes) -> None:
    """Saves the map's file under its path, in all processes."""
    self._all("saving the map", lambda i, controller: controller.save_map(
      self.setup.game_map.path, data))

  def _all(self, name: str, call: Callable[[int, Any], Result]) -> list[Result]:
    """Calls all participants' processes concurrently: most requests wait for the others."""
    started = [self._pool.submit(call, i, controller)
               for i, controller in enumerate(self._controllers)]
    futures.wait(started)
    return [translated(name, future.result) for future in started]

  def observe(self) -> list[sc_pb.ResponseObservation]:
    """Returns the participants' observations at the current loop, or at the end of the game."""
    found = self._all("observing", lambda i, controller: (
      controller.observe(target_game_loop=self.loop)))
    for i, response in enumerate(found):
      if response.observation.game_loop == _STUB_LOOP:
        response.observation.CopyFrom(self._newest[i].observation)
      else:
        self._newest[i] = response
    self.loop = max(response.observation.game_loop for response in found)
    return found

  def act(self, player: int, request: sc_pb.RequestAction) -> None:
    """Sends a participant's actions, if there are any."""
    if request.actions:
      translated("acting", lambda: self._controllers[player].actions(request))

  def advance(self, loop: int) -> None:
    """Advances to a game loop or the end of the game. In real time, `observe` waits instead."""
    if not self.setup.realtime:
      count = loop - self.loop
      self._all("stepping", lambda i, controller: (
        controller.step(count) if controller.status.name == "in_game" else None))
    self.loop = loop

  def save_replay(self) -> bytes:
    """Returns the game's replay file so far."""
    return translated("saving the replay", self._controllers[0].save_replay)

  def close(self) -> None:
    """Stops the game's threads; the processes keep running."""
    self._pool.shutdown(wait=False)


def result_of(response: sc_pb.ResponseObservation, player_id: int) -> int | None:
  """Returns a participant's result, 1, 0 or -1; None during the game."""
  for found in response.player_result:
    if found.player_id == player_id:
      return _RESULTS[found.result]
  return None
