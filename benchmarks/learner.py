"""Rates of the learner's parts, each as a ratio to a reference in the same run.

    python -m benchmarks.learner                            # all three, mini
    python -m benchmarks.learner --parts feeding

feeding   the learner fed from a full trajectory table / the same update on one batch on the device
dataset   trajectories/s of `datasets.dataset` / of Reverb's own sampler, which does not stack
devices   updates/s on 2, 4 and 8 virtual devices / on one, with the same batch; a process each

Measurements of feeding and dataset alternate, so that other programs of the machine meet both sides
of a ratio alike. Those of devices follow each other: run that part on a machine with nothing else.
"""

import argparse
import contextlib
import itertools
import json
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from starleague.actor.parts import Parts
from starleague.agent import config as agent_config
from starleague.common import run_files
from starleague.data import wire
from starleague.data.reverb import datasets, sampler, transport
from starleague.data.reverb.server import make_server, make_tables
from starleague.data.reverb.writer import TrajectoryWriter
from starleague.experiments.run.config import settings
from starleague.experiments.run.datasets import recorded_games
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import learner_options, saved_agents
from starleague.experiments.run.parts.actor_options import actor_options
from starleague.learner import prefetch, train_state, update
from starleague.learner.loops import hosts, reinforcement_setup

PARTS = ("feeding", "dataset", "devices")
SAMPLES_PER_ITEM = 10_000  # the benchmark never exhausts the table


def compare(first: Callable[[], float], second: Callable[[], float], rounds: int) -> tuple:
  """Measures two rates alternately; returns their medians, and median and range of the ratios."""
  rates = np.array([(first(), second()) for _ in range(rounds)])
  ratios = rates[:, 0] / rates[:, 1]
  return (*np.median(rates, axis=0), float(np.median(ratios)), ratios.min(), ratios.max())


def report(names: tuple[str, str], unit: str, measured: tuple) -> None:
  one, other, ratio, low, high = measured
  print(f"  {names[0]}: {one:.0f} {unit}\n  {names[1]}: {other:.0f} {unit}\n"
        f"  ratio {names[0]} / {names[1]}: {ratio:.3f} ({low:.3f} to {high:.3f})", flush=True)


# A data server in a process of its own.


def serve(trajectories: list[wire.Packed], preset: str, unroll_length: int, ready) -> None:
  """Runs a data server whose items can be sampled thousands of times; sends its port first."""
  tables = make_tables(
    [run_files.PLAYER], agent_config.preset(preset), unroll_length,
    samples_per_item=SAMPLES_PER_ITEM, min_size=1, tolerance=len(trajectories))
  server = make_server(tables)
  writer = TrajectoryWriter(
    f"localhost:{server.port}", run_files.PLAYER, agent_config.preset(preset), unroll_length,
    num_rows=1)
  for packed in trajectories:
    writer.send(run_files.PLAYER, packed)
  writer.flush()
  ready.send(server.port)
  signal.pause()  # serves until it is terminated


@contextlib.contextmanager
def served(trajectories: list[wire.Packed], preset: str, unroll_length: int) -> Iterator[str]:
  """Yields the address of a data server in a process of its own; see `serve`."""
  context = multiprocessing.get_context("spawn")
  parent, child = context.Pipe()
  server = context.Process(
    target=serve, args=(trajectories, preset, unroll_length, child), daemon=True)
  server.start()
  if not parent.poll(120):
    raise TimeoutError("the data server did not start within 120 s")
  try:
    yield f"localhost:{parent.recv()}"
  finally:
    server.terminate()


def play(parts: Parts, config) -> list[wire.Packed]:
  """Returns trajectories of an untrained agent, enough for eight batches."""
  options = actor_options(config)
  games = recorded_games.of_agent(parts, options, saved_agents.initial_params(parts, config))
  return list(itertools.islice(
    recorded_games.play(games, parts, options, config.unroll_length, 0),
    8 * config.learner.batch_size))


def measure_feeding(options: argparse.Namespace, parts, config, address: str) -> None:
  run, state, teacher = make_update(parts, config)
  steps = config.learner.batch_size * config.unroll_length
  with datasets.dataset(address, config.learner.batch_size, run_files.PLAYER, parts.config,
                        config.unroll_length) as data, prefetch.prefetch(data, run.place) as fed:
    batch = next(fed)
    start = time.perf_counter()
    state, values = run(state, batch, teacher)
    jax.block_until_ready(values)
    print(f"feeding, batches of {config.learner.batch_size} x {config.unroll_length} steps "
          f"(compile and first update {time.perf_counter() - start:.1f} s):", flush=True)
    seconds = 0.0

    def rate(batches, count_time=False):
      nonlocal state, seconds
      start = time.perf_counter()
      for placed in itertools.islice(batches, options.updates):
        state, values = run(state, placed, teacher)
      jax.block_until_ready(values)
      taken = time.perf_counter() - start
      seconds += taken * count_time
      return options.updates * steps / taken

    waiting = fed.waiting()
    from_table = (batch for batch, _ in hosts.agreed(fed, lambda: 0.0, run.make_vote()))
    report(("from the table", "from the device"), "agent steps/s", compare(
      lambda: rate(from_table, True), lambda: rate(itertools.repeat(batch)), options.rounds))
    waited = fed.waiting().since(waiting).waited_seconds
    print(f"  waiting for data when fed from the table: {waited / seconds:.1%}", flush=True)
    data.close()


def measure_dataset(options: argparse.Namespace, parts, config, address: str) -> None:
  size = config.learner.batch_size
  own_sampler = transport.load_reverb().Client(address)._client.NewSampler(
    run_files.PLAYER, -1, sampler.SAMPLES_IN_FLIGHT)
  with datasets.dataset(
      address, size, run_files.PLAYER, parts.config, config.unroll_length) as data:
    def rate(take, count):
      start = time.perf_counter()
      taken = 0
      while time.perf_counter() - start < options.seconds:
        take()
        taken += count
      return taken / (time.perf_counter() - start)

    def batches():
      for _ in range(4):
        next(data)  # batches prefetched before the clock started
      return rate(lambda: next(data), size)

    def raw():
      for _ in range(2 * sampler.SAMPLES_IN_FLIGHT):
        own_sampler.GetNextTrajectory()
      return rate(own_sampler.GetNextTrajectory, 1)

    print(f"dataset, trajectories of {config.unroll_length} steps:", flush=True)
    report(("datasets.dataset", "Reverb's sampler"), "trajectories/s",
           compare(batches, raw, options.rounds))


# Devices.


def make_update(parts, config) -> tuple[update.Update, Any, Any]:
  """Returns the update, a state and a teacher with random parameters."""
  agent = learner_options.imitating_agent(parts, config)
  options = learner_options.reinforcement_options(config)
  params = jax.device_get(agent.initial_params())
  optimizer = reinforcement_setup.make_optimizer(params, options)
  run = update.make_update(
    reinforcement_setup.make_loss(agent, options), optimizer, batch_axes=wire.BATCH_AXES)
  state = train_state.initial_state(params, optimizer, jax.random.key(0))
  return run, run.replicate(state), run.replicate(params)


def measure_here(options: argparse.Namespace, parts, config) -> None:
  """Prints the rate of updates on all devices of this process, as JSON."""
  run, state, teacher = make_update(parts, config)
  batch = run.place(reinforcement_setup.empty_batch(
    parts.config, learner_options.reinforcement_options(config)))
  rates = []
  for _ in range(options.rounds + 1):
    start = time.perf_counter()
    for _ in range(options.updates):
      state, values = run(state, batch, teacher)
    jax.block_until_ready(values)
    rates.append(options.updates / (time.perf_counter() - start))
  print(json.dumps(float(np.median(rates[1:]))))  # the first compiles


def measure_devices(options: argparse.Namespace) -> None:
  print(f"devices, virtual, on {len(os.sched_getaffinity(0))} cores:", flush=True)
  rates = {}
  for count in (1, 2, 4, 8):
    done = subprocess.run(
      [sys.executable, "-m", "benchmarks.learner", "--parts", "here", "--rounds",
       str(options.rounds), "--updates", str(options.updates)],
      cwd=pathlib.Path(__file__).parent.parent, stdout=subprocess.PIPE, text=True, check=True,
      env={**os.environ, "XLA_FLAGS": f"--xla_force_host_platform_device_count={count}"})
    rates[count] = json.loads(done.stdout.splitlines()[-1])
    print(f"  {count}: {rates[count]:.2f} updates/s, {rates[count] / rates[1]:.3f} of one",
          flush=True)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--parts", nargs="+", choices=(*PARTS, "here"), default=PARTS)
  parser.add_argument("--updates", type=int, default=20, help="updates a measurement")
  parser.add_argument("--rounds", type=int, default=5, help="measurements of each")
  parser.add_argument("--seconds", type=float, default=3.0, help="a measurement of dataset")
  options = parser.parse_args()
  config = settings.complete({})
  parts = registry.make_parts(config)
  if "here" in options.parts:
    return measure_here(options, parts, config)
  if {"feeding", "dataset"} & set(options.parts):
    with served(play(parts, config), config.preset, config.unroll_length) as address:
      if "dataset" in options.parts:
        measure_dataset(options, parts, config, address)
      if "feeding" in options.parts:
        measure_feeding(options, parts, config, address)
  if "devices" in options.parts:
    measure_devices(options)


if __name__ == "__main__":
  main()
