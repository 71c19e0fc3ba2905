"""Batches of the items that several threads submit at the same time."""

import collections
import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, cast

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class _Waiting(Generic[Item, Answer]):
  """An item, and its answer once there is one."""

  def __init__(self, item: Item):
    self.item = item
    self.done = False
    self.answer: Answer | BaseException | None = None


class Batches(Generic[Item, Answer]):
  """Items of many threads, processed together by one of the threads.

  While one thread processes a batch, the items of others queue up for the next: they share the
  fixed cost of a batch, such as a wait for the disk.
  """

  def __init__(self, process: Callable[[Sequence[Item]], Sequence[Answer | Exception]],
               lock: "threading.RLock"):
    """Takes the function, and the lock under which it runs.

    Args:
      process: returns an answer or an exception for each item; if it raises, all items fail.
      lock: held while it runs.
    """
    self._process, self._lock = process, lock
    self._queue: collections.deque[_Waiting[Item, Answer]] = collections.deque()

  def submit(self, items: Sequence[Item]) -> list[Answer]:
    """Returns the answers to items, or raises the first exception among them, after their batch."""
    mine: list[_Waiting[Item, Answer]] = [_Waiting(item) for item in items]
    self._queue.extend(mine)
    with self._lock:
      if not all(waiting.done for waiting in mine):
        self._run([self._queue.popleft() for _ in range(len(self._queue))])
    answers = []
    for waiting in mine:
      if isinstance(waiting.answer, BaseException):
        raise waiting.answer
      answers.append(cast(Answer, waiting.answer))
    return answers

  def _run(self, batch: Sequence[_Waiting[Item, Answer]]) -> None:
    answers: Sequence[Answer | BaseException]
    try:
      answers = self._process([waiting.item for waiting in batch])
    except BaseException as error:
      answers = [error] * len(batch)
    for waiting, answer in zip(batch, answers, strict=True):
      waiting.answer, waiting.done = answer, True
