"""The priority of a process and of the sessions that it starts."""

import functools
import subprocess
import sys

import pytest

from starleague.actor import sessions

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
