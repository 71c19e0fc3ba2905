"""Addresses of processes, gangs, and places other than this machine."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

from starleague.actor import sessions
from starleague.experiments.run.processes import process_runner
from starleague.experiments.run.processes.process_runner import Runner, State
from starleague.experiments.run.processes.programs import Address, Placeholder, Process
from tests.experiments.run.small_programs import log_of, python_process, until


class _Scripted:
  """A program that does what a test says."""

  pid = None

  def __init__(self, process, addresses, address):
    self.process, self.addresses, self.address, self.ended = process, addresses, address, None

  def status(self):
    return self.ended

  def signal(self, number):
    self.kill()

  def kill(self):
    self.ended = -9 if self.ended is None else self.ended
    return self.ended


class _Place:
  """Starts scripted programs; `hosts` has those of the servers, by name."""

  def __init__(self, **hosts):
    self.hosts, self.started = hosts, []

  def start(self, process, addresses, last):
    self.started.append(process.name)
    return _Scripted(process, addresses, self.hosts.get(process.name))


def _scripted(name, *words, **changes):
  return Process(name, ["program", *words], {}, pathlib.Path("log"), restarts=3, **changes)


def _programs(runner):
  return {child.process.name: child.program for child in runner._children}


def test_a_client_gets_the_address_of_its_server_and_starts_after_it(tmp_path):
  client = python_process(tmp_path, "client", "import sys; print(sys.argv[1:])")
  client = client._replace(argv=[*client.argv, "--at", Address("server")])
  server = python_process(tmp_path, "server", "import sys; print(sys.argv[1:])")
  server = server._replace(argv=[Placeholder.PYTHON, *server.argv[1:], Placeholder.HOST,
                                 Placeholder.PORT, Placeholder.ADDRESS],
                           listens=True)
  with Runner([client, server]) as runner:
    assert runner.states() == {"client": State.WAITING, "server": State.RUNNING}
    runner.wait(["client", "server"], timeout_seconds=20)
    address = runner.addresses()["server"]
  assert log_of(client) == f"['--at', '{address}']\n"
  host, port = address.split(":")
  assert log_of(server) == f"['{host}', '{port}', '{address}']\n"
  assert host == "127.0.0.1" and 1024 < int(port) < 65536


def test_a_server_keeps_its_port_when_it_is_restarted(tmp_path):
  code = "import sys, time; print(sys.argv[1]); time.sleep(60)"
  server = python_process(tmp_path, "server", code, restarts=1)
  server = server._replace(argv=[*server.argv, Placeholder.PORT], listens=True)
  with Runner([server], backoff_seconds=0.01) as runner:
    until(lambda: log_of(server).endswith("\n"))  # a line may be written in two parts
    os.kill(runner.pids()["server"], signal.SIGKILL)
    lines = until(lambda: runner.poll() and len(found := log_of(server).split()) == 2 and found)
  assert lines[0] == lines[1]


def test_a_client_waits_for_an_address_that_is_not_known_yet():
  place = _Place(server=None)
  with Runner([_scripted("server", listens=True), _scripted("client", Address("server"))],
              place=place) as runner:
    assert runner.poll() == {"server": State.RUNNING, "client": State.WAITING}
    _programs(runner)["server"].address = "a:1"
    assert runner.poll() == {"server": State.RUNNING, "client": State.RUNNING}
    assert _programs(runner)["client"].addresses == {"server": "a:1"}
  assert runner.restarts() == {"server": 0, "client": 0}


def test_clients_of_a_server_that_moves_are_restarted():
  """On a cluster a server may come back on another node."""
  place, now = _Place(server="a:1"), [0.0]
  with Runner([_scripted("server", listens=True), _scripted("client", Address("server")),
               _scripted("other")], place=place, backoff_seconds=1.0,
              clock=lambda: now[0]) as runner:
    _programs(runner)["server"].ended = -9
    runner.poll()
    now[0] = 1.0
    runner.poll()  # it comes back at its address
    assert runner.restarts() == {"server": 1, "client": 0, "other": 0}
    _programs(runner)["server"].ended, place.hosts["server"] = -9, "b:1"
    runner.poll()
    now[0] = 3.0
    runner.poll()
    runner.poll()
    assert runner.restarts() == {"server": 2, "client": 1, "other": 0}
    assert _programs(runner)["client"].addresses == {"server": "b:1"}


def test_a_gang_is_restarted_as_a_whole():
  place, now = _Place(first="a:1"), [0.0]
  gang = [_scripted("first", gang="learner", listens=True),
          _scripted("second", Address("first"), gang="learner")]
  with Runner([*gang, _scripted("other")], place=place, clock=lambda: now[0]) as runner:
    _programs(runner)["second"].ended = 1
    assert runner.poll() == {
      "first": State.WAITING, "second": State.WAITING, "other": State.RUNNING}
    assert _programs(runner)["first"].ended == -9
    now[0] = 1.0
    assert set(runner.poll().values()) == {State.RUNNING}
    assert place.started == ["first", "second", "other", "first", "second"]
    for name in ("first", "second"):
      _programs(runner)[name].ended = 0
    assert runner.poll()["second"] is State.FINISHED


def test_a_peer_must_listen():
  with pytest.raises(ValueError, match=r"'client': its peers \['server'\] must be processes that"):
    Runner([_scripted("server"), _scripted("client", Address("server"))])


_PARENT = """
import pathlib, sys
from starleague.experiments.run.processes import process_runner, programs
pathlib.Path("/proc/self/autogroup").write_text("7")
child = programs.Process("child", [sys.executable, "-I", "-S", "-c",
  "import time; time.sleep(0.5); print(open('/proc/self/autogroup').read())"], {},
  pathlib.Path(sys.argv[1]))
process_runner.run_to_end(child, lambda: None, 5.0, 0.05)
"""


def test_a_child_has_the_priority_of_its_parents_session(tmp_path):
  # A kernel may group new sessions, and not the one that the tests run in: ask a new one.
  group = subprocess.run(["cat", "/proc/self/autogroup"], start_new_session=True, text=True,
                         stdout=subprocess.PIPE, check=False).stdout.strip()
  if not group:
    pytest.skip("a kernel that groups no sessions")
  log = tmp_path / "log"
  subprocess.run([sys.executable, "-c", _PARENT, str(log)], check=True, start_new_session=True)
  assert log.read_text().split()[-2:] == ["nice", "7"]


def test_a_child_starts_from_a_session_that_the_kernel_does_not_group(tmp_path, monkeypatch):
  monkeypatch.setattr(sessions, "_GROUP", str(tmp_path / "{process}-group"))
  (tmp_path / "self-group").write_text("")
  child = Process("child", [sys.executable, "-I", "-S", "-c", "print('started')"], {},
                  tmp_path / "log")
  process_runner.run_to_end(child, lambda: None, 5.0, 0.05)
  assert (tmp_path / "log").read_text() == "started\n"
