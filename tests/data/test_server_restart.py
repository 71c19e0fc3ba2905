"""A data server is killed; whoever uses it waits, and goes on where its checkpoint was."""

import contextlib
import socket
import subprocess
import sys
from concurrent import futures

import numpy as np
import pytest

from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.data import datasets, parameters, transport, wire, writer

CONFIG = agent_config.mini()
UNROLL_LENGTH = 2
PARAMS = {"w": np.arange(3, dtype=np.float32)}
SERVER = f"""
import sys, threading
from starleague.agent import config
from starleague.data.server import make_server, make_tables
tables = make_tables(["main"], config.mini(), {UNROLL_LENGTH}, min_size=1, tolerance=8)
server = make_server(tables, int(sys.argv[1]), sys.argv[2])
print("up", flush=True)
threading.Event().wait()
"""


@contextlib.contextmanager
def server(port, directory):
  """A server in a process of its own, which ends by SIGKILL."""
  process = subprocess.Popen(
    [sys.executable, "-c", SERVER, str(port), str(directory)], stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL, text=True)
  try:
    assert process.stdout.readline() == "up\n"
    yield
  finally:
    process.kill()
    process.wait()


def packed(number):
  zeros = wire.pack(types.zeros(types.trajectory_spec(CONFIG, UNROLL_LENGTH)))
  zeros.int32[0, 0] = number
  return zeros


@pytest.mark.slow
def test_everybody_goes_on_after_the_server_was_killed(tmp_path):
  with socket.socket() as probe:
    probe.bind(("", 0))
    port = probe.getsockname()[1]
  address = f"localhost:{port}"
  with server(port, tmp_path):
    sender = writer.TrajectoryWriter(address, "main", CONFIG, UNROLL_LENGTH, 1, max_in_flight=1)
    for number in range(3):
      sender.send("main", packed(number))
    sender.flush()
    publisher = parameters.ParameterPublisher(address, "main", interval_s=0)
    publisher(lambda: PARAMS, 1)
    publisher.flush()
    fetcher = parameters.ParameterFetcher(address, "main", PARAMS, interval_s=0)
    assert fetcher().step == 1
    transport.connect(transport.load_reverb(), address, 5)[0].checkpoint()
    batches = datasets.dataset(address, 2, "main", CONFIG, UNROLL_LENGTH)

  def send():
    for number in range(3, 6):
      sender.send("main", packed(number))
    sender.flush()

  def take():
    return np.concatenate([next(batches).int32[0, :, 0] for _ in range(6)])

  with futures.ThreadPoolExecutor(2) as pool:
    sending, publishing = pool.submit(send), publisher(lambda: PARAMS, 2)
    assert publishing
    with pytest.raises(futures.TimeoutError):
      sending.result(timeout=1)  # it waits
    with server(port, tmp_path):
      sending.result(timeout=60)
      publisher.close()
      assert fetcher().step == 2
      numbers = pool.submit(take).result(timeout=60).tolist()
      # What was drawn ahead when the server died was drawn from a state that the checkpoint does
      # not know: it is drawn again. Nothing is lost.
      assert set(numbers) == {*range(6)}
      batches.close()
      sender.close()
