"""Parameters that are published and fetched."""

import threading
import zlib

import numpy as np
import pytest

from starleague.data import wire
from starleague.data.reverb import parameters, transport
from tests.data.reverb.clients import PARAMS


class Clock:
  now = 0.0

  def __call__(self):
    return self.now


def test_parameters_are_published_and_fetched_at_most_every_interval(serve):
  address, clock = serve(), Clock()
  publisher = parameters.ParameterPublisher(address, "main", clock=clock)
  fetcher = parameters.ParameterFetcher(address, "main", PARAMS, clock=clock, deadline_s=10)
  asked = []

  def publish(step):
    def get():
      asked.append(step)
      return {"torso": {"w": PARAMS["torso"]["w"] + step}, "b": PARAMS["b"]}
    done = publisher(get, step)
    publisher.flush()
    return done

  assert publish(1)
  assert fetcher().step == 1
  clock.now = 9.9
  assert not publish(2)
  clock.now = 10.0
  assert publish(3)
  assert asked == [1, 3]
  clock.now = 9.9
  assert fetcher().step == 1  # fetched at 0
  clock.now = 10.0
  fetched = fetcher()
  assert fetched.step == 3
  np.testing.assert_array_equal(fetched.params["torso"]["w"], PARAMS["torso"]["w"] + 3)
  np.testing.assert_array_equal(fetched.params["b"], PARAMS["b"])
  publisher.close()


def test_parameters_of_a_reset_are_published_at_once(serve):
  """They have the step of those before them, another checksum, and wait for no interval."""
  address, clock = serve(), Clock()
  fetcher = parameters.ParameterFetcher(address, "main", PARAMS, interval_s=0, deadline_s=10)
  with parameters.ParameterPublisher(address, "main", clock=clock) as publisher:
    assert publisher(lambda: PARAMS, 7)
    publisher.flush()
    before = fetcher()
    reset = {"torso": {"w": PARAMS["torso"]["w"] + 1}, "b": PARAMS["b"]}
    clock.now = 4.0
    publisher.publish_now(lambda: reset, 7)
    after = fetcher()
    assert before.step == after.step == 7
    assert before.checksum == zlib.crc32(wire.flatten_parameters(PARAMS))
    assert after.checksum == zlib.crc32(wire.flatten_parameters(reset)) != before.checksum
    np.testing.assert_array_equal(after.params["torso"]["w"], reset["torso"]["w"])
    clock.now = 13.9
    assert not publisher(lambda: PARAMS, 8)  # the interval counts from the newest one


def test_a_stop_ends_the_wait_for_a_publication(serve, monkeypatch):
  """The server of a run that stops may be gone."""
  gone, stop = threading.Event(), threading.Event()
  publisher = parameters.ParameterPublisher(serve(), "main")
  monkeypatch.setattr(parameters, "_send", lambda *arguments: gone.wait(60))
  stop.set()
  with pytest.raises(transport.StoppedError):
    publisher.publish_now(lambda: PARAMS, 7, stop)
  gone.set()
  publisher.close(10.0)


def test_parameters_travel_in_pieces(serve, monkeypatch):
  monkeypatch.setattr(parameters, "CELL_BYTES", 10)  # 28 bytes: three pieces, the last padded
  address = serve()
  client, info = transport.connect(address, 5)
  parameters.publish(client, "main", PARAMS, 5)
  fetched = parameters.ParameterFetcher(address, "main", PARAMS, deadline_s=5)()
  np.testing.assert_array_equal(fetched.params["torso"]["w"], PARAMS["torso"]["w"])
  np.testing.assert_array_equal(fetched.params["b"], PARAMS["b"])


def test_parameters_of_another_tree_are_refused(serve):
  address = serve()
  parameters.publish(transport.connect(address, 5)[0], "main", PARAMS, 5)
  template = {"torso": PARAMS["torso"]}
  found, expected = (wire.parameters_hash(x).hex()[:12] for x in (PARAMS, template))
  with pytest.raises(parameters.ParameterMismatchError, match=(
      f"found tree {found} of 28 bytes, expected {expected} of 24 bytes")):
    parameters.ParameterFetcher(address, "main", template, deadline_s=5)()


def test_a_restarted_server_without_the_player_is_refused(serve):
  address = serve()
  fetcher = parameters.ParameterFetcher(address, "main", PARAMS, interval_s=0, deadline_s=10)
  serve.servers[0].stop()
  serve(players=("other",), port=serve.servers[0].port)
  with pytest.raises(transport.SignatureMismatchError, match=(
      f"^there is no table 'parameters/main' of {address}; it has .'other', 'parameters/other'.")):
    fetcher()


def test_the_wait_for_a_first_publication_has_a_deadline(serve):
  fetcher = parameters.ParameterFetcher(serve(), "main", PARAMS, deadline_s=1)
  with pytest.raises(parameters.StarvedError, match="no parameters of .main. were published"):
    fetcher()
