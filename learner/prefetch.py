"""Batches that are on the devices before the learner asks for them."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

import jax

Host = TypeVar("Host")
Placed = TypeVar("Placed")


class Waiting(NamedTuple):
  """How long the consumer of a `Prefetch` has waited for data."""

  batches: int  # handed out
  waited_seconds: float  # of the consumer, inside next()
  elapsed_seconds: float  # from the first request to the last batch handed out

  @property
  def fraction(self) -> float:
    """The share of its time that the consumer waited, 0 to 1."""
    return self.waited_seconds / self.elapsed_seconds if self.elapsed_seconds > 0 else 0.0

  def since(self, earlier: "Waiting") -> "Waiting":
    """What was added after an earlier reading."""
    return Waiting(self.batches - earlier.batches, self.waited_seconds - earlier.waited_seconds,
                   self.elapsed_seconds - earlier.elapsed_seconds)


class PrefetchTimeoutError(TimeoutError):
  """No batch came, or the source did not let its thread go, before the deadline."""


class Prefetch(Generic[Placed]):
  """An iterator over placed batches; a thread of its own fills it. See `prefetch`."""

  def __init__(self, iterator: Iterable[Host], place: Callable[[Host], Placed], depth: int,
               timeout: float):
    self._source: Iterator[Host] = iter(iterator)
    self._place, self._depth, self._timeout = place, depth, timeout
    self._ready: deque[Placed] = deque()
    self._changed = threading.Condition()  # guards everything below
    self._end: BaseException | None = None  # why no batch follows those that are ready
    self._closed = False
    self._batches, self._waited = 0, 0.0
    self._first: float | None = None
    self._last = 0.0
    self._thread = threading.Thread(target=self._fill, name="prefetch", daemon=True)
    self._thread.start()

  def __iter__(self) -> "Prefetch[Placed]":
    return self

  def __next__(self) -> Placed:
    """The next batch.

    Raises:
      StopIteration: the source has ended.
      PrefetchTimeoutError: none came within the deadline; the next call waits anew.
      RuntimeError: this was closed.
      Exception: whatever the source or `place` raised, after the batches before it.
    """
    with self._changed:
      start = time.monotonic()
      self._first = start if self._first is None else self._first
      came = self._changed.wait_for(
        lambda: self._ready or self._end is not None or self._closed, self._timeout)
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
      assert not came
      raise PrefetchTimeoutError(
        f"no batch in {self._timeout:g} s, after {self._batches} that came; is anything writing "
        "into the table that is read, and is its rate limiter satisfied?")

  def waiting(self) -> Waiting:
    """How long the consumer has waited so far."""
    with self._changed:
      elapsed = 0.0 if self._first is None else self._last - self._first
      return Waiting(self._batches, self._waited, elapsed)

  def close(self, timeout: float = 30.0) -> None:
    """Stops the thread, waits for it and drops the batches that are ready.

    Raises:
      PrefetchTimeoutError: the source is still in its own next() after `timeout` seconds; it needs
        a deadline of its own.
    """
    with self._changed:
      self._closed = True
      self._ready.clear()
      self._changed.notify_all()
    self._thread.join(timeout)
    if self._thread.is_alive():
      raise PrefetchTimeoutError(
        f"the source of batches has not returned {timeout:g} s after the close; it blocks without "
        "a deadline")

  def __enter__(self) -> "Prefetch[Placed]":
    return self

  def __exit__(self, *exception) -> None:
    self.close()

  def _fill(self) -> None:
    try:
      while True:
        # Room is waited for first: a batch that is pulled and not yet wanted would be one more in
        # host memory.
        with self._changed:
          self._changed.wait_for(lambda: len(self._ready) < self._depth or self._closed)
          if self._closed:
            return
        batch = self._place(next(self._source))
        # Transfers are started and not awaited: here, and not in the consumer, is the place to
        # wait for them.
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
             timeout: float = 600.0) -> Prefetch[Placed]:
  """Pulls host batches and puts them on devices in a thread, ahead of their use.

  Args:
    iterator: host batches. Only the thread touches it, one batch at a time; batches must be fresh
      arrays, not one buffer that is filled again.
    place: host batch -> the same on devices, e.g. `Update.place`. Runs in the thread.
    depth: batches that are ready ahead of use. The devices hold these, the one in use, and none
      more.
    timeout: the longest that next() waits for a batch, in seconds.

  Returns:
    An iterator, and context manager, that is to be closed.

  Raises:
    ValueError: depth or timeout is not positive.
  """
  if depth < 1 or timeout <= 0:
    raise ValueError(f"expected depth >= 1 and timeout > 0, found depth {depth}, timeout {timeout}")
  return Prefetch(iterator, place, depth, timeout)
