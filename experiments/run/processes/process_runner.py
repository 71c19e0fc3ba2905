"""The processes of a run: starts, polls, restarts and ends them.

Output goes to log files; an error quotes the end of the log.

    argv = (sys.executable, "-m", "starleague.experiments.actor")
    with Runner([Process("actor", argv, {}, run_dir / "actor.log", restarts=3)]) as runner:
      while not done:
        runner.poll()                      # raises ProcessFailed when no restart is left
        time.sleep(0.1)

Leaving the block ends all processes that still run, also after an exception. `programs` has the
programs themselves; a `Place` other than `ThisMachine` starts them on a cluster.
"""

import enum
import os
import pathlib
import signal
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from starleague.common import disk
from starleague.common.errors import FINAL_STATUS
from starleague.experiments.run.processes.programs import Place, Process, Program, ThisMachine

TAIL_LINES = 30


class State(enum.StrEnum):
  """State of a process."""

  WAITING = "waiting"  # not started yet, or dead with a restart pending
  RUNNING = "running"
  FINISHED = "finished"  # exited with status 0, and may end before the run
  FAILED = "failed"  # died with no restart left
  STOPPED = "stopped"  # ended by `stop`


class ProcessFailed(RuntimeError):
  """A process died with no restart left. `status` is as in subprocess (-9: SIGKILL)."""

  def __init__(self, name: str, status: int, message: str):
    super().__init__(message)
    self.name, self.status = name, status


class Death(NamedTuple):
  """The death of a process."""

  name: str
  cause: str  # as "was killed by SIGTERM"


class Runner:
  """Owns the processes from `start` to `stop`. Not thread-safe: call it from one thread.

  The thread that calls `start` and `poll` must live as long as the run: the kernel sends the parent
  death signal when the forking thread ends.
  """

  def __init__(
      self,
      processes: Sequence[Process],
      *,
      place: Place | None = None,
      until: Collection[str] | None = None,
      backoff_seconds: float = 1.0,
      max_backoff_seconds: float = 30.0,
      recovery_seconds: float = 300.0,
      deadline_seconds: float = 10.0,
      clock: Callable[[], float] = time.monotonic,
  ):
    """Checks the processes; starts nothing.

    Args:
      processes: the programs, started in this order and ended in the opposite one. A process is
        started when the addresses of its peers are known.
      place: where programs are started; None: on this machine.
      until: names of the processes that finish with status 0. Any end of another one is a death.
        None: each process may finish.
      backoff_seconds: wait before the first restart; doubles with each further death in a row.
      max_backoff_seconds: the longest wait.
      recovery_seconds: a process that ran for longer has recovered: its deaths in a row, and with
        them its restarts and its wait, count from zero again.
      deadline_seconds: time between SIGTERM and SIGKILL, once for the processes that end first and
        once for those that end last.
      clock: seconds, monotonic.
    """
    _check(processes)
    self._children = [_Child(process, until is None or process.name in until)
                      for process in processes]
    self._deaths: list[Death] = []
    self._place = place or ThisMachine()
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
          child.start(self._place, self.addresses(), self._clock())
    except BaseException:
      self.stop()
      raise

  def poll(self) -> dict[str, State]:
    """Restarts dead processes within their limits; returns the states by name, without waiting.

    With a process of a gang all others of it are restarted, and those whose peer has moved to
    another address.

    Raises:
      ProcessFailed: one died with no restart left. The others still run: call `stop`.
    """
    dead = [child for child in self._children if child.reap()]
    self._deaths += [Death(child.process.name, child.describe_end()) for child in dead]
    died = {child.process.gang for child in dead} - {""}
    addresses = self.addresses()
    for child in self._children:
      if child.state is State.RUNNING and child.process.gang in died:
        child.end()
      elif child.state is State.RUNNING and child.has_moved_peer(addresses):
        child.end()
        child.restart_at = self._clock()
    for child in self._children:
      if child.state is State.WAITING:
        self._restart(child)
    for child in self._children:
      if child.state is State.FAILED:
        raise ProcessFailed(child.process.name, child.status, child.describe_failure())
    return self.states()

  def addresses(self) -> dict[str, str]:
    """Returns the addresses of processes that listen, as far as they are known, by name."""
    found = {child.process.name: child.address() for child in self._children}
    return {name: address for name, address in found.items() if address is not None}

  def states(self) -> dict[str, State]:
    """Returns the states at the last poll, by name."""
    return {child.process.name: child.state for child in self._children}

  def restarts(self) -> dict[str, int]:
    """Returns the number of restarts since `start`, by name."""
    return {child.process.name: child.restarts for child in self._children}

  def take_deaths(self) -> list["Death"]:
    """Returns the deaths of processes since the last call, in order."""
    found, self._deaths = self._deaths, []
    return found

  def pids(self) -> dict[str, int]:
    """Returns the process ids of processes that run on this machine, by name."""
    return {child.process.name: child.program.pid for child in self._children
            if child.state is State.RUNNING and child.program is not None
            and child.program.pid is not None}

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
        child.end()
      for child in self._children:
        if child.state in (State.RUNNING, State.WAITING):
          child.state = State.STOPPED
    return {child.process.name: child.status for child in running}

  def _end(self, children: Sequence["_Child"]) -> None:
    """Sends SIGTERM to processes and waits for their end; at the deadline, SIGKILL."""
    programs = [child.program for child in children if child.program is not None]
    for program in programs:
      program.signal(signal.SIGTERM)
    end = self._clock() + self._deadline
    while any(program.status() is None for program in programs) and self._clock() < end:
      time.sleep(0.02)
    for child in children:
      child.end()

  def _restart(self, child: "_Child") -> None:
    """Restarts a dead process after its wait, or marks it failed when no restart is left."""
    now = self._clock()
    if child.program is not None and child.restart_at is None:
      if now - child.started_at > self._recovery:
        child.consecutive = 0
      if child.consecutive >= child.process.restarts:
        child.state = State.FAILED
        return
      child.restart_at = now + min(
        self._max_backoff, self._backoff * 2.0 ** min(child.consecutive, 60))
      child.consecutive += 1
    if child.restart_at is None or now >= child.restart_at:
      child.start(self._place, self.addresses(), now)


def run_to_end(process: Process, show: Callable[[], object], deadline_seconds: float,
               interval_seconds: float) -> None:
  """Runs a process on this machine until it has finished with status 0.

  Args:
    process: the program.
    show: called at intervals while it runs.
    deadline_seconds: between SIGTERM and SIGKILL, where `show` raises.
    interval_seconds: between two calls.

  Raises:
    ProcessFailed: it died with no restart left; the message quotes its log.
  """
  with Runner([process], deadline_seconds=deadline_seconds) as runner:
    while runner.poll()[process.name] is not State.FINISHED:
      show()
      time.sleep(interval_seconds)


class _Child:
  """One process, its state and its restarts."""

  def __init__(self, process: Process, finishes: bool):
    self.process, self._finishes = process, finishes
    self.program: Program | None = None  # the newest, which may have ended
    self.state = State.WAITING
    self.status = 0
    self.restarts = 0
    self.consecutive = 0  # restarts in a row, without a recovery between them
    self.started_at = 0.0
    self.restart_at: float | None = None
    self._peers: dict[str, str] = {}  # addresses that the program was given

  def address(self) -> str | None:
    """Returns the address of its newest program, also while it is dead."""
    return None if self.program is None else self.program.address

  def start(self, place: Place, addresses: Mapping[str, str], now: float) -> None:
    """Starts the program, if the addresses of its peers are known. Raises errors of `place`."""
    process = self.process
    if not set(process.peers) <= addresses.keys():
      return
    self._peers = {name: addresses[name] for name in process.peers}
    self.restarts += self.program is not None
    self.program = place.start(process, self._peers, self.program)
    self.state, self.started_at, self.restart_at = State.RUNNING, now, None

  def has_moved_peer(self, addresses: Mapping[str, str]) -> bool:
    """Returns whether the address of a peer is another one than the program was given."""
    return any(addresses.get(name, given) != given for name, given in self._peers.items())

  def reap(self) -> bool:
    """Updates the state of an ended process.

    It is FINISHED after status 0 if it may finish, FAILED where a restart would meet the same
    error, else WAITING.

    Returns:
      Whether it has died.
    """
    if self.state is not State.RUNNING or self.program is None:
      return False
    status = self.program.status()
    if status is None:
      return False
    self.status = status
    ends = {FINAL_STATUS: State.FAILED} | ({0: State.FINISHED} if self._finishes else {})
    self.state = ends.get(status, State.WAITING)
    return self.state is not State.FINISHED

  def end(self) -> None:
    """Kills the program if it still runs; the process then waits for a restart."""
    if self.program is not None:
      self.status = self.program.kill()
    if self.state is State.RUNNING:
      self.state = State.WAITING

  def describe_end(self) -> str:
    """Returns the cause of death."""
    how = f"exited with status {self.status}"
    if self.status < 0:
      try:
        how = f"was killed by {signal.Signals(-self.status).name}"
      except ValueError:
        how = f"was killed by signal {-self.status}"
    if self.status == -signal.SIGKILL:
      how += " (out of memory?)"
    return how

  def describe_failure(self) -> str:
    """Returns the cause of death, the number of restarts, and the end of the log."""
    if self.status == FINAL_STATUS:
      line, folder = " ".join(log_tail(self.process.log_path, 1)), self.process.log_path.parent
      if not line.startswith("error: ") and not disk.has_space(folder):  # nor for its last line
        line = f"error: {disk.full(folder)}"
      return f"process {self.process.name!r}: {line}"
    again = f" after {self.consecutive} restarts in a row" if self.consecutive else ""
    tail = "\n".join("  | " + line for line in log_tail(self.process.log_path)) or "  | (nothing)"
    return (f"process {self.process.name!r} {self.describe_end()}{again}; the end of its log "
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
    unknown = set(process.peers) - {other.name for other in processes if other.listens}
    if unknown:
      raise ValueError(f"process {process.name!r}: its peers {sorted(unknown)} must be processes "
                       "that listen")
    if process.restarts < 0:
      raise ValueError(f"process {process.name!r}: restarts must be from 0 up; "
                       f"found {process.restarts}")
