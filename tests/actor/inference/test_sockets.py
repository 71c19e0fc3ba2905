"""The service's sockets: slots of living, dead and wrong clients."""

import contextlib
import dataclasses
import fcntl
import mmap
import os
import selectors
import socket
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest

from starleague.actor.inference import ServiceError, sockets
from starleague.common.errors import UserError
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


TRUNCATES = """
import mmap, os, socket, sys
connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
connection.connect(sys.argv[1])
connection.send(bytes.fromhex(sys.argv[2]))
_, files, _, _ = socket.recv_fds(connection, 1024, 1)
mmap.mmap(files[0], 0)[0] = 1  # a first observation
for size in (2 ** 20, 1, 0):
  try:
    os.ftruncate(files[0], size)
    print("truncated", size)
  except PermissionError:
    print("refused", size)
connection.send(bytes(2))  # asks for the action of its slot 0
print("answered", connection.recv(10))
"""


def test_a_client_that_truncates_its_memory_does_not_end_the_service(model):
  """The service maps the memory too: reading past its end would be SIGBUS."""
  with serving(model, SLOTS) as listener:
    ended = subprocess.run([sys.executable, "-S", "-c", TRUNCATES, listener.address,
                            hello(1).hex()], capture_output=True, text=True, timeout=60)
    assert ended.stdout.split("\n") == [
      "refused 1048576", "refused 1", "refused 0", "answered b'\\x00\\x00'", ""], ended.stderr
    wait_until_claimed(listener, 0)
    act_once(listener, 6)


def test_the_memory_takes_no_other_seals(model):
  """A seal against writes would end the service's answers."""
  with serving(model, SLOTS) as listener:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(listener.address)
    connection.send(hello(1))
    _, (file,), _, _ = socket.recv_fds(connection, 1024, 1)
    assert fcntl.fcntl(file, fcntl.F_GET_SEALS) == (
      fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    with pytest.raises(PermissionError):
      fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    memory = mmap.mmap(file, 0)
    memory[-1] = 7
    os.posix_fallocate(file, 0, os.fstat(file).st_size)
    os.close(file)
    connection.close()
    act_once(listener, 6)


def test_files_that_a_client_sends_are_not_kept(model):
  """The service makes all memory itself: an unsealed file from a client reaches nothing."""
  unsealed = os.memfd_create("unsealed")
  os.ftruncate(unsealed, 2 ** 20)

  def open_files(listener, sent):
    """Returns the open files of this process, after a client sent some with its messages."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(listener.address)
    socket.send_fds(connection, [hello(1)], sent)
    answer, (memory,), _, _ = socket.recv_fds(connection, 1024, 1)
    socket.send_fds(connection, [b"\0\0"], sent)
    assert answer == sockets.ACCEPTED and connection.recv(10) == b"\0\0"
    count = len(os.listdir("/proc/self/fd"))
    os.close(memory)
    connection.close()
    wait_until_claimed(listener, 0)
    return count

  with serving(model, SLOTS) as listener:
    act_once(listener, 1)
    wait_until_claimed(listener, 0)
    without = open_files(listener, [])
    assert open_files(listener, [unsealed] * 20) == without
    os.ftruncate(unsealed, 0)
    os.close(unsealed)
    act_once(listener, 6)


def silent(listener, count):
  """Returns connections that send nothing; each waits until the service takes it."""
  connections = []
  for _ in range(count):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(listener.address)
    connection.settimeout(60)
    connections.append(connection)
  return connections


def test_silent_clients_do_not_block_new_ones(model):
  with serving(model, SLOTS) as listener:
    first = connect(listener, 1)
    connections = silent(listener, 300)
    act_once(listener, 5)
    oldest = connections[:300 - sockets.SILENT_CLIENTS - 1]  # they made way
    assert [connection.recv(1) for connection in oldest] == [b""] * len(oldest)
    wait_until_claimed(listener, 1)
    late = connections[-1]  # and the newest may still say hello
    late.send(hello(5))
    assert late.recv(1) == sockets.ACCEPTED
    first.act({0: (header(4), make_step())})  # a client with slots is never dropped
    for connection in connections:
      connection.close()
    first.close()


def test_a_client_that_makes_way_may_speak_at_the_same_moment(monkeypatch):
  monkeypatch.setattr(sockets, "SILENT_CLIENTS", 1)
  listener = sockets.Listener(CONFIG, SLOTS)
  (first,) = silent(listener, 1)
  listener.poll(1.0)
  (second,) = silent(listener, 1)
  first.send(hello(1))  # both events are in one poll, that of the new connection first
  listener.poll(1.0)
  with pytest.raises(ConnectionResetError):
    first.recv(1)
  assert listener.claimed == 0
  second.send(hello(2))
  listener.poll(1.0)
  assert second.recv(1) == sockets.ACCEPTED and listener.claimed == 2
  listener.close()


def test_a_long_path_of_temporary_files_is_refused(tmp_path_factory, monkeypatch):
  """The folder `starleague-` with eight letters and the socket take 37 bytes of 107."""
  root = str(tmp_path_factory.mktemp("t"))
  fits, long = (f"{root}/{'x' * (size - len(root) - 1)}" for size in (70, 71))
  for folder in (fits, long):
    os.mkdir(folder)
  monkeypatch.setattr(tempfile, "tempdir", fits)
  sockets.Listener(CONFIG, SLOTS).close()
  monkeypatch.setattr(tempfile, "tempdir", long)
  with pytest.raises(UserError, match=(
      f"^TMPDIR {long}: expected a path of at most 70 bytes, found 71; a Unix socket's has at "
      "most 107. Set a shorter TMPDIR$")):
    sockets.Listener(CONFIG, SLOTS)
  assert os.listdir(fits) == os.listdir(long) == []


def open_files() -> set[str]:
  """Returns the sockets and pipes of this process."""
  links = set()
  for name in os.listdir("/proc/self/fd"):
    with contextlib.suppress(FileNotFoundError):  # the descriptor of the listing itself
      links.add(os.readlink(f"/proc/self/fd/{name}"))
  return {link for link in links if link.startswith(("socket:", "pipe:"))}


def test_a_listener_that_cannot_start_leaves_nothing(monkeypatch):
  def fail(*arguments):
    raise OSError("no more files")

  with tempfile.TemporaryDirectory() as folder:  # pytest's folders may have too long a path
    monkeypatch.setattr(tempfile, "tempdir", folder)
    monkeypatch.setattr(selectors.DefaultSelector, "register", fail)
    before = open_files()
    with pytest.raises(OSError, match="no more files"):
      sockets.Listener(CONFIG, SLOTS)
    # Those of earlier tests may be collected meanwhile.
    assert os.listdir(folder) == [] and open_files() <= before


def test_a_first_message_has_a_deadline(model, monkeypatch):
  monkeypatch.setattr(sockets, "HELLO_S", 0.2)
  with serving(model, SLOTS) as listener:
    client, (connection,) = connect(listener, 1), silent(listener, 1)
    listener.wake()
    started = time.monotonic()
    assert connection.recv(1) == b"" and time.monotonic() - started < 10
    client.act({0: (header(4), make_step())})
    client.close()


def test_the_hash_of_the_format_tells_agents_with_other_sizes_apart():
  wider = dataclasses.replace(CONFIG, max_entities=CONFIG.max_entities + 1)
  more = dataclasses.replace(CONFIG, max_selected=CONFIG.max_selected + 1)
  renamed = dataclasses.replace(CONFIG, name="other")
  hashes = [sockets.format_hash(config) for config in (CONFIG, wider, more)]
  assert len(set(hashes)) == 3 and {len(found) for found in hashes} == {32}
  assert sockets.format_hash(renamed) == hashes[0]
