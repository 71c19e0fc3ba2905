"""The websocket of the API: one message in, one message out."""

import asyncio
import logging
import pathlib
import signal

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from starleague.environments.sc2.protocol import sc_pb
from starleague.environments.sc2.server.sessions.session import Session

_MOST_BYTES = 1 << 26  # of a request
_CLOSE_SECONDS = 1.0


async def _talk(session: Session, connection: ServerConnection) -> None:
  """Answers a client until it leaves. Clients send binary frames; pysc2 sends text frames."""
  try:
    while session.status != sc_pb.quit:
      data = await connection.recv(decode=False)
      answer = asyncio.ensure_future(session.answer(data))
      ends = asyncio.ensure_future(session.quits.wait())
      await asyncio.wait((answer, ends), return_when=asyncio.FIRST_COMPLETED)
      ends.cancel()
      if not answer.done():  # it waits for a participant, and the server is ended
        answer.cancel()
        return
      await connection.send(answer.result())
  except ConnectionClosed:
    logging.info("client=left")


async def run(address: str, port: int, data_folder: pathlib.Path | None) -> None:
  """Serves until a client sends `quit`, or the process gets SIGTERM or SIGINT.

  Args:
    address: to listen on.
    port: to listen on.
    data_folder: the installation, with a folder `Maps`; None: every map name is accepted.

  Raises:
    OSError: the port is in use.
  """
  session = Session(data_folder, address)
  loop = asyncio.get_running_loop()
  for number in (signal.SIGTERM, signal.SIGINT):
    loop.add_signal_handler(number, session.quits.set)
  # The engine compiles for seconds within a request, so that pings would go unanswered.
  async with serve(lambda connection: _talk(session, connection), address, port,
                   max_size=_MOST_BYTES, ping_interval=None, compression=None,
                   close_timeout=_CLOSE_SECONDS):
    logging.info("listening=%s:%d", address, port)
    await session.quits.wait()
    await asyncio.sleep(0.1)  # the answer to `quit` leaves first
  await session.drop()
