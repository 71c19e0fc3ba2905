"""Batches of trajectories from a data server or from a recording on disk."""

import os
import re
import threading

from starleague.data import wire
from starleague.data.reverb import recordings, sampler


def dataset(source: str | os.PathLike, batch_size: int, player: str | None = None,
            config: wire.Form | None = None, unroll_length: int | None = None, *,
            deadline_s: float = 300.0, prefetch: int = 2,
            stop: threading.Event | None = None) -> sampler.Dataset:
  """Returns an endless iterator of batches of trajectories, from a recording or a data server.

  Args:
    source: a folder written by `starleague.experiments.record`, which describes itself; or
      host:port of a data server, which needs `player`, `config` and `unroll_length`.
    batch_size: B, at least 1.
    player: name of the table.
    config: form of the steps; the AgentConfig of a recording, which may be left out.
    unroll_length: T of the trajectories.
    deadline_s: seconds to wait for a batch, or for a server that does not answer.
    prefetch: batches stacked ahead, at least 1.
    stop: ends the iteration and all waits when set.

  Returns:
    An iterator of `wire.Packed` numpy batches: columns [T + 1, B, width], state [B, width];
    `wire.unpack(batch, dataset.config)` converts them to trajectories on the device. Close it, or
    use it as a context manager. Sampling is uniform, and with replacement from a recording.

  Raises:
    RecordingError: the folder is no recording, is damaged, or has another preset, unroll length or
      version.
    SignatureMismatchError: the table holds other trajectories; raised before any is sampled.
    ServerUnavailableError: no server answers at the address within the deadline.
    StoppedError: `stop` was set before the server answered.
    ValueError: `source` is neither a folder nor an address, an address lacks an argument, or
      `batch_size` or `prefetch` is below 1.
  """
  if os.path.isdir(source):
    if isinstance(config, wire.StepFormat):
      raise ValueError(f"{os.fspath(source)!r}: recordings hold AlphaStar steps; config: expected "
                       "an AgentConfig or None, found a StepFormat.")
    return recordings.Recorded(source, batch_size, config, unroll_length, deadline_s, prefetch,
                               stop)
  address = os.fspath(source)
  if not re.fullmatch(r"[^/]+:\d+", address):
    raise ValueError(f"{address!r} is neither a folder of recorded trajectories nor the host:port "
                     "of a data server.")
  if player is None or config is None or unroll_length is None:
    raise ValueError(
      f"a dataset of the server at {address} needs player, config and unroll_length; found "
      f"{player!r}, {getattr(config, 'name', config)!r} and {unroll_length!r}.")
  return sampler.Dataset(address, player, batch_size, config, unroll_length, deadline_s, prefetch,
                         stop)
