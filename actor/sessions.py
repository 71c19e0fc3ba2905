"""Sessions and priorities of processes.

A process that leads its own session can be ended with all processes that it started. The module
imports the standard library only, because every game process imports it first.
"""

import contextlib
import os
from collections.abc import Callable
from typing import Any

_GROUP = "/proc/self/autogroup"  # where the kernel groups sessions: Linux's sched_autogroup


def lower_priority(niceness: int) -> None:
  """Lowers the priority of this process's session.

  Where the kernel groups sessions, the niceness of the group is the one that counts.

  Args:
    niceness: 0 to 19, of the group; added to the process's own.
  """
  os.nice(niceness)
  _set_group(niceness)


def _set_group(niceness: int) -> None:
  with contextlib.suppress(OSError), open(_GROUP, "w") as group:
    group.write(str(niceness))


def priority() -> int:
  """Returns the niceness of this process's session; 0 where the kernel groups none.

  There the file is absent, or empty: a kernel may group some of its sessions only.
  """
  with contextlib.suppress(OSError), open(_GROUP) as group:
    words = group.read().split()
    return int(words[-1]) if words else 0
  return 0


def lead(target: Callable[..., object], *arguments: Any) -> None:
  """Calls a main function as the leader of a new session, with the niceness of the old one.
  """
  niceness = priority()
  os.setsid()
  if niceness:
    _set_group(niceness)
  target(*arguments)
