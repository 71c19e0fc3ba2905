"""Processes of StarCraft II: their start, requests with a deadline, their end.

pysc2 finds the installation (`SC2PATH`), starts a process and talks to it. Each participant of a
game needs a process of its own; built-in bots need none.
"""

import functools
from collections.abc import Callable, Sequence
from concurrent import futures
from typing import Any, TypeVar

from absl import flags

from starleague.common.errors import UserError
from starleague.environments.sc2 import (
  protocol,  # noqa: F401  repairs pysc2 before its first import
)
from starleague.environments.sc2.client import installation

Result = TypeVar("Result")
DEADLINE_S = 120.0  # of a request: loading a map takes the longest


class GameError(UserError):
  """The game refused a request, exited, or did not answer within the deadline."""


def translated(name: str, call: Callable[[], Result]) -> Result:
  """Calls pysc2, and translates its errors into `GameError`.

  Raises:
    GameError: pysc2's errors, and those of the connection.
  """
  import websocket
  from pysc2.lib import protocol as pysc2_protocol
  from pysc2.lib import remote_controller, sc_process

  try:
    return call()
  except (pysc2_protocol.ConnectionError, pysc2_protocol.ProtocolError, OSError, RuntimeError,
          ValueError, remote_controller.ConnectError, remote_controller.RequestError,
          sc_process.SC2LaunchError, websocket.WebSocketException) as error:
    reason = " ".join(str(error).split()) or type(error).__name__
    raise GameError(f"StarCraft II: {name} failed: {reason}; see the game's own output") from error


class Processes:
  """The processes of consecutive games, started when they are needed and kept between games."""

  def __init__(self, version: str = "", deadline_s: float = DEADLINE_S,
               flags_of: Sequence[str] = ()):
    """Starts nothing yet.

    Args:
      version: of the game, as pysc2 names it; empty: the newest that is installed.
      deadline_s: seconds of each request, and of a process's start.
      flags_of: further arguments of each process.
    """
    self._version, self._deadline_s, self._flags = version, deadline_s, list(flags_of)
    self._started: list[Any] = []
    self._config: Any = None

  def controllers(self, count: int, windows: Sequence[int] = ()) -> list[Any]:
    """Returns the `RemoteController`s of `count` processes, and starts missing ones.

    Args:
      count: number of processes.
      windows: indices of processes that people play at, with a window of their own.

    Raises:
      InstallationError: the game is not installed.
      GameError: a process does not start.
    """
    self._configure()
    while len(self._started) < count:
      shown = len(self._started) in windows
      self._started.append(translated("its start", functools.partial(
        self._config.start, want_rgb=shown, full_screen=False, extra_args=self._flags,
        timeout_seconds=max(1, round(self._deadline_s)))))
    return [process.controller for process in self._started[:count]]

  def map_data(self, path: str) -> bytes:
    """Returns the content of a map's file below `Maps`.

    Raises:
      GameError: there is no such file.
    """
    self._configure()
    return translated("reading the map", lambda: self._config.map_data(path, 2))

  def _configure(self) -> None:
    if self._config is not None:
      return
    installation.find()
    from pysc2 import run_configs
    if not flags.FLAGS.is_parsed():
      flags.FLAGS.mark_as_parsed()  # pysc2 reads its own flags
    self._config = translated(
      "finding the version", lambda: run_configs.get(version=self._version or None))

  def close(self) -> None:
    """Ends all processes, hanging ones too; the next game starts new ones."""
    ended, self._started = self._started, []
    with futures.ThreadPoolExecutor(max(1, len(ended))) as pool:
      list(pool.map(lambda process: process.close(), ended))
