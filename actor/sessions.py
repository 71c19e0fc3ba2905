"""Sessions and priorities of processes.

A process that leads its own session can be ended with all processes that it started. The module
imports the standard library only, because every game process imports it first.
"""

import contextlib
import ctypes
import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing import resource_tracker
from typing import Any

# Where the kernel groups sessions: sched_autogroup of Linux. The file is absent where it groups
# none, empty for a session outside its groups.
_GROUP = "/proc/{process}/autogroup"


def lower_priority(niceness: int) -> None:
  """Lowers the priority of this process's session.

  Where the kernel groups sessions, the niceness of the group is the one that counts.

  Args:
    niceness: 0 to 19, added to that of the process and to that of the group; the sums end at 19.
  """
  os.nice(niceness)
  set_priority(min(19, priority() + niceness))


def set_priority(niceness: int, process: int | str = "self") -> None:
  """Sets the niceness of a process's session, where the kernel groups it.

  Args:
    niceness: -20 to 19, of the group.
    process: id of a process of the session.
  """
  with contextlib.suppress(OSError), open(_GROUP.format(process=process), "w") as group:
    group.write(str(niceness))


def priority() -> int:
  """Returns the niceness of this process's session; 0 where the kernel does not group it."""
  with contextlib.suppress(OSError), open(_GROUP.format(process="self")) as group:
    words = group.read().split()
    return int(words[-1]) if words else 0
  return 0


def lead(target: Callable[..., object], *arguments: Any) -> None:
  """Calls a main function as the leader of a new session, with the niceness of the old one."""
  niceness = priority()
  os.setsid()
  if niceness:
    set_priority(niceness)
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # drops one that `LedProcess` has held back
  signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
  signal.signal(signal.SIGINT, signal.default_int_handler)
  target(*arguments)


def end_with_parent() -> None:
  """Makes the kernel kill this process when the thread that started it ends, also by SIGKILL.

  To be called in a process of `multiprocessing`. One whose parent is dead already ends here.
  """
  parent = multiprocessing.parent_process()
  assert parent is not None, "this process was not started by multiprocessing"
  ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
  if os.getppid() != parent.pid:
    os._exit(1)


class LedProcess:
  """A process that leads its own session, and a connection to it.

  Attributes:
    connection: this end.
    process: the process.
  """

  def __init__(self, target: Callable[..., object], arguments: tuple):
    """Starts the process.

    Args:
      target: main function, importable; called with the other end and `arguments`.
      arguments: picklable.
    """
    context: Any = multiprocessing.get_context("spawn")  # a fork would carry JAX's threads along
    self._ended = False
    self.connection, theirs = context.Pipe()
    self.process = context.Process(target=lead, args=(target, theirs, *arguments), daemon=True)
    # Ctrl-C is for the parent, also before the process has a session of its own.
    resource_tracker.ensure_running()  # its start would unblock SIGINT
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
      self.process.start()
    finally:
      signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    theirs.close()

  def end(self, wait_s: float) -> None:
    """Closes the connection, and kills the process and its session after a time, in seconds."""
    if self._ended:
      return  # another session may have its number now
    self._ended = True
    self.connection.close()
    self.process.join(0.0 if self.process.exitcode is not None else wait_s)
    if self.process.exitcode is None:
      self.process.kill()
      self.process.join()
    # What it has started lives in its session, and would go on.
    with contextlib.suppress(ProcessLookupError, PermissionError):
      os.killpg(self.process.pid, signal.SIGKILL)
