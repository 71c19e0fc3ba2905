"""Playback of saved games: settings, seed and requests determine a game."""

import asyncio
import base64
from typing import Any

from starleague.environments.sc2.protocol import sc_pb
from starleague.environments.sc2.server.game import battlefields
from starleague.environments.sc2.server.sessions import recordings
from starleague.environments.sc2.server.sessions.join_checks import resolution_problem
from starleague.environments.sc2.server.sessions.match import MatchSetup
from starleague.environments.sc2.server.sessions.observing import Observed
from starleague.environments.sc2.server.sessions.setups import make_bots
from starleague.environments.sc2.server.views.seats import ServerSeat


async def check_rules(settings: dict[str, Any]) -> None:
  """Checks that this server has the rules and the sources of a recorded game.

  Raises:
    ValueError, KeyError, TypeError: it has others, or the settings are invalid.
  """
  battlefield = battlefields.Battlefield(**settings["battlefield"])
  # In a thread: the digest of the rules may take seconds.
  rules = await asyncio.to_thread(recordings.rules_of, battlefield)
  for name, found in rules.items():
    if settings[name] != found:
      raise ValueError(
        f"{name} of tier {battlefield.tier!r}: expected {settings[name]!s:.16}, found {found}; "
        "the game has changed since this was recorded: record it again")


class Playback(Observed):
  """A match that repeats recorded requests, for an observer.

  It ends at the end of the recording, with the recorded results.
  """

  def __init__(self, recording: recordings.Recording, request: sc_pb.RequestStartReplay,
               wait_seconds: float):
    """Starts the game of a recording.

    Args:
      recording: of a game that `check_rules` accepts.
      request: with the interface of the observed player.
      wait_seconds: for a game loop in real time.

    Raises:
      ValueError, KeyError, TypeError, OverflowError, DecodeError: the recording is invalid.
    """
    settings = recording.settings
    infos = [sc_pb.PlayerInfo.FromString(base64.b64decode(text)) for text in settings["players"]]
    self._recorded = [(loop, player, sc_pb.Request.FromString(data))
                      for loop, player, data in recording.entries]
    self._number = 0
    interfaces = _interfaces(settings, len(infos))
    acting = [ServerSeat(player, request.options, info.player_name, recorded=interfaces[player])
              for player, info in enumerate(infos) if info.type == sc_pb.Participant]
    if not {player for _, player, _ in self._recorded} <= {seat.player for seat in acting}:
      raise ValueError("a player that is no participant has requests")
    self._end = int(settings["loops"])
    self._results = [int(x) for x in settings["results"]] or [sc_pb.Undecided] * len(infos)
    super().__init__(
      _setup(settings, infos, request), _races(infos), request.options,
      request.observed_player_id, wait_seconds, acting)

  @property
  def over(self) -> bool:
    """Whether the recording has ended."""
    return super().over or self.loop >= self._end

  def results(self) -> list[sc_pb.PlayerResult]:
    """Returns the recorded results, undecided if the game went on; none before the end."""
    return [sc_pb.PlayerResult(player_id=1 + i, result=result)  # type: ignore[arg-type]
            for i, result in enumerate(self._results)] if self.over else []

  @property
  def status(self) -> sc_pb.Status.ValueType:
    """The API's status, `in_replay` or `ended`."""
    return sc_pb.ended if self.over else sc_pb.in_replay

  def _advance(self) -> None:
    """Plays up to the loop that the observer has asked for."""
    self._play(self._targets[self.viewer])

  def _play(self, target: int) -> None:
    """Plays up to a game loop, with the participants' requests at their loops."""
    target = min(target, self._end)
    while self._number < len(self._recorded) and self._recorded[self._number][0] < target:
      loop, player, recorded = self._recorded[self._number]
      self._number += 1
      super()._play(loop)
      if not super().over:
        self.perform(player, recorded)
    super()._play(target)


def _interfaces(settings: dict[str, Any], players: int) -> list[sc_pb.InterfaceOptions]:
  """Returns the players' recorded interfaces."""
  found = [sc_pb.InterfaceOptions.FromString(base64.b64decode(text))
           for text in settings.get("interfaces", ())]
  if len(found) != players:
    raise ValueError(f"interfaces: expected {players}, found {len(found)}")
  for options in found:
    if (problem := resolution_problem(options)) is not None:
      raise ValueError(f"interfaces: {problem}")
  return found


def _setup(settings: dict[str, Any], infos: list[sc_pb.PlayerInfo],
           request: sc_pb.RequestStartReplay) -> MatchSetup:
  battlefield = battlefields.Battlefield(**settings["battlefield"])
  players = tuple(sc_pb.PlayerSetup(type=info.type, race=info.race_requested,
                                    difficulty=info.difficulty, ai_build=info.ai_build)
                  for info in infos)
  return MatchSetup(battlefield, str(settings["map"]), players, make_bots(battlefield, players),
               int(settings["seed"]), request.realtime, request.disable_fog)


def _races(infos: list[sc_pb.PlayerInfo]) -> tuple[int, int]:
  first, second = [int(info.race_actual) for info in infos] + [1] * (2 - len(infos))
  return first, second
