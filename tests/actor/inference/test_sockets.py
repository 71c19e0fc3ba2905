"""The service's sockets: slots of living, dead and wrong clients."""

import dataclasses
import socket
import subprocess
import sys

import numpy as np
import pytest

from starleague.actor.inference import ServiceError, sockets
from tests.actor.inference.serving import (
  CONFIG,
  SLOTS,
  act_once,
  connect,
  delay,
  header,
  hello,
  make_step,
  raw,
  serving,
  wait_until_claimed,
)


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


def test_the_hash_of_the_format_tells_agents_with_other_sizes_apart():
  wider = dataclasses.replace(CONFIG, max_entities=CONFIG.max_entities + 1)
  more = dataclasses.replace(CONFIG, max_selected=CONFIG.max_selected + 1)
  renamed = dataclasses.replace(CONFIG, name="other")
  hashes = [sockets.format_hash(config) for config in (CONFIG, wider, more)]
  assert len(set(hashes)) == 3 and {len(found) for found in hashes} == {32}
  assert sockets.format_hash(renamed) == hashes[0]
