"""Batches of a table: each trajectory as often as the rate says, in the layout of batches."""

import threading
import time

import numpy as np
import pytest

from starleague.data import wire
from starleague.data.reverb import sampler, server, transport
from tests.data.reverb.clients import make_dataset, make_writer
from tests.data.reverb.server_process import CONFIG, UNROLL_LENGTH, packed


def test_a_closed_dataset_waits_for_reverb_until_a_sample_comes(serve, monkeypatch):
  # Threads of other tests' datasets may still wait for servers that have ended.
  monkeypatch.setattr(sampler, "_THREAD", "sampler-of-this-test-")
  assert not sampler.waiting()
  address = serve()
  data = make_dataset(address, 1)
  time.sleep(0.5)
  waits = []
  with monkeypatch.context() as patch:
    patch.setattr(data._thread, "join", waits.append)
    data.close(0.0)
    data.close()  # closed already: it does not wait again
  assert waits == [0.0]
  assert sampler.waiting()
  sender = make_writer(address)
  sender.send("main", packed(1))
  sender.flush()
  deadline = time.monotonic() + 30
  while sampler.waiting() and time.monotonic() < deadline:
    time.sleep(0.05)
  assert not sampler.waiting()


@pytest.mark.parametrize("table", [
  lambda: server.make_table("main", CONFIG, UNROLL_LENGTH, server.FIFO, 4),
  lambda: server.make_table("main", CONFIG, UNROLL_LENGTH, server.UNIFORM, 9, min_size=5),
  lambda: server.make_tables(["main"], CONFIG, UNROLL_LENGTH, min_size=3)[0]])
def test_no_thread_of_a_closed_dataset_outlives_the_server(table, monkeypatch):
  monkeypatch.setattr(sampler, "_THREAD", "sampler-of-this-test-")
  serving = server.make_server([table()])
  address = f"localhost:{serving.port}"
  closed, other = make_dataset(address, 2), make_dataset(address, 2)
  closed.close(0.1)
  assert sampler.waiting()
  other.close(0.1)
  serving.stop()
  end = time.monotonic() + 30
  while sampler.waiting() and time.monotonic() < end:
    time.sleep(0.05)
  assert not sampler.waiting()


def test_each_trajectory_is_sampled_exactly_twice(serve):
  address = serve(tolerance=16)
  sender = make_writer(address)
  for number in range(12):
    sender.send("main", packed(number))
  sender.flush()
  with make_dataset(address, 4, deadline_s=1) as batches:
    numbers = [next(batches).int32[0, :, 0] for _ in range(6)]
    assert sorted(np.concatenate(numbers)) == sorted([*range(12)] * 2)
    with pytest.raises(transport.StarvedError, match=(
        "'main' of .* gave no batch of 4 .* it holds 0 trajectories, sampling needs 1, "
        "12 were ever written")):
      next(batches)


def test_a_restarted_server_without_the_table_is_refused(serve, monkeypatch):
  address = serve()
  monkeypatch.setattr(transport, "server_info", lambda client: {"other": None})
  with make_dataset(address, 2, deadline_s=3) as batches, pytest.raises(
      transport.SignatureMismatchError,
      match=f"^there is no table 'main' of {address}; it has .'other'.: check the player's name"):
    next(batches)


@pytest.mark.parametrize("name", ["batch_size", "prefetch"])
@pytest.mark.parametrize("value", [0, -1])
def test_sizes_below_one_are_refused_before_the_server_is_asked(name, value):
  with pytest.raises(ValueError, match=f"^dataset: {name}: expected at least 1, found {value}.$"):
    make_dataset("localhost:1", **{"batch_size": 2, name: value})


def test_a_table_may_be_empty_for_longer_than_the_servers_deadline(serve):
  """A paused player of a league has no trajectories until it plays again."""
  address = serve()
  with sampler.Dataset(address, "main", 2, CONFIG, UNROLL_LENGTH, 0.2, starved_s=60.0) as batches:
    sender = make_writer(address)
    write = threading.Timer(1.5, lambda: (sender.send("main", packed(7)), sender.flush()))
    write.start()
    assert next(batches).int32[0, :, 0].tolist() == [7, 7]
    write.join()


def test_batch_is_time_major_and_exact(serve):
  address = serve()
  random = np.random.default_rng(0)
  spec = wire.packed_spec(CONFIG, UNROLL_LENGTH)
  sent = wire.Packed(*[random.integers(0, 9, x.shape).astype(x.dtype) for x in spec])
  sender = make_writer(address)
  sender.send("main", sent)
  sender.flush()
  with make_dataset(address, 2) as batches:
    batch = next(batches)
  assert batch.state.shape == (2, *spec.state.shape)
  for name, x, y in zip(wire.Packed._fields, batch, sent, strict=True):
    assert x.dtype == y.dtype
    expected = np.stack([y, y], axis=0 if name == "state" else 1)
    np.testing.assert_array_equal(x, expected, err_msg=name)
