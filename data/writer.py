"""Steps of many games to overlapping trajectories, and those to the data server.

The assembler is numpy only. It keeps the last T + 1 steps of each row (a game's player) in a ring,
already packed: whenever a trajectory is due, it is exactly what the ring holds. Trajectories of a
game start every T steps, so that consecutive ones share the bootstrap step and each transition is
learnt; the last is moved back so that it ends at the end.
"""

import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from starleague.data import transport, wire
from starleague.data.records import Records
from starleague.data.transport import (
  ServerUnavailableError,
  SignatureMismatchError,
  StarvedError,
  load_reverb,
)


class Cut(NamedTuple):
  """A trajectory that is complete."""

  row: int
  packed: wire.Packed


class Assembler:
  """Cuts trajectories out of interleaved games."""

  def __init__(self, config, unroll_length: int, num_rows: int):
    """Makes the rings.

    Args:
      config: the AgentConfig.
      unroll_length: T.
      num_rows: rows are 0 to num_rows - 1.
    """
    spec = wire.packed_spec(config, unroll_length)
    size = unroll_length + 1
    self._unroll_length, self._config = unroll_length, config
    self._ring = wire.Columns(*[
      np.zeros((num_rows, size, x.shape[-1]), x.dtype) for x in spec[:-1]])
    self._state = np.zeros((num_rows, size, *spec.state.shape), spec.state.dtype)
    self._length = np.full((num_rows,), -1)  # steps of the row's game so far; -1: none has begun
    self._fields = wire.layout(config).fields

  def add(self, records: Records, record: np.ndarray | None = None) -> list[Cut]:
    """Takes steps; gives the trajectories that they complete, in order for each row.

    A row's steps are left out until its first `first`. A game that never ends (another begins in
    its row) loses what no trajectory has taken yet.

    Args:
      records: of numpy or JAX arrays.
      record: [N, C] bool: which steps to take; None for all that have a row.

    Returns:
      Trajectories. Rewards and discounts of theirs are shifted to the step whose action earned
      them; the last step of one that goes on has reward 0 and discount 1, a terminal one has no
      action, reward 0, discount 0 and weight 0, and fills a game shorter than T.

    Raises:
      ValueError: a leaf of the steps is not what the AgentConfig gives; names it.
    """
    row = np.asarray(records.row)
    taken = row >= 0 if record is None else (row >= 0) & np.asarray(record)
    step = records.step
    if not isinstance(step, wire.Columns):
      step = jax.tree.map(np.asarray, step)
      wire.check_steps(step, self._config)
      step = wire.pack_steps(step)
    flat = wire.Columns(*[_flat(x) for x in step])
    state = _flat(wire.pack_state(jax.tree.map(np.asarray, records.core_state), row.ndim))
    first, last = np.asarray(records.first).reshape(-1), np.asarray(records.last).reshape(-1)
    row = row.reshape(-1)
    cuts: list[Cut] = []
    for chosen in _rounds(row, np.flatnonzero(taken.reshape(-1))):
      self._length[row[chosen[first[chosen]]]] = 0
      chosen = chosen[self._length[row[chosen]] >= 0]
      self._put(flat, state, row[chosen], chosen, last[chosen])
      cuts += self._cut(row[chosen], last[chosen])
    return cuts

  def _put(self, flat: wire.Columns, state, rows, chosen, last) -> None:
    """Puts one step of each of some distinct rows into their rings."""
    size = self._unroll_length + 1
    reward, discount = self._fields["reward"].slice, self._fields["discount"].slice
    length = self._length[rows]
    floats = self._ring.float32
    # What arrives with this step is what the action before it earned. A game that is cut short by
    # a limit of time has ended too.
    later = length > 0
    before, earlier_rows = (length[later] - 1) % size, rows[later]
    floats[earlier_rows, before, reward] = flat.float32[chosen[later], reward]
    floats[earlier_rows, before, discount] = np.where(
      last[later, None], 0, flat.float32[chosen[later], discount])

    at = length % size
    for ring, column in zip(self._ring, flat, strict=True):
      ring[rows, at] = column[chosen]
    self._state[rows, at] = state[chosen]
    floats[rows, at, reward] = 0
    floats[rows, at, discount] = 1
    if last.any():
      self._end(rows[last], at[last])
    self._length[rows] = length + 1

  def _end(self, rows, at) -> None:
    """Makes steps terminal: no action, nothing to learn."""
    for path, field in self._fields.items():
      column = getattr(self._ring, field.column)
      if path == "action.units":
        column[rows, at, field.slice] = self._config.max_entities  # the end token
      elif path.split(".")[0] in ("action", "log_prob", "discount", "weight"):
        column[rows, at, field.slice] = 0

  def _cut(self, rows, last) -> list[Cut]:
    """The trajectories that are complete with these rows' newest steps."""
    newest = self._length[rows] - 1
    due = (newest > 0) & ((newest % self._unroll_length == 0) | last)
    cuts = [Cut(int(row), self._read(row)) for row in rows[due]]
    self._length[rows[last]] = -1
    return cuts

  def _read(self, row: int) -> wire.Packed:
    """The ring from its oldest step on; a game shorter than it is filled with its last step."""
    size, length = self._unroll_length + 1, self._length[row]
    oldest = max(0, length - size)
    order = np.minimum(np.arange(oldest, oldest + size), length - 1) % size
    return wire.seal(wire.Columns(*[ring[row, order] for ring in self._ring]),
                     self._state[row, oldest % size].copy())


def _flat(x) -> np.ndarray:
  """[N, C, width] -> [N * C, width]."""
  x = np.asarray(x)
  return x.reshape(-1, x.shape[-1])


def _rounds(row: np.ndarray, index: np.ndarray) -> list[np.ndarray]:
  """Splits `index` into rounds in which no row occurs twice, in order for each row."""
  if not index.size:
    return []
  order = index[np.argsort(row[index], kind="stable")]
  sorted_rows = row[order]
  starts = np.flatnonzero(np.r_[True, sorted_rows[1:] != sorted_rows[:-1]])
  lengths = np.diff(np.r_[starts, order.size])
  rank = np.arange(order.size) - np.repeat(starts, lengths)
  by_rank = order[np.argsort(rank, kind="stable")]
  return np.split(by_rank, np.cumsum(np.bincount(rank))[:-1])


class TrajectoryWriter:
  """Writes the trajectories of an actor's games to its players' tables.

  Keep to one a process where the server is another process: two of Reverb 0.14's writers that wait
  for a server that is gone spoil the process's memory.
  """

  def __init__(self, address: str, player: str | Sequence[str], config, unroll_length: int,
               num_rows: int, *, deadline_s: float = 300.0, max_in_flight: int = 8,
               stop: threading.Event | None = None):
    """Connects, and checks that the tables are of such trajectories.

    Args:
      address: host:port of the data server.
      player: whose table; or one name a row.
      config: the AgentConfig of the tables.
      unroll_length: T of the tables.
      num_rows: rows are 0 to num_rows - 1.
      deadline_s: seconds to wait for a table that takes nothing (its learner is behind), or a
        server that does not answer.
      max_in_flight: trajectories that may be unconfirmed when `write` returns.
      stop: when set, waiting ends at once.

    Raises:
      ServerUnavailableError: no server answers within the deadline.
      SignatureMismatchError: a table is missing or of other trajectories.
      ValueError: where the names are not one a row.
    """
    self._players = [player] * num_rows if isinstance(player, str) else list(player)
    if len(self._players) != num_rows:
      raise ValueError(f"one player a row: expected {num_rows} names, found {len(self._players)}.")
    self._client, info = transport.connect(load_reverb(), address, deadline_s)
    self._spec = wire.packed_spec(config, unroll_length)
    for name in sorted(set(self._players)):
      transport.check_signature(info, name, address, self._spec._asdict())
    self._address, self._deadline_s = address, deadline_s
    self._max_in_flight, self._stop = max_in_flight, stop or threading.Event()
    self._assembler = Assembler(config, unroll_length, num_rows)
    self._writer = self._client.trajectory_writer(num_keep_alive_refs=1)

  def write(self, records: Records, record: np.ndarray | None = None) -> int:
    """Takes steps and sends the trajectories that they complete; how many it sent.

    Args:
      records, record: as for `Assembler.add`.

    Raises:
      StarvedError: the table took nothing within the deadline.
      ServerUnavailableError: the server has not answered for as long.
    """
    cuts = self._assembler.add(records, record)
    for sent, cut in enumerate(cuts):
      if self._stop.is_set():
        return sent
      self.send(self._players[cut.row], cut.packed)
    return len(cuts)

  def send(self, player: str, packed: wire.Packed) -> None:
    """Sends one trajectory; the errors are those of `write`, and SignatureMismatchError."""
    self._check(packed)
    # A trajectory is one step of Reverb's with one cell a column: 1.4 to 1.8 times the items/s of
    # appending agent steps one by one.
    self._writer.append(packed._asdict())
    history = self._writer.history
    try:
      self._writer.create_item(player, 1.0, {name: history[name][-1] for name in packed._fields})
    except ValueError as error:  # Reverb's own check, should the table be another one by now
      raise SignatureMismatchError(
        f"table {player!r} of {self._address} refuses a trajectory: {error}") from error
    self._flush(self._max_in_flight)

  def flush(self) -> None:
    """Waits until everything sent is in its table; the errors are those of `write`."""
    self._flush(0)

  def _check(self, packed: wire.Packed) -> None:
    for name, expected, found in zip(packed._fields, self._spec, packed, strict=True):
      if found.shape != expected.shape or found.dtype != expected.dtype:
        raise SignatureMismatchError(
          f"field {name!r} of a trajectory: found {found.dtype}{list(found.shape)}, expected "
          f"{np.dtype(expected.dtype)}{list(expected.shape)}; write trajectories of the "
          "configuration and unroll length that this writer was made for.")

  def _flush(self, in_flight: int) -> None:
    """Waits until at most `in_flight` trajectories are unconfirmed.

    Reverb's own client connects again to a server that was restarted and sends what was not
    confirmed; here it is only decided how long to wait for that.
    """
    reverb = load_reverb()
    start = answered = time.monotonic()
    wait = 0.5
    while not self._stop.is_set():
      try:
        return self._writer.flush(in_flight, timeout_ms=int(1000 * wait))
      except reverb.errors.DeadlineExceededError:
        info = transport.server_info(load_reverb(), self._client)
      except RuntimeError as error:
        raise ServerUnavailableError(
          f"writing to {sorted(set(self._players))} of {self._address} failed: {error}") from error
      now = time.monotonic()
      answered = now if info is not None else answered
      if now - answered > self._deadline_s:
        raise ServerUnavailableError(
          f"{transport.unreachable(self._address)} (no answer for {now - answered:.0f} s).")
      if info is not None and now - start > self._deadline_s:
        raise StarvedError(
          f"the tables {sorted(set(self._players))} of {self._address} took nothing for "
          f"{now - start:.0f} s: their learner is behind; check that it runs, or raise the "
          "tables' tolerance.")
      wait = min(2 * wait, 5.0, max(0.1, self._deadline_s / 4))

  def close(self) -> None:
    """Ends the stream without waiting; call `flush` before it where nothing may be lost."""
    self._writer.close()
