"""CPU time of the host for one request of the inference service: the service's thread, the games.

  python -m benchmarks.inference.host

The policy computes nothing, so that the host's work is what remains: gathering, batching, starting
a program, answering. Games of several connections ask for all their rows at once and read each
action. CPU time is that of one thread, so that other processes count little.
"""

import argparse
import threading
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from starleague.actor.inference import (
  Batcher,
  Client,
  Header,
  Listener,
  Model,
  ServedPolicy,
  Service,
)
from starleague.actor.inference.actions import acted_spec
from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.data import wire

CLIENTS, PARAMETERS = 4, 120  # PARAMETERS: arrays of a program's parameters, as an agent has


def idle_policy(config: agent_config.AgentConfig) -> ServedPolicy:
  """Returns a policy whose actions, log-probs and core states are zeros."""
  def zeros(spec: Any) -> Any:
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), spec)

  def act(params: Any, key: jax.Array, header: Header, step: Any, state: Any) -> tuple:
    del params, key, header, step
    return *map(zeros, acted_spec(config)), state

  return ServedPolicy(lambda: zeros(wire.state_spec(config)), act)


def connect(listener: Listener, service: Service, config: agent_config.AgentConfig,
            rows: int) -> list[Client]:
  """Returns connections with a written request in each slot."""
  clients: list[Client] = []
  thread = threading.Thread(target=lambda: clients.extend(
    Client(listener.address, config, rows) for _ in range(CLIENTS)))
  thread.start()
  while listener.claimed < CLIENTS * rows:
    service.run_once()
  thread.join()
  step = types.zeros(types.step_spec(config.max_entities, config.map_size, config.max_selected))
  for client in clients:
    for row, slot in enumerate(client.slots):
      slot.write(Header(1, 0, 0, row, 0, 1), step)
  return clients


def measure(service: Service, clients: list[Client], rows: int) -> tuple[float, float]:
  """Returns CPU seconds of the service and of the games for a request of each row."""
  total, served = CLIENTS * rows, service.served.requests
  times = [time.thread_time()]
  for client in clients:
    client.ask(range(rows))
  times.append(time.thread_time())
  while service.served.requests < served + total:
    service.run_once()
  times.append(time.thread_time())
  for client in clients:
    left = rows
    while left:
      answered = client.answered(1.0)
      left -= len(answered)
      for row in answered:
        client.slots[row].read()
  times.append(time.thread_time())
  asking, serving, reading = np.diff(times) / total
  return serving, asking + reading


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--presets", nargs="+", default=["mini", "full"])
  parser.add_argument("--rows", type=int, default=32, help=f"of each of {CLIENTS} connections")
  parser.add_argument("--batch", type=int, default=64)
  parser.add_argument("--rounds", type=int, default=150)
  options = parser.parse_args()
  for preset in options.presets:
    config, total = agent_config.preset(preset), CLIENTS * options.rows
    params = {str(i): jnp.zeros(1) for i in range(PARAMETERS)}
    sizes = sorted({1, options.batch})
    listener = Listener(config, total)
    model = Model(idle_policy(config), config, total, sizes, params, jax.random.key(0))
    model.set_params(0, params)
    service = Service(model, Batcher(sizes, 0.02), listener, config)
    clients = connect(listener, service, config, options.rows)
    for _ in range(10):
      measure(service, clients, options.rows)
    found = 1e6 * np.array([measure(service, clients, options.rows)
                            for _ in range(options.rounds)])
    serving, playing = np.median(found, axis=0)
    print(f"preset={preset} rows={total} batch={options.batch} service={serving:.1f}us "
          f"game={playing:.1f}us", flush=True)
    for client in clients:
      client.close()
    service.close()
    listener.close()


if __name__ == "__main__":
  main()
