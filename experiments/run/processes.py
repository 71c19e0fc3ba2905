"""The processes of one machine: starts, polls, restarts and ends them.

A run consists of plain programs (a Reverb server, actors, a learner). Each has its own session, so
Ctrl-C reaches only the parent, which then ends the others in order. The kernel kills each process
when the parent dies, for whatever reason. Output goes to log files; an error quotes the end of the
log.

    argv = (sys.executable, "-m", "starleague.experiments.actor")
    with Runner([Process("actor", argv, {}, run_dir / "actor.log", restarts=3)]) as runner:
      while not done:
        runner.poll()                      # raises ProcessFailed when no restart is left
        time.sleep(0.1)

Leaving the block ends all processes that still run, also after an exception. Children of a process
are in its group and end with it, except where the parent was killed by SIGKILL: then the process
must end its own children. Linux only.
"""

import enum
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

TAIL_LINES = 30
# The first program of a child: it requests SIGKILL on its parent's death, then executes the real
# program. Python code between fork and exec could deadlock in a parent with threads, and JAX has
# threads. 1 is PR_SET_PDEATHSIG of prctl(2); the parent may be dead already.
_LAUNCHER = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
if os.getppid() != int(sys.argv[1]): os._exit(1)
os.execvp(sys.argv[2], sys.argv[2:])
"""


class State(enum.StrEnum):
  """State of a process."""

  WAITING = "waiting"  # not started yet, or dead with a restart pending
  RUNNING = "running"
  FINISHED = "finished"  # exited with status 0
  FAILED = "failed"  # died with no restart left
  STOPPED = "stopped"  # ended by `stop`


class Process(NamedTuple):
  """A program and the rules for its restarts and its end."""

  name: str  # shown in the display and in errors; unique in a runner
  argv: Sequence[str]  # the program and its arguments
  env: Mapping[str, str]  # added to this process's environment
  log_path: pathlib.Path  # standard output and error, appended
  restarts: int = 0  # limit on restarts in a row
  ends_last: bool = False  # ended only after all processes without this flag


class ProcessFailed(RuntimeError):
  """A process died with no restart left. `status` is as in subprocess (-9: SIGKILL)."""

  def __init__(self, name: str, status: int, message: str):
    super().__init__(message)
    self.name, self.status = name, status


class Runner:
  """Owns the processes from `start` to `stop`. Not thread-safe: call it from one thread.

  The thread that calls `start` and `poll` must live as long as the run: the kernel sends the parent
  death signal when the forking thread ends.
  """

  def __init__(
      self,
      processes: Sequence[Process],
      *,
      backoff_seconds: float = 1.0,
      max_backoff_seconds: float = 30.0,
      recovery_seconds: float = 300.0,
      deadline_seconds: float = 10.0,
      clock: Callable[[], float] = time.monotonic,
  ):
    """Checks the processes; starts nothing.

    Args:
      processes: the programs, started in this order and ended in the opposite one.
      backoff_seconds: wait before the first restart; doubles with each further death in a row.
      max_backoff_seconds: the longest wait.
      recovery_seconds: a process that ran for longer has recovered: its deaths in a row, and with
        them its restarts and its wait, count from zero again.
      deadline_seconds: time between SIGTERM and SIGKILL, once for the processes that end first and
        once for those that end last.
      clock: seconds, monotonic.
    """
    _check(processes)
    self._children = [_Child(process) for process in processes]
    self._backoff = backoff_seconds
    self._max_backoff = max_backoff_seconds
    self._recovery = recovery_seconds
    self._deadline = deadline_seconds
    self._clock = clock

  def __enter__(self) -> "Runner":
    self.start()
    return self

  def __exit__(self, *exc_info: object) -> None:
    self.stop()

  def start(self) -> None:
    """Starts all processes. If one cannot be started, ends the others and raises."""
    try:
      for child in self._children:
        if child.state is State.WAITING:
          child.start(self._clock())
    except BaseException:
      self.stop()
      raise

  def poll(self) -> dict[str, State]:
    """Restarts dead processes within their limits; returns the states by name, without waiting.

    Raises:
      ProcessFailed: one died with no restart left. The others still run: call `stop`.
    """
    for child in self._children:
      child.reap()
      if child.state is State.WAITING:
        self._restart(child)
    for child in self._children:
      if child.state is State.FAILED:
        raise ProcessFailed(child.process.name, child.status, child.describe_failure())
    return self.states()

  def states(self) -> dict[str, State]:
    """Returns the states at the last poll, by name."""
    return {child.process.name: child.state for child in self._children}

  def restarts(self) -> dict[str, int]:
    """Returns the number of restarts since `start`, by name."""
    return {child.process.name: child.restarts for child in self._children}

  def pids(self) -> dict[str, int]:
    """Returns the process ids of running processes, by name."""
    return {child.process.name: child.popen.pid for child in self._children
            if child.state is State.RUNNING and child.popen is not None}

  def wait(
      self, names: Sequence[str], timeout_seconds: float, interval_seconds: float = 0.1) -> None:
    """Polls until the named processes have finished with status 0.

    Raises:
      TimeoutError: they did not finish in time; they still run.
      ProcessFailed: any process, named or not, died with no restart left.
      ValueError: an unknown name.
    """
    unknown = set(names) - set(self.states())
    if unknown:
      raise ValueError(f"no process named {sorted(unknown)}; there are {sorted(self.states())}")
    end = self._clock() + timeout_seconds
    while True:
      states = self.poll()
      unfinished = [name for name in names if states[name] is not State.FINISHED]
      if not unfinished:
        return
      if self._clock() >= end:
        raise TimeoutError(f"after {timeout_seconds:g} s still not finished: {unfinished}")
      time.sleep(interval_seconds)

  def stop(self) -> dict[str, int]:
    """Ends all processes: SIGTERM in reverse order of start, SIGKILL at the deadline.

    Processes with `ends_last` get SIGTERM when all others have ended. May be called again.

    Returns:
      The statuses of the processes that still ran (-15: SIGTERM, -9: SIGKILL), by name.
    """
    running = [child for child in reversed(self._children) if child.state is State.RUNNING]
    try:
      for last in (False, True):
        self._end([child for child in running if child.process.ends_last is last])
    finally:  # a second Ctrl-C skips the waiting, not the clean-up
      for child in running:
        child.kill()
      for child in self._children:
        if child.state in (State.RUNNING, State.WAITING):
          child.state = State.STOPPED
    return {child.process.name: child.status for child in running}

  def _end(self, children: Sequence["_Child"]) -> None:
    """Sends SIGTERM to processes and waits for their end; at the deadline, SIGKILL."""
    for child in children:
      child.signal(signal.SIGTERM)
    end = self._clock() + self._deadline
    while any(child.alive() for child in children) and self._clock() < end:
      time.sleep(0.02)
    for child in children:
      child.kill()

  def _restart(self, child: "_Child") -> None:
    """Restarts a dead process after its wait, or marks it failed when no restart is left."""
    now = self._clock()
    if child.restart_at is None:
      if now - child.started_at > self._recovery:
        child.consecutive = 0
      if child.consecutive >= child.process.restarts:
        child.state = State.FAILED
        return
      child.restart_at = now + min(
        self._max_backoff, self._backoff * 2.0 ** min(child.consecutive, 60))
    if now >= child.restart_at:
      child.restarts += 1
      child.consecutive += 1
      child.start(now)


class _Child:
  """One process, its state and its restarts."""

  def __init__(self, process: Process):
    self.process = process
    self.popen: subprocess.Popen[bytes] | None = None
    self.state = State.WAITING
    self.status = 0
    self.restarts = 0
    self.consecutive = 0  # restarts in a row, without a recovery between them
    self.started_at = 0.0
    self.restart_at: float | None = None

  def start(self, now: float) -> None:
    """Starts the program.

    Raises:
      OSError: the program or the log's directory is not accessible.
      RuntimeError: this is not the main thread.
    """
    process = self.process
    env = {**os.environ, **process.env}
    if threading.current_thread() is not threading.main_thread():
      raise RuntimeError(
        f"process {process.name!r}: start and poll must run in the main thread; the kernel takes "
        "the end of the thread that starts a process for the end of its parent")
    if shutil.which(process.argv[0], path=env.get("PATH")) is None:
      raise FileNotFoundError(
        f"process {process.name!r}: no executable {process.argv[0]!r}, as a path or on PATH")
    process.log_path.parent.mkdir(parents=True, exist_ok=True)
    launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid())]
    with open(process.log_path, "ab") as log:
      self.popen = subprocess.Popen(
        [*launcher, *process.argv], env=env, stdin=subprocess.DEVNULL, stdout=log,
        stderr=subprocess.STDOUT, start_new_session=True)
    self.state, self.started_at, self.restart_at = State.RUNNING, now, None

  def alive(self) -> bool:
    """Returns whether the process runs, without reaping it.

    A process id stays reserved until it is reaped, so its group can still be killed safely.
    """
    if self.popen is None or self.popen.returncode is not None:
      return False
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, self.popen.pid, flags) is None

  def reap(self) -> None:
    """Updates the state of an ended process: FINISHED after status 0, else WAITING."""
    if self.state is State.RUNNING and not self.alive():
      self.kill()  # its remaining children would hold ports and cores
      self.state = State.FINISHED if self.status == 0 else State.WAITING

  def signal(self, number: int) -> None:
    """Sends a signal to the whole group."""
    if self.popen is not None and self.popen.returncode is None:
      os.killpg(self.popen.pid, number)  # the session leader's id is its group's

  def kill(self) -> None:
    """Kills the group and reaps the process."""
    if self.popen is not None and self.popen.returncode is None:
      self.signal(signal.SIGKILL)
      self.status = self.popen.wait()

  def describe_failure(self) -> str:
    """Returns the cause of death, the number of restarts, and the end of the log."""
    how = f"exited with status {self.status}"
    if self.status < 0:
      try:
        how = f"was killed by {signal.Signals(-self.status).name}"
      except ValueError:
        how = f"was killed by signal {-self.status}"
    if self.status == -signal.SIGKILL:
      how += " (out of memory?)"
    again = f" after {self.consecutive} restarts in a row" if self.consecutive else ""
    tail = "\n".join("  | " + line for line in log_tail(self.process.log_path)) or "  | (nothing)"
    return (f"process {self.process.name!r} {how}{again}; the end of its log "
            f"{self.process.log_path}:\n{tail}")


def interrupt_on_sigterm() -> None:
  """Makes SIGTERM raise KeyboardInterrupt in the main thread, so that `with Runner` ends cleanly.

  Without it SIGTERM ends the parent at once and the kernel kills the children before they save.
  """
  def interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt("SIGTERM")

  signal.signal(signal.SIGTERM, interrupt)


def log_tail(path: pathlib.Path, lines: int = TAIL_LINES, max_bytes: int = 16384) -> list[str]:
  """Returns the last lines of a log, read from its end; empty if there is no file."""
  try:
    with open(path, "rb") as file:
      size = file.seek(0, os.SEEK_END)
      file.seek(max(0, size - max_bytes))
      text = file.read()
  except FileNotFoundError:
    return []
  return text.decode("utf-8", errors="replace").splitlines()[-lines:]


def _check(processes: Sequence[Process]) -> None:
  names = [process.name for process in processes]
  repeated = sorted({name for name in names if names.count(name) > 1})
  if repeated:
    raise ValueError(f"each process needs a name of its own; found more than one {repeated}")
  for process in processes:
    if isinstance(process.argv, str) or not process.argv:
      raise ValueError(
        f"process {process.name!r}: argv must be a sequence of at least one string; "
        f"found {process.argv!r}")
    if process.restarts < 0:
      raise ValueError(f"process {process.name!r}: restarts must be from 0 up; "
                       f"found {process.restarts}")
