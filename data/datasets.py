"""Batches of trajectories, of a live server or of a folder on disk."""

import os
import re

from starleague.data import recordings, sampler


def dataset(source: str | os.PathLike, batch_size: int, player: str | None = None, config=None,
            unroll_length: int | None = None, *, deadline_s: float = 300.0,
            prefetch: int = 2) -> sampler.Dataset:
  """Batches of trajectories without end: of a folder that was recorded, or of a live server.

  Args:
    source: a folder that `starleague.experiments.record` wrote, which says itself what it holds;
      or host:port of a data server, which needs to be told the next three.
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
    ServerUnavailableError: no server answers at the address within the deadline.
    ValueError: there is no such folder and it is no address, or an address lacks what it needs.
  """
  if os.path.isdir(source):
    return recordings.Recorded(source, batch_size, config, unroll_length, deadline_s, prefetch)
  address = os.fspath(source)
  if not re.fullmatch(r"[^/]+:\d+", address):
    raise ValueError(f"{address!r} is neither a folder of recorded trajectories nor the host:port of "
                     "a data server.")
  if player is None or config is None or unroll_length is None:
    raise ValueError(f"a dataset of the server at {address} needs player, config and unroll_length; "
                     f"found {player!r}, {getattr(config, 'name', config)!r} and {unroll_length!r}.")
  return sampler.Dataset(address, player, batch_size, config, unroll_length, deadline_s, prefetch)
