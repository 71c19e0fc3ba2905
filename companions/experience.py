"""The experience of a run: Reverb tables, their writer and the batches of the learner."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import jax
import numpy as np

from starleague.companions.options import RunOptions
from starleague.companions.system import Unroll
from starleague.data import wire
from starleague.data.records import Records
from starleague.data.reverb import datasets, sampler, server, writer

FIRST, REPLAY = "unrolls", "replay"  # names of the tables
BATCH_AXES = wire.BATCH_AXES | {"replayed": 0}


class Batch(NamedTuple):
  """A batch of packed unrolls: columns [T + 1, B, width], state [B, width]."""

  bits: Any
  uint8: Any
  int16: Any
  int32: Any
  float32: Any
  state: Any
  replayed: Any  # [B] bool: from the second table


def unpack(batch: Batch, form: wire.StepFormat) -> Unroll:
  """Unpacks a batch, under jit."""
  trajectories: Any = wire.unpack(wire.Packed(*batch[:-1]), form)
  return Unroll(trajectories.steps, trajectories.initial_state, batch.replayed)


class Experience:
  """The tables of a run, their writer and their samplers."""

  def __init__(self, form: wire.StepFormat, options: RunOptions, stack: ExitStack,
               stop: threading.Event):
    """Starts the server, which ends with `stack`; `stop` ends all waits."""
    length = options.unroll_length
    # A queue also holds what waits until the replay is large enough.
    size = options.replay_size if options.table != server.FIFO else max(
      1000, options.min_replay + 4 * (options.batch_size + options.copies))
    tables = [server.make_table(FIRST, form, length, options.table, size, exponent=options.exponent,
                                min_size=1 if options.table == server.FIFO else options.min_replay)]
    if options.replay_share:
      tables.append(server.make_table(REPLAY, form, length, options.replay_table,
                                      options.replay_size, min_size=options.min_replay,
                                      exponent=options.exponent))
    address = f"localhost:{stack.enter_context(server.make_server(tables)).port}"
    self._writer = writer.TrajectoryWriter(
      address, FIRST, form, length, options.copies, period=options.unroll_period, continuous=True,
      also=[REPLAY] if options.replay_share else [], stop=stop)
    stack.callback(self._writer.close)

    def draw(table: str, count: int) -> sampler.Dataset:
      return stack.enter_context(
        datasets.dataset(address, count, table, form, length, prefetch=1, stop=stop))

    self._first = draw(FIRST, options.fresh_size)
    self._replay = draw(REPLAY, options.batch_size - options.fresh_size) if (
      options.replay_share) else None
    self._options = options
    self._credit = 0.0  # uses of unrolls that the learner may still make
    self._inserted = 0
    self._priority = 1.0  # the largest so far, that of new unrolls
    self._updated: tuple[np.ndarray, jax.Array] | None = None

  def write(self, records: Records, restarted: Sequence[int] = ()) -> None:
    """Writes the unrolls that records complete.

    Args:
      records: of a round, [N, n, ...].
      restarted: copies whose first step here does not follow their last one.
    """
    self._writer.restart(restarted)
    written = self._writer.write(jax.tree.map(np.asarray, records), priority=self._priority)
    self._writer.flush()
    before, self._inserted = self._inserted, self._inserted + written
    waiting = self._options.min_replay - 1
    if self._options.table != server.FIFO:
      self._credit += self._options.samples_per_item * max(0, self._inserted - max(before, waiting))
    elif self._inserted > waiting:  # then the queue gives all that waited in it
      self._credit += written if before > waiting else self._inserted

  def batches(self) -> Iterator[Batch]:
    """Returns the batches that the replay ratio allows now; none once `stop` is set."""
    options = self._options
    while self._credit >= options.fresh_size:
      self._credit -= options.fresh_size
      try:
        batch = next(self._first)
        if self._replay is not None:
          batch = wire.Packed(*[
            np.concatenate(pair, axis=axis) for *pair, axis in zip(
              batch, next(self._replay), wire.BATCH_AXES.values(), strict=True)])
      except StopIteration:  # would leave a generator as a RuntimeError
        return
      yield Batch(*batch, np.arange(options.batch_size) >= options.fresh_size)

  def learnt(self, priorities: jax.Array) -> None:
    """Takes the priorities [D, B / D] of the newest batch; they reach the table an update later.

    Reading them at once would wait for the device. Unrolls keep their priority where the new one is
    not finite, as after an update that the guard skips.
    """
    options = self._options
    table, kind, rows = self._first, options.table, slice(None)
    if self._replay is not None:
      table, kind = self._replay, options.replay_table
      rows = slice(options.fresh_size, None)
    if kind != server.PRIORITISED:
      return
    if self._updated is not None:
      keys, device = self._updated
      found = np.asarray(device, np.float64).reshape(-1)[rows]
      finite = np.isfinite(found)
      table.update_priorities(keys[finite], found[finite])
      self._priority = max(self._priority, float(found.max(initial=0.0, where=finite)))
    self._updated = table.keys, priorities
