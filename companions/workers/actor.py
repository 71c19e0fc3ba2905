"""Acting in workers: a thread serves their requests while the learner learns.

The service batches the requests that are there (dynamic batching, Espeholt et al. 2018, section
3.1). Parameters change between rounds only: all steps of a round have those of its start.
"""

import threading
from collections.abc import Callable
from concurrent import futures
from typing import Any

import jax
import numpy as np

from starleague.actor.inference import (
  Batcher,
  Header,
  Listener,
  Model,
  ServedPolicy,
  Service,
  sockets,
)
from starleague.common.errors import UserError
from starleague.companions.acting import Round
from starleague.companions.options import RunOptions
from starleague.companions.system import System
from starleague.companions.tasks.host import SEEDS
from starleague.companions.tasks.task import Task
from starleague.companions.workers import worker
from starleague.companions.workers.collector import Collector
from starleague.companions.workers.processes import STALLED_S, Workers
from starleague.data import wire

# A request does not wait for others: those that come while a batch is inferred are the next one.
WAIT_S = 0.0
_POLL_S = 0.2


def check(options: RunOptions, task: Task) -> None:
  """Checks that workers can step a task.

  Raises:
    UserError: they cannot; names the task, or the number of copies.
  """
  if options.workers and task.host is None:
    kind = "is joined" if task.parts else "is on JAX and runs inside the compiled program"
    raise UserError(f"workers: found {options.workers}, but task {task.name!r} {kind}; expected 0, "
                    "or one task of ale-, bsuite-, gymnasium- or popgym-")
  most = options.workers * sockets.MOST_SLOTS
  if options.workers and options.copies > most:
    raise UserError(f"copies: found {options.copies}, expected at most {most}, "
                    f"{sockets.MOST_SLOTS} a worker; raise workers")


def batch_sizes(copies: int, workers: int) -> list[int]:
  """Returns the static sizes of a batch: the copies of 1, 2, 4, ... workers, up to half of them.

  The requests of the other half are gathered meanwhile.
  """
  each, most = -(-copies // workers), -(-workers // 2)
  counts = [1]
  while 2 * counts[-1] < most:
    counts.append(2 * counts[-1])
  return sorted({each * count for count in (*counts, most)})


def serve(system: System, copies: int) -> ServedPolicy:
  """Returns a system as the inference service acts with it; `Header.seed` names the copy."""
  def act(params: Any, key: jax.Array, header: Header, step: Any,
          state: Any) -> tuple[Any, Any, Any]:
    return tuple(system.act(params, key, step.inputs, state, header.seed % copies))

  return ServedPolicy(system.initial_state, act)


class HostedActor:
  """An `acting.Actor` whose copies are stepped by workers."""

  def __init__(self, system: System, task: Task, form: wire.StepFormat, options: RunOptions,
               make: Callable[[int], Task], key: jax.Array, stop: threading.Event,
               target: Callable[..., object] = worker.run):
    """Starts the workers and compiles the service's programs.

    Args:
      system: that acts.
      task: that the copies are of.
      form: of the steps.
      options: of the run.
      make: number of copies -> task; importable, called in the workers.
      key: of actions and environments.
      stop: ends the wait for a round when set.
      target: main function of a worker.

    Raises:
      UserError: workers cannot step the task; see `check`.
    """
    check(options, task)
    copies, count = options.copies, options.workers
    self._stop, self._closing = stop, threading.Event()
    self._copies = [part.tolist() for part in np.array_split(np.arange(copies), count)]
    key, seeds_key = jax.random.split(key)
    self._seed = jax.random.key_data(seeds_key).astype(np.uint32).tolist()
    listener = Listener(form, copies)
    self._listener, self._target_arguments = listener, (listener.address, form, make)
    self._workers = Workers(count, target, self._arguments)
    try:
      sizes = batch_sizes(copies, count)
      template = jax.eval_shape(system.init, jax.random.key(0))
      self._device = jax.local_devices()[0]
      self._model = Model(serve(system, copies), form, copies, sizes, template, key)
      self._collector = Collector(listener, form, copies, options.iterations)
      self._service = Service(self._model, Batcher(sizes, WAIT_S), self._collector, form,
                              self._collector.add)
    except BaseException:
      self._workers.close()
      listener.close()
      raise
    self._thread = futures.ThreadPoolExecutor(1, "workers")

  def _arguments(self, number: int, replaced: int) -> tuple:
    """Returns the arguments of a worker; other seeds for each that replaces it."""
    copies = np.array(self._copies[number])
    draws = np.random.default_rng([*self._seed, replaced]).integers(
      SEEDS, size=sum(map(len, self._copies)))
    noise = copies + replaced * len(draws)
    return (*self._target_arguments, draws[copies], noise.astype(np.int32))

  def start(self, params: Any) -> Callable[[], Round | None]:
    """Starts a round, after those that have begun."""
    future = self._thread.submit(self._round, jax.device_put(params, self._device))

    def wait() -> Round | None:
      while not futures.wait([future], _POLL_S).done:
        if self._stop.is_set():
          return None
      return future.result()

    return wait

  def _round(self, params: Any) -> Round | None:
    """Serves a round; None if `close` ends it, or an earlier round has failed."""
    try:
      self._model.set_params(0, params)
      self._collector.begin()
      while not self._collector.complete:
        if self._closing.is_set():
          return None
        self._service.run_once()
        self._watch()
      return self._collector.take()
    except BaseException:
      self._closing.set()
      raise

  def _watch(self) -> None:
    """Replaces workers that have ended or stalled."""
    silent = set(self._collector.silent(STALLED_S))
    stalled = [number for number, copies in enumerate(self._copies) if silent.intersection(copies)]
    for number in self._workers.poll(stalled):
      self._collector.expect(self._copies[number])

  def cpu_seconds(self) -> float:
    """Returns the CPU time of the workers."""
    return self._workers.cpu_seconds()

  def pids(self) -> list[int]:
    """Returns the process ids of the workers."""
    return self._workers.pids()

  def close(self) -> None:
    """Ends the round that has begun, the workers and the service."""
    self._closing.set()
    self._listener.wake()
    self._thread.shutdown(cancel_futures=True)
    self._workers.close()
    self._service.close()
    self._listener.close()
