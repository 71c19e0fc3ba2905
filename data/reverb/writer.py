"""Writes the trajectories of an actor to the data server."""

import threading
import time
from collections.abc import Sequence

import numpy as np

from starleague.data import wire
from starleague.data.assembler import Assembler
from starleague.data.records import Records
from starleague.data.reverb import transport
from starleague.data.reverb.transport import (
  ServerUnavailableError,
  SignatureMismatchError,
  StarvedError,
  StoppedError,
)


class TrajectoryWriter:
  """Writes the trajectories of an actor's games to the tables of their players.

  If the server is another process, use one writer per process: two writers of Reverb 0.14 that
  wait for a missing server corrupt the process's memory.
  """

  def __init__(self, address: str, players: str | Sequence[str], config: wire.Form,
               unroll_length: int, num_rows: int, *, period: int | None = None,
               continuous: bool = False, also: Sequence[str] = (), deadline_s: float = 300.0,
               max_in_flight: int = 8, stop: threading.Event | None = None):
    """Connects, and checks the signatures of the tables.

    Args:
      address: host:port of the data server.
      players: names of the tables, or the name of the only one.
      config: form of the tables' steps.
      unroll_length: T of the tables.
      num_rows: rows are 0 to num_rows - 1.
      period, continuous: as for `Assembler`.
      also: names of further tables that get every trajectory.
      deadline_s: seconds to wait for a table that takes nothing (its learner is behind), or for a
        server that does not answer.
      max_in_flight: trajectories that may be unconfirmed when `write` returns.
      stop: ends all waits when set.

    Raises:
      ServerUnavailableError: no server answers within the deadline.
      SignatureMismatchError: a table is missing or holds other trajectories.
      StoppedError: `stop` was set.
    """
    self._players = [players] if isinstance(players, str) else list(players)
    self._stop = stop or threading.Event()
    self._client, info = transport.connect(address, deadline_s, self._stop)
    self._spec = wire.packed_spec(config, unroll_length)
    self._also = tuple(also)
    for name in (*self._players, *self._also):
      transport.check_signature(info, name, address, self._spec._asdict())
    self._address, self._deadline_s = address, deadline_s
    self._max_in_flight = max_in_flight
    self._assembler = Assembler(
      config, unroll_length, num_rows, period=period, continuous=continuous)
    self._writer = self._client.trajectory_writer(num_keep_alive_refs=1)

  def write(self, records: Records, player: np.ndarray | None = None,
            priority: float = 1.0) -> int:
    """Adds steps, sends the trajectories that they complete and returns their number.

    Args:
      records: numpy or JAX arrays.
      player: [N, C] int: index of each step's player among the writer's, the same for all steps of
        a game; negative: the step is not written. None: all are the first's.
      priority: of the trajectories in tables that sample by priority.

    Raises:
      StarvedError: the table took nothing within the deadline.
      ServerUnavailableError: the server has not answered within the deadline.
    """
    cuts = self._assembler.add(records, None if player is None else player >= 0)
    names = np.zeros(np.shape(records.row), int) if player is None else player
    for sent, cut in enumerate(cuts):
      if self._stop.is_set():
        return sent
      self.send(self._players[names.reshape(-1)[cut.at]], cut.packed, priority)
    return len(cuts)

  def restart(self, rows: Sequence[int]) -> None:
    """Drops unfinished trajectories; see `Assembler.restart`."""
    self._assembler.restart(rows)

  def send(self, player: str, packed: wire.Packed, priority: float = 1.0) -> None:
    """Sends one trajectory; raises the errors of `write`, and SignatureMismatchError."""
    self._check(packed)
    # One Reverb step per trajectory, with one cell per column: 1.4 to 1.8 times the items/s of
    # appending agent steps one by one.
    self._writer.append(packed._asdict())
    history = self._writer.history
    item = {name: history[name][-1] for name in packed._fields}
    for table in (player, *self._also):
      try:
        self._writer.create_item(table, priority, item)
      except ValueError as error:  # Reverb's own check: the table was replaced since the connection
        raise SignatureMismatchError(
          f"table {table!r} of {self._address} refuses a trajectory: {error}") from error
    self._flush(self._max_in_flight)

  def flush(self) -> None:
    """Waits until all sent trajectories are in their tables; raises the errors of `write`."""
    self._flush(0)

  def _check(self, packed: wire.Packed) -> None:
    for name, expected, found in zip(packed._fields, self._spec, packed, strict=True):
      if found.shape != expected.shape or found.dtype != expected.dtype:
        raise SignatureMismatchError(
          f"field {name!r} of a trajectory: found {found.dtype}{list(found.shape)}, expected "
          f"{np.dtype(expected.dtype)}{list(expected.shape)}; write trajectories of the "
          "configuration and unroll length that this writer was made for.")

  def _flush(self, in_flight: int) -> None:
    """Waits until at most `in_flight` trajectories are unconfirmed, or `stop` is set."""
    start = answered = time.monotonic()
    wait = 0.5
    while True:
      try:
        if transport.flush(self._writer, in_flight, wait, self._stop):
          return
      except StoppedError:
        return
      except RuntimeError as error:
        raise ServerUnavailableError(
          f"writing to {sorted(self._players)} of {self._address} failed: {error}") from error
      info = transport.server_info(self._client)
      now = time.monotonic()
      answered = now if info is not None else answered
      if now - answered > self._deadline_s:
        raise ServerUnavailableError(
          f"{transport.unreachable(self._address)} (no answer for {now - answered:.0f} s).")
      if info is not None and now - start > self._deadline_s:
        raise StarvedError(
          f"the tables {sorted(self._players)} of {self._address} took nothing for "
          f"{now - start:.0f} s: their learner is behind; check that it runs, or raise the "
          "tables' tolerance.")
      wait = min(2 * wait, 5.0, max(0.1, self._deadline_s / 4))

  def close(self) -> None:
    """Closes the stream without waiting; call `flush` first if nothing may be lost."""
    self._writer.close()
