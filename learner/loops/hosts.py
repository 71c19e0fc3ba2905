"""Several learner hosts: joining them, checking that they agree, and their all-host consensus."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils

from starleague.common import run_files
from starleague.common.errors import UserError
from starleague.learner.loops.options import ReinforcementOptions

Batch = TypeVar("Batch")


def join_hosts(coordinator: str | None, hosts: int, host: int) -> None:
  """Joins this process to the hosts of a run. Call it before JAX is used.

  Args:
    coordinator: host:port of host 0, "auto" to ask the environment, or None for a single host.
    hosts: number of hosts.
    host: index of this one, from 0.

  Raises:
    UserError: the arguments contradict one another.
  """
  if host >= hosts:
    raise UserError(
      f"--host must be below --hosts, which is {hosts}, found {host}: hosts count from 0.")
  if coordinator is None:
    if hosts > 1:
      raise UserError(
        f"--hosts is {hosts} and --coordinator is not given: name host:port of host 0, or 'auto'.")
  elif coordinator == "auto":
    jax.distributed.initialize()
  else:
    jax.distributed.initialize(coordinator, hosts, host)


def check_hosts(settings: Mapping[str, Any], options: ReinforcementOptions) -> None:
  """Checks that all hosts run the same config and that their devices divide a batch.

  Args:
    settings: all values of the run's config, as JSON holds them.
    options: of the learner.

  Raises:
    UserError: the hosts' configs differ, or the devices do not divide the batch.
  """
  text = json.dumps(settings, sort_keys=True)
  digest = np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint8)
  if (multihost_utils.process_allgather(digest).reshape(-1, digest.size) != digest).any():
    raise UserError(
      "the hosts have read different settings: give all the same --run_dir, or copies of its "
      f"{run_files.CONFIG}.")
  size, devices = options.batch_size, jax.device_count()
  if size % (devices * options.accumulate):
    raise UserError(
      f"config key 'learner.batch_size' must be a multiple of {devices} devices times "
      f"'learner.accumulate' = {options.accumulate}, found {size}.")


def agreed(batches: Iterator[Batch], done: Callable[[], float],
           vote: Callable[[float], Callable[[], float]]) -> Iterator[tuple[Batch, float]]:
  """Yields batches until a host has none left or has done its share.

  A host must not start an update that another host does not start. The next batch is fetched and
  voted on before the current update starts, so that devices do not wait for votes.

  Args:
    batches: this host's batches.
    done: the share of the training that is over on this host; at 1 it stops.
    vote: starts a vote of all hosts; the function that it returns waits for the largest share.

  Yields:
    A batch, and the share of the training that is over, equal on all hosts.
  """
  batch = next(batches, None)
  largest = vote(1.0 if batch is None else done())
  while (share := largest()) < 1.0:
    following = next(batches, None)
    largest = vote(1.0 if following is None else done())
    assert batch is not None
    yield batch, share
    batch = following
