"""Parameters that are published and fetched."""

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


def test_the_wait_for_a_first_publication_has_a_deadline(serve):
  fetcher = parameters.ParameterFetcher(serve(), "main", PARAMS, deadline_s=1)
  with pytest.raises(parameters.StarvedError, match="no parameters of .main. were published"):
    fetcher()
