"""Independent batches of games, the shards of a program, on several devices.

Operations of a batch of games are small, so threads that share them wait for each other. A device
for each core of a CPU, with a batch of its own, uses all cores. The number of shards is fixed: the
games do not depend on the number of devices.
"""

from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from starleague.actor import rollouts

AXIS = "shards"


def make_shards(program: rollouts.Rollouts, shards: int) -> rollouts.Rollouts:
  """Makes the compiled program that plays several batches of games of a program.

  It runs on as many devices of this process as divide the number of shards.

  Args:
    program: plays one batch.
    shards: number of batches.

  Returns:
    Rollouts whose opponents, state, records and results have a leading axis of shards. A key gives
    each shard a key of its own.
  """
  devices = jax.local_devices()
  count = max(n for n in range(1, shards + 1) if shards % n == 0 and n <= len(devices))
  mesh = Mesh(np.array(devices[:count]), (AXIS,))
  split, whole = PartitionSpec(AXIS), PartitionSpec()

  def init_all(keys, opponents, conditioning):
    return jax.lax.map(lambda one: program.init(*one, conditioning), (keys, opponents))

  def run_all(params, state, probabilities, conditioning):
    return jax.lax.map(lambda one: program.run(params, one, probabilities, conditioning), state)

  init_split = jax.jit(jax.shard_map(
    init_all, mesh=mesh, in_specs=(split, split, whole), out_specs=split, check_vma=False))
  run = jax.jit(jax.shard_map(
    run_all, mesh=mesh, in_specs=(whole, split, whole, whole), out_specs=split, check_vma=False),
    donate_argnums=(1,))

  def init(key, opponents, conditioning):
    keys = jax.device_put(jax.random.split(key, shards), NamedSharding(mesh, split))
    return init_split(keys, opponents, conditioning)

  return rollouts.Rollouts(init=init, run=run)


def to_host(tree: Any) -> list[Any]:
  """Waits for outputs of a program; returns a tree of numpy arrays for each shard.

  Arrays that lie on a CPU are not copied.
  """
  leaves, structure = jax.tree.flatten(tree)
  return [jax.tree.unflatten(structure, parts)
          for parts in zip(*map(_parts, leaves), strict=True)]


def _parts(x: jax.Array) -> list[np.ndarray]:
  """Returns the shards of an array [shards, ...]."""
  pieces = sorted(x.addressable_shards, key=lambda piece: piece.index[0].start or 0)
  return [part for piece in pieces for part in np.asarray(piece.data)]
