"""The processes of the workers: started, watched, replaced and ended."""

import contextlib
import os
import resource
import time
from collections.abc import Callable, Collection

from absl import logging

from starleague.actor import sessions
from starleague.common.errors import UserError
from starleague.companions.workers import worker

MOST_LOSSES = 5  # of a worker in a row
RECOVERY_S = 300.0  # a worker that worked longer than this has recovered: its losses count from 0
STALLED_S = 900.0  # a worker without a step for so long is replaced; slow machines start slowly


class WorkersError(UserError):
  """A worker cannot be kept running."""


class Workers:
  """A fixed number of processes; one that ends is replaced."""

  def __init__(self, count: int, target: Callable[..., object],
               arguments: Callable[[int, int], tuple], *, recovery_s: float = RECOVERY_S,
               stalled_s: float = STALLED_S):
    """Starts the processes.

    Args:
      count: number of processes.
      target: main function of a process, importable; called with a connection and its arguments. A
        text that comes through the connection is the reason of its end.
      arguments: (number of the worker, times that it was replaced) -> its arguments.
      recovery_s, stalled_s: seconds; see `RECOVERY_S` and `STALLED_S`.
    """
    self._target, self._arguments = target, arguments
    self._recovery_s, self._stalled_s = recovery_s, stalled_s
    self._replaced, self._losses = [0] * count, [0] * count
    self._ended_cpu = _cpu_of_children()
    self._since = [time.monotonic()] * count
    self._processes = [self._start(number) for number in range(count)]

  def _start(self, number: int) -> sessions.LedProcess:
    self._since[number] = time.monotonic()
    return sessions.LedProcess(self._target, self._arguments(number, self._replaced[number]))

  def poll(self, stalled: Collection[int] = ()) -> list[int]:
    """Replaces workers that have ended or stalled, and returns their numbers.

    Args:
      stalled: numbers of workers that have made no step for `stalled_s`.

    Raises:
      WorkersError: one was lost too often in a row.
    """
    lost = []
    for number, led in enumerate(self._processes):
      worked_s = time.monotonic() - self._since[number]
      ended = led.process.exitcode is not None
      if ended or number in stalled:
        reason = _reason(led) if ended else f"it has made no step for {self._stalled_s:g} s"
        led.end(0.0)
        self._count(number, worked_s - (0.0 if ended else self._stalled_s), reason)
        self._replaced[number] += 1
        self._processes[number] = self._start(number)
        lost.append(number)
    return lost

  def _count(self, number: int, worked_s: float, reason: str) -> None:
    """Counts the loss of a worker, which had worked for a time in seconds."""
    self._losses[number] = 1 if worked_s > self._recovery_s else self._losses[number] + 1
    logging.warning("worker_lost worker=%d in_a_row=%d reason=%r", number, self._losses[number],
                    reason)
    if self._losses[number] >= MOST_LOSSES:
      raise WorkersError(
        f"worker {number} was lost {MOST_LOSSES} times in a row, each after less than "
        f"{self._recovery_s:g} s of work, the last time because {reason}; workers=0 steps the task "
        "in the training process")

  def cpu_seconds(self) -> float:
    """Returns the CPU time of all workers so far, those that have ended included."""
    running = 0.0
    for led in self._processes:
      if led.process.exitcode is None:
        running += _cpu_of(led.process.pid)
    return running + _cpu_of_children() - self._ended_cpu

  def pids(self) -> list[int]:
    """Returns the process ids, by worker."""
    return [led.process.pid for led in self._processes]

  def close(self) -> None:
    """Ends all workers at once: they have nothing to save."""
    for led in self._processes:
      led.process.kill()
    for led in self._processes:
      led.end(0.0)


def _reason(led: sessions.LedProcess) -> str:
  """Returns why a process has ended."""
  with contextlib.suppress(OSError, EOFError):
    if led.connection.poll():
      return led.connection.recv_bytes(worker.MOST_BYTES).decode(errors="replace")
  return f"its process ended with status {led.process.exitcode}"


def _cpu_of_children() -> float:
  """Returns the CPU time of children that have ended, in seconds."""
  used = resource.getrusage(resource.RUSAGE_CHILDREN)
  return used.ru_utime + used.ru_stime


def _cpu_of(pid: int | None) -> float:
  """Returns the CPU time of a running process, in seconds; 0 if it has ended."""
  try:
    with open(f"/proc/{pid}/stat") as file:
      fields = file.read().rpartition(")")[2].split()
  except OSError:
    return 0.0
  return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
