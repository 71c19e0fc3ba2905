"""Runs the processes of one machine: starts, watches, restarts and ends them.

A run is some plain programs (a Reverb server, actors, a learner). Each gets a session of its own,
so that Ctrl-C reaches only the parent, which ends the others in order; and each is killed by the
kernel when the parent dies, however it dies. Output goes to log files; the end of the log is in the
error.

    argv = (sys.executable, "-m", "starleague.experiments.actor")
    with Runner([Process("actor", argv, {}, run_dir / "actor.log", restarts=3)]) as runner:
      while not done:
        runner.poll()                      # raises ProcessFailed when one dies for good
        time.sleep(0.1)

Leaving the block ends whatever still runs, also after an exception. What a process starts itself is
in its group and ends with it; only where the parent was killed outright must the process see to
that. Linux only.
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
# What a child runs first: it asks the kernel for SIGKILL when its parent dies, then becomes the
# program. A program of its own, as Python code between fork and exec can deadlock in a parent that
# has threads, and JAX has. 1 is PR_SET_PDEATHSIG of prctl(2); the parent may be dead already.
_LAUNCHER = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
if os.getppid() != int(sys.argv[1]): os._exit(1)
os.execvp(sys.argv[2], sys.argv[2:])
"""


class State(enum.StrEnum):
  """Where a process stands."""

  WAITING = "waiting"  # not started yet, or dead and about to be started again
  RUNNING = "running"
  FINISHED = "finished"  # exited with status 0
  FAILED = "failed"  # died, and no restart is left
  STOPPED = "stopped"  # ended by `stop`


class Process(NamedTuple):
  """What to run."""

  name: str  # shown in the display and in errors; unique in a runner
  argv: Sequence[str]  # the program and its arguments
  env: Mapping[str, str]  # added to this process's environment
  log_path: pathlib.Path  # standard output and error, appended
  restarts: int = 0  # how often it may be started again after it died


class ProcessFailed(RuntimeError):
  """A process died and has no restart left. `name`, `status` as in subprocess (-9: killed)."""

  def __init__(self, name: str, status: int, message: str):
    super().__init__(message)
    self.name, self.status = name, status


class Runner:
  """Owns the processes from `start` to `stop`. Not thread-safe: call it from one thread.

  The thread that calls `start` and `poll` must live as long as the run: the kernel's parent death
  signal counts the death of the thread that forked as the parent's.
  """

  def __init__(
      self,
      processes: Sequence[Process],
      *,
      backoff_seconds: float = 1.0,
      max_backoff_seconds: float = 30.0,
      deadline_seconds: float = 10.0,
      clock: Callable[[], float] = time.monotonic,
  ):
    """Checks the processes; starts nothing.

    Args:
      processes: what to run, started in this order and ended in the opposite one.
      backoff_seconds: wait before a first restart; doubles with each further one.
      max_backoff_seconds: the longest wait. A process that ran for longer than this has recovered:
        its next wait is the first again. Its restarts stay counted.
      deadline_seconds: between SIGTERM and SIGKILL, for all processes together.
      clock: seconds, monotonic.
    """
    _check(processes)
    self._children = [_Child(process) for process in processes]
    self._backoff = backoff_seconds
    self._max_backoff = max_backoff_seconds
    self._deadline = deadline_seconds
    self._clock = clock

  def __enter__(self) -> "Runner":
    self.start()
    return self

  def __exit__(self, *exc_info: object) -> None:
    self.stop()

  def start(self) -> None:
    """Starts all; where one cannot be started, ends the others and raises."""
    try:
      for child in self._children:
        if child.state is State.WAITING:
          child.start(self._clock())
    except BaseException:
      self.stop()
      raise

  def poll(self) -> dict[str, State]:
    """Looks at all, restarts what died and may be; the states by name. Returns at once.

    Raises:
      ProcessFailed: one died and has no restart left. The others still run: call `stop`.
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
    """The states at the last poll, by name."""
    return {child.process.name: child.state for child in self._children}

  def restarts(self) -> dict[str, int]:
    """How often each was started again, by name."""
    return {child.process.name: child.restarts for child in self._children}

  def pids(self) -> dict[str, int]:
    """Process ids of those that run, by name."""
    return {child.process.name: child.popen.pid for child in self._children
            if child.state is State.RUNNING and child.popen is not None}

  def wait(
      self, names: Sequence[str], timeout_seconds: float, interval_seconds: float = 0.1) -> None:
    """Polls until the named processes finished with status 0.

    Raises:
      TimeoutError: they did not within the time; they still run.
      ProcessFailed: one died for good, be it one of those named or not.
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
    """Ends all: SIGTERM in reverse order of start, SIGKILL at the deadline. Can be called again.

    Returns the statuses of those that ran until now (-15: SIGTERM, -9: it had to be killed).
    """
    running = [child for child in reversed(self._children) if child.state is State.RUNNING]
    try:
      for child in running:
        child.signal(signal.SIGTERM)
      end = self._clock() + self._deadline
      while any(child.alive() for child in running) and self._clock() < end:
        time.sleep(0.02)
    finally:  # a second Ctrl-C cuts the wait short, not the clean-up
      for child in running:
        child.kill()
      for child in self._children:
        if child.state in (State.RUNNING, State.WAITING):
          child.state = State.STOPPED
    return {child.process.name: child.status for child in running}

  def _restart(self, child: "_Child") -> None:
    """Starts a dead child again when its wait is over; gives it up when no restart is left."""
    now = self._clock()
    if child.restarts >= child.process.restarts:
      child.state = State.FAILED
      return
    if child.restart_at is None:
      if now - child.started_at > self._max_backoff:
        child.consecutive = 0
      delay = min(self._max_backoff, self._backoff * 2.0 ** min(child.consecutive, 60))
      child.restart_at = now + delay
    if now >= child.restart_at:
      child.restarts += 1
      child.consecutive += 1
      child.start(now)


class _Child:
  """One process and what became of it."""

  def __init__(self, process: Process):
    self.process = process
    self.popen: subprocess.Popen[bytes] | None = None
    self.state = State.WAITING
    self.status = 0
    self.restarts = 0
    self.consecutive = 0  # restarts since it last ran for long
    self.started_at = 0.0
    self.restart_at: float | None = None

  def start(self, now: float) -> None:
    """Raises OSError where the program or the log's folder is not to be had."""
    process = self.process
    env = {**os.environ, **process.env}
    if threading.current_thread() is not threading.main_thread():
      raise RuntimeError(
        f"process {process.name!r}: start and poll must run in the main thread; the kernel takes "
        "the end of the thread that starts a process for the end of its parent")
    if shutil.which(process.argv[0], path=env.get("PATH")) is None:
      raise FileNotFoundError(
        f"process {process.name!r}: no program {process.argv[0]!r} that can be run, nor on PATH")
    process.log_path.parent.mkdir(parents=True, exist_ok=True)
    launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid())]
    with open(process.log_path, "ab") as log:
      self.popen = subprocess.Popen(
        [*launcher, *process.argv], env=env, stdin=subprocess.DEVNULL, stdout=log,
        stderr=subprocess.STDOUT, start_new_session=True)
    self.state, self.started_at, self.restart_at = State.RUNNING, now, None

  def alive(self) -> bool:
    """Whether it runs. Leaves a dead one unreaped, so that its number, and so its group's, cannot
    become another's before the group is killed."""
    if self.popen is None or self.popen.returncode is not None:
      return False
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, self.popen.pid, flags) is None

  def reap(self) -> None:
    """Notes an end: FINISHED after status 0, else WAITING for a restart."""
    if self.state is State.RUNNING and not self.alive():
      self.kill()  # what it left behind would hold ports and cores
      self.state = State.FINISHED if self.status == 0 else State.WAITING

  def signal(self, number: int) -> None:
    """To the whole group."""
    if self.popen is not None and self.popen.returncode is None:
      os.killpg(self.popen.pid, number)  # the session leader's id is its group's

  def kill(self) -> None:
    """Ends the group and reaps the child."""
    if self.popen is not None and self.popen.returncode is None:
      self.signal(signal.SIGKILL)
      self.status = self.popen.wait()

  def describe_failure(self) -> str:
    """What died, how, how often, and the end of its log."""
    how = f"exited with status {self.status}"
    if self.status < 0:
      try:
        how = f"was killed by {signal.Signals(-self.status).name}"
      except ValueError:
        how = f"was killed by signal {-self.status}"
    if self.status == -signal.SIGKILL:
      how += " (out of memory?)"
    again = f" after {self.restarts} restarts" if self.restarts else ""
    tail = "\n".join("  | " + line for line in log_tail(self.process.log_path)) or "  | (nothing)"
    return (f"process {self.process.name!r} {how}{again}; the end of its log "
            f"{self.process.log_path}:\n{tail}")


def interrupt_on_sigterm() -> None:
  """Makes SIGTERM raise KeyboardInterrupt in the main thread, so that `with Runner` ends cleanly.

  Without it SIGTERM ends the parent at once, and the kernel then kills the children unsaved.
  """
  def interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt("SIGTERM")

  signal.signal(signal.SIGTERM, interrupt)


def log_tail(path: pathlib.Path, lines: int = TAIL_LINES, max_bytes: int = 16384) -> list[str]:
  """The last lines of a log, without reading the rest; empty where there is none."""
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
