"""A data server in a process of its own, which tests can kill."""

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator

import numpy as np

from starleague.agent import config as agent_config
from starleague.agent import types
from starleague.data import wire

CONFIG = agent_config.mini()
UNROLL_LENGTH = 2
PARAMS = {"w": np.arange(3, dtype=np.float32)}
_SERVER = f"""
import sys, threading
from starleague.agent import config
from starleague.data.reverb.server import make_server, make_tables
tables = make_tables(["main"], config.mini(), {UNROLL_LENGTH}, min_size=1, tolerance=8)
server = make_server(tables, int(sys.argv[1]), sys.argv[2])
print("up", flush=True)
threading.Event().wait()
"""


def free_port() -> int:
  """Returns a port that no process listens on."""
  with socket.socket() as probe:
    probe.bind(("", 0))
    return probe.getsockname()[1]


@contextlib.contextmanager
def server(port: int, directory) -> Iterator[subprocess.Popen]:
  """Runs a server; SIGKILL ends it with the context."""
  process = subprocess.Popen(
    [sys.executable, "-c", _SERVER, str(port), str(directory)], stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL, text=True)
  try:
    assert process.stdout.readline() == "up\n"
    yield process
  finally:
    process.kill()
    process.wait()


def packed(number: int) -> wire.Packed:
  """Returns a trajectory of zeros with a number in it."""
  zeros = wire.pack(types.zeros(types.trajectory_spec(CONFIG, UNROLL_LENGTH)))
  zeros.int32[0, 0] = number
  return zeros
