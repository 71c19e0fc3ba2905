"""The reaction of a run's processes to stop signals, SIGTERM and SIGINT."""

import _thread
import functools
import signal
import threading

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@functools.cache
def stop_event() -> threading.Event:
  """Returns an event that a stop signal sets from now on; a process's loop ends at it.

  Python runs signal handlers between bytecodes of the main thread: a long call into compiled code
  delays the event. A short thread sets it, a moment after the signal.
  """
  event = threading.Event()

  def on_signal(*_: object) -> None:
    # The handler may interrupt a wait that holds the event's lock, and would block if it set the
    # event. `threading.Thread` takes such locks too. A forked process has no earlier thread.
    if not event.is_set():
      _thread.start_new_thread(event.set, ())

  for number in SIGNALS:
    signal.signal(number, on_signal)
  return event


def end_at_once() -> None:
  """Makes stop signals end the process at once, also during a call into compiled code."""
  for number in SIGNALS:
    signal.signal(number, signal.SIG_DFL)
