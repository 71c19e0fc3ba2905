"""Parameters on their way from a learner to actors, through a table that holds the newest."""

import threading
import time
from collections.abc import Callable
from concurrent import futures
from typing import Any, NamedTuple

import numpy as np

from starleague.common.errors import UserError
from starleague.data import transport, wire
from starleague.data.transport import (
  ServerUnavailableError,
  StarvedError,
  load_reverb,
  parameters_table,
)

# A message of Reverb's is limited to a few hundred MB: a large agent's parameters go in pieces.
CELL_BYTES = 16 * 2**20


def publish(client: Any, player: str, params: Any, step: int, *, deadline_s: float = 300.0) -> None:
  """Makes `params` the newest of `player`.

  Args:
    client: a reverb.Client.
    player: whose.
    params: a tree of arrays; without a leading device axis.
    step: the learner's, for whoever fetches them.
    deadline_s: seconds to wait for a server that does not answer.

  Raises:
    ServerUnavailableError: it did not answer by then.
  """
  _send(client, player, _parameters_item(params, step), deadline_s)


def _parameters_item(params: Any, step: int) -> dict[str, np.ndarray]:
  """The fields of `transport.parameters_spec`, copied out of a tree."""
  vector = wire.flatten_parameters(params)
  cell = max(1, min(CELL_BYTES, vector.size))
  count = max(1, -(-vector.size // cell))
  if count * cell != vector.size:
    vector = np.pad(vector, (0, count * cell - vector.size))
  return {
    "cells": vector.reshape(count, cell),
    "hash": np.frombuffer(wire.parameters_hash(params), np.uint8),
    "size": np.asarray(wire.parameters_size(params), np.int64), "step": np.asarray(step, np.int64)}


def _send(client: Any, player: str, item: dict[str, np.ndarray], deadline_s: float) -> None:
  reverb = load_reverb()
  what = (f"{transport.unreachable(client.server_address)}; the parameters of {player!r} at step "
          f"{int(item['step'])} were not published within {deadline_s:.0f} s")
  # Reverb 0.14 spoils the process's memory where two of its writers wait for a server that is
  # gone, so this one is not made before the server answers.
  transport.retry(lambda: client.server_info(timeout=2), deadline_s=deadline_s, what=what,
                  errors=(reverb.errors.ReverbError, RuntimeError))
  cells = item["cells"]
  writer = client.trajectory_writer(num_keep_alive_refs=len(cells))
  for part in cells[:-1]:
    writer.append({"cells": part})
  writer.append(item | {"cells": cells[-1]})
  history = writer.history
  writer.create_item(parameters_table(player), 1.0, {
    name: history[name][-len(cells):] if name == "cells" else history[name][-1] for name in item})
  try:
    writer.flush(timeout_ms=int(1000 * deadline_s))
  except (reverb.errors.ReverbError, RuntimeError) as error:
    raise ServerUnavailableError(f"{what}: {error}") from error
  finally:
    writer.close()


class ParameterPublisher:
  """Publishes a player's parameters, at most every `interval_s` seconds, beside the learner."""

  def __init__(self, address: str, player: str, *, interval_s: float = 10.0,
               deadline_s: float = 300.0, clock: Callable[[], float] = time.monotonic):
    """Connects.

    Args:
      address: host:port of the server.
      player: whose parameters.
      interval_s: seconds between publications: actors ask for new ones every 10 s (Vinyals et al.
        2019, Methods).
      deadline_s: seconds that a server that does not answer is waited for.
      clock: seconds that never go back.

    Raises:
      ServerUnavailableError: no server answers within the deadline.
      SignatureMismatchError: the server has no such player.
    """
    self._client, info = transport.connect(load_reverb(), address, deadline_s)
    transport.check_signature(
      info, parameters_table(player), address, transport.parameters_spec())
    self._player, self._deadline_s = player, deadline_s
    self._interval_s, self._clock = interval_s, clock
    self._last: float | None = None
    self._sender = futures.ThreadPoolExecutor(1, thread_name_prefix=f"publish-{player}")
    self._sending: futures.Future | None = None

  def __call__(self, params: Callable[[], Any], step: int) -> bool:
    """Begins to publish if it is time and the last publication is through; whether it did.

    Sending goes on in a thread: 220 MB take four seconds, which the learner need not wait for.

    Args:
      params: gives the tree; called only if it is time, since fetching it from a device costs. The
        tree is copied before this returns.
      step: the learner's.

    Raises:
      ServerUnavailableError: the publication before failed.
    """
    now = self._clock()
    if self._last is not None and now - self._last < self._interval_s:
      return False
    if self._sending is not None and not self._sending.done():
      return False
    self.flush()
    item = _parameters_item(params(), step)
    self._sending = self._sender.submit(_send, self._client, self._player, item, self._deadline_s)
    self._last = now
    return True

  def flush(self) -> None:
    """Waits for what is being sent; raises ServerUnavailableError where that failed."""
    sending, self._sending = self._sending, None
    if sending is not None:
      sending.result()

  def close(self) -> None:
    """Waits for what is being sent and ends the thread; the errors are `flush`'s."""
    self._sender.shutdown(wait=True)
    self.flush()


class ParameterMismatchError(UserError, ValueError):
  """The parameters that a learner published are those of another agent."""


class Fetched(NamedTuple):
  """Parameters and the learner's step at which they were published."""

  params: Any
  step: int


class ParameterFetcher:
  """Fetches a player's newest parameters, at most every `interval_s` seconds."""

  def __init__(self, address: str, player: str, template: Any, *, interval_s: float = 10.0,
               deadline_s: float = 300.0, clock: Callable[[], float] = time.monotonic):
    """Connects.

    Args:
      address: host:port of the data server.
      player: whose parameters.
      template: a tree of arrays or ShapeDtypeStructs, as `policy.init` makes.
      interval_s: seconds between renewals (10 in Vinyals et al. 2019, Methods).
      deadline_s: seconds that the first publication, or a server that does not answer, is waited
        for.
      clock: seconds that never go back.

    Raises:
      ServerUnavailableError: no server answers within the deadline.
      SignatureMismatchError: the server has no such player.
    """
    self._client, info = transport.connect(load_reverb(), address, deadline_s)
    self._table = transport.parameters_table(player)
    transport.check_signature(info, self._table, address, transport.parameters_spec())
    self._address, self._player, self._template = address, player, template
    self._interval_s, self._deadline_s, self._clock = interval_s, deadline_s, clock
    self._newest: Fetched | None = None
    self._fetched_at = 0.0

  def __call__(self) -> Fetched:
    """The newest parameters, at most `interval_s` old; numpy arrays.

    Raises:
      ParameterMismatchError: they are of another tree than the template.
      StarvedError: nothing has been published within the deadline.
      ServerUnavailableError: the server has not answered for as long.
    """
    now = self._clock()
    if self._newest is None or now - self._fetched_at >= self._interval_s:
      cells, digest, size, step = self._sample()
      self._check(bytes(digest), int(size))
      vector = cells.reshape(-1)[:int(size)]
      self._newest = Fetched(wire.unflatten_parameters(vector, self._template), int(step))
      self._fetched_at = now
    return self._newest

  def _sample(self) -> list[np.ndarray]:
    """The table's item: cells, hash, size, step.

    Reverb's call for a sample cannot be given a deadline, so it runs in a thread that is left
    behind when it takes too long.
    """
    self._await_publication()
    result: list[Any] = []

    def sample():
      try:
        found = self._client._client.NewSampler(self._table, 1, 1).GetNextTrajectory()
        result.append([np.asarray(x) for x in found[-4:]])
      except Exception as error:  # raised by the caller
        result.append(error)

    thread = threading.Thread(target=sample, name=f"parameters-{self._player}", daemon=True)
    thread.start()
    thread.join(self._deadline_s)
    if not result or isinstance(result[0], Exception):
      reason = result[0] if result else f"no answer within {self._deadline_s:.0f} s"
      raise ServerUnavailableError(
        f"{transport.unreachable(self._address)}; fetching the parameters of {self._player!r}: "
        f"{reason}.")
    return result[0]

  def _await_publication(self) -> None:
    start, wait = time.monotonic(), 0.1
    while True:
      info = transport.retry(self._info, errors=ServerUnavailableError, deadline_s=self._deadline_s,
                             what=transport.unreachable(self._address))
      if info[self._table].current_size:
        return
      if time.monotonic() - start + wait > self._deadline_s:
        raise StarvedError(
          f"nobody has published parameters of {self._player!r} at {self._address} within "
          f"{self._deadline_s:.0f} s: check that its learner runs.")
      time.sleep(wait)
      wait = min(2 * wait, 5.0)

  def _info(self) -> dict[str, Any]:
    info = transport.server_info(load_reverb(), self._client)
    if info is None:
      raise ServerUnavailableError("no answer")
    return info

  def _check(self, digest: bytes, size: int) -> None:
    expected = wire.parameters_hash(self._template)
    expected_size = wire.parameters_size(self._template)
    if digest != expected or size != expected_size:
      raise ParameterMismatchError(
        f"parameters of {self._player!r} at {self._address}: found tree {digest.hex()[:12]} of "
        f"{size} bytes, expected {expected.hex()[:12]} of {expected_size} bytes; the learner runs "
        "another configuration or version of the agent: give both the same.")
