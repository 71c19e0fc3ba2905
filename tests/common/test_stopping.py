"""Stop signals: the first sets an event; after `end_at_once` one ends the process."""

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
