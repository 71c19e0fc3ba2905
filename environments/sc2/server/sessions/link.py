"""The link between the processes of a game with two participants.

The process that got `create_game` hosts the game and listens at `server_ports.game_port`. The other
one connects to it and forwards its client's requests: frames of four bytes of length and a Request
or a Response. The real game's processes use these ports too, with a protocol of their own.
"""

import asyncio
import contextlib
import logging
import struct
import time
from collections.abc import Awaitable, Callable

from google.protobuf.message import DecodeError

from starleague.environments.sc2.protocol import sc_pb

# Requests that a guest's process forwards to the host's.
FORWARDED = ("game_info", "observation", "action", "step", "query", "debug", "save_replay", "data")
ANSWER_SECONDS = 180.0
_RETRY_SECONDS = 0.2
_MOST_BYTES = 1 << 26
_LENGTH = struct.Struct("!I")

Answer = Callable[[sc_pb.Request], Awaitable[sc_pb.Response]]


class LinkError(Exception):
  """The link between the processes is broken."""


async def _read(reader: asyncio.StreamReader) -> bytes:
  (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
  if length > _MOST_BYTES:
    raise LinkError(f"a frame of {length} bytes: at most {_MOST_BYTES} are expected")
  return await reader.readexactly(length)


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
  writer.write(_LENGTH.pack(len(data)) + data)
  await writer.drain()


class HostEnd:
  """The host's end: accepts guests and answers their requests one after another."""

  def __init__(self) -> None:
    """Makes a host that does not listen yet."""
    self._server: asyncio.Server | None = None
    self._writers: set[asyncio.StreamWriter] = set()

  async def listen(self, address: str, port: int, welcome: Callable[[], tuple[
      Answer, Callable[[], Awaitable[None]]]]) -> None:
    """Accepts guests.

    Args:
      address: to listen on.
      port: to listen on.
      welcome: called for each guest; returns what answers its requests, and what is called when
        its link ends.

    Raises:
      OSError: the port is in use.
    """
    async def serve(reader, writer):
      answer, gone = welcome()
      self._writers.add(writer)
      try:
        while True:
          request = sc_pb.Request()
          request.ParseFromString(await _read(reader))
          response = await answer(request)
          await _write(writer, response.SerializeToString())
      except (asyncio.IncompleteReadError, ConnectionError, DecodeError, LinkError) as error:
        logging.info("guest=left reason=%s", type(error).__name__)
      finally:
        self._writers.discard(writer)
        writer.close()
        await gone()

    self._server = await asyncio.start_server(serve, address, port)

  async def close(self, keep_guests: bool = False) -> None:
    """Accepts no more guests, and closes the links of all unless they are kept."""
    if self._server is not None:
      self._server.close()
      self._server = None
    if not keep_guests:
      for writer in list(self._writers):
        writer.close()


class GuestEnd:
  """The guest's end: forwards requests to the host."""

  def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
    """Wraps a connection."""
    self._reader, self._writer = reader, writer

  @classmethod
  async def connect(cls, address: str, port: int, seconds: float) -> "GuestEnd":
    """Connects to a host that may not listen yet.

    Raises:
      LinkError: there is no host at the port within the time.
    """
    deadline = time.monotonic() + seconds
    while True:
      try:
        return cls(*await asyncio.open_connection(address, port))
      except OSError as error:
        if time.monotonic() > deadline:
          raise LinkError(f"no host of a game at {address}:{port}: {error}") from error
        await asyncio.sleep(_RETRY_SECONDS)

  async def ask(self, request: sc_pb.Request) -> sc_pb.Response:
    """Returns the host's answer.

    Raises:
      LinkError: the host is gone or does not answer in time.
    """
    response = sc_pb.Response()
    try:
      await _write(self._writer, request.SerializeToString())
      response.ParseFromString(await asyncio.wait_for(_read(self._reader), ANSWER_SECONDS))
    except (OSError, asyncio.IncompleteReadError, TimeoutError, DecodeError) as error:
      raise LinkError(f"the host of the game is gone: {type(error).__name__}") from error
    return response

  async def close(self) -> None:
    """Ends the link."""
    self._writer.close()
    with contextlib.suppress(OSError):
      await self._writer.wait_closed()
