"""The replay server: its tables, a learner's batches, and the parameters that actors fetch.

Each player has a table of packed trajectories. It is sampled uniformly (a queue would put both uses
of an item side by side in one batch), each item exactly `samples_per_item` times, and a rate
limiter holds actors back rather than let unsampled trajectories be dropped: "received data is
buffered and replayed twice" (Vinyals et al. 2019, Methods). A second table holds the player's
newest parameters.
"""

import os
import queue
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from typing import Any

import numpy as np

from starleague.agent import transport, wire
from starleague.agent.transport import (
  ReplayServerError,
  ReplayTimeoutError,
  SignatureMismatchError,
  parameters_table,
)

__all__ = ["Dataset", "ParameterPublisher", "ReplayServerError", "ReplayTimeoutError",
           "SignatureMismatchError", "dataset", "load_reverb", "make_server", "make_tables",
           "publish"]

# A message of Reverb's is limited to a few hundred MB: a large agent's parameters go in pieces.
CELL_BYTES = 16 * 2**20
# Trajectories a sampler asks for ahead. They count as sampled: a learner that dies loses them.
SAMPLES_IN_FLIGHT = 8


def load_reverb() -> Any:
  """The module, imported (with TensorFlow: seconds, 0.5 GB) when it is first needed."""
  with transport.quiet_imports():
    import reverb
  return reverb


def signature(spec: dict[str, Any]) -> dict[str, Any]:
  """A spec by field as Reverb states it."""
  import tensorflow as tf  # Reverb has loaded it
  return {name: tf.TensorSpec(x.shape, x.dtype, name) for name, x in spec.items()}


def make_tables(players: Sequence[str], config, unroll_length: int, *, samples_per_item: int = 2,
                min_size: int = 16, tolerance: int = 64, max_size: int | None = None) -> list[Any]:
  """Two tables for each player: its trajectories (named as it), its newest parameters.

  Args:
    players: their names.
    config: the AgentConfig.
    unroll_length: T.
    samples_per_item: how many times each trajectory is learnt from.
    min_size: trajectories that must be there before any is sampled.
    tolerance: how many trajectories actors may run ahead of the learner, or behind.
    max_size: trajectories held; None for the least that never drops an unsampled one.

  Returns:
    A list of reverb.Table.

  Raises:
    ValueError: where names repeat, or `max_size` is so small that trajectories would be lost.
  """
  if len(set(players)) != len(players) or not players:
    raise ValueError(f"players must be distinct and at least one, found {list(players)}.")
  # Each trajectory held has a use left, and the limiter keeps the uses left below this bound.
  enough = samples_per_item * (min_size + tolerance + 1)
  if max_size is None:
    max_size = enough
  if max_size < enough:
    raise ValueError(
      f"max_size must be at least {enough} = samples_per_item * (min_size + tolerance + 1), or "
      f"trajectories would be dropped unseen; found {max_size}: raise it or lower the others.")
  reverb = load_reverb()
  tables = []
  for player in players:
    tables.append(reverb.Table(
      name=player, sampler=reverb.selectors.Uniform(), remover=reverb.selectors.Fifo(),
      max_size=max_size, max_times_sampled=samples_per_item,
      rate_limiter=reverb.rate_limiters.SampleToInsertRatio(
        samples_per_insert=float(samples_per_item), min_size_to_sample=min_size,
        error_buffer=float(samples_per_item * tolerance)),
      signature=signature(wire.packed_spec(config, unroll_length)._asdict())))
    tables.append(reverb.Table(
      name=parameters_table(player), sampler=reverb.selectors.Lifo(),
      remover=reverb.selectors.Fifo(), max_size=1,
      rate_limiter=reverb.rate_limiters.MinSize(1),
      signature=signature(transport.parameters_spec())))
  return tables


def make_server(tables: Sequence[Any], port: int | None = None,
                checkpoint_dir: str | None = None) -> Any:
  """Starts a replay server in this process; it runs until its `stop()`.

  Reverb listens on every interface of the machine and cannot be told otherwise, and it asks nobody
  who they are: keep the port behind a firewall.

  Args:
    tables: of `make_tables`.
    port: to listen on; None for a free one, to be read from the result's `port`.
    checkpoint_dir: where checkpoints are written, and the newest is restored from; None for a
      temporary directory.

  Returns:
    A reverb.Server. `server.localhost_client().checkpoint()` writes a checkpoint.

  Raises:
    OSError: somebody else listens on the port.
  """
  if port is not None:
    _check_port(port)
  reverb = load_reverb()
  checkpointer = None
  if checkpoint_dir is not None:
    from reverb.platform.checkpointers_lib import DefaultCheckpointer
    checkpointer = DefaultCheckpointer(str(checkpoint_dir))
  return reverb.Server(tables=list(tables), port=port, checkpointer=checkpointer)


def _check_port(port: int) -> None:
  """OSError where a port is taken: Reverb would share it, and clients reach either server."""
  with socket.socket() as probe:
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Reverb's own, after a restart
    try:
      probe.bind(("", port))
    except OSError as error:
      raise OSError(
        error.errno, f"port {port} is in use: stop the replay server that runs there, or choose "
        "another port") from error


class Dataset(Iterator[wire.Packed]):
  """Batches of a table's trajectories, stacked by a thread; see `dataset`.

  Attributes:
    config: the AgentConfig that `wire.unpack` needs to make trajectories of them.
    unroll_length: T.
  """

  def __init__(self, address: str, player: str, batch_size: int, config, unroll_length: int,
               deadline_s: float, prefetch: int):
    self._address, self._table, self._deadline_s = address, player, deadline_s
    self.config, self.unroll_length = config, unroll_length
    self._spec, self._batch_size = wire.packed_spec(config, unroll_length), batch_size
    self._client, info = transport.connect(load_reverb(), address, deadline_s)
    transport.check_signature(info, player, address, self._spec._asdict())
    self._ready: queue.Queue[wire.Packed | Exception] = queue.Queue(maxsize=prefetch)
    self._closed = threading.Event()
    self._thread = threading.Thread(target=self._fill, name=f"replay-{player}", daemon=True)
    self._thread.start()

  def _fill(self) -> None:
    try:
      sampler = self._client._client.NewSampler(self._table, -1, SAMPLES_IN_FLIGHT)
      while not self._closed.is_set():
        self._offer(self._batch(sampler))
    except Exception as error:  # handed to the consumer, which raises it
      self._offer(error)

  def _batch(self, sampler) -> wire.Packed:
    """The next `batch_size` samples; Reverb itself reconnects to a server that was restarted."""
    columns = [np.empty((x.shape[0], self._batch_size, *x.shape[1:]), x.dtype)
               for x in self._spec[:-1]]
    state = np.empty((self._batch_size, *self._spec.state.shape), self._spec.state.dtype)
    batch = wire.Packed(*[*columns, state])
    by_name = sorted(batch._asdict().items())  # the order in which Reverb flattens a dictionary
    for b in range(self._batch_size):
      sample = sampler.GetNextTrajectory()[-len(by_name):]  # before it: key, probability, ...
      for (name, out), value in zip(by_name, sample, strict=True):
        (out if name == "state" else out.swapaxes(0, 1))[b] = value
    return batch

  def _offer(self, item: wire.Packed | Exception) -> None:
    while not self._closed.is_set():
      try:
        return self._ready.put(item, timeout=0.5)
      except queue.Full:
        continue

  def __next__(self) -> wire.Packed:
    """The next batch.

    Raises:
      ReplayTimeoutError: the server answers but the table gave no batch within the deadline.
      ReplayServerError: the server has not answered for as long.
      StopIteration: after `close`.
    """
    start, answered, wait = time.monotonic(), time.monotonic(), 0.5
    while not self._closed.is_set():
      try:
        item = self._ready.get(timeout=wait)
      except queue.Empty:
        info = transport.server_info(load_reverb(), self._client)
        now = time.monotonic()
        answered = now if info is not None else answered
        if now - answered > self._deadline_s:
          raise ReplayServerError(
            f"{transport.unreachable(self._address)} (no answer for {now - answered:.0f} s)."
          ) from None
        if info is not None and now - start > self._deadline_s:
          raise ReplayTimeoutError(self._starved(info, now - start)) from None
        wait = min(2 * wait, 5.0, max(0.1, self._deadline_s / 4))
        continue
      if isinstance(item, Exception):
        self.close()
        raise ReplayServerError(
          f"sampling table {self._table!r} of {self._address} failed: {item}") from item
      return item
    raise StopIteration

  def _starved(self, info: dict[str, Any], seconds: float) -> str:
    table = info[self._table]
    limiter = table.rate_limiter_info
    return (
      f"table {self._table!r} of {self._address} gave no batch of {self._batch_size} in "
      f"{seconds:.0f} s: it holds {table.current_size} trajectories, sampling needs "
      f"{limiter.min_size_to_sample}, {limiter.insert_stats.completed} were ever written; check "
      "that actors of this player run and write here.")

  def close(self) -> None:
    """Stops the thread; one that waits inside Reverb ends with its next sample."""
    self._closed.set()
    self._thread.join(timeout=1.0)

  def __enter__(self) -> "Dataset":
    return self

  def __exit__(self, *_) -> None:
    self.close()


def dataset(source: str | os.PathLike, batch_size: int, player: str | None = None, config=None,
            unroll_length: int | None = None, *, deadline_s: float = 300.0,
            prefetch: int = 2) -> Dataset:
  """Batches of trajectories without end: of a folder that was recorded, or of a live server.

  Args:
    source: a folder that `starleague.experiments.record` wrote, which says itself what it holds;
      or host:port of a replay server, which needs to be told the next three.
    batch_size: B.
    player: whose table.
    config: the AgentConfig of the trajectories.
    unroll_length: T of the trajectories.
    deadline_s: seconds that a batch, or a server that does not answer, is waited for.
    prefetch: batches stacked ahead.

  Returns:
    An iterator of `wire.Packed` numpy batches: columns [T + 1, B, width], state [B, width];
    `wire.unpack(batch, dataset.config)` makes trajectories of them on the device. Close it when
    done, or use it as a context. Draws are uniform; of a folder, with replacement.

  Raises:
    RecordingError: the folder is no recording, is damaged or of another preset, unroll length or
      version.
    SignatureMismatchError: the table does not hold such trajectories; raised before any is sampled.
    ReplayServerError: no server answers at the address within the deadline.
    ValueError: there is no such folder and it is no address, or an address lacks what it needs.
  """
  if os.path.isdir(source):
    from starleague.learner import recordings  # which is made of this module
    return recordings.Recorded(source, batch_size, config, unroll_length, deadline_s, prefetch)
  address = os.fspath(source)
  if not re.fullmatch(r"[^/]+:\d+", address):
    raise ValueError(f"{address!r} is neither a folder of recorded trajectories nor the host:port of "
                     "a replay server.")
  if player is None or config is None or unroll_length is None:
    raise ValueError(f"a dataset of the server at {address} needs player, config and unroll_length; "
                     f"found {player!r}, {getattr(config, 'name', config)!r} and {unroll_length!r}.")
  return Dataset(address, player, batch_size, config, unroll_length, deadline_s, prefetch)


def publish(client: Any, player: str, params: Any, step: int, *, deadline_s: float = 300.0) -> None:
  """Makes `params` the newest of `player`.

  Args:
    client: a reverb.Client.
    player: whose.
    params: a tree of arrays; without a leading device axis.
    step: the learner's, for whoever fetches them.
    deadline_s: seconds to wait for a server that does not answer.

  Raises:
    ReplayServerError: it did not answer by then.
  """
  _send(client, player, _parameters_item(params, step), deadline_s)


def _parameters_item(params: Any, step: int) -> dict[str, np.ndarray]:
  """The fields of `transport.parameters_spec`, copied out of a tree."""
  vector = wire.flatten_parameters(params)
  cell = max(1, min(CELL_BYTES, vector.size))
  count = max(1, -(-vector.size // cell))
  if count * cell != vector.size:
    vector = np.pad(vector, (0, count * cell - vector.size))
  return {
    "cells": vector.reshape(count, cell),
    "hash": np.frombuffer(wire.parameters_hash(params), np.uint8),
    "size": np.asarray(wire.parameters_size(params), np.int64), "step": np.asarray(step, np.int64)}


def _send(client: Any, player: str, item: dict[str, np.ndarray], deadline_s: float) -> None:
  reverb = load_reverb()
  what = (f"{transport.unreachable(client.server_address)}; the parameters of {player!r} at step "
          f"{int(item['step'])} were not published within {deadline_s:.0f} s")
  # Reverb 0.14 spoils the process's memory where two of its writers wait for a server that is
  # gone, so this one is not made before the server answers.
  transport.retry(lambda: client.server_info(timeout=2), deadline_s=deadline_s, what=what,
                  errors=(reverb.errors.ReverbError, RuntimeError))
  cells = item["cells"]
  writer = client.trajectory_writer(num_keep_alive_refs=len(cells))
  for part in cells[:-1]:
    writer.append({"cells": part})
  writer.append(item | {"cells": cells[-1]})
  history = writer.history
  writer.create_item(parameters_table(player), 1.0, {
    name: history[name][-len(cells):] if name == "cells" else history[name][-1] for name in item})
  try:
    writer.flush(timeout_ms=int(1000 * deadline_s))
  except (reverb.errors.ReverbError, RuntimeError) as error:
    raise ReplayServerError(f"{what}: {error}") from error
  finally:
    writer.close()


class ParameterPublisher:
  """Publishes a player's parameters, at most every `interval_s` seconds, beside the learner."""

  def __init__(self, address: str, player: str, *, interval_s: float = 10.0,
               deadline_s: float = 300.0, clock: Callable[[], float] = time.monotonic):
    """Connects.

    Args:
      address: host:port of the server.
      player: whose parameters.
      interval_s: seconds between publications: actors ask for new ones every 10 s (Vinyals et al.
        2019, Methods).
      deadline_s: seconds that a server that does not answer is waited for.
      clock: seconds that never go back.

    Raises:
      ReplayServerError: no server answers within the deadline.
      SignatureMismatchError: the server has no such player.
    """
    self._client, info = transport.connect(load_reverb(), address, deadline_s)
    transport.check_signature(
      info, parameters_table(player), address, transport.parameters_spec())
    self._player, self._deadline_s = player, deadline_s
    self._interval_s, self._clock = interval_s, clock
    self._last: float | None = None
    self._sender = futures.ThreadPoolExecutor(1, thread_name_prefix=f"publish-{player}")
    self._sending: futures.Future | None = None

  def __call__(self, params: Callable[[], Any], step: int) -> bool:
    """Begins to publish if it is time and the last publication is through; whether it did.

    Sending goes on in a thread: 220 MB take four seconds, which the learner need not wait for.

    Args:
      params: gives the tree; called only if it is time, since fetching it from a device costs. The
        tree is copied before this returns.
      step: the learner's.

    Raises:
      ReplayServerError: the publication before failed.
    """
    now = self._clock()
    if self._last is not None and now - self._last < self._interval_s:
      return False
    if self._sending is not None and not self._sending.done():
      return False
    self.flush()
    item = _parameters_item(params(), step)
    self._sending = self._sender.submit(_send, self._client, self._player, item, self._deadline_s)
    self._last = now
    return True

  def flush(self) -> None:
    """Waits for what is being sent; raises ReplayServerError where that failed."""
    sending, self._sending = self._sending, None
    if sending is not None:
      sending.result()

  def close(self) -> None:
    """Waits for what is being sent and ends the thread; the errors are `flush`'s."""
    self._sender.shutdown(wait=True)
    self.flush()
