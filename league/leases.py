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
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

EVALUATION = "evaluation"  # branch of the assignments of evaluators
EVALUATION_POOL = ""
MOST_GAMES = 1_000_000  # of one assignment
MOST_VOIDS = 3  # of an evaluator's assignment
AssignmentNumber = tuple[int, int]  # start of the coordinator, number since it: ascending


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

  @property
  def number(self) -> AssignmentNumber:
    """Its place in the order in which the league made its assignments."""
    start, _, number = self.id.partition("-")
    return int(start), int(number)

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


class _Lease(NamedTuple):
  """Assignments that an actor began to hold, or renewed, at the same time.

  An assignment belongs to its last one: earlier ones list it without effect.
  """

  holder: str  # name of the actor; empty: any actor may renew the lease
  ends: float
  ids: Sequence[str]


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
    self._assignments: dict[str, Assignment] = {}
    self._evaluations: dict[str, Assignment] = {}  # those of evaluators
    self._left: dict[str, int] = {}  # games without a result, where some have one
    self._voids: collections.Counter[str] = collections.Counter()
    self._held: dict[str, _Lease] = {}  # of the assignments that are not available
    # All leases have one length: the last one ends last.
    self._leases: collections.deque[_Lease] = collections.deque()
    # By pool, the oldest first: the actors whose leases have ended. They may still play the games.
    # Assignments that were finished or renewed since are there too.
    self._available: dict[str, dict[str, str]] = {}
    self._lock = threading.RLock()

  def __len__(self) -> int:
    return len(self._assignments)

  def _advance(self) -> float:
    """Returns the seconds that leases have run so far."""
    read = self._clock()
    step, self._read = read - self._read, read
    if 0 <= step <= self.seconds:
      self._now += step
    return self._now

  def _hold(self, identifiers: Sequence[str], holder: str) -> None:
    lease = _Lease(holder, self._now + self.seconds, identifiers)
    self._held.update(dict.fromkeys(identifiers, lease))
    self._leases.append(lease)

  def _offer(self, identifier: str) -> None:
    lease, pool = self._held.pop(identifier), self._assignments[identifier].pool
    self._available.setdefault(pool, {})[identifier] = lease.holder

  def expire(self) -> list[Assignment]:
    """Makes the assignments of ended leases available, and returns them."""
    with self._lock:
      now, ended = self._advance(), []
      while self._leases and self._leases[0].ends <= now:
        lease = self._leases.popleft()
        for identifier in lease.ids:
          if self._held.get(identifier) is lease:
            self._offer(identifier)
            ended.append(self._assignments[identifier])
      return ended

  def issue(self, assignments: Iterable[Assignment], holder: str) -> None:
    """Adds new assignments that an actor holds from now on."""
    with self._lock:
      identifiers = []
      for assignment in assignments:
        identifier, _, _, branch, _, _ = assignment
        identifiers.append(identifier)
        self._assignments[identifier] = assignment
        if branch == EVALUATION:
          self._evaluations[identifier] = assignment
      self._advance()
      self._hold(identifiers, holder)

  def restore(self, assignment: Assignment, left: int, holder: str = "") -> None:
    """Adds an assignment from before a restart; a known one is left as it is.

    Args:
      assignment: the assignment.
      left: number of its games without a result.
      holder: name of the actor; if it is empty, the first actor that renews the lease holds it.
    """
    with self._lock:
      if assignment.id not in self._assignments:
        self.issue([assignment], holder)
        self._left[assignment.id] = left

  def take(self, pool: str, count: int, holder: str) -> list[Assignment]:
    """Leases up to `count` available assignments of a pool to an actor, and returns them.

    Assignments that the actor held last come first, then the oldest. Each is returned once.
    """
    with self._lock:
      self.expire()
      if pool not in self._available:
        return []
      available = {identifier: was for identifier, was in self._available.pop(pool).items()
                   if identifier in self._assignments and identifier not in self._held}
      own = [identifier for identifier, was in available.items() if holder and was == holder]
      chosen = list(dict.fromkeys([*own, *available]))[:count]
      for identifier in chosen:
        del available[identifier]
      if available:
        self._available[pool] = available
      self._hold(chosen, holder)
      return [self._assignments[identifier] for identifier in chosen]

  def find(self, identifier: str) -> Assignment | None:
    """Returns an assignment that is not finished, or None."""
    return self._assignments.get(identifier)

  def renew(self, identifiers: Iterable[str], holder: str) -> list[str]:
    """Extends an actor's leases, and returns those that it has.

    An available assignment, and one without a holder, becomes the actor's again. It has lost one
    that is finished or that another actor holds.
    """
    with self._lock:
      self._advance()
      kept = [identifier for identifier in identifiers
              if identifier in self._assignments and self._may_hold(identifier, holder)]
      self._hold(kept, holder)
      return kept

  def _may_hold(self, identifier: str, holder: str) -> bool:
    """Returns whether no other actor holds an assignment."""
    lease = self._held.get(identifier)
    return lease is None or lease.holder in ("", holder)

  def release(self, identifiers: Iterable[str], holder: str) -> None:
    """Makes an actor's assignments available at once."""
    with self._lock:
      for identifier in identifiers:
        if identifier in self._held and self._may_hold(identifier, holder):
          self._offer(identifier)

  def void(self, identifiers: Iterable[str], holder: str) -> None:
    """Makes an actor's assignments available at once, to any actor: it ends, or a game failed.

    An assignment of evaluators that is void MOST_VOIDS times is given to nobody any more. It stays
    among `evaluations`: its pair counts as played, so that others are known least.
    """
    with self._lock:
      for identifier in identifiers:
        if identifier in self._held and self._may_hold(identifier, holder):
          self._voids[identifier] += 1
          if identifier in self._evaluations and self._voids[identifier] >= MOST_VOIDS:
            del self._held[identifier]
          else:
            self._held[identifier] = self._held[identifier]._replace(holder="")
            self._offer(identifier)

  def played(self, identifier: str, games: int) -> bool:
    """Subtracts games with a result; returns whether the assignment has just been finished.

    A finished assignment is forgotten.
    """
    with self._lock:
      assignment = self._assignments.get(identifier)
      if assignment is None:
        return False
      left = self._left.get(identifier, assignment.games) - games
      if left > 0:
        self._left[identifier] = left
        return False
      del self._assignments[identifier]
      for found in (self._evaluations, self._left, self._voids, self._held):
        found.pop(identifier, None)
      return True

  def assignments(self) -> list[Assignment]:
    """Returns all assignments that are not finished, oldest first."""
    with self._lock:
      return list(self._assignments.values())

  def evaluations(self) -> list[Assignment]:
    """Returns the assignments of evaluators that are not finished, oldest first."""
    with self._lock:
      return list(self._evaluations.values())
