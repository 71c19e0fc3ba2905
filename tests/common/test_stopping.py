"""Stop signals: the first sets an event, also within waits; after `end_at_once` one ends all."""

import signal
import subprocess
import sys

import pytest

_PROGRAM = """
import signal, sys
from starleague.common import stopping
stop = stopping.stop_event()
assert stop is stopping.stop_event() and not stop.is_set()
if sys.argv[1] == "end":
  stopping.end_at_once()
print("ready", flush=True)
stopped = stop.wait(30)
print("stopped" if stopped else "waited", flush=True)
"""

_INTERRUPTED = """
import signal, sys, threading
from starleague.common import stopping
sent = 0

def at_wait(frame, kind, argument):
  global sent
  if frame.f_code is not threading.Condition.wait.__code__:
    return None
  if kind == "line":
    sent += 1
    signal.raise_signal(signal.SIGTERM)
  return at_wait

for _ in range(100):
  stopping.stop_event.cache_clear()
  stop = stopping.stop_event()
  sys.settrace(at_wait)
  assert stop.wait(30)
  sys.settrace(None)
print(sent, flush=True)
"""
_FORKED = """
import os, signal
from starleague.common import stopping
stop = stopping.stop_event()
child = os.fork()
if not child:
  signal.raise_signal(signal.SIGTERM)
  os._exit(7 if stop.wait(30) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), stop.is_set(), flush=True)
"""


def signalled(mode, number):
  """Returns the exit status and what a signalled process printed after `ready`."""
  with subprocess.Popen([sys.executable, "-c", _PROGRAM, mode], stdout=subprocess.PIPE,
                        text=True) as process:
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    rest, _ = process.communicate(timeout=30)
  return process.returncode, rest


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_sets_the_event(number):
  assert signalled("event", number) == (0, "stopped\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_at_once(number):
  assert signalled("end", number) == (-number, "")


def test_signals_within_waits_do_not_block_them():
  found = subprocess.run([sys.executable, "-c", _INTERRUPTED], stdout=subprocess.PIPE, text=True,
                         timeout=60, check=True)
  assert int(found.stdout) >= 300  # three at least while each wait holds the event's lock


def test_a_forked_process_has_an_event_of_its_own():
  found = subprocess.run([sys.executable, "-c", _FORKED], stdout=subprocess.PIPE, text=True,
                         timeout=60, check=True)
  assert found.stdout == "7 False\n"
