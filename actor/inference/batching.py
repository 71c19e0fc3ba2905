"""Dynamic batching: requests wait until a batch is full, or the oldest has waited long enough.

The queues are plain Python without threads or clocks: the caller gives the time. They are bounded,
as a row has at most one request at a time.
"""

import bisect
from collections.abc import Sequence
from typing import NamedTuple


class Batch(NamedTuple):
  """Requests that are inferred together, with the parameters of one player."""

  player: int
  slots: tuple[int, ...]  # longest waiting first
  size: int  # static size of the program that infers them, at least len(slots)


class Batcher:
  """Queues of requests, one for each player."""

  def __init__(self, sizes: Sequence[int], wait_s: float):
    """Creates empty queues.

    Args:
      sizes: static sizes of a batch, ascending; a batch is padded to the least that holds it.
      wait_s: longest time that a request waits for others, in seconds.

    Raises:
      ValueError: the sizes are not positive and ascending, or the time is negative.
    """
    if not sizes or list(sizes) != sorted(set(sizes)) or sizes[0] < 1:
      raise ValueError(f"sizes of batches must be positive and ascending, found {list(sizes)}")
    if wait_s < 0:
      raise ValueError(f"wait_s must be at least 0, found {wait_s}")
    self._sizes, self._wait_s = tuple(sizes), wait_s
    self._queues: dict[int, dict[int, float]] = {}  # by player: since when each slot waits
    self._player: dict[int, int] = {}  # by waiting slot

  def __len__(self) -> int:
    """Returns the number of waiting requests."""
    return len(self._player)

  def __contains__(self, slot: object) -> bool:
    """Returns whether a slot waits."""
    return slot in self._player

  def add(self, slot: int, player: int, now: float) -> None:
    """Adds a request.

    Raises:
      ValueError: the slot waits already.
    """
    if slot in self._player:
      raise ValueError(f"slot {slot} asks again before its answer")
    self._player[slot] = player
    self._queues.setdefault(player, {})[slot] = now

  def discard(self, slot: int) -> None:
    """Removes the request of a slot, if it waits: its client is gone."""
    player = self._player.pop(slot, None)
    if player is not None:
      del self._queues[player][slot]
      if not self._queues[player]:
        del self._queues[player]

  def take(self, now: float, *, busy: bool, coming: bool = True) -> Batch | None:
    """Returns the next batch, or None: it is better to wait.

    The batch with the oldest request comes first, so that a player of few rows is not starved by
    one whose batches are always full.

    Args:
      now: time in the unit of `wait_s`.
      busy: whether a batch is being inferred. Then a batch is taken only if one is full: a partial
        one could not start earlier, and may fill up meanwhile.
      coming: whether other rows may still ask; if not, waiting is useless.
    """
    full = [player for player, queue in self._queues.items() if len(queue) >= self._sizes[-1]]
    if busy and not full:
      return None
    ready = full + [player for player in self._queues if player not in full and (
      not coming or now - self._oldest(player) >= self._wait_s)]
    if not ready:
      return None
    player = min(ready, key=self._oldest)
    slots = tuple(self._queues[player])[:self._sizes[-1]]
    for slot in slots:
      self.discard(slot)
    return Batch(player, slots, self._sizes[bisect.bisect_left(self._sizes, len(slots))])

  def deadline(self) -> float | None:
    """Returns the time at which the oldest request is overdue, or None: none waits."""
    if not self._queues:
      return None
    return min(map(self._oldest, self._queues)) + self._wait_s

  def _oldest(self, player: int) -> float:
    return next(iter(self._queues[player].values()))
