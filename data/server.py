"""The data server: its tables, a learner's batches, and the parameters that actors fetch.

Each player has a table of packed trajectories. It is sampled uniformly (a queue would put both uses
of an item side by side in one batch), each item exactly `samples_per_item` times, and a rate
limiter holds actors back rather than let unsampled trajectories be dropped: "received data is
buffered and replayed twice" (Vinyals et al. 2019, Methods). A second table holds the player's
newest parameters.
"""

import socket
from collections.abc import Sequence
from typing import Any

from starleague.data import transport, wire
from starleague.data.transport import load_reverb, parameters_table


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
  """Starts a data server in this process; it runs until its `stop()`.

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
        error.errno, f"port {port} is in use: stop the data server that runs there, or choose "
        "another port") from error
