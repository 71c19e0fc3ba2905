"""CPU time of one request through the inference service's transport, against gRPC.

  python -m benchmarks.inference.transports

Both carry the bytes of a step to a thread that copies them and returns the bytes of an action.
Rounds alternate; CPU time is that of both ends, so that other processes do not count.
"""

import argparse
import threading
import time
from collections.abc import Callable
from concurrent import futures

import grpc
import numpy as np

from starleague.actor.inference import Client, Listener
from starleague.actor.inference.slots import slot_format
from starleague.agent import config as agent_config

METHOD = "/inference/act"


def cpu_per_call(call: Callable[[], object], calls: int) -> float:
  """Returns CPU seconds of this process for each call."""
  start = time.process_time()
  for _ in range(calls):
    call()
  return (time.process_time() - start) / calls


def sockets_call(config: agent_config.AgentConfig, stop: threading.Event) -> Callable[[], object]:
  """Returns a request through shared memory and a Unix socket."""
  listener, places = Listener(config, 1), slot_format(config)
  answers = np.zeros((1, (places.answer.stop - places.answer.start) // 4), np.int32)
  batch = np.zeros((1, places.request), np.uint8)

  def serve() -> None:
    while not stop.is_set():
      for slot in listener.poll(0.1).asked:
        batch[0] = listener.request(slot)
        listener.answer([slot], answers)
    listener.close()

  threading.Thread(target=serve).start()
  client = Client(listener.address, config, 1)

  def call() -> None:
    client.ask([0])
    while not client.answered(1.0):
      pass

  return call


def grpc_call(config: agent_config.AgentConfig, stop: threading.Event) -> Callable[[], object]:
  """Returns a request through gRPC with bytes as messages."""
  places = slot_format(config)
  message, answer = bytes(places.request), bytes(places.answer.stop - places.answer.start)
  batch = np.zeros((1, places.request), np.uint8)

  def act(request: bytes, context: object) -> bytes:
    batch[0] = np.frombuffer(request, np.uint8)
    return answer

  server = grpc.server(futures.ThreadPoolExecutor(1))
  server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(
    "inference", {"act": grpc.unary_unary_rpc_method_handler(act)})])
  port = server.add_insecure_port("127.0.0.1:0")
  server.start()
  threading.Thread(target=lambda: (stop.wait(), server.stop(0.1))).start()
  method = grpc.insecure_channel(f"127.0.0.1:{port}").unary_unary(METHOD)
  return lambda: method(message, timeout=60, wait_for_ready=True)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--presets", nargs="+", default=["mini", "full"])
  parser.add_argument("--calls", type=int, default=500, help="of a round")
  parser.add_argument("--rounds", type=int, default=7)
  options = parser.parse_args()
  for preset in options.presets:
    config, stop = agent_config.preset(preset), threading.Event()
    calls = sockets_call(config, stop), grpc_call(config, stop)
    for call in calls:
      cpu_per_call(call, 50)
    try:
      found = np.array([[cpu_per_call(call, options.calls) for call in calls]
                        for _ in range(options.rounds)])
    finally:
      stop.set()
    ratios = found[:, 1] / found[:, 0]
    ours, theirs = 1e6 * np.median(found, axis=0)
    print(f"preset={preset} bytes={slot_format(config).request} shared_memory={ours:.0f}us "
          f"grpc={theirs:.0f}us grpc/shared_memory={np.median(ratios):.1f} "
          f"({ratios.min():.1f} to {ratios.max():.1f})", flush=True)


if __name__ == "__main__":
  main()
