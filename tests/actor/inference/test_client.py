"""A game's end of the transport: deadlines, the service's end, requests left open."""

import contextlib

import jax
import numpy as np
import pytest

from starleague.actor.inference import Client, Listener, ServiceError
from tests.actor.inference.serving import (
  CONFIG,
  SLOTS,
  connect,
  delay,
  header,
  make_step,
  repeating,
  serving,
)


def test_the_end_of_the_service_ends_its_clients(model):
  with serving(model, SLOTS) as listener:
    client = connect(listener, 1)
  with pytest.raises(ServiceError, match="ended or disconnected"):
    client.act({0: (header(), make_step())})
  with pytest.raises(ServiceError, match="cannot be reached"):
    connect(listener, 1, deadline_s=0.05)


def test_a_client_that_leaves_with_open_requests_disturbs_nobody(model):
  with serving(model, SLOTS, wait_s=0.5) as listener:
    stays, leaves = connect(listener, 1), connect(listener, 2)
    for slot in leaves.slots:
      slot.write(header(9), make_step())
    leaves.ask([0, 1])
    leaves.close()
    assert int(stays.act({0: (header(3), make_step())})[0].delay) == delay(3, 0)
    again = connect(listener, 5)
    found = again.act({i: (header(20 + i), make_step()) for i in range(5)})
    assert [int(found[i].delay) for i in range(5)] == [delay(20 + i, 0) for i in range(5)]
    again.close()
    stays.close()


@contextlib.contextmanager
def silent():
  """A listener that gives slots and never answers."""
  with contextlib.closing(Listener(CONFIG, 2)) as listener, \
      repeating(lambda: listener.poll(1.0), listener):
    yield listener


def test_an_answer_is_waited_for_until_the_deadline():
  with silent() as listener:
    client = Client(listener.address, CONFIG, 2, deadline_s=0.1)
    client.slots[1].write(header(), make_step())
    client.ask([1])
    assert client.answered(0.01) == []
    with pytest.raises(ServiceError, match="has not answered for 0.1 s: check its log"):
      client.act({0: (header(), make_step())})
    client.close()


def test_all_slots_ask_at_once(model):
  with serving(model, SLOTS) as listener:
    client = connect(listener, 3)
    steps = jax.tree.map(lambda x: np.stack([x] * 3), make_step())
    found = client.act_all(header()._replace(seed=np.array([4, 5, 6])), steps)
    assert found.delay.tolist() == [delay(seed, 0) for seed in (4, 5, 6)]
    client.close()
