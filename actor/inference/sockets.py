"""The service's end of a local transport: shared memory for steps, a Unix socket for notices.

Steps and answers lie in anonymous shared memory, one file for each client, which only the client
and the service map; it is sealed, so that no client can shrink it under the service, which would
die by SIGBUS. The socket carries the numbers of the slots that ask or are answered. It
belongs to a directory that no other user may enter, and nothing that is received is unpickled. The
kernel closes a dead client's socket: its slots are free at once.
"""

import contextlib
import dataclasses
import fcntl
import hashlib
import mmap
import os
import selectors
import shutil
import socket
import struct
import tempfile
import time
from collections.abc import Sequence

import numpy as np
from absl import logging

from starleague.actor.inference import slots as slots_lib
from starleague.actor.inference.service import Polled
from starleague.common.errors import UserError
from starleague.data import wire

HELLO = struct.Struct("<8s32sI")  # magic, hash of the slots' format, number of slots
MAGIC = b"STARINF1"
NUMBER = np.dtype("<u2")  # of a slot, counted in its client
ACCEPTED, REFUSED = b"+", b"-"  # the first byte of the answer to HELLO
MOST_SLOTS = 4096  # of a client: a message holds the numbers of all
MOST_BYTES = NUMBER.itemsize * MOST_SLOTS
SILENT_CLIENTS = 64  # connections without a hello yet, at most; the oldest makes way for a new one
HELLO_S = 10.0  # deadline for a client's hello, in seconds
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
SOCKET = "inference.socket"
_MOST_PATH = 107  # bytes of a Unix socket's path, in Linux


def format_hash(form: wire.Form) -> bytes:
  """Computes 32 bytes that differ if the slots of two forms differ."""
  places = (slots_lib.slot_format(form), wire.layout(form).fields)
  return hashlib.sha256(repr(places).encode()).digest()


@dataclasses.dataclass(eq=False)
class _Client:
  """A connected client; before its hello it has no memory and no slots."""

  socket: socket.socket
  memory: np.ndarray  # [slots, size] uint8
  slots: tuple[int, ...] = ()
  since: float = dataclasses.field(default_factory=time.monotonic)  # of the connection


class Listener:
  """A `service.Transport` for clients on this machine."""

  def __init__(self, form: wire.Form, slots: int):
    """Starts to listen at `address`.

    Args:
      form: of the steps, an AgentConfig for the agent's.
      slots: number of slots.

    Raises:
      UserError: the folder of temporary files has too long a path.
    """
    self._form, self._format = form, slots_lib.slot_format(form)
    self._free = list(range(slots))[::-1]
    self._slots = slots
    self._owner: dict[int, tuple[_Client, int]] = {}  # by slot: its client, and its number there
    self._freed: list[int] = []
    self._silent: dict[_Client, None] = {}  # before their hello, longest waiting first
    with contextlib.ExitStack() as opened:
      folder = tempfile.mkdtemp(prefix="starleague-")  # mode 0700
      opened.callback(shutil.rmtree, folder, ignore_errors=True)
      self.address = _socket_path(folder)
      self._wake_in, self._wake_out = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
      opened.callback(os.close, self._wake_out)
      opened.callback(os.close, self._wake_in)
      self._server = opened.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
      self._server.bind(self.address)
      self._server.listen()
      self._server.setblocking(False)
      self._selector = opened.enter_context(selectors.DefaultSelector())
      self._selector.register(self._server, selectors.EVENT_READ)
      self._selector.register(self._wake_in, selectors.EVENT_READ)
      self._opened = opened.pop_all()

  @property
  def claimed(self) -> int:
    """Slots that clients hold."""
    return len(self._owner)

  def poll(self, timeout_s: float) -> Polled:
    """Waits for requests; accepts clients and frees the slots of dead ones meanwhile."""
    asked: list[int] = []
    for key, _ in self._selector.select(0 if self._freed else timeout_s):
      if key.fileobj is self._server:
        self._accept()
      elif key.fileobj == self._wake_in:
        os.read(self._wake_in, 4096)
      elif key.data.socket.fileno() < 0:  # dropped for a newer client that this loop accepted
        continue
      elif key.data.slots:
        asked += self._asked(key.data)
      else:
        self._greet(key.data)
    self._drop_silent(time.monotonic() - HELLO_S)
    freed, self._freed = self._freed, []
    return Polled(asked, freed)

  def wake(self) -> None:
    """Ends `poll`; any thread may call it."""
    try:
      os.write(self._wake_out, b"\0")
    except BlockingIOError:  # full of earlier calls
      pass

  def request(self, slot: int) -> np.ndarray | None:
    """Returns the request in a slot, [bytes] uint8; None without a client."""
    if slot not in self._owner:
      return None
    client, number = self._owner[slot]
    return client.memory[number, :self._format.request]

  def answer(self, slots: Sequence[int], answers: np.ndarray) -> None:
    """Writes answers [n, width] int32 and notifies each client once."""
    answered: dict[_Client, tuple[list[int], list[int]]] = {}  # numbers and rows of each client
    for row, slot in enumerate(slots):
      if slot in self._owner:
        client, number = self._owner[slot]
        numbers, rows = answered.setdefault(client, ([], []))
        numbers.append(number)
        rows.append(row)
    for client, (numbers, rows) in answered.items():
      client.memory[numbers, self._format.answer] = answers[rows].view(np.uint8)
      try:
        client.socket.send(np.array(numbers, NUMBER).tobytes())
      except OSError as error:  # it died, or has stopped reading its answers
        self._drop(client, f"does not take its answers: {error.strerror}")

  def refuse(self, slot: int, reason: str) -> None:
    """Disconnects the client of a slot."""
    self._drop(self._owner[slot][0], reason)

  def release(self, slot: int) -> None:
    """Makes a freed slot claimable again."""
    self._free.append(slot)

  def close(self) -> None:
    """Disconnects all clients and removes the socket."""
    for key in list(self._selector.get_map().values()):
      if isinstance(key.data, _Client):
        key.data.socket.close()
    self._opened.close()

  def _accept(self) -> None:
    try:
      connection, _ = self._server.accept()
    except OSError:  # it is gone already
      return
    connection.setblocking(False)
    if len(self._silent) >= SILENT_CLIENTS:
      self._drop(next(iter(self._silent)), f"is silent, and {SILENT_CLIENTS} others are too")
    client = _Client(connection, np.zeros((0, 0), np.uint8))
    self._silent[client] = None
    self._selector.register(connection, selectors.EVENT_READ, client)

  def _drop_silent(self, before: float) -> None:
    """Disconnects clients that connected before a time and have not said hello."""
    for client in list(self._silent):
      if client.since >= before:
        return
      self._drop(client, f"has sent no first message for {HELLO_S:g} s")

  def _greet(self, client: _Client) -> None:
    """Gives a new client its slots, or refuses."""
    message = _received(client.socket, HELLO.size + 1)
    if message is None:
      return
    reason = self._unfit(message)
    if reason:
      _send(client.socket, REFUSED + reason.encode())
      self._drop(client, reason if message else "")
      return
    count = HELLO.unpack(message)[2]
    del self._silent[client]
    file = os.memfd_create("starleague-slots", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
      os.ftruncate(file, count * self._format.size)
      fcntl.fcntl(file, fcntl.F_ADD_SEALS, _SEALS)
      client.memory = np.frombuffer(mmap.mmap(file, 0), np.uint8).reshape(count, -1)
      client.slots = tuple(self._free.pop() for _ in range(count))
      self._owner |= {slot: (client, number) for number, slot in enumerate(client.slots)}
      try:
        socket.send_fds(client.socket, [ACCEPTED], [file])
      except OSError as error:
        self._drop(client, f"left at once: {error.strerror}")
    finally:
      os.close(file)

  def _unfit(self, message: bytes) -> str:
    """Returns why a client's first message is refused; nothing if it is accepted."""
    if len(message) != HELLO.size or not message.startswith(MAGIC):
      return "the first message is not that of this version; run the same version here and there"
    _, found, count = HELLO.unpack(message)
    if found != format_hash(self._form):
      same = ("task and system as the service" if isinstance(self._form, wire.StepFormat)
              else f"preset as the service, {self._form.name}")
      return f"the game's observations or actions have other sizes; use the same {same}"
    if not 0 < count <= min(MOST_SLOTS, len(self._free)):
      return f"{count} slots are asked for and {len(self._free)} of {self._slots} are free"
    return ""

  def _asked(self, client: _Client) -> list[int]:
    """Returns the slots that a client's next message names."""
    message = _received(client.socket, MOST_BYTES + 1)
    if message is None:
      return []
    numbers = (np.frombuffer(message, NUMBER).tolist() if len(message) % NUMBER.itemsize == 0
               else None)
    if not message:
      self._drop(client, "")
    elif numbers is None or len(set(numbers)) < len(numbers) or max(numbers) >= len(client.slots):
      self._drop(client, f"sent a malformed notice of {len(message)} bytes")
    else:
      return [client.slots[number] for number in numbers]
    return []

  def _drop(self, client: _Client, reason: str) -> None:
    """Disconnects a client and frees its slots; logs the reason, if it is not its own end."""
    if reason:
      logging.log_every_n_seconds(
        logging.WARNING, "inference_client_dropped slots=%d reason=%r", 1, len(client.slots),
        reason)
    self._selector.unregister(client.socket)
    self._silent.pop(client, None)
    client.socket.close()
    for slot in client.slots:
      del self._owner[slot]
    self._freed += client.slots


def _socket_path(folder: str) -> str:
  """Returns the path of the socket in a folder of temporary files.

  Raises:
    UserError: it is too long.
  """
  path = os.path.join(folder, SOCKET)
  parent, excess = os.path.dirname(folder), len(os.fsencode(path)) - _MOST_PATH
  if excess > 0:
    size = len(os.fsencode(parent))
    raise UserError(f"TMPDIR {parent}: expected a path of at most {size - excess} bytes, found "
                    f"{size}; a Unix socket's has at most {_MOST_PATH}. Set a shorter TMPDIR")
  return path


def _received(connection: socket.socket, size: int) -> bytes | None:
  """Returns the next message, empty at the end; None if there is none."""
  try:
    return connection.recv(size)
  except BlockingIOError:
    return None
  except OSError:  # reset by the client's death
    return b""


def _send(connection: socket.socket, message: bytes) -> None:
  try:
    connection.send(message)
  except OSError:
    pass
