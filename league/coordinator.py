"""The coordinator of a league: serves matches, counts results, orders snapshots and resets.

Source: Vinyals et al. 2019, Methods and pseudocode. Its state is held in memory and in one SQLite
file: whatever it has answered is on disk, and a killed coordinator resumes from it. It knows
players by name only: learners store, copy and reset the parameters on its orders.
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from starleague.league import evaluation, league_file, matchmaking, members, players
from starleague.league.assigning import Assigner
from starleague.league.evaluation import NotableRules
from starleague.league.league_file import LeagueFile, Order, Progress, Replay
from starleague.league.leases import Assignment, Leases, is_valid
from starleague.league.matchmaking import Match, MatchRules
from starleague.league.orders import Orders
from starleague.league.payoff import DECAY, GameResult, Payoff, validated
from starleague.league.players import (
  MOST_STEPS,
  LeagueError,
  Player,
  SnapshotRules,
  UnknownPlayerError,
)
from starleague.league.reporting import (
  MATCHES,
  GamesReport,
  Receipt,
  Report,
  Reports,
  validated_report,
)

_STARTS = "starts"  # counter


class Options(NamedTuple):
  """Options of the coordinator's assignments and evaluations.

  Attributes:
    lease_s: seconds after which an assignment that is not renewed is given to another actor.
    half_life_s: seconds after which the results of a player that learns are worth half, for
      evaluators.
    notable: rules of replays worth keeping.
  """

  lease_s: float = 60.0
  half_life_s: float = 1800.0
  notable: NotableRules = evaluation.DEFAULT_RULES


DEFAULT_OPTIONS = Options()


class Coordinator:
  """A league: players, payoff and rules. One object at a time holds the file; threads share it.

  Attributes:
    payoff: the scores.
    leases: the assignments that are not finished.
  """

  def __init__(self, path: str | os.PathLike, initial: Iterable[Player] = (), *,
               snapshot_rules: SnapshotRules | None = None,
               match_rules: MatchRules = matchmaking.DEFAULT_RULES,
               own_rules: Mapping[str, MatchRules] | None = None,
               clear_on_reset: bool = True, seed: int = 0, decay: float = DECAY,
               options: Options = DEFAULT_OPTIONS, clock: Callable[[], float] = time.monotonic):
    """Opens a league, or starts a new one.

    Args:
      path: its SQLite file.
      initial: its players at the start; existing ones stay unchanged.
      snapshot_rules: of snapshots and resets; the pseudocode's by default.
      match_rules: shares and thresholds of matchmaking.
      own_rules: those of players that differ, by name; None: there are none.
      clear_on_reset: whether a reset also deletes the player's scores. The pseudocode keeps them,
        though they belong to the former policy.
      seed: of matches and resets. The same seed and events give the same league, independent of
        restarts. A kill may repeat the draws of the matches just before it.
      decay: of the payoff.
      options: of assignments and evaluations.
      clock: monotonic seconds, of the leases.

    Raises:
      LeagueError: another process holds the file, two initial players have one name, there is no
        main agent, or an existing run has lost its file. Nothing is written.
      DatabaseFileError: the file is damaged, is no league's or has another version.
    """
    initial = list(initial)
    league_file.check_kept(path)
    members.check(path, league_file.existing_players(path), initial)
    self._held = league_file.hold(path)
    try:
      self._open(path, initial, decay, clock, options)
    except BaseException:
      self._held.close()
      raise
    self._assigner = Assigner(
      self.payoff, self._members, self.leases, match_rules, own_rules or {}, seed,
      options.half_life_s, self._file.counter(MATCHES), self._count_start())
    self._orders = Orders(self.payoff, self._members, self._assigner,
                          snapshot_rules or players.pseudocode_rules(), seed, clear_on_reset)
    self._reports = Reports(self.payoff, self._members, self.leases, self._assigner,
                            options.notable)
    for assignment in self._file.assignments():
      if not self._adopt(assignment, ""):
        self._reports.forget(assignment.id)

  def _open(self, path: str | os.PathLike, initial: list[Player], decay: float,
            clock: Callable[[], float], options: Options) -> None:
    self.leases = Leases(options.lease_s, clock)
    self.payoff = Payoff(path, decay, shared=False)
    self._database = self.payoff.database
    self._database.add(league_file.COMPONENT, league_file.VERSION, league_file.TABLES)
    self._database.add(*league_file.BEHAVIOURS)
    self._database.check()
    self._file = LeagueFile(self._database)
    self._members = members.Members(self._database, initial)

  def _count_start(self) -> int:
    number = self._file.counter(_STARTS) + 1
    with self._database.transaction() as connection:
      league_file.set_counter(connection, _STARTS, number)
    return number

  def _adopt(self, assignment: Assignment, holder: str) -> bool:
    """Leases an assignment from before a restart; returns False if all its games have results."""
    left = assignment.games - self._file.games_played(assignment)
    if left > 0:
      self.leases.restore(assignment, left, holder)
    return left > 0

  @property
  def players(self) -> list[Player]:
    """All players, in order of creation."""
    return self._members.all()

  def player(self, name: str) -> Player:
    """Returns a player by name; raises UnknownPlayerError if the league does not have it."""
    return self._members.get(name)

  def add_player(self, player: Player) -> None:
    """Adds a player; raises LeagueError if its name is taken."""
    self._members.add(player)

  def pause(self, name: str, paused: bool = True) -> None:
    """Pauses a player, or lets it play again; it is stored.

    A paused player gets no assignments and is nobody's opponent. Games in progress still count.
    """
    self._members.pause(name, paused)

  @property
  def paused(self) -> frozenset[str]:
    """Names of the paused players."""
    return self._members.paused

  def scores(self, home: str, away: Sequence[str]) -> list[float]:
    """Returns the decayed score of `home` against each of `away`; 0.5 without games."""
    for name in (home, *away):
      self.player(name)
    return self.payoff.scores(home, away).tolist()

  def progress(self, name: str) -> Progress:
    """Returns the progress of a learning player; raises LeagueError for other players."""
    return self._orders.progress(name)

  def get_match(self, name: str) -> Match:
    """Returns the next match of a learning player, without a lease; see `matchmaking.match`."""
    return self._assigner.match(name)

  def matches(self, name: str, count: int = 1, games: int = 1, *, holder: str = "",
              request: str = "") -> list[Assignment]:
    """Returns assignments of a learning player for an actor, each with a lease.

    Assignments whose leases have ended come first: those that the caller held last, then those of
    other actors, under their ids. `renew` extends the leases. They reach the disk with the next
    report or `flush`; an actor that reports or renews one that a kill has erased restores it.

    Args:
      name: the player.
      count: number of assignments.
      games: number of games of each new one.
      holder: name of the actor.
      request: unique id of the request; a repeated request gets the same answer. Empty: none.

    Returns:
      The assignments; none while the player or all main agents are paused.

    Raises:
      LeagueError: the player does not learn, or the league has no main agent.
      UnknownPlayerError: the league does not have the player.
    """
    home = self.player(name)
    if not self._members.have_games(name) or not self._members.has_opponents():
      return []
    return self._assigner.assign(home, count, games, holder, request)

  def evaluation_matches(self, count: int = 1, games: int = 1, *,
                         among: Sequence[str] | None = None, holder: str = "",
                         request: str = "") -> list[Assignment]:
    """Returns assignments of the pairs that are known least, for an evaluator.

    Args:
      count: number of pairs.
      games: number of games of each.
      among: names of the candidates; all players that are not paused by default.
      holder: name of the evaluator.
      request: unique id of the request; a repeated request gets the same answer. Empty: none.

    Raises:
      LeagueError: there are fewer than two candidates.
    """
    return self._assigner.evaluate(count, games, among, holder, request)

  def renew(self, assignments: Iterable[Assignment], holder: str = "") -> list[str]:
    """Extends an actor's leases; one that a kill has erased is restored.

    Returns:
      The ids that the actor still holds. It should end the games of the others: they are finished,
      another actor has them, or a player is paused.

    Raises:
      UnknownPlayerError: the league does not have a player of an assignment.
    """
    wanted = []
    for assignment in assignments:
      self._check(assignment)
      if self._members.have_games(assignment.home, assignment.away):
        wanted.append(assignment)
    for assignment in wanted:
      self._restore(assignment, holder)
    return self.leases.renew([assignment.id for assignment in wanted], holder)

  def release(self, assignments: Iterable[Assignment], holder: str = "") -> None:
    """Gives an actor's unfinished assignments to others at once; see `Leases.void`."""
    self.leases.void([assignment.id for assignment in assignments], holder)

  def _check(self, assignment: Assignment) -> None:
    """Raises an error for an assignment that the league cannot have given."""
    self.player(assignment.home)
    self.player(assignment.away)
    known = self.leases.find(assignment.id) or assignment
    if known != assignment or not is_valid(assignment):
      raise LeagueError(f"Assignment {assignment.id!r}: expected one that the league gave, found "
                        f"{tuple(assignment)}.")

  def _restore(self, assignment: Assignment, holder: str) -> None:
    if self.leases.find(assignment.id) is None:
      self._adopt(assignment, holder)

  def report_games(self, reports: Iterable[GamesReport], holder: str = "") -> list[list[Receipt]]:
    """Counts games of assignments and renews their leases; a repeated report counts once.

    The first result of each game counts, also if another actor reports another one: both may have
    played a match that was given again. Scores leave out games of assignments from before a reset
    of a player, as far as resets clear scores. A snapshot of the home player is ordered if its rule
    requires one, and of the away player if it learns from these games too.

    Returns:
      For each report, a receipt for each game; they are on disk on return.

    Raises:
      UnknownPlayerError: the league does not have a player. Nothing is counted.
      ValueError: a report is invalid. Nothing is counted.
    """
    reports = list(reports)
    receipts = self._reports.count([self._checked(report) for report in reports])
    names: list[str] = []
    for assignment, _ in reports:
      self._restore(assignment, holder)
      names += [assignment.home, assignment.away][:1 + assignment.both_learn]
    self.leases.renew([report.assignment.id for report in reports], holder)
    self._order(names)
    return receipts

  def _checked(self, report: GamesReport) -> Report:
    self._check(report.assignment)
    return validated_report(report)

  def keep_replay(self, result_id: str, path: str) -> None:
    """Stores the path of the replay of a game; its receipt had reasons.

    Raises:
      UnknownPlayerError: no game of this id is worth keeping.
    """
    with self._database.transaction() as connection:
      if not league_file.set_replay_path(connection, result_id, path):
        raise UnknownPlayerError(f"The league in {self._database.path} keeps no replay of game "
                                 f"{result_id!r}.")

  def replays(self) -> list[Replay]:
    """Returns the games whose replays are worth keeping, oldest first."""
    return self._file.replays()

  def report(self, result: GameResult, steps: int | None = None) -> Order | None:
    """Counts a result, and orders a snapshot of the home player if its rule requires one.

    Args:
      result: of a game; a repeated one counts once.
      steps: agent steps that the home player's learner has learnt from, if known.

    Returns:
      The new order, or None; the learner reads it from `orders`.

    Raises:
      UnknownPlayerError: the league does not have a player. Nothing is counted.
      ValueError: the result or the steps are invalid. Nothing is counted.
    """
    orders = self.report_many([result], {} if steps is None else {result.home: steps})
    return orders[0] if orders else None

  def report_many(self, results: Iterable[GameResult],
                  steps: dict[str, int] | None = None) -> list[Order]:
    """Counts several results; see `report`. `steps` holds those of each home player's learner."""
    checked = [validated(result) for result in results]
    for result in checked:
      self.player(result.home)
      self.player(result.away)
    self._count(checked, steps or {})
    return self._order(result.home for result in checked)

  def _order(self, names: Iterable[str]) -> list[Order]:
    orders = [self._orders.order_if_due(name) for name in dict.fromkeys(names)
              if self.player(name).learns]
    return [order for order in orders if order]

  def _count(self, results: Sequence[GameResult], steps: dict[str, int]) -> None:
    counts = {name: self._checked_steps(name, value) for name, value in steps.items()}
    self._reports.count([Report(results, counts)])
    for name, value in counts.items():
      self._orders.raise_steps(name, value)

  def _checked_steps(self, name: str, steps: int) -> int:
    self._members.learner(name)
    if not 0 <= steps <= MOST_STEPS or steps != int(steps):
      raise LeagueError(f"Player {name}: steps is {steps}, expected a whole number from 0 to "
                        f"{MOST_STEPS:.0e}.")
    return int(steps)

  def set_steps(self, name: str, steps: int) -> None:
    """Stores the agent steps that a player's policy has learnt from.

    A smaller number than before is accepted without effect: a learner that resumes from an older
    checkpoint counts again from there. The league's progress never decreases.

    Raises:
      LeagueError: the player does not learn, or `steps` is no whole number from 0 to MOST_STEPS.
    """
    self._count([], {name: steps})

  def training_time(self, seconds: float) -> float:
    """Returns the seconds that the league has trained: those of the learner with the most.

    Whole seconds are stored, also over restarts.

    Args:
      seconds: that the caller, a learner, has trained.

    Raises:
      LeagueError: `seconds` is no time.
    """
    return self._orders.training_time(seconds)

  def flush(self) -> None:
    """Writes the assignments that are not on disk yet, and ends leases that are over."""
    self.leases.expire()
    self._reports.flush()

  def orders(self, name: str | None = None) -> list[Order]:
    """Returns the open orders, oldest first: of one player, or of all."""
    return self._orders.open(name)

  def complete(self, order_id: int) -> Player:
    """Completes an order: the snapshot is saved and joins the league. Idempotent.

    Returns:
      The snapshot as a historical player.

    Raises:
      UnknownPlayerError: there is no such order.
    """
    return self._orders.complete(order_id)

  def close(self) -> None:
    """Writes what is not on disk yet and closes the file; another object may open it."""
    if self._held.closed:
      return
    try:
      self._reports.flush()
    finally:
      self.payoff.close()
      self._held.close()
