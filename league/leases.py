"""Leases of assignments: a dead actor's games are given to another actor.

An actor holds an assignment for a number of seconds, and longer whenever it renews the lease. A
lease that ends makes the assignment available again: the next request for the same player, or of an
evaluator, gets it before any new one, under the same id. The actor that held it last has priority:
it may still play the games. The first result of each game counts, whichever actor reports it.
"""

import collections
import re
import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

EVALUATION = "evaluation"  # branch of the assignments of evaluators
EVALUATION_POOL = ""
MOST_GAMES = 1_000_000  # of one assignment


class Assignment(NamedTuple):
  """Games of one pair of players, given to one actor at a time.

  Attributes:
    id: unique in the league, also over restarts of its coordinator.
    home: name of the player for which it was requested.
    away: name of the opponent.
    branch: the rule that made the match; see `matchmaking.Match`.
    both_learn: whether the opponent learns from the games too.
    games: number of games to play, numbered from 0.
  """

  id: str
  home: str
  away: str
  branch: str
  both_learn: bool
  games: int

  @property
  def pool(self) -> str:
    """The player whose actors may have it, or EVALUATION_POOL."""
    return EVALUATION_POOL if self.branch == EVALUATION else self.home

  def result_id(self, game: int) -> str:
    """Returns the id of a game's result; raises ValueError for a number that is not its own."""
    if not 0 <= game < self.games:
      raise ValueError(f"Assignment {self.id} has games 0 to {self.games - 1}, found game {game}.")
    return f"{self.id}/{game}"


def is_valid(assignment: Assignment) -> bool:
  """Returns whether an assignment from outside has values that a league can have given."""
  return (re.fullmatch(r"[0-9]{1,12}-[0-9]{1,15}", assignment.id) is not None
          and re.fullmatch(r"\w{1,40}", assignment.branch) is not None
          and 1 <= assignment.games <= MOST_GAMES)


class _Lease:
  """An assignment that is not finished, its holder and the end of its lease."""

  __slots__ = ("assignment", "ends", "holder", "left", "was")

  def __init__(self, assignment: Assignment, left: int, holder: str, ends: float):
    self.assignment, self.left = assignment, left
    self.holder = holder  # the actor; empty: any actor may renew the lease
    self.was = ""  # the actor whose lease has ended; it may still play the games
    self.ends: float | None = ends  # None: available


class Leases:
  """The assignments that are not finished. Threads may share it; it never waits."""

  def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic):
    """Starts without assignments.

    Args:
      seconds: length of a lease.
      clock: seconds that do not follow changes of the system's time. A step of more than one lease
        between two calls, or backwards, is a jump: leases do not run during it.

    Raises:
      ValueError: `seconds` is not positive.
    """
    if not seconds > 0:
      raise ValueError(f"A lease is {seconds} seconds, expected a positive number.")
    self.seconds = seconds
    self._clock, self._read, self._now = clock, clock(), 0.0
    self._leases: dict[str, _Lease] = {}
    # Those that an actor holds. All leases have one length: the last one held ends last.
    self._held: collections.OrderedDict[str, _Lease] = collections.OrderedDict()
    self._evaluations: dict[str, Assignment] = {}  # those of evaluators
    self._available: dict[str, collections.deque[str]] = {}  # by pool, the oldest first
    self._lock = threading.RLock()

  def __len__(self) -> int:
    return len(self._leases)

  def _advance(self) -> float:
    """Returns the seconds that leases have run so far."""
    read = self._clock()
    step, self._read = read - self._read, read
    if 0 <= step <= self.seconds:
      self._now += step
    return self._now

  def _hold(self, lease: _Lease, holder: str) -> None:
    lease.ends, lease.holder = self._now + self.seconds, holder
    identifier = lease.assignment.id
    self._held[identifier] = lease
    self._held.move_to_end(identifier)

  def _offer(self, lease: _Lease) -> None:
    lease.ends, lease.holder, lease.was = None, "", lease.holder
    del self._held[lease.assignment.id]
    pool = lease.assignment.pool
    self._available.setdefault(pool, collections.deque()).append(lease.assignment.id)

  def expire(self) -> list[Assignment]:
    """Makes the assignments of ended leases available, and returns them."""
    with self._lock:
      now, ended = self._advance(), []
      while self._held:
        lease = next(iter(self._held.values()))
        if lease.ends is not None and lease.ends > now:
          break
        self._offer(lease)
        ended.append(lease.assignment)
      return ended

  def issue(self, assignments: Iterable[Assignment], holder: str) -> None:
    """Adds new assignments that an actor holds from now on."""
    leases, held = self._leases, self._held
    with self._lock:
      ends = self._advance() + self.seconds
      for assignment in assignments:
        identifier, _, _, branch, _, games = assignment
        leases[identifier] = held[identifier] = _Lease(assignment, games, holder, ends)
        if branch == EVALUATION:
          self._evaluations[identifier] = assignment

  def restore(self, assignment: Assignment, left: int, holder: str = "") -> None:
    """Adds an assignment from before a restart; a known one is left as it is.

    Args:
      assignment: the assignment.
      left: number of its games without a result.
      holder: name of the actor; if it is empty, the first actor that renews the lease holds it.
    """
    with self._lock:
      if assignment.id not in self._leases:
        self.issue([assignment], holder)
        self._leases[assignment.id].left = left

  def take(self, pool: str, count: int, holder: str) -> list[Assignment]:
    """Leases up to `count` available assignments of a pool to an actor, and returns them.

    Assignments that the actor held last come first, then the oldest. Each is returned once.
    """
    with self._lock:
      self.expire()
      queue = dict.fromkeys(self._available.pop(pool, ()))
      # Others were finished or renewed meanwhile.
      offered = {name: lease for name in queue
                 if (lease := self._leases.get(name)) and lease.ends is None}
      own = [name for name, lease in offered.items() if holder and lease.was == holder]
      chosen = list(dict.fromkeys([*own, *offered]))[:count]
      for name in chosen:
        self._hold(offered[name], holder)
      left = collections.deque(name for name in offered if offered[name].ends is None)
      if left:
        self._available[pool] = left
      return [offered[name].assignment for name in chosen]

  def find(self, identifier: str) -> Assignment | None:
    """Returns an assignment that is not finished, or None."""
    lease = self._leases.get(identifier)
    return lease.assignment if lease else None

  def renew(self, identifiers: Iterable[str], holder: str) -> list[str]:
    """Extends an actor's leases, and returns those that it has.

    An available assignment, and one without a holder, becomes the actor's again. It has lost one
    that is finished or that another actor holds.
    """
    with self._lock:
      self._advance()
      kept = []
      for identifier in identifiers:
        lease = self._leases.get(identifier)
        if lease and lease.holder in ("", holder):
          self._hold(lease, holder)
          kept.append(identifier)
      return kept

  def release(self, identifiers: Iterable[str], holder: str) -> None:
    """Makes an actor's assignments available at once: it ends."""
    with self._lock:
      for identifier in identifiers:
        lease = self._leases.get(identifier)
        if lease and lease.ends is not None and lease.holder in ("", holder):
          self._offer(lease)

  def played(self, identifier: str, games: int) -> bool:
    """Subtracts games with a result; returns whether the assignment has just been finished.

    A finished assignment is forgotten.
    """
    with self._lock:
      lease = self._leases.get(identifier)
      if lease is None:
        return False
      lease.left -= games
      if lease.left > 0:
        return False
      del self._leases[identifier]
      self._held.pop(identifier, None)
      self._evaluations.pop(identifier, None)
      return True

  def assignments(self) -> list[Assignment]:
    """Returns all assignments that are not finished, oldest first."""
    with self._lock:
      return [lease.assignment for lease in self._leases.values()]

  def evaluations(self) -> list[Assignment]:
    """Returns the assignments of evaluators that are not finished, oldest first."""
    with self._lock:
      return list(self._evaluations.values())
