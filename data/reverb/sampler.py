"""Batches of a Reverb table's trajectories, stacked in a thread."""

import contextlib
import queue
import threading
import time
import weakref
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import numpy as np

from starleague.data import wire
from starleague.data.reverb import transport
from starleague.data.reverb.transport import ServerUnavailableError, StarvedError

# Trajectories that a sampler requests ahead. They count as sampled: a learner that dies loses them.
SAMPLES_IN_FLIGHT = 8
_POLL_S = 0.5
_RELEASE_S = 5.0  # maximum duration of `_release`
_THREAD = "sampler-"  # begin of the names of threads
_left: "weakref.WeakSet[Dataset]" = weakref.WeakSet()  # closed, but their threads still wait


def waiting() -> bool:
  """Returns whether the thread of a dataset is alive.

  The thread of a closed dataset may still wait for a sample: Reverb cannot cancel this wait. If the
  sample comes during Python's finalisation, the thread aborts the process. Such a process should
  end with `os._exit`.
  """
  return any(thread.name.startswith(_THREAD) for thread in threading.enumerate())


def release(port: int) -> None:
  """Ends the waits of closed datasets for samples of a server in this process, before it stops.

  Reverb cannot cancel a wait, and polls a stopped server about 1,000 times a second. Trajectories
  of zeros in the tables end the waits.
  """
  for dataset in list(_left):
    if dataset._address in (f"localhost:{port}", f"127.0.0.1:{port}"):
      _left.discard(dataset)
      dataset._release()


class Dataset(Iterator[wire.Packed]):
  """Batches of a table's trajectories, stacked by a thread; see `datasets.dataset`.

  Attributes:
    config: the form of the trajectories' steps, for `wire.unpack`.
    unroll_length: T.
    keys: [B] uint64, of the items of the last batch that was returned, for `update_priorities`.
  """

  keys: np.ndarray

  def __init__(self, address: str, player: str, batch_size: int, config: wire.Form,
               unroll_length: int, deadline_s: float, prefetch: int = 2,
               stop: threading.Event | None = None, starved_s: float | None = None):
    """Connects to a data server; see `datasets.dataset` for errors and the batches.

    Args:
      address: host:port of the server.
      player: name of the table.
      batch_size: B, at least 1.
      config: the form of the trajectories' steps.
      unroll_length: T.
      deadline_s: seconds to wait for a batch, or for a server that does not answer.
      prefetch: batches stacked ahead, at least 1.
      stop: ends the iteration and all waits when set.
      starved_s: seconds to wait for a batch while the server answers; None: `deadline_s`.
    """
    for name, value in (("batch_size", batch_size), ("prefetch", prefetch)):
      if value < 1:
        raise ValueError(f"dataset: {name}: expected at least 1, found {value}.")
    self._address, self._table, self._deadline_s = address, player, deadline_s
    self._starved_s = deadline_s if starved_s is None else starved_s
    self.config, self.unroll_length = config, unroll_length
    self._spec, self._batch_size = wire.packed_spec(config, unroll_length), batch_size
    self._stop, self._closed = stop or threading.Event(), threading.Event()
    self._filled = threading.Event()  # the thread draws no more samples
    self._client, info = transport.connect(address, deadline_s, self._stop)
    transport.check_signature(info, player, address, self._spec._asdict())
    self._ready: queue.Queue[tuple[wire.Packed, np.ndarray] | Exception] = queue.Queue(prefetch)
    self._thread = threading.Thread(target=self._fill, name=f"{_THREAD}{player}", daemon=True)
    self._thread.start()

  def _fill(self) -> None:
    try:
      sampler = transport.new_sampler(self._client, self._table, -1, SAMPLES_IN_FLIGHT)
      while not self._ended():
        self._offer(self._batch(sampler))
    except Exception as error:  # the consumer raises it
      self._offer(error)
    finally:
      self._filled.set()

  def _batch(self, sampler: Any) -> tuple[wire.Packed, np.ndarray]:
    """Returns a batch of samples and its keys; Reverb itself reconnects to a restarted server."""
    columns = [np.empty((x.shape[0], self._batch_size, *x.shape[1:]), x.dtype)
               for x in self._spec[:-1]]
    state = np.empty((self._batch_size, *self._spec.state.shape), self._spec.state.dtype)
    batch = wire.Packed(*[*columns, state])
    keys = np.zeros(self._batch_size, np.uint64)
    by_name = sorted(batch._asdict().items())  # the order in which Reverb flattens a dictionary
    for b in range(self._batch_size):
      if self._ended():
        break  # nobody takes the batch
      sample = sampler.GetNextTrajectory()  # key, ..., and the fields
      keys[b] = sample[0]
      for (name, out), value in zip(by_name, sample[-len(by_name):], strict=True):
        (out if name == "state" else out.swapaxes(0, 1))[b] = value
    return batch, keys

  def _ended(self) -> bool:
    return self._closed.is_set() or self._stop.is_set()

  def _offer(self, item: tuple[wire.Packed, np.ndarray] | Exception) -> None:
    while not self._ended():
      try:
        return self._ready.put(item, timeout=_POLL_S)
      except queue.Full:
        continue

  def __next__(self) -> wire.Packed:
    """Returns the next batch.

    Raises:
      StarvedError: the server answers but the table gave no batch within `starved_s`.
      ServerUnavailableError: the server has not answered within the deadline.
      SignatureMismatchError: a restarted server lacks the table, or has one of other trajectories.
      StopIteration: this is closed, or `stop` is set.
    """
    start = answered = checked = time.monotonic()
    wait = _POLL_S
    while not self._ended():
      try:
        item = self._ready.get(timeout=min(_POLL_S, wait))
      except queue.Empty:
        if time.monotonic() - checked >= wait:
          answered = self._check_server(start, answered)
          checked = time.monotonic()
          wait = min(2 * wait, 5.0, max(0.1, self._deadline_s / 4))
        continue
      if isinstance(item, Exception):
        self.close()
        raise ServerUnavailableError(
          f"sampling table {self._table!r} of {self._address} failed: {item}") from item
      batch, self.keys = item
      return batch
    raise StopIteration

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    """Changes the priorities of items; those that were removed meanwhile are ignored.

    Args:
      keys: [n] uint64, as those of `keys`.
      priorities: [n], finite and at least 0.
    """
    self._client.mutate_priorities(
      self._table, updates=dict(zip(keys.tolist(), priorities.tolist(), strict=True)))

  def _check_server(self, start: float, answered: float) -> float:
    """Checks the deadline; returns when the server last answered.

    Args:
      start: when the wait for this batch began.
      answered: when the server last answered.
    """
    info = transport.server_info(self._client)
    now = time.monotonic()
    if info is not None:
      transport.check_signature(info, self._table, self._address, self._spec._asdict())
    if info is None and now - answered > self._deadline_s:
      raise ServerUnavailableError(
        f"{transport.unreachable(self._address)} (no answer for {now - answered:.0f} s).")
    if info is not None and now - start > self._starved_s:
      raise StarvedError(self._starved(info, now - start))
    return answered if info is None else now

  def _starved(self, info: dict[str, Any], seconds: float) -> str:
    table = info[self._table]
    limiter = table.rate_limiter_info
    return (
      f"table {self._table!r} of {self._address} gave no batch of {self._batch_size} in "
      f"{seconds:.0f} s: it holds {table.current_size} trajectories, sampling needs "
      f"{limiter.min_size_to_sample}, {limiter.insert_stats.completed} were ever written; check "
      "that actors of this player run and write here.")

  def close(self, wait_s: float = 1.0) -> None:
    """Stops the thread; one that waits inside Reverb ends with its next sample.

    Args:
      wait_s: longest wait for its end, if this is the first call.
    """
    if not self._closed.is_set():
      self._closed.set()
      self._thread.join(wait_s)
      if self._thread.is_alive():
        _left.add(self)

  def _release(self) -> None:
    """Ends the wait of the closed dataset by writing to its table; see `release`.

    Its thread ends up to 3 s later, when Reverb's own thread wakes up.
    """
    zeros = {name: np.zeros(x.shape, x.dtype) for name, x in self._spec._asdict().items()}
    writer = self._client.trajectory_writer(num_keep_alive_refs=1)
    end = time.monotonic() + _RELEASE_S
    with contextlib.suppress(RuntimeError):  # Reverb refuses: the server has gone
      while not self._filled.is_set() and time.monotonic() < end:
        writer.append(zeros)
        writer.create_item(
          self._table, 1.0, {name: writer.history[name][-1] for name in self._spec._fields})
        transport.flush(writer, 0, _POLL_S, threading.Event())
        self._filled.wait(0.02)
    writer.close()

  def __enter__(self) -> "Dataset":
    return self

  def __exit__(self, error: type[BaseException] | None, value: BaseException | None,
               traceback: TracebackType | None) -> None:
    self.close()
