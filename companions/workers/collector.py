"""Rounds: each copy takes as many steps as the others, and waits for the next round.

The collector stands between the inference service and its clients. It lets a copy ask until it has
taken its steps of the round, holds its next request until the next round begins, and puts the
recorded steps in their places: moment and copy.
"""

import time
from collections.abc import Sequence

import jax
import numpy as np

from starleague.actor.inference import Listener
from starleague.actor.inference import slots as slots_lib
from starleague.actor.inference.service import Polled
from starleague.companions.acting import Episodes, Round
from starleague.data import wire
from starleague.data.records import Records


class Collector:
  """A `service.Transport` that serves rounds.

  Between rounds all requests are held.
  """

  def __init__(self, listener: Listener, form: wire.StepFormat, copies: int, iterations: int):
    """Takes the parts.

    Args:
      listener: of the workers. A slot belongs to the copy `Header.seed` modulo n.
      form: of the steps.
      copies: n, of the task.
      iterations: N, steps of a copy in a round.
    """
    self._listener, self._iterations, self._copies = listener, iterations, copies
    fields = wire.layout(form).fields
    self._reward, self._discount = fields["reward"].slice, fields["discount"].slice
    self._columns = wire.packed_spec(form, 0)[:-1]
    self._state, self._structure = jax.tree.flatten(wire.state_spec(form))
    self._copy: dict[int, int] = {}  # by slot that has asked
    self._held: list[int] = []  # slots whose copies have taken their steps
    self._released: list[int] = []  # slots that were held, in a round that has begun
    self._count = np.full(copies, iterations)  # steps of each copy in the round
    self._restarted = np.zeros(copies, bool)  # copies whose steps of the round follow none
    self._restarting = np.ones(copies, bool)  # the same of the next round
    self._heard = np.zeros(copies)  # since when each copy has not asked
    self._returns, self._lengths = np.zeros(copies, np.float32), np.zeros(copies, np.int32)
    self._steps: list[np.ndarray] = []  # [N, n, width] of each column
    self._cores: list[np.ndarray] = []  # [N, n, ...] of each leaf

  # The protocol of a transport.

  @property
  def claimed(self) -> int:
    """Slots that clients hold and that may still ask in this round."""
    return self._listener.claimed - len(self._held)

  def poll(self, timeout_s: float) -> Polled:
    """Waits for requests; holds those of copies that have taken their steps."""
    polled = self._listener.poll(0.0 if self._released else timeout_s)
    released, self._released = self._released, []
    for slot in polled.freed:
      self._lose(slot)
    asked = []
    for slot in [*released, *polled.asked]:
      copy = self._copy_of(slot)
      if copy is None:
        continue
      if self._count[copy] < self._iterations:
        self._heard[copy] = time.monotonic()
        asked.append(slot)
      else:
        self._held.append(slot)
    return Polled(asked, polled.freed)

  def wake(self) -> None:
    """Ends `poll`; any thread may call it."""
    self._listener.wake()

  def request(self, slot: int) -> np.ndarray | None:
    """Returns the request in a slot; None without a client."""
    return self._listener.request(slot)

  def answer(self, slots: Sequence[int], answers: np.ndarray) -> None:
    """Writes answers and notifies the clients."""
    self._listener.answer(slots, answers)

  def refuse(self, slot: int, reason: str) -> None:
    """Disconnects the client of a slot."""
    self._listener.refuse(slot, reason)

  def release(self, slot: int) -> None:
    """Makes a freed slot claimable again."""
    self._listener.release(slot)

  # Rounds.

  def begin(self) -> None:
    """Begins a round."""
    self._count[:] = 0
    self._heard[:] = time.monotonic()
    self._released, self._held = self._held, []
    self._restarted, self._restarting = self._restarting, np.zeros(self._copies, bool)
    shape = (self._iterations, self._copies)
    self._steps = [np.empty((*shape, x.shape[-1]), x.dtype) for x in self._columns]
    self._cores = [np.empty((*shape, *x.shape), x.dtype) for x in self._state]

  @property
  def complete(self) -> bool:
    """Whether all copies have taken their steps of the round."""
    return bool((self._count == self._iterations).all())

  def silent(self, seconds: float) -> list[int]:
    """Returns the copies that have steps to take and have not asked for a time."""
    late = (self._count < self._iterations) & (time.monotonic() - self._heard > seconds)
    return np.flatnonzero(late).tolist()

  def expect(self, copies: Sequence[int]) -> None:
    """Starts the time of copies again, as their worker has started."""
    self._heard[list(copies)] = time.monotonic()

  def add(self, records: Records, players: np.ndarray) -> None:
    """Adds steps [1, n, ...] of slots, as the service records them."""
    del players
    # A batch may hold slots whose clients were lost meanwhile: their copies begin again.
    owned = [(place, self._copy[slot]) for place, slot in enumerate(records.row[0].tolist())
             if slot in self._copy]
    if not owned:
      return
    places, copies = np.array(owned).T
    moments, rows = self._count[copies], places if len(owned) < records.row.size else slice(None)
    for table, found in zip(
        self._steps + self._cores, [*records.step, *jax.tree.leaves(records.core_state)],
        strict=True):
      table[moments, copies] = found[0, rows]
    self._count[copies] += 1

  def take(self) -> Round:
    """Returns the steps of a complete round.

    An episode is counted with the first step of the next one, which has its last reward.
    """
    assert self.complete, "the round is not complete"
    steps = wire.Columns(*self._steps)
    ended = steps.float32[..., self._discount][..., 0] == 0
    first = ended.copy()
    first[0] |= self._restarted
    records = Records(
      row=np.broadcast_to(np.arange(self._copies, dtype=np.int32), ended.shape), first=first,
      last=np.zeros(ended.shape, bool), step=steps,
      core_state=jax.tree.unflatten(self._structure, self._cores))
    return Round(records, self._episodes(steps.float32[..., self._reward][..., 0], ended),
                 np.flatnonzero(self._restarted).tolist())

  def _episodes(self, reward: np.ndarray, ended: np.ndarray) -> Episodes:
    """Adds up the rewards [N, n] of the transitions into the steps."""
    self._returns[self._restarted], self._lengths[self._restarted] = 0.0, -1
    returns, lengths = np.zeros_like(reward), np.zeros(reward.shape, np.int32)
    for moment in range(self._iterations):
      self._returns += reward[moment]
      self._lengths += 1
      returns[moment], lengths[moment] = self._returns, self._lengths
      self._returns[ended[moment]], self._lengths[ended[moment]] = 0.0, 0
    return Episodes(ended, returns, lengths)

  # Copies and their slots.

  def _copy_of(self, slot: int) -> int | None:
    """Returns the copy of a slot that asks; None if its client is gone, or steps no copy."""
    if slot in self._copy:
      return self._copy[slot]
    request = self._listener.request(slot)
    if request is None:
      return None
    header = slots_lib.header(request)
    copy = header.seed % self._copies
    if copy in self._copy.values() or not header.first:
      self._listener.refuse(slot, f"copy {copy} is stepped by another client, or has begun already")
      return None
    self._copy[slot] = copy
    return copy

  def _lose(self, slot: int) -> None:
    """Forgets the copy of a slot, which another worker begins again.

    Its steps of this round are dropped. If it has taken all of them, they stay.
    """
    copy = self._copy.pop(slot, None)
    if slot in self._held:
      self._held.remove(slot)
    if copy is None:
      return
    if self._count[copy] < self._iterations:
      self._count[copy] = 0
      self._restarted[copy] = True
    else:
      self._restarting[copy] = True
