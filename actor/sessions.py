"""Sessions and priorities of processes.

A process that leads its own session can be ended with all processes that it started. The module
imports the standard library only, because every game process imports it first.
"""

import contextlib
import os
from collections.abc import Callable
from typing import Any

# Where the kernel groups sessions: sched_autogroup of Linux. The file is absent where it groups
# none, empty for a session outside its groups.
_GROUP = "/proc/{process}/autogroup"


def lower_priority(niceness: int) -> None:
  """Lowers the priority of this process's session.

  Where the kernel groups sessions, the niceness of the group is the one that counts.

  Args:
    niceness: 0 to 19, of the group; added to the process's own.
  """
  os.nice(niceness)
  set_priority(niceness)


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
  target(*arguments)
