"""The reaction of a run's processes to stop signals, SIGTERM and SIGINT."""

import functools
import signal
import threading

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@functools.cache
def stop_event() -> threading.Event:
  """Returns an event that a stop signal sets from now on; a process's loop ends at it.

  Python runs signal handlers between bytecodes of the main thread: a long call into compiled code
  delays the event.
  """
  event = threading.Event()
  for number in SIGNALS:
    signal.signal(number, lambda *_: event.set())
  return event


def end_at_once() -> None:
  """Makes stop signals end the process at once, also during a call into compiled code."""
  for number in SIGNALS:
    signal.signal(number, signal.SIG_DFL)
