"""The priority of a process and of the sessions that it starts."""

import functools
import os
import signal
import subprocess
import sys

import pytest

from starleague.actor import sessions
from tests.processes import runs, wait_until

CODE = """
import os, sys
from starleague.actor import sessions
before = os.nice(0)
sessions.lower_priority(3)
if os.fork() == 0:
  sessions.lead(lambda: print(os.getsid(0) == os.getpid(), os.nice(0) - before,
                              sessions.priority(), flush=True))
  os._exit(0)
os.wait()
"""


def test_a_session_starts_with_the_priority_of_the_one_before():
  # A kernel may group new sessions, and not the one that the tests run in: ask a new one.
  new_session = functools.partial(subprocess.run, capture_output=True, text=True, timeout=120,
                                  start_new_session=True)
  group = new_session(["cat", "/proc/self/autogroup"])
  done = new_session([sys.executable, "-c", CODE])
  expected = 3 if group.stdout.strip() else 0
  assert (done.stdout, done.returncode) == (f"True 3 {expected}\n", 0), done.stderr


@pytest.mark.parametrize("text, expected", [("", 0), ("\n", 0), ("/autogroup-7 nice -5\n", -5),
                                            ("/autogroup-112 nice 12\n", 12)])
def test_the_priority_of_a_session_is_read_where_the_kernel_groups_it(tmp_path, monkeypatch, text,
                                                                      expected):
  monkeypatch.setattr(sessions, "_GROUP", str(tmp_path / "{process}-group"))
  assert sessions.priority() == 0  # no such file
  (tmp_path / "self-group").write_text(text)
  assert sessions.priority() == expected


@pytest.mark.parametrize("before, niceness, after", [
  (0, 3, 3), (12, 0, 12), (12, 5, 17), (12, 19, 19), (-5, 0, -5)])
def test_a_session_that_is_low_is_never_raised(tmp_path, monkeypatch, before, niceness, after):
  added = []
  monkeypatch.setattr(sessions.os, "nice", added.append)  # this process keeps its own
  monkeypatch.setattr(sessions, "_GROUP", str(tmp_path / "{process}-group"))
  (tmp_path / "self-group").write_text(f"/autogroup-7 nice {before}\n")
  sessions.lower_priority(niceness)
  assert (tmp_path / "self-group").read_text() == str(after) and added == [niceness]


def start_child(connection):
  """The main function of a process that starts another one."""
  child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
  connection.send_bytes(str(child.pid).encode())
  connection.recv_bytes()


def test_the_end_of_a_process_ends_what_it_has_started():
  led = sessions.LedProcess(start_child, ())
  assert led.connection.poll(120)
  child = int(led.connection.recv_bytes())
  assert os.getsid(child) == led.process.pid
  led.end(0.0)
  assert led.process.exitcode is not None
  wait_until(lambda: not runs(child))


def interrupt_itself():
  os.kill(os.getpid(), signal.SIGINT)
  return "interrupted"


class Interrupting:
  """An argument whose arrival, before the process leads a session, interrupts the process."""

  def __reduce__(self):
    return interrupt_itself, ()


def tell(connection, argument):
  """The main function of a process that tells how it takes Ctrl-C now."""
  blocked = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
  default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
  connection.send_bytes(f"{argument} {blocked} {default}".encode())


def test_ctrl_c_during_the_start_is_for_the_parent():
  led = sessions.LedProcess(tell, (Interrupting(),))
  assert led.connection.poll(120)
  assert led.connection.recv_bytes() == b"interrupted False True"
  led.end(120.0)
  assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_only_a_started_process_can_end_with_its_parent():
  with pytest.raises(AssertionError, match="not started by multiprocessing"):
    sessions.end_with_parent()
