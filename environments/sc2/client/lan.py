"""LAN games that a person hosts with pysc2 (`pysc2.bin.play_vs_agent`), here or elsewhere.

StarCraft II plays LAN games on localhost only. Between machines the host's pysc2 forwards TCP ports
through SSH, and UDP through the connection over which it sends the settings of the game.
"""

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from starleague.environments.sc2.client import setup_requests
from starleague.environments.sc2.client.processes import GameError

ADDRESS = "127.0.0.1"
_RETRY_S = 0.5
_MAX_BYTES = 2**27  # of a message: a map's file is the longest
_LENGTH = struct.Struct("@I")  # as pysc2 sends it


class Invitation(NamedTuple):
  """A game that another process hosts.

  Attributes:
    game_map: the map.
    map_data: content of its file.
    version: of the game, the same on both sides.
    realtime: whether the game runs by the clock.
    ports: of `setup_requests.join_game`.
    close: ends the connection to the host.
  """

  game_map: setup_requests.GameMap
  map_data: bytes
  version: str
  realtime: bool
  ports: tuple[int, ...]
  close: Callable[[], None]


def accept(port: int, deadline_s: float = 300.0) -> Invitation:
  """Waits for a host and returns its invitation.

  Args:
    port: of the host's settings on this machine: `play_vs_agent --config_port`.
    deadline_s: longest time to wait for the host.

  Raises:
    GameError: no host answers in time, or its message is invalid.
  """
  end = time.monotonic() + deadline_s
  with contextlib.ExitStack() as stack:
    connection = stack.enter_context(_connect(port, end))
    try:
      connection.settimeout(max(1.0, end - time.monotonic()))
      map_data, settings = _receive(connection), json.loads(_receive(connection))
      ports = tuple(_integer(settings["ports"][side][name])
                    for side in ("server", "client") for name in ("game", "base"))
      name, path, version = (_text(settings[key]) for key in (
        "map_name", "map_path", "game_version"))
      if settings["remote"]:
        _forward_udp(connection, ports[0], ports[2], stack)
    except (OSError, ValueError, KeyError, TypeError) as error:
      reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
      raise GameError(f"LAN game at port {port}: expected the settings that "
                      f"pysc2.bin.play_vs_agent sends, found {reason}") from error
    return Invitation(setup_requests.GameMap(name, path, ""), map_data, version,
                      bool(settings["realtime"]), ports, stack.pop_all().close)


def _connect(port: int, end: float) -> socket.socket:
  while True:
    try:
      return socket.create_connection((ADDRESS, port), timeout=5.0)
    except OSError as error:
      if time.monotonic() >= end:
        raise GameError(f"no LAN game at {ADDRESS}:{port}: {error}; host one with python -m "
                        "pysc2.bin.play_vs_agent --human --map NAME") from error
      time.sleep(_RETRY_S)


def _receive(connection: socket.socket) -> bytes:
  """Returns the next message; raises ValueError for one that is cut off or too long."""
  [size] = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
  if size > _MAX_BYTES:
    raise ValueError(f"a message of {size} bytes, more than {_MAX_BYTES}")
  return _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes:
  data = bytearray()
  while len(data) < size:
    part = connection.recv(size - len(data))
    if not part:
      raise ValueError(f"{len(data)} of {size} bytes")
    data += part
  return bytes(data)


def _integer(value: Any) -> int:
  if type(value) is not int or not 0 < value < 2**16:
    raise ValueError(f"{value!r} as a port")
  return value


def _text(value: Any) -> str:
  if not isinstance(value, str):
    raise ValueError(f"{value!r} as a text")
  return value


def _shut_down(connection: socket.socket) -> None:
  """Ends a connection and wakes its reader."""
  with contextlib.suppress(OSError):  # the other end was first
    connection.shutdown(socket.SHUT_RDWR)


def _forward_udp(connection: socket.socket, server: int, client: int,
                 stack: contextlib.ExitStack) -> None:
  """Forwards the game's UDP datagrams through the connection; SSH forwards only TCP.

  Args:
    connection: to the host.
    server: port of the host's game, at which this machine listens in its place.
    client: port of the game on this machine.
    stack: ends the forwarding when it is closed.
  """
  datagrams = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
  datagrams.bind((ADDRESS, server))
  ended = threading.Event()
  stack.callback(ended.set)
  connection.settimeout(None)
  stack.callback(lambda: _shut_down(connection))
  datagrams.settimeout(_RETRY_S)  # closing a socket of datagrams does not wake its reader

  def repeat(forward: Callable[[], object]) -> None:
    with contextlib.suppress(OSError, ValueError):  # the game is over
      while not ended.is_set():
        with contextlib.suppress(TimeoutError):
          forward()

  def to_host() -> None:
    data = datagrams.recv(2**16)
    connection.sendall(_LENGTH.pack(len(data)) + data)

  def from_host() -> None:
    datagrams.sendto(_receive(connection), (ADDRESS, client))

  for forward in (to_host, from_host):
    threading.Thread(target=repeat, args=(forward,), daemon=True).start()
