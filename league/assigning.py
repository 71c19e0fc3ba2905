"""Assigning: the next matches of each player, as assignments that actors lease.

A match depends on the seed, the number of the match and the scores, and on nothing else: the same
events give the same matches, also after a restart.
"""

import threading
from collections.abc import Callable, Sequence

import numpy as np

from starleague.league import evaluation, matchmaking
from starleague.league.leases import EVALUATION, EVALUATION_POOL, Assignment, Leases
from starleague.league.matchmaking import Match, MatchRules, Opponents
from starleague.league.members import Members
from starleague.league.payoff import Payoff
from starleague.league.players import LeagueError, Player

_MATCH, _EVALUATION = 0, 2  # streams of random numbers; 1 is that of resets
_BLOCK = 256  # matches whose draws are made at once
_MOST_REQUESTS = 4096  # whose answers are remembered


class Assigner:
  """Makes matches and leases them. Threads may share it."""

  def __init__(self, payoff: Payoff, members: Members, leases: Leases, rules: MatchRules, seed: int,
               half_life_s: float, number: int, start: int):
    """Takes the parts of the league.

    Args:
      payoff: scores.
      members: the players.
      leases: of the assignments.
      rules: of matchmaking.
      seed: of the matches.
      half_life_s: of the results of a player that learns; see `evaluation.uncertainty`.
      number: of the last match.
      start: number of this start of the coordinator; part of the ids of assignments.
    """
    self._payoff, self._leases, self._rules, self._seed = payoff, leases, rules, seed
    self._half_life_s = half_life_s
    self._scores, self._roster = payoff.table(), members.roster
    self._opponents: dict[str, Opponents] = {}
    self._number, self._start, self._issued = number, start, 0
    self._members = members
    self._block, self._uniforms = -1, [[0.0]]
    self._unwritten: list[Assignment] = []
    self._requests: dict[str, list[Assignment]] = {}
    self._lock = threading.Lock()

  def match(self, home: Player) -> Match:
    """Returns the next match of a learning player."""
    with self._lock:
      return self._match(home)

  def _match(self, home: Player) -> Match:
    roster = self._members.roster
    if roster is not self._roster:
      self._roster, self._opponents = roster, {}
    opponents = self._opponents.get(home.name)
    if opponents is None:
      opponents = Opponents(home, roster, self._scores, self._rules)
      self._opponents[home.name] = opponents
    block, row = divmod(self._number + 1, _BLOCK)
    if block != self._block:
      generator = np.random.default_rng((self._seed, _MATCH, block))
      self._uniforms = generator.random((_BLOCK, matchmaking.MOST_DRAWS)).tolist()
      self._block = block
    match = opponents.match(iter(self._uniforms[row]).__next__)
    self._number += 1
    return match

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
      new = [self._match(home) for _ in range(count - len(found))]
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
    if among is None:
      names = [player.name for player in self._members.roster.players]
      if len(names) < 2:  # the others are paused
        return []
    else:
      names = [self._members.get(name).name for name in dict.fromkeys(among)]
    if len(names) < 2:
      raise LeagueError(f"A match needs two players, found {names}.")
    rng = np.random.default_rng((self._seed, _EVALUATION, self._number))
    pairs = self._known_least(names, count, rng)  # without the lock: slow in a large league
    def make() -> list[Assignment]:
      self._number += 1
      found = [] if among else self._take(EVALUATION_POOL, count, holder)
      new = [Match(home, away, False, EVALUATION) for home, away in pairs[:count - len(found)]]
      return found + self._issue(new, games, holder)
    return self._once(request, make)

  def _known_least(self, names: Sequence[str], count: int,
                   rng: np.random.Generator) -> list[tuple[str, str]]:
    """Returns pairs of players, those known least first; see `evaluation.uncertainty`."""
    first, second = np.triu_indices(len(names), 1)
    number = {name: i for i, name in enumerate(names)}
    pending = np.zeros((len(names), len(names)))
    for each in self._leases.assignments():
      i, j = number.get(each.home), number.get(each.away)
      if each.branch == EVALUATION and i is not None and j is not None:
        pending[min(i, j), max(i, j)] += each.games
    learns = np.array([self._members.get(name).learns for name in names])
    widths = evaluation.uncertainty(
      self._payoff.count_matrix(names, names)[first, second],
      self._payoff.ages(names, names)[first, second], learns[first] | learns[second],
      pending[first, second], self._half_life_s)
    chosen = evaluation.known_least(widths, count, rng)
    pairs = [(names[first[i]], names[second[i]]) for i in chosen]
    swaps = rng.random(len(pairs)) < 0.5
    return [pair[::-1] if swap else pair for pair, swap in zip(pairs, swaps, strict=True)]

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
    issued = [Assignment(f"{self._start}-{i}", match.home, match.away, match.branch,
                         match.both_learn, games) for i, match in enumerate(matches, first)]
    self._leases.issue(issued, holder)
    self._unwritten += issued
    return issued

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
