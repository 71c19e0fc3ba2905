"""One game of StarCraft II: its participants, its time, its result.

A participant is an agent or a person with a process of its own; built-in bots play inside the first
participant's process. Without the clock, the game waits until every participant has asked for the
same game loop.
"""

from collections.abc import Callable
from concurrent import futures
from typing import Any, NamedTuple, TypeVar

import portpicker

from starleague.agent.config import AgentConfig
from starleague.environments.sc2.client import lan, matches
from starleague.environments.sc2.client.processes import Processes, translated
from starleague.environments.sc2.protocol import sc_pb

Result = TypeVar("Result")
# The game loop of an observation that has nothing but the result: the last one still holds.
_STUB_LOOP = 2**32 - 1
_RESULTS = {sc_pb.Victory: 1, sc_pb.Defeat: -1, sc_pb.Tie: 0, sc_pb.Undecided: 0}


class Match(NamedTuple):
  """What is fixed at the start of a game."""

  game_map: matches.GameMap
  races: tuple[int, ...]  # of the participants, indices of types.RACES; "random" is one of them
  bots: tuple[matches.Bot, ...] = ()
  seed: int | None = None  # of the game; None: another one every time
  realtime: bool = False  # by the clock, for people
  names: tuple[str, ...] = ()  # of the participants, in replays
  people: tuple[int, ...] = ()  # participants that people play: their process has a window
  invitation: lan.Invitation | None = None  # to a game that another process hosts


class Game:
  """A game that has started. All of its methods may raise `GameError`."""

  def __init__(self, processes: Processes, match: Match, config: AgentConfig):
    """Creates the game, unless another process hosts it, and lets the participants join.

    Args:
      processes: of the participants; they are kept when the game is over.
      match: of one or two participants.
      config: sizes of the observations.

    Raises:
      InstallationError: StarCraft II is not there.
      GameError: it refuses, hangs or dies.
    """
    self.match, self.loop = match, 0
    count = len(match.races)
    self._newest = [sc_pb.ResponseObservation() for _ in range(count)]
    self._controllers = processes.controllers(count, match.people)
    self._pool = futures.ThreadPoolExecutor(count, "starcraft2")
    if match.invitation is None:
      self._create(processes)
      ports = [portpicker.pick_unused_port() for _ in range(2 * count)] if count > 1 else []
    else:
      self._save_map(match.invitation.map_data)
      ports = list(match.invitation.ports)
    names = (*match.names, *["agent"] * count)
    joined = self._all("joining", lambda i, controller: controller.join_game(
      matches.join_game(match.races[i], config, names[i], ports)))
    self.player_ids = tuple(response.player_id for response in joined)
    self.infos: list[sc_pb.ResponseGameInfo] = self._all(
      "game_info", lambda i, controller: controller.game_info())

  def _create(self, processes: Processes) -> None:
    """Creates the game in the first process, from whatever state the processes are in."""
    match, several = self.match, len(self._controllers) > 1
    data = processes.map_data(match.game_map.path) if match.game_map.path else None
    if several:
      # A game of several processes starts from `launched`, and each needs the map's file.
      self._all("leaving", lambda i, controller: (
        controller.leave() if controller.status.name in ("in_game", "ended") else None))
      if data is not None:
        self._save_map(data)
    request = matches.create_game(
      match.game_map, match.bots, len(match.races), None if several else data, match.seed,
      match.realtime)
    translated("creating a game", lambda: self._controllers[0].create_game(request))

  def _save_map(self, data: bytes) -> None:
    """Saves the map's file under its path, in all processes."""
    self._all("saving the map", lambda i, controller: controller.save_map(
      self.match.game_map.path, data))

  def _all(self, name: str, call: Callable[[int, Any], Result]) -> list[Result]:
    """Calls all participants' processes at the same time: most requests wait for the others."""
    started = [self._pool.submit(call, i, controller)
               for i, controller in enumerate(self._controllers)]
    futures.wait(started)
    return [translated(name, future.result) for future in started]

  def observe(self) -> list[sc_pb.ResponseObservation]:
    """Returns the participants' observations at the game's loop, or where the game has ended."""
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
    """Advances to a game loop, unless the game ends before. By the clock, `observe` waits."""
    if not self.match.realtime:
      count = loop - self.loop
      self._all("stepping", lambda i, controller: (
        controller.step(count) if controller.status.name == "in_game" else None))
    self.loop = loop

  def save_replay(self) -> bytes:
    """Returns the game's replay file so far."""
    return translated("saving the replay", self._controllers[0].save_replay)

  def close(self) -> None:
    """Ends the game's threads; the processes go on."""
    self._pool.shutdown(wait=False)


def result_of(response: sc_pb.ResponseObservation, player_id: int) -> int | None:
  """Returns 1, 0 or -1, a participant's result, or None: the game goes on."""
  for found in response.player_result:
    if found.player_id == player_id:
      return _RESULTS[found.result]
  return None
