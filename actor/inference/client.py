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
from collections.abc import Sequence

import numpy as np

from starleague.actor.inference import sockets
from starleague.actor.inference.slots import Header, Slot, slot_format
from starleague.agent import types
from starleague.agent.config import AgentConfig
from starleague.common.errors import UserError


class ServiceError(UserError, ConnectionError):
  """The inference service refuses, has ended, or does not answer within the deadline."""


class Client:
  """A connection with its slots. Not for several threads, and not across a fork."""

  def __init__(self, address: str, config: AgentConfig, slots: int, deadline_s: float = 60.0):
    """Connects and claims slots, waiting while the service is not there or has too few free ones.

    Args:
      address: path of the service's socket.
      config: the agent's, as the service's.
      slots: number of slots to claim.
      deadline_s: seconds of this wait, and of each wait for an answer in `act`.

    Raises:
      ServiceError: there is no service, or it refuses to the end of the deadline.
    """
    self._address, self._deadline_s, self._config = address, deadline_s, config
    end = time.monotonic() + deadline_s
    while True:
      try:
        memory = self._connect(slots)
        break
      except ServiceError:
        if time.monotonic() + 0.1 > end:
          raise
        time.sleep(0.1)
    size = slot_format(config).size
    self.slots = [Slot(memory[i * size:(i + 1) * size], config) for i in range(slots)]

  def _connect(self, slots: int) -> np.ndarray:
    self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    self._socket.settimeout(self._deadline_s)
    try:
      self._socket.connect(self._address)
      self._socket.send(sockets.HELLO.pack(
        sockets.MAGIC, sockets.format_hash(self._config), slots))
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

  def act(self, requests: dict[int, tuple[Header, types.Step]]) -> dict[int, types.Action]:
    """Returns the actions for steps, by slot; waits for all of them.

    Raises:
      ServiceError: the service has ended, or does not answer within the deadline.
      ValueError: a step does not fit the AgentConfig.
    """
    for number, (header, step) in requests.items():
      self.slots[number].write(header, step)
    self.ask(list(requests))
    waiting, end = set(requests), time.monotonic() + self._deadline_s
    while waiting:
      left = end - time.monotonic()
      if left <= 0:
        raise ServiceError(f"the inference service at {self._address} has not answered for "
                           f"{self._deadline_s:g} s: check its log, and that its learner runs")
      waiting -= set(self.answered(left))
    return {number: self.slots[number].read() for number in requests}

  def _ended(self) -> ServiceError:
    return ServiceError(f"the inference service at {self._address} has ended or disconnected this "
                        "game; its log says why")

  def close(self) -> None:
    """Ends the connection; the slots are free."""
    self._socket.close()
