"""Prefetching of batches to the devices."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

import jax

Host = TypeVar("Host")
Placed = TypeVar("Placed")

_IDLE_S = 1.0  # between two calls of `idle`


class Waiting(NamedTuple):
  """Time that the consumer of a `Prefetch` has waited for data."""

  batches: int  # returned to the consumer
  waited_seconds: float  # inside next()
  elapsed_seconds: float  # from the first request to the last batch returned

  @property
  def fraction(self) -> float:
    """Fraction of the elapsed time that the consumer waited, in [0, 1]."""
    return self.waited_seconds / self.elapsed_seconds if self.elapsed_seconds > 0 else 0.0

  def since(self, earlier: "Waiting") -> "Waiting":
    """Returns the difference from an earlier reading."""
    return Waiting(self.batches - earlier.batches, self.waited_seconds - earlier.waited_seconds,
                   self.elapsed_seconds - earlier.elapsed_seconds)


class PrefetchTimeoutError(TimeoutError):
  """No batch arrived, or the source did not return, before the deadline."""


class Prefetch(Generic[Placed]):
  """An iterator over placed batches, filled by its own thread; see `prefetch`."""

  def __init__(self, iterator: Iterable[Host], place: Callable[[Host], Placed], depth: int,
               timeout: float, idle: Callable[[], object]):
    self._source: Iterator[Host] = iter(iterator)
    self._place, self._depth, self._timeout, self._idle = place, depth, timeout, idle
    self._ready: deque[Placed] = deque()
    self._changed = threading.Condition()  # guards everything below
    self._end: BaseException | None = None  # why no batch follows the ready ones
    self._closed = False
    self._batches, self._waited = 0, 0.0
    self._first: float | None = None
    self._last = 0.0
    self._thread = threading.Thread(target=self._fill, name="prefetch", daemon=True)
    self._thread.start()

  def __iter__(self) -> "Prefetch[Placed]":
    return self

  def __next__(self) -> Placed:
    """Returns the next batch.

    Raises:
      StopIteration: the source has ended.
      PrefetchTimeoutError: none arrived within the deadline; the next call waits again.
      RuntimeError: this is closed.
      Exception: an error of the source or of `place`, after the batches before it; one of `idle`.
    """
    with self._changed:
      start = time.monotonic()
      self._first = start if self._first is None else self._first
    end = start + self._timeout
    while not self._await(min(_IDLE_S, end - time.monotonic())) and time.monotonic() < end:
      self._idle()
    with self._changed:
      self._last = time.monotonic()
      self._waited += self._last - start
      if self._closed:
        raise RuntimeError("this prefetch is closed")
      if self._ready:
        self._batches += 1
        batch = self._ready.popleft()
        self._changed.notify_all()
        return batch
      if self._end is not None:
        raise self._end
      raise PrefetchTimeoutError(
        f"no batch in {self._timeout:g} s, after {self._batches} batches; check that actors write "
        "into the table that is read, and that its rate limiter is satisfied")

  def _await(self, timeout: float) -> bool:
    """Waits until `next` need not wait; returns whether."""
    with self._changed:
      return self._changed.wait_for(
        lambda: bool(self._ready) or self._end is not None or self._closed, timeout)

  @property
  def ready(self) -> bool:
    """Whether `next` returns, or raises, without waiting."""
    return self._await(0.0)

  def waiting(self) -> Waiting:
    """Returns the time that the consumer has waited so far."""
    with self._changed:
      elapsed = 0.0 if self._first is None else self._last - self._first
      return Waiting(self._batches, self._waited, elapsed)

  def close(self, timeout: float = 30.0) -> None:
    """Stops the thread, waits for it, and drops the ready batches.

    Raises:
      PrefetchTimeoutError: the source's next() has not returned after `timeout` seconds; it needs a
        deadline.
    """
    with self._changed:
      self._closed = True
      self._ready.clear()
      self._changed.notify_all()
    self._thread.join(timeout)
    if self._thread.is_alive():
      raise PrefetchTimeoutError(
        f"the source of batches has not returned {timeout:g} s after the close: it blocks without "
        "a deadline")

  def __enter__(self) -> "Prefetch[Placed]":
    return self

  def __exit__(self, *exception: object) -> None:
    self.close()

  def _fill(self) -> None:
    try:
      while True:
        # Waits for room before pulling: a batch pulled early would take additional host memory.
        with self._changed:
          self._changed.wait_for(lambda: len(self._ready) < self._depth or self._closed)
          if self._closed:
            return
        batch = self._place(next(self._source))
        # `place` starts transfers without waiting: wait here rather than in the consumer.
        jax.block_until_ready(batch)
        with self._changed:
          if self._closed:
            return
          self._ready.append(batch)
          self._changed.notify_all()
    except BaseException as error:  # also the StopIteration that ends the source
      with self._changed:
        self._end = error
        self._changed.notify_all()


def prefetch(iterator: Iterable[Host], place: Callable[[Host], Placed], depth: int = 2,
             timeout: float = 600.0,
             idle: Callable[[], object] = lambda: None) -> Prefetch[Placed]:
  """Pulls host batches and places them on devices in a thread, ahead of their use.

  Args:
    iterator: host batches. Only the thread uses it, one batch at a time. Batches must be new
      arrays, not one buffer that is refilled.
    place: host batch -> the same on devices, e.g. `Update.place`. Runs in the thread.
    depth: number of batches placed ahead of use. The devices hold these and the one in use.
    timeout: longest time that next() waits for a batch, in seconds.
    idle: called about once a second while next() waits, by the thread that waits.

  Returns:
    An iterator and context manager, which must be closed.

  Raises:
    ValueError: depth or timeout is not positive.
  """
  if depth < 1 or timeout <= 0:
    raise ValueError(f"expected depth >= 1 and timeout > 0, found depth {depth}, timeout {timeout}")
  return Prefetch(iterator, place, depth, timeout, idle)
