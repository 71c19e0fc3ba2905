"""The processes in which games outside JAX are played, as an actor sees them.

Each plays one game at a time (`games.serve`). A process that dies, or whose game stalls, is
replaced, and its match is void.
"""

import time
from collections.abc import Callable
from multiprocessing import connection as connections
from typing import NamedTuple

from absl import logging

from starleague.actor import games, sessions
from starleague.common.errors import UserError

_MOST_VOID = 10  # matches in a row
_END_S = 10.0  # for a process to end its game


class GamesError(UserError):
  """No games can be played."""


class Finished(NamedTuple):
  """The end of a game."""

  request: games.GameRequest
  report: games.Report


class _Playing(sessions.LedProcess):
  """A process and its current game."""

  def __init__(self, target: Callable[..., object], arguments: tuple):
    super().__init__(target, arguments)
    self.request: games.GameRequest | None = None
    self.since = 0.0

  def play(self, request: games.GameRequest) -> None:
    """Starts a game; a process that is dead already is found by the next `poll`."""
    self.request, self.since = request, time.monotonic()
    try:
      self.connection.send_bytes(games.encode(request))
    except OSError:
      pass


class GameProcesses:
  """A fixed number of processes that play games all the time."""

  def __init__(self, count: int, target: Callable[..., object], arguments: tuple,
               next_request: Callable[[], games.GameRequest | None], stalled_s: float):
    """Starts the processes.

    Args:
      count: number of processes.
      target: main function of a process, importable; called with a connection and `arguments`.
        It runs in a session of its own, which ends with it.
      arguments: picklable.
      next_request: returns the next game, or None: there is no other.
      stalled_s: seconds after which a game without an end is void.
    """
    self._target, self._arguments = target, arguments
    self._next_request, self._stalled_s = next_request, stalled_s
    self._void = 0
    self._playing = [_Playing(target, arguments) for _ in range(count)]
    for playing in self._playing:
      self._give(playing)

  def _give(self, playing: _Playing) -> None:
    request = self._next_request()
    if request is None:
      playing.request = None
    else:
      playing.play(request)

  def resume(self) -> None:
    """Starts games in processes that had none to play, if there are some now."""
    for playing in self._playing:
      if playing.request is None:
        self._give(playing)

  def busy(self) -> bool:
    """Returns whether a game is under way."""
    return any(playing.request is not None for playing in self._playing)

  def poll(self) -> list[Finished]:
    """Returns the games that have ended since the last call, and starts others in their place.

    Raises:
      GamesError: games cannot be played at all, or many in a row are void.
    """
    found = []
    busy = [playing for playing in self._playing if playing.request is not None]
    ready = connections.wait([playing.connection for playing in busy], 0)
    for playing in busy:
      report = self._report(playing, playing.connection in ready)
      if report is None or playing.request is None:
        continue
      found.append(Finished(playing.request, report))
      self._check(found[-1])
      if playing.connection.closed:
        i = self._playing.index(playing)
        playing = self._playing[i] = _Playing(self._target, self._arguments)
      self._give(playing)
    return found

  def _report(self, playing: _Playing, ready: bool) -> games.Report | None:
    """Returns the end of a process's game, or None; ends a process that is dead or stalls."""
    if ready:
      try:
        return games.decode(games.Report, playing.connection.recv_bytes())
      except (EOFError, OSError):
        playing.end(_END_S)
        return games.Report(
          None, reason=f"its process ended with status {playing.process.exitcode}")
    if time.monotonic() - playing.since > self._stalled_s:
      playing.end(_END_S)
      return games.Report(None, reason=f"it has not ended within {self._stalled_s:g} s")
    return None

  def _check(self, finished: Finished) -> None:
    """Counts void matches in a row."""
    request, report = finished
    if report.result is not None:
      self._void = 0
      return
    logging.warning("void_match request=%s reason=%r", request, report.reason)
    self._void += 1
    if report.final:
      raise GamesError(report.reason)
    if self._void >= _MOST_VOID:
      raise GamesError(f"{self._void} matches in a row are void, the last one because "
                       f"{report.reason}: see the log")

  def close(self) -> None:
    """Ends all processes and their games."""
    for playing in self._playing:
      playing.connection.close()  # all at once: each ends its own game
    for playing in self._playing:
      playing.end(_END_S)
