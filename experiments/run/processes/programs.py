"""Programs of a run: what they are, and how one is started and ended on this machine.

A run consists of plain programs: a data server, actors, a learner. Each has a session of its own,
so Ctrl-C reaches only the parent, which then ends the others in order. The kernel kills each
program when the parent dies, for whatever reason. Children of a program are in its group and end
with it, except where the parent was killed by SIGKILL: then the program must end its own children.
Linux only.
"""

import enum
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import portpicker

from starleague.actor import sessions

LOCALHOST = "127.0.0.1"
# The first program of a child: it requests SIGKILL on its parent's death, then executes the real
# program. Python code between fork and exec could deadlock in a parent with threads, and JAX has
# threads. 1 is PR_SET_PDEATHSIG of prctl(2); the parent may be dead already.
_LAUNCHER = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
if os.getppid() != int(sys.argv[1]): os._exit(1)
os.execvp(sys.argv[2], sys.argv[2:])
"""


class Address(NamedTuple):
  """A word of a command line: host:port at which another process of the run listens."""

  process: str


class Placeholder(enum.Enum):
  """A word of a command line that the runner replaces: the interpreter, or the own address."""

  PYTHON = "python"
  HOST = "host"
  PORT = "port"
  ADDRESS = "host:port"


Word = str | Address | Placeholder


class Process(NamedTuple):
  """A program, and the rules for its restarts, its end and its place."""

  name: str  # shown in the display and in errors; unique in a run
  argv: Sequence[Word]  # the program and its arguments
  env: Mapping[str, str]  # added to the environment
  log_path: pathlib.Path  # standard output and error, appended
  restarts: int = 0  # limit on restarts in a row
  ends_last: bool = False  # ended only after all processes without this flag
  listens: bool = False  # gets a port, which others may name by `Address`
  gang: str = ""  # processes of one gang, of which none can live without the others
  needs: Mapping[str, float] = {}  # resources of a node of a cluster, as "CPU": 1

  @property
  def peers(self) -> list[str]:
    """Names of the processes whose addresses it gets."""
    return [word.process for word in self.argv if isinstance(word, Address)]


class Program(Protocol):
  """A program that was started."""

  @property
  def address(self) -> str | None:
    """host:port given to it; None if it is not known yet, or the program does not listen."""

  @property
  def pid(self) -> int | None:
    """Its process id on this machine; None if it runs on another one."""

  def status(self) -> int | None:
    """Returns the exit status (-9: SIGKILL), or None while it runs. Never waits."""

  def signal(self, number: int) -> None:
    """Sends a signal to the program and its children, if it still runs."""

  def kill(self) -> int:
    """Kills the program and its children; returns the exit status."""


class Place(Protocol):
  """Starts programs: on this machine, or on the nodes of a cluster."""

  def start(self, process: Process, addresses: Mapping[str, str],
            last: Program | None) -> Program:
    """Starts a program.

    Args:
      process: the program.
      addresses: of its peers, by name.
      last: the program that it replaces, which has ended.
    """


class ThisMachine:
  """Starts programs on this machine."""

  def start(self, process: Process, addresses: Mapping[str, str],
            last: Program | None) -> Program:
    """Starts a program; one that is started again keeps its port. See `LocalProgram`."""
    if not process.listens:
      return LocalProgram(process, addresses)
    kept = last.address if last else None
    port = int(kept.rpartition(":")[2]) if kept else portpicker.pick_unused_port()
    return LocalProgram(process, addresses, port=port)


class LocalProgram:
  """A program on this machine, child of this process."""

  def __init__(self, process: Process, addresses: Mapping[str, str], host: str = LOCALHOST,
               port: int | None = None):
    """Starts it.

    Args:
      process: the program.
      addresses: of its peers, by name.
      host: that it listens on, and that others reach.
      port: that it listens on; None: none.

    Raises:
      OSError: the program or the log's directory is not accessible.
      RuntimeError: this is not the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
      raise RuntimeError(
        f"process {process.name!r}: it must be started in the main thread; the kernel takes the "
        "end of the thread that starts a process for the end of its parent")
    self.address = None if port is None else f"{host}:{port}"
    argv = [_spelt(word, addresses, host, port) for word in process.argv]
    env = {**os.environ, **process.env}
    if shutil.which(argv[0], path=env.get("PATH")) is None:
      raise FileNotFoundError(
        f"process {process.name!r}: no executable {argv[0]!r}, as a path or on PATH")
    process.log_path.parent.mkdir(parents=True, exist_ok=True)
    launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid())]
    with open(process.log_path, "ab") as log:
      self._popen = subprocess.Popen(
        [*launcher, *argv], env=env, stdin=subprocess.DEVNULL, stdout=log,
        stderr=subprocess.STDOUT, start_new_session=True)
    _keep_priority(self._popen.pid)

  @property
  def pid(self) -> int:
    """Its process id."""
    return self._popen.pid

  def status(self) -> int | None:
    """Returns the exit status, or None while it runs. Its remaining children end with it."""
    if self._popen.returncode is None:
      # A process id stays reserved until it is reaped, so its group can still be killed safely.
      flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
      if os.waitid(os.P_PID, self.pid, flags) is None:
        return None
    return self.kill()

  def signal(self, number: int) -> None:
    """Sends a signal to the whole group."""
    if self._popen.returncode is None:
      os.killpg(self.pid, number)  # the session leader's id is its group's

  def kill(self) -> int:
    """Kills the group and reaps the program; returns its exit status."""
    self.signal(signal.SIGKILL)
    return self._popen.wait()


def _keep_priority(pid: int) -> None:
  """Gives the session of a child the scheduling priority of this one.

  Linux shares cores among sessions first (sched_autogroup): a new session would start with the
  default priority, whatever that of its parent.
  """
  niceness = sessions.priority()
  if niceness:
    sessions.set_priority(niceness, pid)


def _spelt(word: Word, addresses: Mapping[str, str], host: str,
           port: int | None) -> str:
  """Returns a word of a command line as the program gets it."""
  if isinstance(word, Address):
    return addresses[word.process]
  if isinstance(word, Placeholder):
    return {Placeholder.PYTHON: sys.executable, Placeholder.HOST: host,
            Placeholder.PORT: str(port), Placeholder.ADDRESS: f"{host}:{port}"}[word]
  return word
