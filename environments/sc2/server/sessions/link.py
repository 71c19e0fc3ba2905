"""The link between the processes of a game with two participants.

The process that got `create_game` hosts the game and listens at `server_ports.game_port`. The other
one connects to it and forwards its client's requests. A frame is a number, a length, and a Request
or a Response; a response has the number of its request. A request that waits for the other
participant does not delay later ones. The real game's processes use these ports too, with a
protocol of their own.
"""

import asyncio
import contextlib
import itertools
import logging
import socket
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
# Of a connection on which nothing arrives: seconds to the first probe, between probes, and probes.
_KEEP_ALIVE = ((socket.TCP_KEEPIDLE, 10), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))
_HEADER = struct.Struct("!II")  # number, length

Answer = Callable[[sc_pb.Request], Awaitable[sc_pb.Response]]


class LinkError(Exception):
  """The link between the processes is broken."""


_ENDS = (asyncio.IncompleteReadError, OSError, DecodeError, LinkError)  # of a link, or damage


def keep_alive(connection: asyncio.StreamWriter | asyncio.BaseTransport) -> None:
  """Lets the system end a connection whose other end is gone without a word, within 25 s."""
  found = connection.get_extra_info("socket")
  found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
  for name, value in _KEEP_ALIVE:
    found.setsockopt(socket.IPPROTO_TCP, name, value)


async def _read(reader: asyncio.StreamReader) -> tuple[int, bytes]:
  number, length = _HEADER.unpack(await reader.readexactly(_HEADER.size))
  if length > _MOST_BYTES:
    raise LinkError(f"a frame of {length} bytes: at most {_MOST_BYTES} are expected")
  return number, await reader.readexactly(length)


async def _write(writer: asyncio.StreamWriter, number: int, data: bytes) -> None:
  writer.write(_HEADER.pack(number, len(data)) + data)
  await writer.drain()


class HostEnd:
  """The host's end: accepts guests and answers their requests."""

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
      keep_alive(writer)
      answers: set[asyncio.Task] = set()
      try:
        while True:
          number, data = await _read(reader)
          task = asyncio.create_task(
            _answer(answer, writer, number, sc_pb.Request.FromString(data)))
          answers.add(task)
          task.add_done_callback(answers.discard)
      except _ENDS as error:
        logging.info("guest=left reason=%s", type(error).__name__)
      finally:
        for task in answers:
          task.cancel()
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


async def _answer(answer: Answer, writer: asyncio.StreamWriter, number: int,
                  request: sc_pb.Request) -> None:
  """Answers a guest's request; an error of ours ends the link."""
  try:
    await _write(writer, number, (await answer(request)).SerializeToString())
  except OSError:
    logging.info("guest=left before its answer")
  except Exception:
    logging.exception("guest's request=%s failed", request.WhichOneof("request"))
    writer.close()


class GuestEnd:
  """The guest's end: forwards requests to the host."""

  def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
    """Wraps a connection; called in a running event loop."""
    keep_alive(writer)
    self._writer = writer
    self._numbers = itertools.count()
    self._waiting: dict[int, asyncio.Future[bytes | None]] = {}  # None: no answer will come
    self._ended = "closed"  # why no more answers come
    self._reading = asyncio.create_task(self._read_answers(reader))

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

  async def _read_answers(self, reader: asyncio.StreamReader) -> None:
    """Gives each answer to the request that waits for it, until the link ends."""
    try:
      while True:
        number, data = await _read(reader)
        if number in self._waiting and not self._waiting[number].done():
          self._waiting[number].set_result(data)
    except _ENDS as error:
      self._ended = type(error).__name__
    finally:
      for waiting in self._waiting.values():
        if not waiting.done():
          waiting.set_result(None)

  async def ask(self, request: sc_pb.Request) -> sc_pb.Response:
    """Returns the host's answer. Requests may overlap.

    Raises:
      LinkError: the host is gone or does not answer in time.
    """
    number = next(self._numbers) % (1 << 32)
    waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
    try:
      if self._reading.done():
        waiting.set_result(None)
      else:
        await _write(self._writer, number, request.SerializeToString())
      data = await asyncio.wait_for(waiting, ANSWER_SECONDS)
      if data is None:
        raise LinkError(f"the host of the game is gone: {self._ended}")
      return sc_pb.Response.FromString(data)
    except (OSError, TimeoutError, DecodeError) as error:
      raise LinkError(f"the host of the game is gone: {type(error).__name__}") from error
    finally:
      del self._waiting[number]

  async def close(self) -> None:
    """Ends the link."""
    self._reading.cancel()
    self._writer.close()
    with contextlib.suppress(OSError):
      await self._writer.wait_closed()
