"""Throughput and latency of the inference service, against the device alone and one at a time.

  python -m benchmarks.inference.service
  python -m benchmarks.inference.service --preset full --games 8 --batches 16 --rounds 3

Stand-in games in processes of their own ask for both players at the same time, and ask again as
soon as they are answered. Rounds of three kinds alternate: the service; the device alone, which is
the same compiled program on a batch that is ready; and the device on one row at a time. Each ratio
is the median over rounds.
"""

import argparse
import multiprocessing
import os
import time
from typing import Any

import jax
import numpy as np

from starleague import agent
from starleague.actor.inference import Batcher, Client, Header, Listener, Model, Service
from starleague.actor.inference.slots import slot_format
from starleague.agent import config as agent_config
from starleague.agent import types

WAIT_S = 0.02
WARM_UP_S = 0.5


def play(address: str, preset: str, rows: int, writes: bool, measuring: Any,
         results: Any) -> None:
  """Plays stand-in games until `measuring` is negative; sends the measured latencies.

  Args:
    address: of the service.
    preset: of the agent.
    rows: players of the games of this process.
    writes: whether an observation is written for each request, as a game does.
    measuring: number of the measured round, 0 between rounds.
    results: queue for the latencies.
  """
  config = agent_config.preset(preset)
  client = Client(address, config, rows)
  step = types.zeros(types.step_spec(config.max_entities, config.map_size, config.max_selected))
  asked, asked_in, found = np.zeros(rows), np.zeros(rows, int), []
  ready = list(range(rows))
  for row in ready:
    client.slots[row].write(Header(1, 0, 0, row, 0, 1), step)
  while measuring.value >= 0:
    if writes:
      for row in ready:
        client.slots[row].write(Header(1, 0, 0, row, 0, 1), step)
    asked[ready], asked_in[ready] = time.perf_counter(), measuring.value
    client.ask(ready)
    ready = []
    while not ready and measuring.value >= 0:
      ready = client.answered(0.2)
    now, number = time.perf_counter(), measuring.value
    for row in ready:
      client.slots[row].read()
      if asked_in[row] == number > 0:
        found.append(now - asked[row])
  results.put(np.array(found))


class Bench:
  """A service and the processes of its stand-in games."""

  def __init__(self, options: argparse.Namespace, games: int, batch: int):
    """Starts the processes and waits for them; `close` ends them."""
    self._config = agent_config.preset(options.preset)
    policy = agent.make_policy(self._config)
    params = policy.init(jax.random.key(0))
    rows = 2 * games
    self._listener = Listener(self._config, rows)
    context = multiprocessing.get_context("spawn")
    self._measuring, self._results = context.Value("i", 0), context.Queue()
    count = min(options.processes, games)
    share = [2 * (games // count + (i < games % count)) for i in range(count)]
    self._processes = [
      context.Process(target=play, daemon=True, args=(
        self._listener.address, options.preset, rows, options.write, self._measuring,
        self._results)) for rows in share]
    sizes = sorted({1, batch})
    self._model = Model(policy, self._config, rows, sizes, params, jax.random.key(1))
    self._model.set_params(0, params)
    self.service = Service(self._model, Batcher(sizes, WAIT_S), self._listener, self._config)
    for process in self._processes:
      process.start()
    while self._listener.claimed < rows:
      self.service.run_once()

  def device_rate(self, size: int, seconds: float) -> float:
    """Returns rows/s of the program of one size, called on a batch that is ready."""
    requests = np.zeros((size, slot_format(self._config).request), np.uint8)
    # Not counted, and therefore computed before the clock starts.
    pending = [jax.block_until_ready(self._model.start(0, range(size), requests))] * 2
    start, rows = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
      pending.append(self._model.start(0, range(size), requests))  # queued behind the running one
      jax.block_until_ready(pending.pop(0))
      rows += size
    jax.block_until_ready(pending)
    return rows / (time.perf_counter() - start)

  def service_rate(self, number: int, seconds: float) -> float:
    """Returns requests/s of the service; latencies are measured as of round `number`."""
    for duration, value in ((min(WARM_UP_S, seconds), 0), (seconds, number)):
      self._measuring.value = value
      before, start = self.service.served, time.perf_counter()
      while time.perf_counter() - start < duration:
        self.service.run_once()
    self._measuring.value = 0
    return (self.service.served.requests - before.requests) / (time.perf_counter() - start)

  def close(self) -> np.ndarray:
    """Ends the games and returns the measured latencies in seconds."""
    self._measuring.value = -1
    found = [self._results.get(timeout=60) for _ in self._processes]
    for process in self._processes:
      process.join()
    self.service.close()
    self._listener.close()
    return np.concatenate(found)


def measure(options: argparse.Namespace, games: int, batch: int) -> None:
  """Measures one number of games with one size of batches, and prints its line."""
  bench = Bench(options, games, batch)
  rates = []
  for number in range(1, options.rounds + 1):
    rates.append((bench.service_rate(number, options.seconds),
                  bench.device_rate(batch, options.seconds),
                  bench.device_rate(1, options.seconds)))
  latencies = 1000 * bench.close()
  service, device, single = np.array(rates).T
  shares, gains = service / device, service / single
  print(f"games={games} batch={batch} requests/s={np.median(service):.0f} "
        f"device={np.median(device):.0f} one_at_a_time={np.median(single):.0f} "
        f"p50={np.percentile(latencies, 50):.1f}ms p99={np.percentile(latencies, 99):.1f}ms "
        f"service/device={np.median(shares):.2f} ({shares.min():.2f} to {shares.max():.2f}) "
        f"service/one_at_a_time={np.median(gains):.2f} ({gains.min():.2f} to {gains.max():.2f})",
        flush=True)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--preset", default="mini", help="preset of the agent")
  parser.add_argument("--games", type=int, nargs="+", default=[4, 16, 64])
  parser.add_argument("--batches", type=int, nargs="+", default=[8, 32, 64])
  parser.add_argument("--processes", type=int, default=4, help="processes of the games")
  parser.add_argument("--write", action="store_true", help="games write each observation")
  parser.add_argument("--rounds", type=int, default=5)
  parser.add_argument("--seconds", type=float, default=2.0, help="of a round")
  options = parser.parse_args()
  for name in ("games", "batches", "processes", "rounds"):
    if (least := np.min(getattr(options, name))) < 1:
      parser.error(f"--{name}: expected at least 1, found {least}")
  print(f"preset={options.preset} load={os.getloadavg()[0]:.1f} cores={os.cpu_count()} "
        f"device={jax.devices()[0].device_kind}")
  for games in options.games:
    for batch in (size for size in options.batches if size <= 2 * games):
      measure(options, games, batch)


if __name__ == "__main__":
  main()
