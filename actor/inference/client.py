"""A game's end of the inference service's transport.

  client = Client(address, config, slots=2)
  client.slots[0].write(header, step)
  client.ask([0])
  while not client.answered(timeout_s=1.0): ...
  action = client.slots[0].read()
"""

import mmap
import os
import socket
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from starleague.actor.inference import sockets
from starleague.actor.inference.slots import Header, Rows, Slot, slot_format
from starleague.common.errors import UserError
from starleague.data import wire


class ServiceError(UserError, ConnectionError):
  """The inference service refuses, has ended, or does not answer within the deadline."""


class Client:
  """A connection with its slots. Not for several threads, and not across a fork.

  Attributes:
    slots: each of its slots.
    rows: all of them as one batch.
  """

  def __init__(self, address: str, form: wire.Form, slots: int, deadline_s: float = 60.0):
    """Connects and claims slots, waiting while the service is not there or has too few free ones.

    Args:
      address: path of the service's socket.
      form: of the steps, as the service's.
      slots: number of slots to claim.
      deadline_s: seconds of this wait, and of each wait for an answer in `act` and `act_all`.

    Raises:
      ServiceError: there is no service, or it refuses to the end of the deadline.
    """
    self._address, self._deadline_s, self._form = address, deadline_s, form
    end = time.monotonic() + deadline_s
    while True:
      try:
        memory = self._connect(slots)
        break
      except ServiceError:
        if time.monotonic() + 0.1 > end:
          raise
        time.sleep(0.1)
    memory = memory.reshape(slots, slot_format(form).size)
    self.slots = [Slot(row, form) for row in memory]
    self.rows = Rows(memory, form)

  def _connect(self, slots: int) -> np.ndarray:
    self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    self._socket.settimeout(self._deadline_s)
    try:
      self._socket.connect(self._address)
      self._socket.send(sockets.HELLO.pack(
        sockets.MAGIC, sockets.format_hash(self._form), slots))
      message, files, _, _ = socket.recv_fds(self._socket, 1024, 1)
    except OSError as error:
      self._socket.close()
      raise ServiceError(f"the inference service at {self._address} cannot be reached "
                         f"({error.strerror or error}): check that it runs") from error
    if message[:1] != sockets.ACCEPTED:
      self._socket.close()
      raise ServiceError(f"the inference service at {self._address} refuses: "
                         f"{message[1:].decode(errors='replace') or 'too many clients'}")
    try:
      return np.frombuffer(mmap.mmap(files[0], 0), np.uint8)
    finally:
      os.close(files[0])

  def ask(self, numbers: Sequence[int]) -> None:
    """Asks for the actions of slots whose requests were written.

    Raises:
      ServiceError: the service has ended.
    """
    try:
      self._socket.settimeout(self._deadline_s)
      self._socket.send(np.array(numbers, sockets.NUMBER).tobytes())
    except OSError as error:
      raise self._ended() from error

  def answered(self, timeout_s: float) -> list[int]:
    """Returns the slots that were answered; none after the timeout.

    Raises:
      ServiceError: the service has ended.
    """
    self._socket.settimeout(max(timeout_s, 1e-6))
    try:
      message = self._socket.recv(sockets.MOST_BYTES)
    except TimeoutError:
      return []
    except OSError as error:
      raise self._ended() from error
    if not message:
      raise self._ended()
    return np.frombuffer(message, sockets.NUMBER).tolist()

  def act(self, requests: dict[int, tuple[Header, Any]]) -> dict[int, Any]:
    """Returns the actions for steps, by slot; waits for all of them.

    Raises:
      ServiceError: the service has ended, or does not answer within the deadline.
      ValueError: a step does not fit the form.
    """
    for number, (header, step) in requests.items():
      self.slots[number].write(header, step)
    self._ask_and_wait(requests)
    return {number: self.slots[number].read() for number in requests}

  def act_all(self, headers: Header, steps: Any) -> Any:
    """Returns the actions for a step of each slot; see `Rows.write`. Raises the errors of `act`."""
    self.rows.write(headers, steps)
    self._ask_and_wait(range(len(self.slots)))
    return self.rows.read()

  def _ask_and_wait(self, numbers: Iterable[int]) -> None:
    waiting, end = set(numbers), time.monotonic() + self._deadline_s
    self.ask(sorted(waiting))
    while waiting:
      left = end - time.monotonic()
      if left <= 0:
        raise ServiceError(f"the inference service at {self._address} has not answered for "
                           f"{self._deadline_s:g} s: check its log, and that its learner runs")
      waiting -= set(self.answered(left))

  def _ended(self) -> ServiceError:
    return ServiceError(f"the inference service at {self._address} has ended or disconnected this "
                        "game; its log says why")

  def close(self) -> None:
    """Ends the connection; the slots are free."""
    self._socket.close()
