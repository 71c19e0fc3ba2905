"""The matches that an actor plays: which players hold which slots of its program.

The program of `actor.players` has a fixed number of slots for policies and of places for matches.
Assignments of the league's coordinator are put into these places. A place is used again once no
game of its match runs; a slot keeps the weights of a frozen player until another one needs it.

A game counts by the order in which games start. To count the first games that end instead would
prefer short ones.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from starleague.actor import players
from starleague.actor.loops.league_connection import Ended
from starleague.league.leases import Assignment

NOBODY = -1  # a place without a match; a step that is not recorded


class Range(NamedTuple):
  """Games of an assignment, consecutive in the order in which games of a match start."""

  first: int  # number of the first one within the match
  games: int
  assignment: Assignment
  offset: int = 0  # number of the first one within the assignment

  @property
  def end(self) -> int:
    """The number after that of the last game."""
    return self.first + self.games


class SlottedMatch:
  """A match at its place: the assignments of one pair of players, and their games."""

  def __init__(self, assignment: Assignment, slots: tuple[int, int]):
    """Starts without games; `slots` are those of home and away, that of home twice if scripted."""
    self.home, self.away, self.both_learn = assignment.home, assignment.away, assignment.both_learn
    self.slots = slots
    self.ranges: list[Range] = []  # in order of their games; together they have no gap
    self.unfinished: dict[Assignment, int] = {}  # with the number of games that have not ended
    self.dropped: dict[Assignment, int] = {}  # with the number of games that had started
    self.games = self.started = 0
    self.running: set[int] = set()  # numbers of the games that run
    self.closed_at: int | None = None  # the first call of the program that starts no game of it
    self.extend(assignment)

  @property
  def open(self) -> int:
    """Number of its assignments with games that have not started."""
    return sum(each.games > 0 and self.started < each.end for each in self.ranges)

  @property
  def left(self) -> int:
    """Number of games of its assignments that have not started."""
    return max(0, self.games - self.started)

  def extend(self, assignment: Assignment) -> None:
    """Adds an assignment of the same pair, which gets the games that start next.

    One that is held already keeps its games: its lease had lapsed and is taken again. One that was
    dropped continues with the games that had not started.
    """
    if assignment in self.unfinished and assignment not in self.dropped:
      return
    offset = self.dropped.pop(assignment, 0)
    if offset >= assignment.games:
      return  # all have started
    # Surplus games stay surplus: some have ended.
    added = Range(max(self.games, self.started), assignment.games - offset, assignment, offset)
    self.ranges.append(added)
    self.unfinished[assignment] = self.unfinished.get(assignment, 0) + added.games
    self.games = added.end
    self._prune()

  def _prune(self) -> None:
    """Removes ranges without running games: a pair may stay at its place as long as the actor.

    The surplus games after a range belong to it.
    """
    oldest = min(self.running, default=self.started)
    while len(self.ranges) > 1 and self.ranges[1].first <= oldest:
      del self.ranges[0]

  def drop(self, assignments: Collection[Assignment]) -> None:
    """Leaves assignments: running games still count, others do not start."""
    lost = {each for each in assignments if each in self.unfinished and each not in self.dropped}
    ranges, end = [], 0
    for each in self.ranges:
      begun = min(max(0, self.started - each.first), each.games)
      if each.assignment in lost:
        self.dropped[each.assignment] = each.offset + begun
        self.unfinished[each.assignment] -= each.games - begun
        each = each._replace(games=begun)
      if not begun:  # moves to where the games before it end now
        each = each._replace(first=max(self.started, end))
      ranges.append(each)
      end = each.end
    self.ranges, self.games = ranges, max(self.started, end)
    self.unfinished = {each: left for each, left in self.unfinished.items() if left}

  def end(self, number: int, reward: float) -> Ended:
    """Ends a game, by its number within the match."""
    self.running.remove(number)
    at = next(each for each in reversed(self.ranges) if each.first <= number)
    assignment, game = at.assignment, number - at.first + at.offset
    if number >= at.end:
      return Ended(assignment, max(game, assignment.games), reward)  # surplus
    self.unfinished[assignment] -= 1
    if not self.unfinished[assignment]:
      del self.unfinished[assignment]
    return Ended(assignment, game, reward)


class MatchSlots:
  """The matches and the loaded players of one program."""

  def __init__(self, sizes: players.Sizes, games: int, learners: Iterable[str],
               scripts: Mapping[str, int]):
    """Starts without matches.

    Args:
      sizes: of the program.
      games: of the program's batch.
      learners: names of the learning players, which keep a slot each.
      scripts: index of each scripted player by name.

    Raises:
      ValueError: the program is too small. A learning player needs two places, one for a match
        whose last games run, and each place a slot for a frozen player.
    """
    self.learners = tuple(learners)
    matches = max(1, 2 * len(self.learners))
    if sizes.matches < matches or sizes.slots < len(self.learners) + sizes.matches:
      raise ValueError(
        f"a program for {len(self.learners)} learning players needs at least {matches} matches, "
        f"and as many slots as players and matches together; found {sizes.matches} matches and "
        f"{sizes.slots} slots.")
    self._sizes, self._scripts = sizes, dict(scripts)
    self._slots: list[str | None] = [*self.learners,
                                     *[None] * (sizes.slots - len(self.learners))]
    self._used = [0] * sizes.slots  # the last time that a slot was taken, to replace the oldest
    self._matches: dict[int, SlottedMatch] = {}  # by opponent index
    self._paused: set[str] = set()  # learning players that the coordinator gives no matches
    self._number = np.full(games, NOBODY)  # of each running game within its assignment
    self._playing = np.full(games, NOBODY)  # opponent index of each running game
    self._clock = self._calls = 0

  @property
  def calls(self) -> int:
    """Number of the newest call of `run`; see `probabilities`."""
    return self._calls

  @property
  def slots(self) -> tuple[str | None, ...]:
    """Names of the policies in the slots."""
    return tuple(self._slots)

  @property
  def pairs(self) -> np.ndarray:
    """[M, 2] int32: slots of both players of each match of two policies."""
    pairs = np.zeros((self._sizes.matches, 2), np.int32)
    for index, match in self._matches.items():
      if index < self._sizes.matches:
        pairs[index] = match.slots
    return pairs

  @property
  def assignments(self) -> list[Assignment]:
    """The held assignments, without those whose games have all ended."""
    return [each for match in self._matches.values() for each in match.unfinished]

  @property
  def free(self) -> int:
    """Number of free places for matches of two policies."""
    return self._sizes.matches - sum(index < self._sizes.matches for index in self._matches)

  def wanted(self) -> dict[str, int]:
    """Returns the number of assignments that each learning player needs.

    Each has as many with games that have not started as half of its equal share of the places; the
    last games of earlier matches run in the others.
    """
    share = self._sizes.matches // len(self.learners) // 2
    wanted = dict.fromkeys(self.learners, share)
    for match in self._matches.values():
      if match.home in wanted:
        wanted[match.home] = max(0, wanted[match.home] - match.open)
    return wanted

  def add(self, assignment: Assignment) -> bool:
    """Puts an assignment at a free place, or at that of the same pair; returns whether there is."""
    for match in self._matches.values():
      if (match.home, match.away, match.both_learn) == (
          assignment.home, assignment.away, assignment.both_learn):
        match.extend(assignment)
        return True
    busy = {slot for match in self._matches.values() for slot in match.slots}
    home = self._slot_of(assignment.home, busy)
    if home is None:
      return False
    if assignment.away in self._scripts:
      index = self._sizes.scripted_match(home, self._scripts[assignment.away])
      self._matches[index] = SlottedMatch(assignment, (home, home))
      return True
    away = self._slot_of(assignment.away, busy | {home})
    if away is None or not self.free:
      return False
    index = next(m for m in range(self._sizes.matches) if m not in self._matches)
    self._matches[index] = SlottedMatch(assignment, (home, away))
    return True

  def drop(self, assignments: Collection[Assignment]) -> None:
    """Leaves assignments that the actor has lost; their running games are completed."""
    for match in self._matches.values():
      if lost := [each for each in assignments if each in match.unfinished]:
        match.drop(lost)

  def pause(self, name: str, paused: bool) -> None:
    """Sets whether a player without assignments has no games, as long as other players have."""
    (self._paused.add if paused else self._paused.discard)(name)

  def _slot_of(self, name: str, busy: Collection[int]) -> int | None:
    """Returns the slot of a policy, or else the one of no match that was unused for longest."""
    self._clock += 1
    if name in self._slots:
      slot = self._slots.index(name)
    else:
      free = [s for s in range(len(self.learners), self._sizes.slots) if s not in busy]
      if not free:
        return None
      slot = min(free, key=lambda s: self._used[s])
      self._slots[slot] = name
    self._used[slot] = self._clock
    return slot

  def probabilities(self) -> np.ndarray:
    """Returns the probability of each opponent index for a new game, and counts a call of `run`.

    The learning players have equal shares. A match has a share by its games that have not started;
    if a player has none of these left, its newest match goes on, unless the player is paused.

    Returns:
      [opponents] float32.

    Raises:
      ValueError: there is no match.
    """
    self._calls += 1
    weights = np.zeros(self._sizes.opponents, np.float32)
    homes: dict[str, list[int]] = {}
    for index, match in self._matches.items():
      homes.setdefault(match.home, []).append(index)
    if not homes:
      raise ValueError("there is no match to play.")
    playing = [home for home, indices in homes.items() if home not in self._paused
               or any(self._matches[i].left for i in indices)]
    for indices in (homes[home] for home in playing or homes):  # the program always plays
      left = np.array([self._matches[i].left for i in indices], float)
      left[-1] += not left.any()
      weights[indices] = left / left.sum()
    for index, match in self._matches.items():
      if weights[index] > 0:
        match.closed_at = None
      elif match.closed_at is None:
        match.closed_at = self._calls
    return weights / weights.sum()

  def begin(self, opponents: np.ndarray) -> None:
    """Counts the games [games] that `init` starts."""
    for game, opponent in enumerate(opponents):
      self._start(game, int(opponent))

  def _start(self, game: int, opponent: int) -> None:
    match = self._matches[opponent]
    self._playing[game], self._number[game] = opponent, match.started
    match.running.add(match.started)
    match.started += 1

  def follow(self, over: np.ndarray, opponent: np.ndarray, reward: np.ndarray,
             after: np.ndarray) -> list[Ended]:
    """Follows the games of a call of `run`, in order.

    Args:
      over: [iterations, games] bool, as in `rollouts.Results`.
      opponent: [iterations, games] int32.
      reward: [iterations, games, 2] float32.
      after: [games] int32, opponent indices after the call.

    Returns:
      The games that ended.
    """
    ended = []
    following = np.concatenate([opponent[1:], after[None]])
    for iteration, game in np.argwhere(over):
      index = int(self._playing[game])
      match = self._matches[index]
      ended.append(match.end(int(self._number[game]), float(reward[iteration, game, 0])))
      self._start(game, int(following[iteration, game]))
    return ended

  def retire(self, call: int) -> None:
    """Removes matches without games.

    Args:
      call: number of the newest call of `run` that was followed, from 1.
    """
    idle = [index for index, match in self._matches.items()
            if match.closed_at is not None and match.closed_at <= call and not match.running]
    for index in idle:
      del self._matches[index]

  def learning(self, opponents: np.ndarray) -> np.ndarray:
    """Returns the learning players of games whose steps are recorded.

    Args:
      opponents: [N] int32, opponent indices.

    Returns:
      [N, 2] int: index of `learners`, or NOBODY.
    """
    names = np.full((self._sizes.opponents, 2), NOBODY)
    for index, match in self._matches.items():
      if match.home in self.learners:
        names[index, 0] = self.learners.index(match.home)
      if match.both_learn and match.away in self.learners:
        names[index, 1] = self.learners.index(match.away)
    return names[opponents]

  def recorded(self, opponent: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Returns the learning player that each step is recorded for.

    The away player's steps are recorded if both players of the match learn.

    Args:
      opponent: [iterations, games] int32, as in `rollouts.Results`.
      row: [iterations, C] int32, rows of the records; negative: none.

    Returns:
      [iterations, C] int: index of `learners`, or NOBODY.
    """
    names = self.learning(np.arange(self._sizes.opponents))
    iterations = np.arange(len(row))[:, None]
    game = np.maximum(row, 0) // 2
    return np.where(row >= 0, names[opponent[iterations, game], row % 2], NOBODY)

  def by_player(self, value: Callable[[str], Any], empty: Any) -> np.ndarray:
    """Returns a value of each player by opponent index, [opponents, 2, ...].

    Args:
      value: of a player's name.
      empty: where there is no match; values have its shape and dtype.
    """
    table = np.broadcast_to(empty, (self._sizes.opponents, 2, *np.shape(empty))).copy()
    for index, match in self._matches.items():
      table[index] = [value(match.home), value(match.away)]
    return table
