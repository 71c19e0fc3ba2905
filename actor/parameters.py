"""Actors' copy of a player's parameters, renewed every few seconds."""

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from starleague.actor.writer import load_reverb
from starleague.agent import transport, wire
from starleague.agent.transport import ReplayServerError, ReplayTimeoutError


class ParameterMismatchError(ValueError):
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
      address: host:port of the replay server.
      player: whose parameters.
      template: a tree of arrays or ShapeDtypeStructs, as `policy.init` makes.
      interval_s: seconds between renewals (10 in Vinyals et al. 2019, Methods).
      deadline_s: seconds that the first publication, or a server that does not answer, is waited
        for.
      clock: seconds that never go back.

    Raises:
      ReplayServerError: no server answers within the deadline.
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
      ReplayTimeoutError: nothing has been published within the deadline.
      ReplayServerError: the server has not answered for as long.
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
      raise ReplayServerError(
        f"{transport.unreachable(self._address)}; fetching the parameters of {self._player!r}: "
        f"{reason}.")
    return result[0]

  def _await_publication(self) -> None:
    start, wait = time.monotonic(), 0.1
    while True:
      info = transport.retry(self._info, errors=ReplayServerError, deadline_s=self._deadline_s,
                             what=transport.unreachable(self._address))
      if info[self._table].current_size:
        return
      if time.monotonic() - start + wait > self._deadline_s:
        raise ReplayTimeoutError(
          f"nobody has published parameters of {self._player!r} at {self._address} within "
          f"{self._deadline_s:.0f} s: check that its learner runs.")
      time.sleep(wait)
      wait = min(2 * wait, 5.0)

  def _info(self) -> dict[str, Any]:
    info = transport.server_info(load_reverb(), self._client)
    if info is None:
      raise ReplayServerError("no answer")
    return info

  def _check(self, digest: bytes, size: int) -> None:
    expected = wire.parameters_hash(self._template)
    expected_size = wire.parameters_size(self._template)
    if digest != expected or size != expected_size:
      raise ParameterMismatchError(
        f"parameters of {self._player!r} at {self._address}: found tree {digest.hex()[:12]} of "
        f"{size} bytes, expected {expected.hex()[:12]} of {expected_size} bytes; the learner runs "
        "another configuration or version of the agent: give both the same.")
