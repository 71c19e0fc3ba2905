"""Frames/s of IMPALA on bsuite's Catch, against the structure of dm-haiku's examples/impala.

  python -m benchmarks.catch
  python -m benchmarks.catch --actors 2 4 8 --rounds 5
  python -m benchmarks.catch --pong --copies 16 --workers 0 2 --seconds 30

Both train: acting, queues and updates run together, on this machine. Equal are the environment, the
network (layers of 128 and 64, of the example), the unroll length and the batch. Ours acts in many
copies with one batched inference a step and writes to Reverb; the peer (benchmarks/peers/catch.py)
acts in threads, one step and one environment at a time. Rounds alternate; medians are printed. The
peer's best number of threads counts. Compilation is not measured. The peer's frames include the
step from the end of an episode to the next one, a tenth of all. CPU time includes that of workers.
"""

import argparse
import pathlib
import tempfile
import threading
import time

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.peers.catch import LAYERS, Peer
from starleague.agent import distributions
from starleague.companions import acting, impala, networks, training
from starleague.companions.options import RunOptions
from starleague.companions.system import NO_STATE, Acted, System, inputs_spec
from starleague.companions.tasks import registry
from starleague.companions.tasks.task import Task

WARM_UP_ROUNDS, WARM_UP_UPDATES = 5, 10


def make_system(task: Task) -> System:
  """Makes IMPALA with the example's network for Catch."""
  config = impala.Config()

  def forward(inputs, state):
    x = inputs.observation.reshape(len(inputs.observation), -1)
    for size in LAYERS:
      x = jax.nn.relu(hk.Linear(size)(x))
    states = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(x), *leaf.shape)), state)
    return impala.Outputs(hk.Linear(task.num_actions)(x), hk.Linear(1)(x)[:, 0]), states

  network = networks.make_network(
    inputs_spec(task), forward, lambda: jax.tree.map(lambda x: jnp.zeros(x.shape), NO_STATE))

  def act(params, key, inputs, state, copy):
    outputs, state = networks.step(network, params, inputs, state)
    action = distributions.sample(key, outputs.logits)
    return Acted(action, impala.Behaviour(
      distributions.categorical_log_prob(outputs.logits, action)), state)

  def loss(params, key, unroll, fixed):
    outputs, _ = networks.unroll_batch(network, params, unroll.steps.inputs, unroll.initial_state)
    return impala.actor_critic_loss(config, outputs, unroll, fixed)[0]

  return System("impala", network.init, network.initial_state, act, loss)


def measure(system: System, task: Task, options: argparse.Namespace,
            workers: int = 0) -> tuple[float, float]:
  """Trains for a while; returns steps per second, and per second of CPU time."""
  run = RunOptions(
    task.name, steps=10**9, copies=task.copies, workers=workers,
    unroll_length=options.unroll_length, batch_size=options.batch_size)
  stop, marks = threading.Event(), []

  def after_round(trained: training.Run, episodes: acting.EpisodeLog) -> None:
    del episodes
    marks.append((trained.counts.steps, time.monotonic(), trained.counts.cpu_seconds))
    if len(marks) > WARM_UP_ROUNDS and marks[-1][1] - marks[WARM_UP_ROUNDS][1] > options.seconds:
      stop.set()

  with tempfile.TemporaryDirectory() as folder:
    training.train(system, task, run, {}, pathlib.Path(folder), stop, lambda steps, text: None,
                   after_round=after_round)
  (before, began, cpu), (after, ended, cpu_ended) = marks[WARM_UP_ROUNDS], marks[-1]
  return (after - before) / (ended - began), (after - before) / (cpu_ended - cpu)


def catch(options: argparse.Namespace) -> tuple[float, float]:
  """Measures ours on Catch, with the example's network."""
  task = registry.make_task("bsuite-catch", options.copies)
  return measure(make_system(task), task, options)


def pong(options: argparse.Namespace) -> None:
  """Measures ours on Atari's Pong, four frames a step, with the shallow network."""
  found: dict[int, list[list[float]]] = {workers: [] for workers in options.workers}
  for number in range(options.rounds):
    for workers, rows in found.items():
      task = registry.make_task(options.task, options.copies)
      system = impala.make(impala.Config(), task, inputs_spec(task))
      rows.append([4 * rate for rate in measure(system, task, options, workers)])
      print(f"round {number + 1}, {options.task}, {workers} workers: {rows[-1][0]:,.0f} frames/s, "
            f"{rows[-1][1]:,.0f} per CPU-second", flush=True)
  for workers, rows in found.items():
    (wall, cpu), ratios = np.median(rows, axis=0), np.divide(rows, found[options.workers[0]])[:, 0]
    print(f"medians: {options.task}, {workers} workers: {wall:,.0f} frames/s, {cpu:,.0f} per "
          f"CPU-second; ratio to {options.workers[0]} workers {np.median(ratios):.2f} "
          f"({ratios.min():.2f} to {ratios.max():.2f})")


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--rounds", type=int, default=3)
  parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
  parser.add_argument("--copies", type=int, default=64, help="of the environment, of ours")
  parser.add_argument("--actors", type=int, nargs="+", default=[2, 4], help="threads of the peer")
  parser.add_argument("--unroll_length", type=int, default=20)
  parser.add_argument("--batch_size", type=int, default=32)
  parser.add_argument("--pong", action="store_true", help="measure ours on Atari's Pong instead")
  parser.add_argument("--task", default="ale-Pong", help="of --pong, a game of Atari")
  parser.add_argument("--workers", type=int, nargs="+", default=[0],
                      help="processes that step the games of --pong; 0: none")
  options = parser.parse_args()
  if options.pong:
    pong(options)
    return
  kinds = {"ours": lambda: catch(options)} | {
    f"peer, {actors} actors": lambda actors=actors: Peer(
      actors, options.unroll_length, options.batch_size).measure(WARM_UP_UPDATES, options.seconds)
    for actors in options.actors}
  found: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
  for number in range(options.rounds):
    for name, measure in kinds.items():
      found[name].append(measure())
      print(f"round {number + 1}, {name}: {found[name][-1][0]:,.0f} frames/s, "
            f"{found[name][-1][1]:,.0f} per CPU-second", flush=True)
  for place, unit in enumerate(("frames/s", "frames per CPU-second")):
    medians = {name: float(np.median([row[place] for row in rows])) for name, rows in found.items()}
    best = max((name for name in medians if name != "ours"), key=lambda name: medians[name])
    ratios = [mine[place] / other[place]
              for mine, other in zip(found["ours"], found[best], strict=True)]
    print(f"medians, {unit}: " + "; ".join(f"{name} {x:,.0f}" for name, x in medians.items())
          + f"; ratio to {best} {np.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})")


if __name__ == "__main__":
  main()
