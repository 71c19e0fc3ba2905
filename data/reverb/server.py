"""The data server: Reverb tables of trajectories and of newest parameters.

Each player has a table of packed trajectories. Sampling is uniform: a queue would put both uses of
an item side by side in one batch. Each item is sampled exactly `samples_per_item` times. A rate
limiter blocks actors so that no unsampled trajectory is dropped: "received data is buffered and
replayed twice" (Vinyals et al. 2019, Methods). A second table holds the player's newest parameters.
"""

import importlib
import os
import socket
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from starleague.data import wire
from starleague.data.reverb import quiet, sampler, transport
from starleague.data.reverb.transport import load_reverb, parameters_table


def signature(spec: Mapping[str, Any]) -> dict[str, Any]:
  """Returns Reverb's signature of a spec with shape and dtype for each field."""
  import tensorflow as tf  # Reverb has loaded it
  return {name: tf.TensorSpec(x.shape, x.dtype, name) for name, x in spec.items()}


FIFO, UNIFORM, PRIORITISED = "fifo", "uniform", "prioritised"


def make_table(name: str, form: wire.Form, unroll_length: int, sampler: str, max_size: int, *,
               min_size: int = 1, exponent: float = 1.0) -> Any:
  """Returns a table of trajectories that leaves the replay ratio to its learner.

  Args:
    name: of the table.
    form: of the steps.
    unroll_length: T.
    sampler: FIFO: a queue, each trajectory is sampled once, in order, and a full queue blocks its
      writers; UNIFORM or PRIORITISED: replay, of which the oldest trajectory is removed.
    max_size: capacity in trajectories.
    min_size: trajectories in the table before the first is sampled.
    exponent: of priorities; 0 samples uniformly.

  Returns:
    A reverb.Table.

  Raises:
    ValueError: the sampler is unknown, or `min_size` is not in 1 to `max_size`.
  """
  if not 1 <= min_size <= max_size:
    raise ValueError(f"table {name!r}: min_size: expected 1 to {max_size}, found {min_size}.")
  reverb = load_reverb()
  fields = signature(wire.packed_spec(form, unroll_length)._asdict())
  if sampler == FIFO:
    return reverb.Table.queue(name, max_size, signature=fields)
  if sampler not in (UNIFORM, PRIORITISED):
    raise ValueError(f"table {name!r}: sampler: expected {FIFO!r}, {UNIFORM!r} or {PRIORITISED!r}, "
                     f"found {sampler!r}.")
  return reverb.Table(
    name=name, max_size=max_size, remover=reverb.selectors.Fifo(), signature=fields,
    rate_limiter=reverb.rate_limiters.MinSize(min_size),
    sampler=(reverb.selectors.Uniform() if sampler == UNIFORM
             else reverb.selectors.Prioritized(exponent)))


def make_tables(players: Sequence[str], config: wire.Form, unroll_length: int, *,
                samples_per_item: int = 2, min_size: int = 16, tolerance: int = 64,
                max_size: int | None = None) -> list[Any]:
  """Returns two tables for each player: its trajectories (under its name), its newest parameters.

  Args:
    players: their names.
    config: form of the steps: the agent's.
    unroll_length: T.
    samples_per_item: how often each trajectory is sampled.
    min_size: trajectories in the table before the first is sampled.
    tolerance: number of trajectories by which actors may run ahead of the learner, or behind.
    max_size: capacity in trajectories; None: the least that never drops an unsampled one.

  Returns:
    A list of reverb.Table.

  Raises:
    ValueError: names repeat, or `max_size` is too small to keep unsampled trajectories.
  """
  if len(set(players)) != len(players) or not players:
    raise ValueError(f"players must be distinct and at least one, found {list(players)}.")
  # Each trajectory in the table has a use left, and the limiter bounds the number of uses left.
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


class DataServer:
  """A running Reverb server; see `make_server`. It stops at the latest when the process exits.

  Attributes:
    port: the port that it listens on.
  """

  def __init__(self, tables: Sequence[Any], port: int | None, checkpoint_dir: str | None):
    reverb = load_reverb()
    from reverb.platform.checkpointers_lib import DefaultCheckpointer
    # Reverb's default would leave a temporary folder behind.
    temporary = tempfile.TemporaryDirectory() if checkpoint_dir is None else None
    checkpointer = DefaultCheckpointer(checkpoint_dir or temporary.name)  # type: ignore[union-attr]
    try:
      with quiet.quiet_stderr():
        self._server = reverb.Server(tables=list(tables), port=port, checkpointer=checkpointer)
    except BaseException:
      if temporary is not None:
        temporary.cleanup()
      raise
    self.port: int = self._server.port
    self._finalizer = weakref.finalize(self, _stop, self._server, port is None, temporary)

  def localhost_client(self) -> Any:
    """Returns a reverb.Client of this server."""
    return load_reverb().Client(f"localhost:{self.port}")

  def checkpoint(self) -> str:
    """Writes a checkpoint and returns its path."""
    with quiet.quiet_stderr():
      return self.localhost_client().checkpoint()

  def stop(self) -> None:
    """Ends the waits of closed datasets and stops the server; a second call does nothing."""
    if self._finalizer.alive:
      sampler.release(self.port)
    self._finalizer()

  def __enter__(self) -> "DataServer":
    return self

  def __exit__(self, error: type[BaseException] | None, value: BaseException | None,
               traceback: TracebackType | None) -> None:
    self.stop()


def _stop(server: Any, picked_port: bool, temporary: tempfile.TemporaryDirectory | None) -> None:
  """Stops a reverb.Server and takes over its `__del__`, which fails while the process exits."""
  with quiet.quiet_stderr():
    server.stop()
    del server._server
  if picked_port:
    importlib.import_module("portpicker").return_port(server._port)
  del server._port
  if temporary is not None:
    temporary.cleanup()


def make_server(tables: Sequence[Any], port: int | None = None,
                checkpoint_dir: str | os.PathLike | None = None) -> DataServer:
  """Starts a data server in this process; it runs until its `stop()`.

  Reverb listens on all interfaces of the machine without authentication and cannot be configured
  otherwise: keep the port behind a firewall.

  Args:
    tables: from `make_tables`.
    port: to listen on; None: a free one (see the result's `port`).
    checkpoint_dir: where checkpoints are written, and the newest is restored from; None: a
      temporary directory.

  Raises:
    OSError: another process listens on the port.
  """
  if port is not None:
    _check_port(port)
  return DataServer(tables, port, None if checkpoint_dir is None else os.fspath(checkpoint_dir))


def _check_port(port: int) -> None:
  """Raises OSError if a port is taken: Reverb would share it, and clients reach either server."""
  with socket.socket() as probe:
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Reverb does, for restarts
    try:
      probe.bind(("", port))
    except OSError as error:
      raise OSError(
        error.errno, f"port {port} is in use: stop the data server that runs there, or choose "
        "another port") from error
