"""The inference service: batches the requests of games that run outside JAX.

One thread gathers requests from a transport, infers them in batches and answers. While a batch is
inferred, the next one is gathered, and queued behind it as soon as it is full: the device does not
wait for the host. This is the dynamic batching of AlphaStar's actors (Vinyals et al. 2019,
Methods).
"""

import collections
import time
from collections.abc import Callable, Sequence
from concurrent import futures
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from starleague.actor.inference import actions
from starleague.actor.inference import slots as slots_lib
from starleague.actor.inference.batching import Batcher
from starleague.actor.inference.model import Inferred, Model
from starleague.data import wire
from starleague.data.records import Records

_QUEUED_BATCHES = 2  # on the device: one is inferred, one waits behind it
_IDLE_S = 1.0  # longest wait for a request


class Polled(NamedTuple):
  """What happened at a transport."""

  asked: Sequence[int] = ()  # slots with a new request
  freed: Sequence[int] = ()  # slots whose client is gone


class Transport(Protocol):
  """Carries requests and answers between the clients' slots and the service."""

  @property
  def claimed(self) -> int:
    """Slots that clients hold."""

  def poll(self, timeout_s: float) -> Polled:
    """Waits until there is a request, `wake` is called or the time is over."""

  def wake(self) -> None:
    """Ends the current or next `poll`; called from another thread."""

  def request(self, slot: int) -> np.ndarray | None:
    """Returns the request in a slot, [bytes] uint8, or None: its client is gone.

    The client may change it at any time: a copy is checked, never the memory itself.
    """

  def answer(self, slots: Sequence[int], answers: np.ndarray) -> None:
    """Answers requests with rows [n, width] int32; slots without a client are left out."""

  def refuse(self, slot: int, reason: str) -> None:
    """Disconnects the client of a slot, which broke the protocol; its slots are freed."""

  def release(self, slot: int) -> None:
    """Makes a freed slot claimable again: no batch holds it any more."""


class Served(NamedTuple):
  """Numbers of the service since its start."""

  requests: int  # answered
  batches: int
  padding: int  # rows inferred for no request


class _Started(NamedTuple):
  """A batch on its way through the device."""

  slots: tuple[int, ...]
  requests: np.ndarray  # [size, bytes] uint8
  inferred: futures.Future  # of Inferred, on the host


class Service:
  """Answers requests until the caller stops calling `run_once`."""

  def __init__(self, model: Model, batcher: Batcher, transport: Transport, form: wire.Form,
               on_records: Callable[[Records, np.ndarray], object] | None = None):
    """Takes the parts.

    Args:
      model: with parameters of at least one player.
      batcher: with the sizes of the model.
      transport: of the clients.
      form: of the steps, an AgentConfig for the agent's.
      on_records: called with the recorded steps [1, n, ...] of each batch and their players
        [1, n], after its answers were sent. A row is a slot. While it blocks, no request is
        answered: its back-pressure reaches the games.
    """
    self._model, self._batcher, self._transport = model, batcher, transport
    self._form, self._on_records = form, on_records
    self._started: collections.deque[_Started] = collections.deque()
    self._fetcher = futures.ThreadPoolExecutor(1, "inference")
    places = slots_lib.slot_format(form)
    self._request_size = places.request
    self._answer_width = (places.answer.stop - places.answer.start) // 4
    self._counts = Served(0, 0, 0)
    self._inferring: set[int] = set()  # slots of started batches
    self._leaving: set[int] = set()  # those of them whose client is gone

  @property
  def served(self) -> Served:
    """The numbers so far."""
    return self._counts

  def run_once(self) -> None:
    """Waits for an event, then starts and finishes the batches that are ready.

    Raises the errors of the device and of `on_records`.
    """
    self._receive(self._transport.poll(self._timeout()))
    self._start_ready()
    while self._started and self._started[0].inferred.done():
      self._finish(self._started.popleft())
      self._start_ready()

  def close(self) -> None:
    """Ends the thread that waits for the device."""
    self._fetcher.shutdown()

  def _timeout(self) -> float:
    deadline = self._batcher.deadline()
    if deadline is None or self._started:  # the end of a batch wakes the transport
      return _IDLE_S
    return max(0.0, min(_IDLE_S, deadline - time.monotonic()))

  def _receive(self, polled: Polled) -> None:
    now = time.monotonic()
    for slot in polled.freed:
      self._batcher.discard(slot)
      if slot in self._inferring:
        self._leaving.add(slot)  # the batch must not answer another client
      else:
        self._transport.release(slot)
    ended, players = [], self._model.players
    for slot in polled.asked:
      request = self._transport.request(slot)
      if request is None:
        continue
      header = slots_lib.header(request)
      if slot in self._batcher or slot in self._inferring:
        self._transport.refuse(slot, "asks again before its answer")
      elif header.last:
        ended.append(slot)
      elif header.player not in players:
        self._transport.refuse(slot, f"player {header.player} has no parameters here")
      else:
        self._batcher.add(slot, header.player, now)
    if ended:
      self._end(ended)

  def _gather(self, slots: Sequence[int], size: int) -> tuple[tuple[int, ...], np.ndarray]:
    """Returns the slots that still have a client, and copies of their requests [size, bytes]."""
    requests = np.empty((size, self._request_size), np.uint8)
    held: list[int] = []
    for slot in slots:
      request = self._transport.request(slot)
      if request is not None:
        requests[len(held)] = request
        held.append(slot)
    requests[len(held):] = 0
    return tuple(held), requests

  def _start_ready(self) -> None:
    """Starts batches that are ready, as many as are queued on the device."""
    while len(self._started) < _QUEUED_BATCHES:
      waited_for = len(self._batcher) + len(self._inferring)
      batch = self._batcher.take(time.monotonic(), busy=bool(self._started),
                                 coming=waited_for < self._transport.claimed)
      if batch is None:
        return
      slots, requests = self._gather(batch.slots, batch.size)
      fetched = self._fetcher.submit(
        jax.tree.map, np.asarray, self._model.start(batch.player, slots, requests))
      fetched.add_done_callback(lambda _: self._transport.wake())
      self._started.append(_Started(slots, requests, fetched))
      self._inferring.update(slots)

  def _finish(self, started: _Started) -> None:
    """Answers a batch and records its steps."""
    slots, size = started.slots, len(started.requests)
    self._inferring.difference_update(slots)
    inferred: Inferred = jax.tree.map(lambda x: x[:len(slots)], started.inferred.result())
    self._transport.answer(slots, inferred.answers)
    for slot in self._leaving.intersection(slots):
      self._leaving.remove(slot)
      self._transport.release(slot)
    self._counts = Served(self._counts.requests + len(slots), self._counts.batches + 1,
                          self._counts.padding + size - len(slots))
    self._record(slots, started.requests[:len(slots)], inferred)

  def _end(self, slots: Sequence[int]) -> None:
    """Records terminal observations, which no action follows."""
    held, requests = self._gather(slots, len(slots))
    requests = requests[:len(held)]

    def zeros(spec: Any) -> Any:
      return jax.tree.map(lambda x: np.zeros((len(held), *x.shape), x.dtype), spec)

    answers = np.zeros((len(held), self._answer_width), np.int32)
    self._transport.answer(held, answers)
    self._record(held, requests, Inferred(answers, zeros(actions.acted_spec(self._form)[1]),
                                          zeros(wire.state_spec(self._form))))

  def _record(self, slots: Sequence[int], requests: np.ndarray, inferred: Inferred) -> None:
    header = slots_lib.headers(requests)
    recorded = np.flatnonzero(header.recorded)
    if self._on_records is None or not recorded.size:
      return
    columns = slots_lib.host_columns(requests, self._form)
    action = slots_lib.unpack_answers(inferred.answers, self._form)
    actions.set_actions(columns, action, inferred.log_prob, self._form)
    records = Records(row=np.asarray(slots, np.int32), first=header.first != 0,
                      last=header.last != 0, step=columns, core_state=inferred.core)
    # Rows are chosen where some are left out: choosing copies them.
    rows = recorded if recorded.size < len(slots) else slice(None)
    self._on_records(*jax.tree.map(lambda x: x[rows][None], (records, header.player)))
