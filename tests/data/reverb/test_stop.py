"""Every wait for a data server that is gone ends soon after a stop."""

import contextlib
import threading
import time
from concurrent import futures

import numpy as np
import pytest

from starleague.data.reverb import datasets, parameters, transport, writer
from tests.data.reverb.server_process import (
  CONFIG,
  PARAMS,
  UNROLL_LENGTH,
  free_port,
  packed,
  server,
)

STOP_S = 2.0  # a stop ends every wait within
SLACK_S = 1.0  # for a busy machine


@pytest.fixture(scope="module")
def gone(tmp_path_factory):
  """Clients of a server that was killed, and the event that stops them."""
  port, stop = free_port(), threading.Event()
  address = f"localhost:{port}"
  with server(port, tmp_path_factory.mktemp("server")):
    publisher = parameters.ParameterPublisher(address, "main", interval_s=0)
    publisher(lambda: PARAMS, 1)
    publisher.flush()
    fetcher = parameters.ParameterFetcher(address, "main", PARAMS, interval_s=0, stop=stop)
    fetcher()
    sender = writer.TrajectoryWriter(address, "main", CONFIG, UNROLL_LENGTH, 1, stop=stop)
    batches = datasets.dataset(address, 2, "main", CONFIG, UNROLL_LENGTH, stop=stop)
  return {"address": address, "stop": stop, "publisher": publisher, "fetcher": fetcher,
          "sender": sender, "batches": batches}


def _threads(name):
  return [thread for thread in threading.enumerate() if thread.name.startswith(name)]


def test_close_ends_a_publication_to_a_server_that_is_gone(gone):
  publisher = gone["publisher"]
  assert publisher(lambda: {"w": np.zeros(3, np.float32)}, 2)
  time.sleep(0.5)
  start = time.monotonic()
  publisher.close()
  assert time.monotonic() - start < 1.0 + SLACK_S
  deadline = start + STOP_S + SLACK_S
  while _threads("publish-main") and time.monotonic() < deadline:
    time.sleep(0.05)
  assert not _threads("publish-main")


def _send(gone):
  gone["sender"].send("main", packed(0))
  gone["sender"].flush()
  gone["sender"].close()


def _fetch(gone):
  with pytest.raises(transport.StoppedError):
    gone["fetcher"]()


def _take(gone):
  with contextlib.closing(gone["batches"]) as batches, pytest.raises(StopIteration):
    next(batches)


def _connect(gone):
  with pytest.raises(transport.StoppedError):
    transport.connect(gone["address"], 300, gone["stop"])


def test_stop_ends_every_wait_for_a_server_that_is_gone(gone):
  with futures.ThreadPoolExecutor(4) as pool:
    waiting = [pool.submit(wait, gone) for wait in (_send, _fetch, _take, _connect)]
    assert futures.wait(waiting, 3.0).done == set()
    start = time.monotonic()
    gone["stop"].set()
    for future in waiting:
      future.result(timeout=30)
    assert time.monotonic() - start < STOP_S + SLACK_S


def test_stop_ends_the_wait_for_the_first_publication(tmp_path):
  port, stop = free_port(), threading.Event()
  with server(port, tmp_path), futures.ThreadPoolExecutor(1) as pool:
    fetcher = parameters.ParameterFetcher(f"localhost:{port}", "main", PARAMS, stop=stop)
    fetching = pool.submit(fetcher)
    assert not futures.wait([fetching], 2.0).done
    start = time.monotonic()
    stop.set()
    with pytest.raises(transport.StoppedError):
      fetching.result(timeout=30)
    assert time.monotonic() - start < STOP_S + SLACK_S
