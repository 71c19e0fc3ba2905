"""Parameters from a learner to its actors, through a table that holds the newest."""

import functools
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from concurrent import futures
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from starleague.common.errors import UserError
from starleague.data import wire
from starleague.data.reverb import transport
from starleague.data.reverb.transport import (
  ServerUnavailableError,
  StarvedError,
  StoppedError,
  parameters_table,
)
from starleague.data.trees import Tree

# Reverb limits a message to a few hundred MB: the parameters of a large agent are split.
CELL_BYTES = 16 * 2**20
CLOSE_S = 1.0


class ParameterMismatchError(UserError, ValueError):
  """The published parameters belong to another agent."""


class Fetched(NamedTuple):
  """Parameters as they were published.

  Attributes:
    params: the tree.
    step: of the learner.
    checksum: CRC-32 of the parameters: those of a player that is reset change between two steps.
  """

  params: Tree
  step: int
  checksum: int


def publish(client: Any, player: str, params: Tree, step: int, *, deadline_s: float = 300.0,
            stop: threading.Event | None = None) -> None:
  """Publishes the newest parameters of a player.

  Args:
    client: a reverb.Client.
    player: its name.
    params: a tree of arrays, without a leading device axis.
    step: of the learner; fetched with the parameters.
    deadline_s: seconds to wait for a server that does not answer.
    stop: ends the wait when set.

  Raises:
    ServerUnavailableError: the server did not answer within the deadline.
    StoppedError: `stop` was set.
  """
  _send(client, player, _parameters_item(params, step), deadline_s, stop or threading.Event())


def _parameters_item(params: Tree, step: int) -> dict[str, np.ndarray]:
  """Returns the fields of `transport.parameters_spec`, copied out of a tree."""
  vector = wire.flatten_parameters(params)
  cell = max(1, min(CELL_BYTES, vector.size))
  count = max(1, -(-vector.size // cell))
  if count * cell != vector.size:
    vector = np.pad(vector, (0, count * cell - vector.size))
  return {
    "cells": vector.reshape(count, cell),
    "hash": np.frombuffer(wire.parameters_hash(params), np.uint8),
    "size": np.asarray(wire.parameters_size(params), np.int64), "step": np.asarray(step, np.int64)}


def _send(client: Any, player: str, item: Mapping[str, np.ndarray], deadline_s: float,
          stop: threading.Event) -> None:
  what = (f"{transport.unreachable(client.server_address)}; the parameters of {player!r} at step "
          f"{int(item['step'])} were not published within {deadline_s:.0f} s")
  # Two writers of Reverb 0.14 that wait for a missing server corrupt the process's memory: this
  # one is created only once the server answers.
  transport.await_info(client, deadline_s, what, stop)
  cells = item["cells"]
  writer = client.trajectory_writer(num_keep_alive_refs=len(cells))
  try:
    for part in cells[:-1]:
      writer.append({"cells": part})
    writer.append({**item, "cells": cells[-1]})
    history = writer.history
    writer.create_item(parameters_table(player), 1.0, {
      name: history[name][-len(cells):] if name == "cells" else history[name][-1]
      for name in item})
    if not transport.flush(writer, 0, deadline_s, stop):
      raise ServerUnavailableError(f"{what}.")
  except RuntimeError as error:
    raise ServerUnavailableError(f"{what}: {error}") from error
  finally:
    writer.close()


class ParameterPublisher:
  """Publishes a player's parameters in a thread, at most once every `interval_s` seconds."""

  def __init__(self, address: str, player: str, *, interval_s: float = 10.0,
               deadline_s: float = 300.0, stop: threading.Event | None = None,
               clock: Callable[[], float] = time.monotonic):
    """Connects to the server.

    Args:
      address: host:port of the data server.
      player: its name.
      interval_s: seconds between publications; actors fetch every 10 s (Vinyals et al. 2019,
        Methods).
      deadline_s: seconds to wait for a server that does not answer.
      stop: ends the wait for the server here when set; `close` ends later waits.
      clock: monotonic seconds.

    Raises:
      ServerUnavailableError: no server answers within the deadline.
      SignatureMismatchError: the server has no such player.
      StoppedError: `stop` was set.
    """
    self._client, info = transport.connect(address, deadline_s, stop)
    transport.check_signature(
      info, parameters_table(player), address, transport.parameters_spec())
    self._player, self._deadline_s = player, deadline_s
    self._interval_s, self._clock = interval_s, clock
    self._last: float | None = None
    self._closed = threading.Event()
    self._sending: futures.Future[None] | None = None

  def __call__(self, params: Callable[[], Tree], step: int) -> bool:
    """Starts a publication if the interval is over and the previous one is complete.

    The thread sends while the learner continues: 220 MB take four seconds.

    Args:
      params: returns the tree; called only if a publication starts, as fetching the parameters
        from a device is expensive. The tree is copied before this method returns.
      step: of the learner.

    Returns:
      Whether a publication started.

    Raises:
      ServerUnavailableError: the previous publication failed.
    """
    now = self._clock()
    if self._last is not None and now - self._last < self._interval_s:
      return False
    if self._sending is not None and not self._sending.done():
      return False
    self.flush()
    self._start(params, step)
    return True

  def publish_now(self, params: Callable[[], Tree], step: int,
                  stop: threading.Event | None = None) -> None:
    """Publishes whatever the interval; actors can fetch the parameters when this returns.

    Args:
      params: returns the tree.
      step: of the learner.
      stop: ends the wait when set.

    Raises:
      ServerUnavailableError: this publication, or the previous one, failed.
      StoppedError: `stop` was set.
    """
    self.flush(stop)
    self._start(params, step)
    self.flush(stop)

  def _start(self, params: Callable[[], Tree], step: int) -> None:
    send = functools.partial(_send, self._client, self._player, _parameters_item(params(), step),
                             self._deadline_s, self._closed)
    self._sending = _in_thread(send, f"publish-{self._player}")
    self._last = self._clock()

  def flush(self, stop: threading.Event | None = None) -> None:
    """Waits for the publication in progress.

    Args:
      stop: ends the wait when set.

    Raises:
      ServerUnavailableError: the publication failed.
      StoppedError: `stop` was set.
    """
    while self._sending is not None and not self._sending.done():
      if stop is not None and stop.is_set():
        raise StoppedError
      futures.wait([self._sending], transport.FLUSH_S)
    sending, self._sending = self._sending, None
    if sending is not None:
      sending.result()

  def close(self, wait_s: float = 0.0) -> None:
    """Ends the thread within a second or so, even while the server does not answer.

    Args:
      wait_s: seconds that the publication in progress has to complete.

    Raises:
      ServerUnavailableError: the publication failed before it was stopped.
    """
    sending, self._sending = self._sending, None
    if sending is not None:
      futures.wait([sending], wait_s)
      self._closed.set()
      futures.wait([sending], CLOSE_S)
      error = sending.exception() if sending.done() else None
      if error is not None and not isinstance(error, StoppedError):
        raise error
    self._closed.set()

  def __enter__(self) -> "ParameterPublisher":
    return self

  def __exit__(self, error: type[BaseException] | None, value: BaseException | None,
               traceback: TracebackType | None) -> None:
    self.close()


def _in_thread(function: Callable[[], Any], name: str) -> futures.Future:
  """Runs a function in a daemon thread.

  Unlike the threads of an executor, it does not delay the exit of a process that failed.
  """
  future: futures.Future = futures.Future()

  def run() -> None:
    try:
      future.set_result(function())
    except BaseException as error:
      future.set_exception(error)

  threading.Thread(target=run, name=name, daemon=True).start()
  return future


class ParameterFetcher:
  """Fetches a player's newest parameters, at most once every `interval_s` seconds."""

  def __init__(self, address: str, player: str, template: Tree, *, interval_s: float = 10.0,
               deadline_s: float = 300.0, stop: threading.Event | None = None,
               clock: Callable[[], float] = time.monotonic):
    """Connects to the server.

    Args:
      address: host:port of the data server.
      player: its name.
      template: a tree of arrays or ShapeDtypeStructs, as from `policy.init`.
      interval_s: seconds between fetches (10 in Vinyals et al. 2019, Methods).
      deadline_s: seconds to wait for the first publication, or for a server that does not answer.
      stop: ends all waits when set.
      clock: monotonic seconds.

    Raises:
      ServerUnavailableError: no server answers within the deadline.
      SignatureMismatchError: the server has no such player.
      StoppedError: `stop` was set.
    """
    self._stop = stop or threading.Event()
    self._client, info = transport.connect(address, deadline_s, self._stop)
    self._table = parameters_table(player)
    transport.check_signature(info, self._table, address, transport.parameters_spec())
    self._address, self._player, self._template = address, player, template
    self._interval_s, self._deadline_s, self._clock = interval_s, deadline_s, clock
    self._newest: Fetched | None = None
    self._fetched_at = 0.0

  def __call__(self) -> Fetched:
    """Returns the newest published parameters, fetched at most `interval_s` ago, as numpy arrays.

    Raises:
      ParameterMismatchError: their tree differs from the template.
      SignatureMismatchError: a restarted server has no such player.
      StarvedError: nothing has been published within the deadline.
      ServerUnavailableError: the server has not answered within the deadline.
      StoppedError: `stop` was set.
    """
    now = self._clock()
    if self._newest is None or now - self._fetched_at >= self._interval_s:
      cells, digest, size, step = self._sample()
      self._check(bytes(digest), int(size))
      vector = cells.reshape(-1)[:int(size)]
      self._newest = Fetched(
        wire.unflatten_parameters(vector, self._template), int(step), zlib.crc32(vector.data))
      self._fetched_at = now
    return self._newest

  def _sample(self) -> list[np.ndarray]:
    """Returns the table's item: cells, hash, size, step.

    Reverb's call for a sample has no deadline: it runs in a thread that is abandoned if it takes
    too long.
    """
    self._await_publication()

    def sample() -> list[np.ndarray]:
      found = transport.new_sampler(self._client, self._table, 1, 1).GetNextTrajectory()
      return [np.asarray(x) for x in found[-4:]]

    sampling = _in_thread(sample, f"parameters-{self._player}")
    end = time.monotonic() + self._deadline_s
    while not sampling.done() and time.monotonic() < end:
      futures.wait([sampling], transport.FLUSH_S)
      if self._stop.is_set():
        raise StoppedError
    error = sampling.exception() if sampling.done() else (
      f"no answer within {self._deadline_s:.0f} s")
    if error is not None:
      raise ServerUnavailableError(
        f"{transport.unreachable(self._address)}; fetching the parameters of {self._player!r}: "
        f"{error}.")
    return sampling.result()

  def _await_publication(self) -> None:
    start, wait = time.monotonic(), 0.1
    what = transport.unreachable(self._address)
    while True:
      info = transport.await_info(self._client, self._deadline_s, what, self._stop)
      transport.check_signature(info, self._table, self._address, transport.parameters_spec())
      if info[self._table].current_size:
        return
      if time.monotonic() - start + wait > self._deadline_s:
        raise StarvedError(
          f"no parameters of {self._player!r} were published at {self._address} within "
          f"{self._deadline_s:.0f} s: check that its learner runs.")
      transport.sleep_until(self._stop, wait)
      wait = min(2 * wait, 5.0)

  def _check(self, digest: bytes, size: int) -> None:
    expected = wire.parameters_hash(self._template)
    expected_size = wire.parameters_size(self._template)
    if digest != expected or size != expected_size:
      raise ParameterMismatchError(
        f"parameters of {self._player!r} at {self._address}: found tree {digest.hex()[:12]} of "
        f"{size} bytes, expected {expected.hex()[:12]} of {expected_size} bytes; the learner runs "
        "another configuration or version of the agent: give both the same.")
