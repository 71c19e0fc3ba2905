"""A data server is killed: its clients wait, then resume from its checkpoint."""

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


@pytest.mark.slow
def test_clients_resume_after_the_server_was_killed(tmp_path):
  port = free_port()
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
    transport.connect(address, 5)[0].checkpoint()
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
      publisher.flush()
      publisher.close()
      assert fetcher().step == 2
      numbers = pool.submit(take).result(timeout=60).tolist()
      # What was drawn ahead when the server died was drawn from a state that the checkpoint does
      # not know: it is drawn again. Nothing is lost.
      assert set(numbers) == {*range(6)}
      batches.close()
      sender.close()
