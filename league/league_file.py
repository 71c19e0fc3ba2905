"""The league's file: players, progress, orders, assignments and kept replays in SQLite.

The payoff shares the file. Methods that change it take the connection of a transaction; the others
read, also while another process serves the league.
"""

import fcntl
import os
import pathlib
import sqlite3
from collections.abc import Iterable
from typing import IO, NamedTuple

from starleague.common import run_files
from starleague.common.database import Database, DatabaseFileError
from starleague.league import schema
from starleague.league.leases import Assignment, AssignmentNumber
from starleague.league.players import LeagueError, Player, is_first_snapshot
from starleague.league.ratings import archive

COMPONENT = schema.COORDINATOR
VERSION, TABLES = schema.VERSIONS[COMPONENT], schema.statements(COMPONENT)
BEHAVIOURS = schema.BEHAVIOURS, schema.VERSIONS[schema.BEHAVIOURS], schema.statements(
  schema.BEHAVIOURS)  # arguments of `Database.add`


class Order(NamedTuple):
  """An order to a learner; it stays open until it is completed, also over restarts.

  Attributes:
    id: for `Coordinator.complete`.
    player: name of the learner's player.
    snapshot: name under which the learner saves a snapshot of its parameters, first of all.
    steps: agent steps at the time of the order.
    reset: whether the learner then resets to the supervised parameters, with a new optimizer
      state.
  """

  id: int
  player: str
  snapshot: str
  steps: int
  reset: bool


class Progress(NamedTuple):
  """The progress of a learning player.

  Attributes:
    steps: agent steps that the policy has learnt from in all.
    snapshot_steps: `steps` at its last snapshot.
    snapshots: number of its snapshots.
    resets: number of its resets that are done.
  """

  steps: int
  snapshot_steps: int
  snapshots: int
  resets: int = 0


class BranchCount(NamedTuple):
  """The matches of a player by one rule of matchmaking.

  Attributes:
    player: the home player.
    branch: the rule; see `matchmaking.Match`.
    assignments: number of assignments made.
    games: number of games with a result.
  """

  player: str
  branch: str
  assignments: int
  games: int


class Replay(NamedTuple):
  """A game whose replay is worth keeping.

  Attributes:
    id: of its result.
    home: name of one player.
    away: name of the other player.
    result: WIN, DRAW or LOSS of `home`; see `payoff`.
    time: in Unix seconds.
    loops: length of the game, in game loops.
    reasons: why it is kept; see `evaluation.notable`.
    path: of the replay's file; None until it is saved.
  """

  id: str
  home: str
  away: str
  result: int
  time: float
  loops: int
  reasons: tuple[str, ...]
  path: str | None


class LeagueFile:
  """Reads and writes the league's tables."""

  def __init__(self, database: Database):
    """Takes the file; the caller has added the tables."""
    self._database = database

  def _rows(self, statement: str, values: tuple = ()) -> list[tuple]:
    with self._database.damage_named():
      return self._database.rows(statement, values)

  def players(self) -> list[Player]:
    """Returns all players, in order of creation."""
    return [Player(*row) for row in self._rows(
      "SELECT name, kind, race, parent, parent_kind, steps FROM players ORDER BY number")]

  def progress(self) -> dict[str, Progress]:
    """Returns the progress of each learning player."""
    return {name: Progress(*row) for name, *row in self._rows(
      "SELECT name, steps, snapshot_steps, snapshots, (SELECT COUNT(*) FROM orders "
      "WHERE player = name AND reset = 1 AND done = 1) FROM progress")}

  def orders(self, done: bool = False) -> list[Order]:
    """Returns the open orders, or those that are done, oldest first."""
    return [Order(identifier, player, snapshot, steps, bool(reset))
            for identifier, player, snapshot, steps, reset in self._rows(
              "SELECT id, player, snapshot, steps, reset FROM orders WHERE done = ? ORDER BY id",
              (done,))]

  def paused(self) -> set[str]:
    """Returns the names of the paused players."""
    return {name for name, in self._rows("SELECT name FROM paused")}

  def counter(self, name: str) -> int:
    """Returns a counter; 0 if it was never set."""
    found = self._rows("SELECT value FROM counters WHERE name = ?", (name,))
    return found[0][0] if found else 0

  def resets(self) -> dict[str, AssignmentNumber]:
    """Returns the last assignment before the last reset of each player that was reset."""
    return {name: (start, number) for name, start, number in self._rows(
      "SELECT substr(s.name, 13), s.value, n.value FROM counters AS s JOIN counters AS n "
      "ON n.name = 'reset_number/' || substr(s.name, 13) WHERE s.name GLOB 'reset_start/*'")}

  def assignments(self) -> list[Assignment]:
    """Returns the assignments that are not finished."""
    return [Assignment(identifier, home, away, branch, bool(both_learn), games)
            for identifier, home, away, branch, both_learn, games in self._rows(
              "SELECT id, home, away, branch, both_learn, games FROM assignments ORDER BY rowid")]

  def games_played(self, assignment: Assignment) -> int:
    """Returns the number of an assignment's games that have a result."""
    # "0" follows "/": the range holds the ids that begin with the assignment's id and a slash.
    return self._rows("SELECT COUNT(*) FROM results WHERE id > ? AND id < ?",
                      (f"{assignment.id}/", f"{assignment.id}0"))[0][0]

  def branches(self) -> list[BranchCount]:
    """Returns the counts of matches by player and branch."""
    return [BranchCount(*row) for row in self._rows(
      "SELECT player, branch, assignments, games FROM branches ORDER BY player, branch")]

  def replays(self, identifier: str | None = None) -> list[Replay]:
    """Returns the games worth keeping, oldest first: one by its id, or all."""
    return [Replay(name, home, away, result, time, loops, tuple(reasons.split(",")), path)
            for name, home, away, result, time, loops, reasons, path in self._rows(
              "SELECT id, home, away, result, time, loops, reasons, path FROM replays "
              "WHERE id = ?1 OR ?1 IS NULL ORDER BY rowid", (identifier,))]

  def behaviours(self) -> list[archive.CellCount]:
    """Returns the games of players by cell of the archive; none if the file is older or newer."""
    if (schema.BEHAVIOURS, schema.VERSIONS[schema.BEHAVIOURS]) not in self._rows(
        "SELECT component, version FROM layout"):
      return []
    return [archive.CellCount(player, snapshots, archive.Cell(*cell), games, steps)
            for player, snapshots, *cell, games, steps in self._rows(
              "SELECT player, snapshots, opening, army, attack, games, steps FROM behaviours "
              "ORDER BY player, snapshots, opening, army, attack")]


def check_kept(path: str | os.PathLike) -> None:
  """Refuses an existing run without its league file: a new league would mix with its snapshots.

  Args:
    path: the league's file, in the directory of its run.

  Raises:
    LeagueError: the file is missing or empty, and the directory has learners, or snapshots other
      than first ones, which may be there before a league begins.
  """
  path = pathlib.Path(path)
  if path.is_file() and path.stat().st_size:
    return
  for name in (run_files.PLAYERS, run_files.LEARNERS):
    folder = path.parent / name
    if folder.is_dir() and any(not is_first_snapshot(each.name) for each in folder.iterdir()):
      state = "is empty" if path.exists() else "is missing"
      raise LeagueError(f"{path} {state}, expected the league of an existing run: {folder} has "
                        "content. Restore the file from a mirror, or choose another --run.")


def hold(path: str | os.PathLike) -> IO[bytes]:
  """Locks a league's file for this process, until the returned file is closed; a kill unlocks it.

  Raises:
    LeagueError: another process holds it.
  """
  # Not the league's file itself: closing a second descriptor of it would end SQLite's locks.
  path = pathlib.Path(path)
  path.parent.mkdir(parents=True, exist_ok=True)
  held = open(path.with_name(path.name + ".lock"), "ab")
  try:
    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError:
    held.close()
    raise LeagueError(f"Another coordinator holds the league in {path}. End it, or connect to it "
                      "as a client.") from None
  return held


def open_league_file(path: str | os.PathLike) -> LeagueFile:
  """Opens the file of a league to read it, also while another process serves the league.

  Raises:
    DatabaseFileError: the file is missing, is no league's, is damaged or has another version.
  """
  version = schema.readable_version(path, COMPONENT)
  schema.readable_version(path, schema.BEHAVIOURS)  # checks its content
  return LeagueFile(Database(path, COMPONENT, version, read_only=True))


def existing_players(path: str | os.PathLike) -> list[Player]:
  """Returns the players of a league that may have begun; none if its file is missing or empty.

  Raises:
    DatabaseFileError: the file is no league's, as the results of a run that trains one agent; it
      is damaged or has another version.
  """
  path = pathlib.Path(path)
  found = schema.components(path) if path.is_file() else frozenset[str]()
  if COMPONENT in found:
    return open_league_file(path).players()
  if found:
    raise DatabaseFileError(f"{path}: expected the file of a league, found tables of "
                            f"{', '.join(sorted(found))} without players, as of a run that trains "
                            "one agent. Give the league a file of its own.")
  return []


def insert_player(connection: sqlite3.Connection, player: Player) -> bool:
  """Adds a player; returns False if its name is taken."""
  row = player.name, player.kind, player.race, player.parent, player.parent_kind, player.steps
  added = connection.execute(
    "INSERT INTO players (name, kind, race, parent, parent_kind, steps) "
    "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO NOTHING", row).rowcount
  if added and player.learns:
    # Snapshot 0 of a main agent is the supervised agent; its own snapshots count from 1.
    connection.execute("INSERT INTO progress VALUES (?, 0, 0, 0)", (player.name,))
  return bool(added)


def insert_order(connection: sqlite3.Connection, order: Order) -> None:
  """Adds an open order. Steps towards the next snapshot count from its steps."""
  connection.execute("INSERT INTO orders VALUES (?, ?, ?, ?, ?, 0)", order)
  connection.execute(
    "UPDATE progress SET snapshot_steps = ?, snapshots = snapshots + 1 WHERE name = ?",
    (order.steps, order.player))


def complete_order(connection: sqlite3.Connection, order: Order, snapshot: Player) -> None:
  """Marks an order as done; its snapshot joins the league."""
  insert_player(connection, snapshot)
  connection.execute("UPDATE orders SET done = 1 WHERE id = ?", (order.id,))


def raise_steps(connection: sqlite3.Connection, name: str, steps: int) -> None:
  """Stores the steps of a learning player; a smaller number has no effect."""
  connection.execute("UPDATE progress SET steps = MAX(steps, ?) WHERE name = ?", (steps, name))


def set_paused(connection: sqlite3.Connection, name: str, paused: bool) -> None:
  """Stores whether a player is paused."""
  connection.execute("INSERT OR IGNORE INTO paused VALUES (?)" if paused else
                     "DELETE FROM paused WHERE name = ?", (name,))


def set_counter(connection: sqlite3.Connection, name: str, value: int) -> None:
  """Stores a counter."""
  connection.execute("INSERT OR REPLACE INTO counters VALUES (?, ?)", (name, value))


def set_reset(connection: sqlite3.Connection, name: str, last: AssignmentNumber) -> None:
  """Stores the last assignment before a player's reset."""
  for part, value in zip(("start", "number"), last, strict=True):
    set_counter(connection, f"reset_{part}/{name}", value)


def insert_assignments(connection: sqlite3.Connection, assignments: Iterable[Assignment]) -> None:
  """Adds assignments and counts them by branch."""
  assignments = list(assignments)
  connection.executemany("INSERT OR IGNORE INTO assignments VALUES (?, ?, ?, ?, ?, ?)", assignments)
  count_branches(connection, ((each.home, each.branch, 1, 0) for each in assignments))


def delete_assignments(connection: sqlite3.Connection, identifiers: Iterable[str]) -> None:
  """Deletes assignments whose games all have a result."""
  connection.executemany("DELETE FROM assignments WHERE id = ?",
                         [(identifier,) for identifier in identifiers])


def count_branches(connection: sqlite3.Connection,
                   counts: Iterable[tuple[str, str, int, int]]) -> None:
  """Adds assignments and games by home player and branch."""
  connection.executemany(
    "INSERT INTO branches VALUES (?, ?, ?, ?) ON CONFLICT (player, branch) DO UPDATE SET "
    "assignments = assignments + excluded.assignments, games = games + excluded.games", counts)


def count_behaviours(connection: sqlite3.Connection,
                     cells: Iterable[tuple[str, archive.Cell]]) -> None:
  """Counts games by player and cell of the archive, at the present steps of the learners.

  The steps of a snapshot's games stay once the cell has enough games, with those that its parent
  played as the same policy before.
  """
  # The parent's row: the name of a snapshot is that of its parent, a hyphen and its number.
  before = ("SELECT games FROM behaviours AS live JOIN players ON players.name = ?1 "
            "AND live.player = players.parent "
            "AND live.snapshots = CAST(substr(?1, length(players.parent) + 2) AS INTEGER) - 1 "
            "WHERE live.opening = ?2 AND live.army = ?3 AND live.attack = ?4")
  connection.executemany(
    "INSERT INTO behaviours SELECT ?1, COALESCE((SELECT snapshots FROM progress WHERE name = ?1), "
    "0), ?2, ?3, ?4, 1, (SELECT COALESCE(SUM(steps), 0) FROM progress) WHERE TRUE "
    "ON CONFLICT (player, snapshots, opening, army, attack) DO UPDATE SET "
    f"steps = CASE WHEN games < {archive.FEWEST_GAMES} "
    f"AND games + COALESCE(({before}), 0) < {archive.FEWEST_GAMES} "
    "THEN excluded.steps ELSE steps END, games = games + 1",
    ((name, *cell) for name, cell in cells))


def insert_replay(connection: sqlite3.Connection, replay: Replay) -> None:
  """Adds a game worth keeping."""
  connection.execute("INSERT INTO replays VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                     (*replay[:6], ",".join(replay.reasons), replay.path))


def set_replay_path(connection: sqlite3.Connection, identifier: str, path: str) -> bool:
  """Stores the path of a kept replay; returns False if there is no such game."""
  return bool(connection.execute("UPDATE replays SET path = ? WHERE id = ?",
                                 (path, identifier)).rowcount)
