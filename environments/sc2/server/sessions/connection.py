"""The websocket of the API: one message in, one message out.

Several clients may be connected. A request that waits for another participant delays only its own
client.
"""

import asyncio
import http
import ipaddress
import logging
import pathlib
import signal
import socket
import urllib.parse

from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from starleague.environments.sc2.protocol import sc_pb
from starleague.environments.sc2.server.sessions.link import keep_alive
from starleague.environments.sc2.server.sessions.session import Session

IDLE_SECONDS = 300.0  # from the end of the last connection to the end of the server
_MOST_BYTES = 1 << 26  # of a request
_CLOSE_SECONDS = 1.0


def is_own_origin(headers: Headers, address: str) -> bool:
  """Whether a handshake comes from no web page of another server.

  Browsers let every page open websockets, and state its origin. websocket-client, which pysc2 uses,
  states the server's own; aiohttp, which python-sc2 uses, states none. A name that is neither this
  machine's nor a literal address may be a page's own name that resolves to this machine.

  Args:
    headers: of the request.
    address: that the server listens on.
  """
  origins, hosts = headers.get_all("Origin"), headers.get_all("Host")
  if not origins:
    return True
  if len(hosts) != 1 or origins != [f"http://{hosts[0]}"]:
    return False
  try:
    name = urllib.parse.urlsplit(origins[0]).hostname or ""
    if name in (address.lower(), "localhost", socket.gethostname().lower()):
      return True
    ipaddress.ip_address(name)
  except ValueError:
    return False
  return True


async def _talk(session: Session, connection: ServerConnection) -> None:
  """Answers a client until it leaves. Clients send binary frames; pysc2 sends text frames."""
  ends = asyncio.ensure_future(session.quits.wait())
  closed = asyncio.ensure_future(connection.wait_closed())
  try:
    while session.status != sc_pb.quit:
      data = await connection.recv(decode=False)
      answer = asyncio.ensure_future(session.answer(data, connection))
      await asyncio.wait((answer, ends, closed), return_when=asyncio.FIRST_COMPLETED)
      if not answer.done():  # it waits for a participant, and the client or the server is gone
        answer.cancel()
        await asyncio.wait((answer,))
        return
      await connection.send(answer.result())
  except ConnectionClosed:
    logging.info("client=left")
  finally:
    ends.cancel()
    closed.cancel()
    await session.client_left(connection)


class _IdleTimer:
  """Ends a server some time after its last client has left."""

  def __init__(self, ends: asyncio.Event, seconds: float):
    """Makes a timer that starts when the first client leaves; 0 seconds: it never ends."""
    self._ends, self._seconds, self._clients = ends, seconds, 0
    self._handle: asyncio.TimerHandle | None = None

  def enter(self) -> None:
    """Counts a client."""
    self._clients += 1
    if self._handle is not None:
      self._handle.cancel()

  def leave(self) -> None:
    """Counts a client that has left."""
    self._clients -= 1
    if not self._clients and self._seconds > 0:
      self._handle = asyncio.get_running_loop().call_later(self._seconds, self._end)

  def _end(self) -> None:
    logging.warning("ends: no client for %.0f s", self._seconds)
    self._ends.set()


async def run(address: str, port: int, data_folder: pathlib.Path | None,
              idle_seconds: float = IDLE_SECONDS) -> None:
  """Serves until a client sends `quit`, all have left, or the process gets SIGTERM or SIGINT.

  Args:
    address: to listen on.
    port: to listen on.
    data_folder: the installation, with a folder `Maps`; None: every map name is accepted.
    idle_seconds: how long the server waits for a new client after the last one has left; 0: for
      ever.

  Raises:
    OSError: the port is in use.
  """
  session = Session(data_folder, address)
  loop = asyncio.get_running_loop()
  for number in (signal.SIGTERM, signal.SIGINT):
    loop.add_signal_handler(number, session.quits.set)
  timer = _IdleTimer(session.quits, idle_seconds)

  async def talk(connection: ServerConnection) -> None:
    timer.enter()
    keep_alive(connection.transport)
    try:
      await _talk(session, connection)
    finally:
      timer.leave()

  def check_origin(connection: ServerConnection, request: Request) -> Response | None:
    if is_own_origin(request.headers, address):
      return None
    return connection.respond(http.HTTPStatus.FORBIDDEN, "expected no Origin, or this server's\n")

  # No pings: clients may compute for minutes between two requests.
  async with serve(talk, address, port, max_size=_MOST_BYTES, ping_interval=None,
                   compression=None, close_timeout=_CLOSE_SECONDS, process_request=check_origin):
    logging.info("listening=%s:%d", address, port)
    await session.quits.wait()
    await asyncio.sleep(0.1)  # the answer to `quit` leaves first
  await session.drop()
