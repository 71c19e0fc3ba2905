"""Assigning: the next matches of each player, as assignments that actors lease.

A match depends on the seed, the number of the match and the scores, and on nothing else: the same
events give the same matches, also after a restart.
"""

import threading
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from starleague.league import matchmaking
from starleague.league.evaluation import LeastKnownPairs
from starleague.league.league_file import LeagueFile
from starleague.league.leases import (
  EVALUATION,
  EVALUATION_POOL,
  Assignment,
  AssignmentNumber,
  Leases,
)
from starleague.league.matchmaking import Draws, Match, MatchRules, Opponents
from starleague.league.members import Members
from starleague.league.payoff import Payoff
from starleague.league.players import SCRIPTED, LeagueError, Player

_MATCH, _EVALUATION = 0, 2  # streams of random numbers; 1 is that of resets
_BLOCK = 256  # matches whose draws are made at once
_FIRST_DRAWS = 6  # of a match, as Python's numbers: few matches take more
_MOST_REQUESTS = 4096  # whose answers are remembered


class Assigner:
  """Makes matches and leases them. Threads may share it."""

  def __init__(self, payoff: Payoff, members: Members, leases: Leases, rules: MatchRules,
               own_rules: Mapping[str, MatchRules], seed: int, half_life_s: float, number: int,
               start: int):
    """Takes the parts of the league.

    Args:
      payoff: scores.
      members: the players.
      leases: of the assignments.
      rules: of matchmaking.
      own_rules: of matchmaking, of players that differ, by name.
      seed: of the matches.
      half_life_s: of the results of a player that learns; see `evaluation.uncertainty`.
      number: of the last match.
      start: number of this start of the coordinator; part of the ids of assignments.
    """
    self._payoff, self._leases, self._rules, self._seed = payoff, leases, rules, seed
    self._half_life_s, self._own_rules = half_life_s, dict(own_rules)
    self._scores, self._roster = payoff.table(), members.roster
    self._makers: dict[str, Callable[[Draws], Match]] = {}  # by player
    self._number, self._start, self._issued = number, start, 0
    self._members = members
    self._resets = LeagueFile(payoff.database).resets()
    self._pairs: tuple[Sequence[Player], LeastKnownPairs] | None = None
    self._make_draws(number + 1)
    self._unwritten: list[Assignment] = []
    self._requests: dict[str, list[Assignment]] = {}
    self._lock, self._evaluating = threading.Lock(), threading.Lock()

  def match(self, name: str) -> Match:
    """Returns the next match of a learning player."""
    with self._lock:
      return self._match(self._maker(name))

  def _maker(self, name: str) -> Callable[[Draws], Match]:
    """Returns the function that makes the matches of a player."""
    if self._members.roster is not self._roster:
      self._roster, self._makers = self._members.roster, {}
    make = self._makers.get(name)
    if make is None:
      rules = self._own_rules.get(name, self._rules)
      make = self._makers[name] = Opponents(
        self._members.get(name), self._roster, self._scores, rules).match
    return make

  def _match(self, make: Callable[[Draws], Match]) -> Match:
    number = self._number + 1
    row = number - self._block
    if row >= _BLOCK:
      row = self._make_draws(number)
    try:
      match = make(iter(self._first_draws[row]))
    except StopIteration:
      match = make(iter(self._draws[row].tolist()))
    self._number = number
    return match

  def _make_draws(self, number: int) -> int:
    """Makes the draws of a block of matches; returns the place of match `number` in it."""
    block, row = divmod(number, _BLOCK)
    generator = np.random.default_rng((self._seed, _MATCH, block))
    self._draws = generator.random((_BLOCK, matchmaking.MOST_DRAWS))
    self._first_draws = self._draws[:, :_FIRST_DRAWS].tolist()
    self._block = number - row  # its first match
    return row

  def assign(self, home: Player, count: int, games: int, holder: str,
             request: str) -> list[Assignment]:
    """Returns assignments of a learning player: first those of ended leases, then new ones.

    Args:
      home: the player.
      count: number of assignments.
      games: number of games of each new one.
      holder: name of the actor.
      request: id of the request; a repeated one gets the same assignments. Empty: none.
    """
    def make() -> list[Assignment]:
      found = self._take(home.name, count, holder)
      make_match = self._maker(home.name)
      new = [self._match(make_match) for _ in range(count - len(found))]
      return found + self._issue(new, games, holder)

    return self._once(request, make)

  def _take(self, pool: str, count: int, holder: str) -> list[Assignment]:
    """Returns assignments of ended leases; those of paused players stay available."""
    taken = self._leases.take(pool, count, holder)
    paused = [each for each in taken if not self._members.have_games(each.home, each.away)]
    self._leases.release([each.id for each in paused], holder)
    return [each for each in taken if each not in paused] if paused else taken

  def evaluate(self, count: int, games: int, among: Sequence[str] | None, holder: str,
               request: str) -> list[Assignment]:
    """Returns assignments of the pairs known least; see `Coordinator.evaluation_matches`."""
    everyone = among is None
    candidates = self._members.roster.players if among is None else tuple(
      self._members.get(name) for name in dict.fromkeys(among))
    if len(candidates) < 2:
      if everyone:  # the others are paused
        return []
      raise LeagueError("A match needs two players, found "
                        f"{[player.name for player in candidates]}.")
    rng = np.random.default_rng((self._seed, _EVALUATION, self._number))
    with self._evaluating:  # not the other lock: the first choice is slow in a large league
      known = self._pairs_of_all(candidates) if everyone else self._pairs_of(candidates)
      pairs = known.choose(
        count, ((each.home, each.away, each.games) for each in self._leases.evaluations()), rng)
      swaps = rng.random(len(pairs)) < 0.5
    pairs = [pair[::-1] if swap else pair for pair, swap in zip(pairs, swaps, strict=True)]

    def make() -> list[Assignment]:
      self._number += 1
      found = [] if among else self._take(EVALUATION_POOL, count, holder)
      new = [Match(home, away, False, EVALUATION) for home, away in pairs[:count - len(found)]]
      return found + self._issue(new, games, holder)

    return self._once(request, make)

  def _pairs_of(self, candidates: Sequence[Player]) -> LeastKnownPairs:
    return LeastKnownPairs(
      self._scores, [player.name for player in candidates],
      [player.learns for player in candidates], self._half_life_s,
      [player.name for player in candidates if player.kind == SCRIPTED])

  def _pairs_of_all(self, everyone: Sequence[Player]) -> LeastKnownPairs:
    """Returns the pairs of all players, which are kept until one joins or leaves the league."""
    changed = self._scores.take_changes()
    if self._pairs is not None and self._pairs[0] is everyone:
      self._pairs[1].recount(changed)
    else:
      self._pairs = everyone, self._pairs_of(everyone)
    return self._pairs[1]

  def _once(self, request: str, make: Callable[[], list[Assignment]]) -> list[Assignment]:
    with self._lock:
      if request in self._requests:
        return self._requests[request]
      made = make()
      if request:
        while len(self._requests) >= _MOST_REQUESTS:
          del self._requests[next(iter(self._requests))]  # the oldest
        self._requests[request] = made
      return made

  def _issue(self, matches: Sequence[Match], games: int, holder: str) -> list[Assignment]:
    first = self._issued + 1
    self._issued += len(matches)
    prefix = f"{self._start}-"
    issued = [Assignment(prefix + str(i), home, away, branch, both_learn, games)
              for i, (home, away, both_learn, branch) in enumerate(matches, first)]
    self._leases.issue(issued, holder)
    self._unwritten += issued
    return issued

  @property
  def last(self) -> AssignmentNumber:
    """Number of the last assignment."""
    return self._start, self._issued

  def apply_reset(self, name: str, last: AssignmentNumber) -> None:
    """Takes the last assignment before a player's reset, after its transaction."""
    self._resets[name] = last

  def is_former(self, assignment: Assignment) -> bool:
    """Returns whether a player was reset after the assignment: its games may be of that policy."""
    return any(assignment.number <= self._resets[name]
               for name in (assignment.home, assignment.away) if name in self._resets)

  @property
  def number(self) -> int:
    """Number of the last match."""
    return self._number

  def take_unwritten(self) -> tuple[int, list[Assignment]]:
    """Returns the number of the last match and the assignments to write; the caller does."""
    with self._lock:
      taken, self._unwritten = self._unwritten, []
      return self._number, taken

  def put_back(self, assignments: list[Assignment]) -> None:
    """Takes back assignments that could not be written."""
    with self._lock:
      self._unwritten[:0] = assignments
