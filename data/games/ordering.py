"""Batches of whole games in order: slot by slot, the next batch continues the same games.

A batch has B slots. Each slot plays one episode after another, T decisions a batch; an episode that
ends inside a batch is padded with its terminal step, and the slot continues with another episode in
the next batch. Consecutive chunks of an episode share one step, the bootstrap step, so that every
decision is among the first T steps of exactly one chunk.
"""

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple

import numpy as np

from starleague.agent.config import AgentConfig
from starleague.data import wire
from starleague.data.wire import Leaf

_INTEGERS = tuple(name for name in wire.Columns._fields if name != "float32")


class OrderedBatch(NamedTuple, Generic[Leaf]):
  """A batch of chunks of games: `wire.Packed` and which slots begin a game."""

  bits: Leaf  # [T + 1, B, width] uint8
  uint8: Leaf
  int16: Leaf
  int32: Leaf
  float32: Leaf
  state: Leaf  # [B, n] float32 zeros: the caller carries the core state
  first: Leaf  # [B] bool: the slot begins a game, or is empty

  @property
  def packed(self) -> wire.Packed:
    """The batch without `first`, for `wire.unpack`."""
    return wire.Packed(*self[:-1])


class Schedule(NamedTuple):
  """Which slot plays which episodes, [slots] of lists; times count batches."""

  episodes: list[list[int]]  # positions in the order given
  begins: list[list[int]]
  batches: int


def schedule(decisions: Sequence[int], batch_size: int, unroll_length: int) -> Schedule:
  """Assigns episodes to slots: each goes to the slot that is free first.

  Args:
    decisions: of each episode, in their order.
    batch_size: B.
    unroll_length: T.
  """
  free = [(0, slot) for slot in range(batch_size)]
  found = Schedule([[] for _ in free], [[] for _ in free], 0)
  for episode, count in enumerate(decisions):
    if count > 0:
      begin, slot = heapq.heappop(free)
      found.episodes[slot].append(episode)
      found.begins[slot].append(begin)
      heapq.heappush(free, (begin + math.ceil(count / unroll_length), slot))
  return found._replace(batches=max(end for end, _ in free))


class _Slot:
  """An episode that a slot plays, from some step on."""

  def __init__(self, steps: wire.Columns, at: int):
    self._steps, self._at = steps, at
    # Row `at` itself, where the columns hold differences.
    self._base = {name: getattr(steps, name)[:at + 1].sum(0, getattr(steps, name).dtype)
                  for name in _INTEGERS}
    self._decisions = len(steps.float32) - 1

  @property
  def over(self) -> bool:
    return self._at >= self._decisions

  def fill(self, batch: OrderedBatch[np.ndarray], slot: int, ends: wire.ColumnField,
           reward: wire.ColumnField) -> None:
    """Writes the next chunk into a slot of a batch of zeros."""
    length = len(batch.float32) - 1
    count = min(length, self._decisions - self._at)
    later = slice(self._at + 1, self._at + count + 1)
    for name, base in self._base.items():
      out, steps = getattr(batch, name)[:, slot], getattr(self._steps, name)[later]
      out[0], out[1:count + 1] = base, steps
      self._base[name] = base + steps.sum(0, steps.dtype)
    floats = batch.float32[:, slot]
    floats[:count + 1] = self._steps.float32[self._at:self._at + count + 1]
    floats[count + 1:] = self._steps.float32[-1]
    self._at += count
    if not self.over:  # as in data.assembler: the bootstrap step has earned nothing yet
      floats[count, reward.slice], floats[count, ends.slice] = 0, 1


def batches(decisions: Sequence[int], load: Callable[[int], wire.Columns], config: AgentConfig,
            batch_size: int, unroll_length: int, start: int = 0,
            ) -> Iterator[OrderedBatch[np.ndarray]]:
  """Yields the batches of one epoch; see `games.in_order`.

  Args:
    decisions: of each episode, in their order.
    load: position of an episode -> its steps [decisions + 1, width], integers as differences.
    config: the AgentConfig of the steps.
    batch_size: B.
    unroll_length: T.
    start: number of batches to skip.
  """
  plan, fields = schedule(decisions, batch_size, unroll_length), wire.layout(config).fields
  queues = [deque(zip(begins, episodes, strict=True))
            for begins, episodes in zip(plan.begins, plan.episodes, strict=True)]
  playing: list[_Slot | None] = [None] * batch_size
  for slot, queue in enumerate(queues):
    while len(queue) > 1 and queue[1][0] <= start:
      queue.popleft()
    if queue and queue[0][0] < start:
      begin, episode = queue.popleft()
      at = (start - begin) * unroll_length
      playing[slot] = _Slot(load(episode), at) if at < decisions[episode] else None
  for _ in range(start, plan.batches):
    batch = OrderedBatch(*wire.empty_batch(config, unroll_length, batch_size),
                         first=np.zeros(batch_size, bool))
    for slot, queue in enumerate(queues):
      now = playing[slot]
      if now is None or now.over:
        batch.first[slot] = True
        now = playing[slot] = _Slot(load(queue.popleft()[1]), 0) if queue else None
      if now is not None:
        now.fill(batch, slot, fields["discount"], fields["reward"])
    yield batch
