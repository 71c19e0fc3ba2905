"""Decoding in child processes, each with a time and a memory limit.

A file from a stranger may make a decoder hang, grow or crash. A child decodes one file at a time;
one that exceeds a limit or dies is replaced, and its file is refused. Rows travel as JSON.
"""

import collections
import contextlib
import json
import multiprocessing
import multiprocessing.connection
import os
import resource
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from typing import NamedTuple

from starleague.common.errors import UserError
from starleague.data.replays.decode import decode
from starleague.data.replays.records import (
  BuildRow,
  CommandRow,
  Decoded,
  GameRow,
  PlayerRow,
)
from starleague.data.replays.refusals import (
  DECODER_DIED,
  MEMORY_LIMIT,
  TIME_LIMIT,
  TOO_LARGE,
  UNREADABLE,
  Refusal,
)

Decoder = Callable[[bytes, str], Decoded]
_START_SECONDS = 180.0  # for a child to import what it needs, on a loaded machine
_MOST_ANSWER = 32 << 20  # bytes of a file's rows; real games have less than 1.5 MB
_PAGE = resource.getpagesize()


class Limits(NamedTuple):
  """Limits of a decoder."""

  seconds: float = 60.0  # for a file
  megabytes: int = 1024  # beyond what a child needs without a file


DEFAULT_LIMITS = Limits()


class WorkersError(UserError):
  """Children cannot start."""


def decode_all(jobs: Iterable[tuple[str, Refusal | None]], workers: int,
               limits: Limits = DEFAULT_LIMITS,
               decoder: Decoder = decode) -> Iterator[tuple[str, Decoded | Refusal]]:
  """Decodes files in parallel; yields each path with its rows or its refusal, in order.

  Args:
    jobs: paths, and the refusals of those that are not to be decoded.
    workers: number of child processes.
    limits: of each.
    decoder: a function of a module, which the children import.

  Raises:
    WorkersError: a child cannot start.
  """
  waiting = enumerate(jobs)
  finished: dict[int, tuple[str, Decoded | Refusal]] = {}
  following = 0
  children = [_Child(limits, decoder) for _ in range(workers)]
  try:
    while True:
      for child in children:
        while child.job is None and (job := next(waiting, None)) is not None:
          number, (path, refusal) = job
          if refusal is None:
            child.start(number, path)
          else:
            finished[number] = path, refusal
      busy = [child for child in children if child.job is not None]
      for child in _due(busy):
        found = child.advance()
        if found is not None:
          number, path, rows = found
          finished[number] = path, rows
      while following in finished:
        yield finished.pop(following)
        following += 1
      if not busy:
        return
  finally:
    for child in children:
      child.kill()


def _due(busy: list["_Child"]) -> list["_Child"]:
  """Waits until a child has answered, died or passed its deadline; returns those."""
  if not busy:
    return []
  left = max(0.0, min(child.deadline for child in busy) - time.monotonic())
  ready = multiprocessing.connection.wait([child.connection for child in busy], left)
  return [child for child in busy
          if child.connection in ready or time.monotonic() >= child.deadline]


class _Child:
  """A child process, replaced when it fails."""

  def __init__(self, limits: Limits, decoder: Decoder):
    self._limits, self._decoder = limits, decoder
    self.job: tuple[int, str] | None = None
    self._started = False
    self._spawn()

  def _spawn(self) -> None:
    context = multiprocessing.get_context("spawn")
    self.connection, other = context.Pipe()
    self._process = context.Process(
      target=_serve, args=(other, self._limits.megabytes << 20, self._decoder), daemon=True)
    self._process.start()
    other.close()
    self._started = False
    self.deadline = time.monotonic() + _START_SECONDS

  def start(self, number: int, path: str) -> None:
    """Gives the child a file, as soon as it has started."""
    self.job = number, path
    if self._started:
      self._send(path)

  def _send(self, path: str) -> None:
    self.deadline = time.monotonic() + self._limits.seconds
    with contextlib.suppress(OSError):  # a dead child is found when its answer is awaited
      self.connection.send_bytes(os.fsencode(path))

  def advance(self) -> tuple[int, str, Decoded | Refusal] | None:
    """Goes on after a message, a death or a deadline; returns the file and what came of it."""
    assert self.job is not None
    number, path = self.job
    if not self._started:
      self._require_start()
      self._send(path)
      return None
    found = self._receive()
    self.job = None
    if isinstance(found, Refusal) and found.reason in (TIME_LIMIT, MEMORY_LIMIT, DECODER_DIED):
      self.kill()
      self._spawn()
    return number, path, found

  def _require_start(self) -> None:
    try:
      if not self.connection.poll():
        raise WorkersError(f"a decoder did not start within {_START_SECONDS:.0f} s; use fewer "
                           "--workers")
      self.connection.recv_bytes()
    except (EOFError, OSError) as error:
      raise WorkersError("a decoder died at its start; its own message is above") from error
    self._started = True

  def _receive(self) -> Decoded | Refusal:
    try:
      if not self.connection.poll():
        return Refusal(TIME_LIMIT, f"decoding took longer than {self._limits.seconds:g} s")
      return _unpacked(self.connection.recv_bytes(), self._limits)
    except (EOFError, OSError):
      self._process.join(1.0)
      return Refusal(DECODER_DIED, f"the decoder died, exit status {self._process.exitcode}")

  def kill(self) -> None:
    """Ends the child."""
    self._process.kill()
    self._process.join()
    self.connection.close()


def _serve(connection: Connection, memory: int, decoder: Decoder) -> None:
  """Decodes the files whose paths arrive, in a child process."""
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its children
  with open("/proc/self/statm") as file:
    limit = int(file.read().split()[0]) * _PAGE + memory
  resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
  connection.send_bytes(b"started")
  while True:
    try:
      path = os.fsdecode(connection.recv_bytes())
    except EOFError:
      return
    answer = _answer(path, decoder)
    if len(answer) > _MOST_ANSWER:  # the parent has no memory limit
      answer = _refusal(TOO_LARGE, f"{len(answer)} bytes of rows, expected at most {_MOST_ANSWER}")
    connection.send_bytes(answer)


def _answer(path: str, decoder: Decoder) -> bytes:
  try:
    with open(path, "rb") as file:
      data = file.read()
    return _packed(decoder(data, path))
  except Refusal as refusal:
    return _refusal(refusal.reason, refusal.detail)
  except OSError as error:
    return _refusal(UNREADABLE, f"cannot be read: {error.strerror}")
  except MemoryError:
    return _refusal(MEMORY_LIMIT, "")


def _packed(decoded: Decoded) -> bytes:
  return json.dumps(decoded).encode()


def _refusal(reason: str, detail: str) -> bytes:
  return json.dumps({"reason": reason, "detail": detail}).encode()


def _unpacked(answer: bytes, limits: Limits) -> Decoded | Refusal:
  found = json.loads(answer)
  if isinstance(found, dict):
    detail = (f"decoding took more than {limits.megabytes} MiB" if found["reason"] == MEMORY_LIMIT
              else found["detail"])
    return Refusal(found["reason"], detail)
  game, players, builds, commands = found
  return Decoded(GameRow(*game), [PlayerRow(*row) for row in players],
                 [BuildRow(*row) for row in builds], [CommandRow(*row) for row in commands])


def tally(reasons: Iterable[str]) -> dict[str, int]:
  """Returns how often each reason occurs, the most frequent first."""
  return dict(collections.Counter(reasons).most_common())
