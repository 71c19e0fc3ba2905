"""Reports of games: validated, then counted and on disk before they are answered.

The reports that several threads make at the same time share one transaction, and so one wait for
the disk. A report that is refused leaves the others of its transaction as they are.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from starleague.league import evaluation, league_file
from starleague.league.assigning import Assigner
from starleague.league.batching import Batches
from starleague.league.counts import NO_GAMES, Counts
from starleague.league.evaluation import History, NotableRules
from starleague.league.league_file import LeagueFile, Replay
from starleague.league.leases import Assignment, Leases
from starleague.league.members import Members
from starleague.league.payoff import DRAW, GameResult, Pairs, Payoff, validated
from starleague.league.players import SCRIPTED, LeagueError
from starleague.league.ratings import archive
from starleague.league.ratings.archive import Behaviour

LONGEST, MATCHES = "longest", "matches"  # counters


class PlayedGame(NamedTuple):
  """The outcome of a game of an assignment.

  Attributes:
    game: its number within the assignment.
    result: WIN, DRAW or LOSS of the home player; see `payoff`.
    time: in Unix seconds.
    loops: its length in game loops; 0 if its replay cannot be kept.
    behaviours: of the home player, and of the away player; empty if they are not known.
  """

  game: int
  result: int
  time: float
  loops: int = 0
  behaviours: tuple[Behaviour, ...] = ()


class GamesReport(NamedTuple):
  """Games of an assignment that an actor has played."""

  assignment: Assignment
  games: Sequence[PlayedGame]


class Receipt(NamedTuple):
  """The answer to a reported game.

  Attributes:
    counted: whether it is the first result of its game.
    reasons: why its replay is worth keeping; see `evaluation.notable`. A report of the same game
      again has the same ones, another game of the same number has none.
  """

  counted: bool
  reasons: tuple[str, ...]


class Report(NamedTuple):
  """Validated results that are counted together or not at all.

  Attributes:
    results: of the games.
    steps: agent steps that learners have learnt from, by player.
    assignment: of the games, if they have one. The first result of each of its games counts;
      without an assignment, a result that contradicts an earlier one of its id is refused.
    loops: length of each game, 0 if its replay cannot be kept; empty stands for zeros.
    behaviours: of each game's players, as in `PlayedGame`; empty: not known.
  """

  results: Sequence[GameResult]
  steps: Mapping[str, int]
  assignment: Assignment | None = None
  loops: Sequence[int] = ()
  behaviours: Sequence[Sequence[Behaviour]] = ()


def validated_report(report: GamesReport) -> Report:
  """Returns the results of an assignment's games.

  Raises:
    ValueError: a result, a length or a behaviour is impossible.
  """
  assignment, games = report
  results = [validated(GameResult(assignment.result_id(each.game), assignment.home,
                                  assignment.away, each.result, each.time)) for each in games]
  for each in games:
    where = f"Game {assignment.id}/{each.game}"
    if not 0 <= each.loops < 2 ** 31:
      raise LeagueError(f"{where}: loops is {each.loops}, expected a count from 0 to 2147483647.")
    if len(each.behaviours) > 2 or not all(map(archive.is_valid, each.behaviours)):
      raise LeagueError(
        f"{where}: behaviours are {list(map(tuple, each.behaviours))}, expected at most two of a "
        "share from 0 to 1, a supply from 0 and a game loop from -1.")
  return Report(results, {}, assignment, [each.loops for each in games],
                [each.behaviours for each in games])


class _Staged(NamedTuple):
  """A report that is written and not committed yet."""

  receipts: list[Receipt]
  pairs: Pairs
  longest: int


class Reports:
  """Counts reports. Threads may share it."""

  def __init__(self, payoff: Payoff, members: Members, leases: Leases, assigner: Assigner,
               rules: NotableRules):
    """Takes the parts of the league.

    Args:
      payoff: the scores; its file is the league's.
      members: the players.
      leases: of assignments.
      assigner: its unwritten assignments are written with the reports.
      rules: of replays worth keeping.
    """
    self._payoff, self._members, self._leases = payoff, members, leases
    self._assigner, self._rules = assigner, rules
    self._file = LeagueFile(payoff.database)
    self._longest = self._file.counter(LONGEST)
    self._written = assigner.number  # number of the last match that the file knows
    self._finished: list[str] = []  # ids of assignments that are to be deleted from the file
    self._batches: Batches[Report, list[Receipt]] = Batches(self._process, payoff.database.lock)

  def count(self, reports: Sequence[Report]) -> list[list[Receipt]]:
    """Counts reports; they are on disk on return.

    Returns:
      For each report, a receipt for each result.

    Raises:
      ValueError: a result contradicts the result of the same id. Nothing of its report is counted.
    """
    return self._batches.submit(reports)

  def forget(self, identifier: str) -> None:
    """Deletes a finished assignment from the file with the next transaction.

    A kill after the transaction of its last game leaves it there.
    """
    self._finished.append(identifier)

  def flush(self) -> None:
    """Writes the changes of assignments since the last transaction, if there are any."""
    if self._finished or self._written != self._assigner.number:
      self.count([Report((), {})])

  def _process(self, reports: Sequence[Report]) -> list[list[Receipt] | Exception]:
    """Counts reports in one transaction; see `Batches`."""
    number, unwritten = self._assigner.take_unwritten()
    pairs, longest = Pairs(), self._longest
    answers: list[list[Receipt] | Exception] = []
    try:
      with self._payoff.database.transaction() as connection:
        league_file.insert_assignments(connection, unwritten)
        league_file.delete_assignments(connection, self._finished)
        league_file.set_counter(connection, MATCHES, number)
        for report in reports:
          connection.execute("SAVEPOINT report")
          try:
            staged = self._stage(connection, report, pairs, longest)
            pairs.update(staged.pairs)
            longest = staged.longest
            answers.append(staged.receipts)
          except ValueError as error:
            connection.execute("ROLLBACK TO report")
            answers.append(error)
          connection.execute("RELEASE report")
        self._payoff.write(connection, pairs)
        if longest != self._longest:
          league_file.set_counter(connection, LONGEST, longest)
    except BaseException:
      self._assigner.put_back(unwritten)
      raise
    self._longest, self._written = longest, number
    self._payoff.apply(pairs)
    self._finished = []
    for report, answer in zip(reports, answers, strict=True):
      if report.assignment and not isinstance(answer, Exception):
        games = sum(receipt.counted for receipt in answer)
        if self._leases.played(report.assignment.id, games):
          self._finished.append(report.assignment.id)
    return answers

  def _stage(self, connection: sqlite3.Connection, report: Report, pairs: Pairs,
             longest: int) -> _Staged:
    """Writes a report in a transaction. Arguments hold what it has changed so far."""
    for name, steps in report.steps.items():
      league_file.raise_steps(connection, name, steps)
    assignment = report.assignment
    scored = assignment is None or not self._assigner.is_former(assignment)
    staged = self._payoff.stage(connection, report.results, pairs,
                                first_counts=assignment is not None, scored=scored)
    receipts = []
    loops = report.loops or (0,) * len(report.results)
    for result, length, new, before in zip(report.results, loops, staged.new, staged.before,
                                           strict=True):
      reasons: tuple[str, ...] = ()
      if length and new:
        reasons = self._notable(result, length, before if scored else None, longest)
        longest = max(longest, length)
        if reasons:
          league_file.insert_replay(connection, Replay(*result, length, reasons, None))
      elif length:
        # Another game of the same id has no replay to keep: the stored one is of the first game.
        reasons = next((each.reasons for each in self._file.replays(result.id)
                        if each[:6] == (*result, length)), ())
      receipts.append(Receipt(new, reasons))
    if assignment:
      league_file.count_branches(
        connection, [(assignment.home, assignment.branch, 0, sum(staged.new))])
    league_file.count_behaviours(connection, self._cells(report, staged.new))
    return _Staged(receipts, staged.pairs, longest)

  def _cells(self, report: Report, new: Sequence[bool]) -> Iterator[tuple[str, archive.Cell]]:
    """Yields the players of new games with the cells of their behaviours; none of scripts.

    A player that meets itself counts once for a cell, however many sides of the game are in it.
    """
    for result, counted, found in zip(report.results, new, report.behaviours, strict=False):
      if counted:
        sides = zip((result.home, result.away), map(archive.cell, found), strict=False)
        for name, where in dict.fromkeys(sides):
          if self._members.get(name).kind != SCRIPTED:
            yield name, where

  def _notable(self, result: GameResult, loops: int, before: Counts | None,
               longest: int) -> tuple[str, ...]:
    """Returns why a game is notable; `before` is None for a former policy, without scores."""
    home, away = self._members.get(result.home), self._members.get(result.away)
    history = History(before or NO_GAMES, home.kind, away.kind, longest)
    # Neither self-play nor a former policy has an upset.
    outcome = DRAW if home == away or before is None else result.result
    return evaluation.notable(outcome, loops, history, self._rules)
