"""The service through its sockets: answers, records, several players, dead and wrong clients."""

import socket
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

from starleague.actor.inference import Client, ServiceError, sockets
from starleague.data import wire
from tests.actor.inference.serving import (
  CONFIG,
  delay,
  header,
  make_model,
  make_step,
  serving,
)

SLOTS = 6


@pytest.fixture(scope="module")
def model():
  return make_model(SLOTS)


def connect(listener, slots=2, deadline_s=60.0):
  return Client(listener.address, CONFIG, slots, deadline_s)


def hello(slots, config_hash=None, magic=sockets.MAGIC):
  return sockets.HELLO.pack(magic, config_hash or sockets.format_hash(CONFIG), slots)


def raw(listener, message):
  """Returns a connection after its first message, and the answer."""
  connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
  connection.settimeout(60)
  connection.connect(listener.address)
  connection.send(message)
  answer, files, _, _ = socket.recv_fds(connection, 1024, 1)
  return connection, answer


def act_once(listener, slots, slot=0, seed=2):
  """A new client claims slots, and one of them gets the action of its game's noise."""
  client = connect(listener, slots)
  found = client.act({slot: (header(seed), make_step())})
  assert int(found[slot].delay) == delay(seed, 0)
  client.close()


def wait_until_claimed(listener, slots):
  end = time.monotonic() + 60
  while listener.claimed != slots:
    assert time.monotonic() < end, f"{listener.claimed} slots are claimed, expected {slots}"
    time.sleep(0.01)


def test_interleaved_games_get_the_actions_of_their_own_noise(model):
  with serving(model, SLOTS) as listener:
    one, two = connect(listener, 2), connect(listener, 3)
    for number in range(4):
      asked = {0: (header(10, number), make_step()), 1: (header(11, number, player=1), make_step())}
      found = one.act(asked)
      assert [int(found[i].delay) for i in (0, 1)] == [delay(10, number), delay(11, number)]
      if number % 2:
        found = two.act({2: (header(12, number // 2), make_step())})
        assert int(found[2].delay) == delay(12, number // 2)
    one.close()
    two.close()


def test_records_hold_steps_actions_and_core_states(model):
  records, players = [], []

  def take(found, whose):
    records.append(found)
    players.append(whose.tolist())

  with serving(model, SLOTS, on_records=take) as listener:
    client = connect(listener, 2)
    for number in range(3):
      client.act({0: (header(5, number, player=1), make_step(number)),
                  1: (header(6, number, recorded=False), make_step(9))})
    client.act({0: (header(5, 3, player=1, last=True), make_step(3)),
                1: (header(6, 3, recorded=False, last=True), make_step(9))})
    client.close()
  assert players == [[[1]]] * 4  # nobody learns from the second slot
  found = jax.tree.map(lambda *x: np.concatenate(x), *records)
  assert found.row.shape == (4, 1) and len(set(found.row.flat)) == 1
  np.testing.assert_array_equal(found.first[:, 0], [True, False, False, False])
  np.testing.assert_array_equal(found.last[:, 0], [False, False, False, True])
  np.testing.assert_array_equal(found.core_state.hidden[:, 0, 0, 0], [0, 100, 200, 0])
  steps = jax.tree.map(np.asarray, wire.unpack_steps(found.step, CONFIG))
  np.testing.assert_array_equal(steps.observation.player[:, 0, 0], [0, 1, 2, 3])
  np.testing.assert_array_equal(steps.reward[:, 0, 4], [0, 1, 2, 3])
  np.testing.assert_array_equal(
    steps.action.delay[:, 0], [delay(5, number) for number in range(3)] + [0])


def test_slots_are_bounded_and_come_back(model):
  with serving(model, SLOTS) as listener:
    first = connect(listener, 4)
    with pytest.raises(ServiceError, match="3 slots are asked for and 2 of 6 are free"):
      connect(listener, 3, deadline_s=0.05)
    first.close()
    act_once(listener, 6, slot=5)
    wait_until_claimed(listener, 0)


def test_a_killed_client_frees_its_slots(model):
  script = ("import socket, sys, time; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); "
            "s.connect(sys.argv[1]); s.send(bytes.fromhex(sys.argv[2])); time.sleep(600)")
  with serving(model, SLOTS) as listener:
    process = subprocess.Popen([sys.executable, "-S", "-c", script, listener.address,
                                hello(6).hex()])
    wait_until_claimed(listener, 6)
    process.kill()
    process.wait()
    wait_until_claimed(listener, 0)
    act_once(listener, 6)


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


@pytest.mark.parametrize("message, answer", [
  (b"GET / HTTP/1.1\r\n\r\n", "first message"),
  (hello(1, magic=b"STARINF0"), "first message"),
  (hello(1, config_hash=bytes(32)), "other sizes"),
  (hello(0), "0 slots are asked for"),
  (hello(2**32 - 1), "4294967295 slots are asked for"),
])
def test_wrong_first_messages_are_refused(model, message, answer):
  with serving(model, SLOTS) as listener:
    connection, found = raw(listener, message)
    assert found[:1] == sockets.REFUSED and answer in found.decode()
    assert connection.recv(10) == b""
    wait_until_claimed(listener, 0)


@pytest.mark.parametrize("notices", [
  [b"\0"], [b"\1\0"], [b"\0\0\0\0"], [b"\xff" * 8192], [b"\0\0", b"\0\0"]])
def test_wrong_notices_end_their_client_only(model, notices):
  """Half a number, a slot that is not its own, one twice, too many, a second one unanswered."""
  with serving(model, SLOTS, wait_s=5.0) as listener:
    other = connect(listener, 1)
    connection, found = raw(listener, hello(1))
    assert found == sockets.ACCEPTED
    for notice in notices:
      connection.send(notice)
    assert connection.recv(10) == b""
    wait_until_claimed(listener, 1)
    assert int(other.act({0: (header(4), make_step())})[0].delay) == delay(4, 0)
    other.close()


def test_a_player_without_parameters_is_refused(model):
  with serving(model, SLOTS) as listener:
    client = connect(listener, 1)
    with pytest.raises(ServiceError, match="ended or disconnected"):
      client.act({0: (header(player=2), make_step())})


def test_random_messages_do_not_end_the_service(model):
  rng = np.random.default_rng(0)
  with serving(model, SLOTS) as listener:
    for _ in range(200):
      connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
      connection.connect(listener.address)
      for message in (hello(1 + int(rng.integers(2))), rng.bytes(int(rng.integers(1, 64)))):
        try:
          connection.send(message)
        except OSError:
          break
      connection.close()
    wait_until_claimed(listener, 0)
    act_once(listener, 6, slot=1, seed=6)


def test_the_end_of_the_service_ends_its_clients(model):
  with serving(model, SLOTS) as listener:
    client = connect(listener, 1)
  with pytest.raises(ServiceError, match="ended or disconnected"):
    client.act({0: (header(), make_step())})
  with pytest.raises(ServiceError, match="cannot be reached"):
    connect(listener, 1, deadline_s=0.05)
