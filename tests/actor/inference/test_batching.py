"""Queues of requests: full batches, deadlines, several players, every request once."""

import hypothesis
import pytest
from hypothesis import strategies as st

from starleague.actor.inference.batching import Batch, Batcher


def make(*slots: int, player: int = 0, at: float = 0.0) -> Batcher:
  batcher = Batcher((1, 2, 4), wait_s=10.0)
  for slot in slots:
    batcher.add(slot, player, at)
  return batcher


def test_a_full_batch_does_not_wait():
  batcher = make(5, 3, 9, 1, 7)
  assert batcher.take(0.0, busy=False) == Batch(0, (5, 3, 9, 1), 4)
  assert batcher.take(0.0, busy=False) is None and len(batcher) == 1


@pytest.mark.parametrize("waiting, size", [(1, 1), (2, 2), (3, 4)])
def test_an_overdue_batch_has_the_least_size_that_holds_it(waiting, size):
  batcher = make(*range(waiting))
  assert batcher.deadline() == 10.0
  assert batcher.take(9.99, busy=False) is None
  assert batcher.take(10.0, busy=False) == Batch(0, tuple(range(waiting)), size)
  assert batcher.deadline() is None


def test_nothing_waits_for_rows_that_cannot_come():
  assert make(2).take(0.0, busy=False, coming=False) == Batch(0, (2,), 1)


def test_a_partial_batch_grows_while_the_device_is_busy():
  batcher = make(0, 1, 2)
  assert batcher.take(99.0, busy=True, coming=False) is None
  batcher.add(3, 0, 99.0)
  assert batcher.take(99.0, busy=True) == Batch(0, (0, 1, 2, 3), 4)


def test_a_player_of_few_rows_is_not_starved_by_full_batches():
  batcher = make(8, player=1)
  for slot in range(4):
    batcher.add(slot, 0, 5.0)
  assert batcher.take(9.0, busy=True) == Batch(0, (0, 1, 2, 3), 4)
  for slot in range(4):
    batcher.add(slot, 0, 9.0)
  assert batcher.take(10.0, busy=True) == Batch(1, (8,), 1)
  assert batcher.take(10.0, busy=True) == Batch(0, (0, 1, 2, 3), 4)


def test_a_slot_asks_once_and_may_be_discarded():
  batcher = make(1, 2)
  with pytest.raises(ValueError, match="slot 2 asks again"):
    batcher.add(2, 0, 1.0)
  batcher.discard(1)
  batcher.discard(77)
  assert 1 not in batcher and 2 in batcher
  assert batcher.take(10.0, busy=False) == Batch(0, (2,), 1)


@pytest.mark.parametrize("sizes, wait_s", [((), 1.0), ((4, 2), 1.0), ((0, 2), 1.0), ((1,), -1.0)])
def test_impossible_sizes_are_refused(sizes, wait_s):
  with pytest.raises(ValueError, match="must be"):
    Batcher(sizes, wait_s)


@hypothesis.given(st.lists(st.tuples(st.integers(0, 2), st.floats(0, 3), st.booleans()),
                           max_size=60))
def test_every_request_is_taken_once_and_in_its_players_order(events):
  batcher, now, added, taken = Batcher((1, 3), 1.0), 0.0, [], []
  for slot, (player, passed, busy) in enumerate(events):
    now += passed
    batcher.add(slot, player, now)
    added.append((player, slot))
    batch = batcher.take(now, busy=busy)
    if batch is not None:
      assert batch.size == (1 if len(batch.slots) == 1 else 3)
      taken += [(batch.player, slot) for slot in batch.slots]
  while (batch := batcher.take(now, busy=False, coming=False)) is not None:
    taken += [(batch.player, slot) for slot in batch.slots]
  assert sorted(taken) == sorted(added) and len(batcher) == 0
  for player in range(3):
    order = [slot for who, slot in taken if who == player]
    assert order == sorted(order)
