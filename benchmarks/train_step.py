"""Agent steps a second of the learner, fed from a full replay table and from the device.

  python benchmarks/train_step.py

A replay server in a process of its own holds trajectories that the actor's program played; the
learner samples, unpacks and learns from them as in a run. The peer, in the same run, is the same
update on batches that lie on the device already; the ratio says what feeding it costs.
"""

import argparse
import functools
import itertools
import multiprocessing
import time

import jax
import numpy as np

from starleague.actor.writer import Writer
from starleague.agent import config as agent_config
from starleague.agent import wire
from starleague.experiments import learner, record, settings, wiring
from starleague.learner import prefetch, replay, update


def serve(trajectories: list[wire.Packed], preset: str, unroll_length: int, ready) -> None:
  """A server whose table gives each item thousands of times; sends its port and sleeps."""
  tables = replay.make_tables(
    [wiring.PLAYER], agent_config.preset(preset), unroll_length, samples_per_item=10_000,
    min_size=1, tolerance=len(trajectories))
  server = replay.make_server(tables)
  writer = Writer(f"localhost:{server.port}", wiring.PLAYER, agent_config.preset(preset),
                  unroll_length, num_rows=1)
  for packed in trajectories:
    writer.send(wiring.PLAYER, packed)
  writer.flush()
  ready.send(server.port)
  server.wait()


def rate(run: update.Update, state, teacher, batches, updates: int, steps: int):
  """(agent steps a second, state) over `updates` updates."""
  start = time.perf_counter()
  for _ in range(updates):
    state, values = run(state, next(batches), teacher)
  jax.block_until_ready(values)
  return updates * steps / (time.perf_counter() - start), state


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--updates", type=int, default=20, help="updates a measurement")
  parser.add_argument("--rounds", type=int, default=5, help="measurements of each")
  options = parser.parse_args()
  config = settings.complete({})
  parts = wiring.make_parts(config)
  batch_size = config.learner.batch_size
  steps = batch_size * config.unroll_length
  params = wiring.initial_params(parts, config)
  trajectories = list(itertools.islice(record.play(parts, config, params, 0), 8 * batch_size))
  context = multiprocessing.get_context("spawn")
  parent, child = context.Pipe()
  server = context.Process(
    target=serve, args=(trajectories, config.preset, config.unroll_length, child), daemon=True)
  server.start()
  address = f"localhost:{parent.recv()}"

  optimizer = learner.make_optimizer(config)
  run = update.make_update(learner.make_loss(parts, config), optimizer)
  params = jax.device_get(params)
  teacher = run.replicate(params)
  state = run.replicate(update.initial_state(params, optimizer, jax.random.key(0)))
  place = functools.partial(learner.place, run)
  with replay.dataset(address, wiring.PLAYER, batch_size, parts.config,
                      config.unroll_length) as data, prefetch.prefetch(data, place) as fed:
    batch = next(fed)
    start = time.perf_counter()
    state, values = run(state, batch, teacher)
    jax.block_until_ready(values)
    print(f"compile and first update: {time.perf_counter() - start:.1f} s")
    waiting = fed.waiting()
    rates: dict[str, list[float]] = {"from the table": [], "from the device": []}
    sources = {"from the table": fed, "from the device": iter(lambda: batch, None)}
    for _ in range(options.rounds):
      for name, batches in sources.items():
        measured, state = rate(run, state, teacher, batches, options.updates, steps)
        rates[name].append(measured)
    waited = fed.waiting().since(waiting)
    data.close()
  server.terminate()
  for name, values in rates.items():
    print(f"learner {name}: {np.median(values):.0f} agent steps/s (median of {options.rounds}, "
          f"min {min(values):.0f}, max {max(values):.0f})")
  taken = sum(options.updates * steps / value for value in rates["from the table"])
  print(f"waiting for data when fed from the table: {waited.waited_seconds / taken:.1%}")
  ratio = np.median(np.array(rates["from the table"]) / np.array(rates["from the device"]))
  print(f"ratio table / device: {ratio:.3f}")


if __name__ == "__main__":
  main()
