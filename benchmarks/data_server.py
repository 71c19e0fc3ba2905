"""Trajectories through the data server: the wire form against one array a leaf.

    python -m benchmarks.data_server [--preset mini] [--unroll_length 16] [--seconds 4]

The server runs in a process of its own. Each form is written, then sampled, over gRPC. The
synthetic trajectories change slowly, as games do. MB are those of the unpacked leaves for both
forms, so the ratio compares trajectories.
"""

import argparse
import multiprocessing
import time
from typing import Any

import jax
import numpy as np

from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.data import wire
from starleague.data.reverb import transport

ROUNDS = 3

def make_trajectory(config, unroll_length: int, seed: int) -> types.Trajectory:
  """A trajectory in which a third of the entity rows are used and few values change in a step."""
  random = np.random.default_rng(seed)
  trajectory = types.zeros(types.trajectory_spec(config, unroll_length))
  observation = trajectory.steps.observation
  used = config.max_entities // 3
  entities = random.integers(0, 256, (used, types.NUM_ENTITY_COLUMNS))
  entities *= random.random(entities.shape) < 0.4
  plane = np.kron(random.integers(0, 3, (7, 8, 8)), np.ones((config.map_size // 8,) * 2, int))
  plane[wire.BINARY_PLANES, :, :] &= 1
  for t in range(unroll_length + 1):
    moved = random.random(used) < 0.3
    for column in ("x", "y", "facing", "health"):
      at = types.COLUMN[column]
      entities[:, at] += moved * random.integers(-2, 3, used)
    observation.entities[t, :used] = entities
    changed = random.random(plane.shape[1:]) < 0.01
    plane[1] = np.where(changed, random.integers(0, 3, changed.shape), plane[1])
    observation.minimap[t] = plane
    observation.game_loop[t] = 8 * t
    observation.available_actions[t] = np.arange(327) % 5 == 0
  for leaf in jax.tree.leaves((trajectory.steps.log_prob, trajectory.initial_state)):
    leaf[...] = random.normal(size=leaf.shape)
  return trajectory


def leaves(trajectory: types.Trajectory) -> dict[str, np.ndarray]:
  """The naive form: every leaf a column."""
  return {jax.tree_util.keystr(path): leaf
          for path, leaf in jax.tree_util.tree_leaves_with_path(trajectory)}


def _serve(names, connection) -> None:
  reverb = transport.load_reverb()
  server = reverb.Server([
    reverb.Table(name=name, sampler=reverb.selectors.Uniform(), remover=reverb.selectors.Fifo(),
                 max_size=256, rate_limiter=reverb.rate_limiters.MinSize(1)) for name in names])
  connection.send(server.port)
  connection.recv()
  server.stop()


def rate(work, seconds: float) -> float:
  """Calls of `work` a second, after five to warm up."""
  for _ in range(5):
    work()
  count, start = 0, time.perf_counter()
  while time.perf_counter() - start < seconds:
    work()
    count += 1
  return count / (time.perf_counter() - start)


def measure(client: Any, table: str, encode, trajectories, seconds: float) -> tuple[float, float]:
  """Items a second: written (encoding included), sampled (stacking included)."""
  writer = client.trajectory_writer(num_keep_alive_refs=1)
  number = 0

  def insert():
    nonlocal number
    number += 1
    writer.append(encode(trajectories[number % len(trajectories)]))
    writer.create_item(table, 1.0, {name: x[-1] for name, x in writer.history.items()})
    writer.flush(block_until_num_items=8, timeout_ms=10_000)

  inserted = rate(insert, seconds)
  writer.flush(timeout_ms=10_000)
  batch = [np.empty((8, *x.shape), x.dtype)
           for _, x in sorted(encode(trajectories[0]).items())]
  sampler = client._client.NewSampler(table, -1, 8)

  def sample():
    nonlocal number
    number += 1
    found = sampler.GetNextTrajectory()[-len(batch):]
    for out, x in zip(batch, found, strict=True):
      out[number % 8] = x

  return inserted, rate(sample, seconds)


def main() -> None:
  """Prints items/s and MB/s of both forms, and their ratios."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--preset", choices=("mini", "full"), default="mini")
  parser.add_argument("--unroll_length", type=int, default=16)
  parser.add_argument("--seconds", type=float, default=4.0,
                      help="for each of writing and sampling each form")
  arguments = parser.parse_args()
  config = {"mini": agent_config.mini, "full": agent_config.full}[arguments.preset]()
  trajectories = [make_trajectory(config, arguments.unroll_length, seed) for seed in range(8)]
  forms = {"leaves": leaves, "packed": lambda trajectory: wire.pack(trajectory)._asdict()}

  context = multiprocessing.get_context("spawn")
  here, there = context.Pipe()
  process = context.Process(target=_serve, args=(list(forms), there), daemon=True)
  process.start()
  if not here.poll(60):
    raise TimeoutError("the server did not start within 60 s")
  client = transport.load_reverb().Client(f"localhost:{here.recv()}")

  size = sum(x.nbytes for x in jax.tree.leaves(trajectories[0])) / 1e6
  print(f"{arguments.preset}, T={arguments.unroll_length}: {size:.3f} MB a trajectory as leaves, "
        f"{sum(x.nbytes for x in wire.pack(trajectories[0])) / 1e6:.3f} MB packed")
  # By turns, so that whatever else the machine does meets both forms.
  rounds = {name: [] for name in forms}
  for _ in range(ROUNDS):
    for name, encode in forms.items():
      rounds[name].append(
        measure(client, name, encode, trajectories, arguments.seconds / ROUNDS))
  results = {name: np.median(found, axis=0) for name, found in rounds.items()}
  for name in forms:
    print(f"{name}: " + ", ".join(
      f"{what} {items:.0f} items/s ({items * size:.0f} MB/s)"
      for what, items in zip(("insert", "sample"), results[name], strict=True)))
  print("packed / leaves: " + ", ".join(
    f"{what} x{packed / naive:.2f}" for what, packed, naive in zip(
      ("insert", "sample"), results["packed"], results["leaves"], strict=True)))
  here.send(None)
  process.join(10)


if __name__ == "__main__":
  main()
