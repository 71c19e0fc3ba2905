"""Batches: items of several threads together, errors of one item, errors of all."""

import threading
import time

import pytest

from starleague.league.batching import Batches


def test_items_that_wait_are_processed_together():
  sizes, entered, leave = [], threading.Event(), threading.Event()
  def process(items):
    sizes.append(len(items))
    entered.set()
    assert leave.wait(60)
    return [item * 10 for item in items]
  batches = Batches(process, threading.RLock())
  answers = {}
  def submit(number):
    answers[number] = batches.submit([number, number + 100])
  threads = [threading.Thread(target=submit, args=(number,)) for number in range(5)]
  threads[0].start()
  assert entered.wait(60)
  for thread in threads[1:]:
    thread.start()
  deadline = time.monotonic() + 60
  while len(batches._queue) < 8 and time.monotonic() < deadline:
    time.sleep(.001)
  leave.set()
  for thread in threads:
    thread.join(60)
  assert sizes == [2, 8]
  assert answers == {number: [number * 10, number * 10 + 1000] for number in range(5)}


def test_an_error_of_one_item_is_its_callers():
  def process(items):
    return [ValueError(f"item {item}") if item < 0 else item for item in items]
  batches = Batches(process, threading.RLock())
  assert batches.submit([1, 2]) == [1, 2] and batches.submit([]) == []
  with pytest.raises(ValueError, match="item -3"):
    batches.submit([1, -3, -4])


def test_an_error_of_the_function_is_everyones_and_the_next_batch_works():
  broken = True
  def process(items):
    if broken:
      raise OSError("disk full")
    return list(items)
  batches = Batches(process, threading.RLock())
  with pytest.raises(OSError, match="disk full"):
    batches.submit([1])
  broken = False
  assert batches.submit([1]) == [1]
