"""The schema: hand-edited content is refused by name, older files keep all results."""

import sqlite3

import pytest

from starleague.common.database import DatabaseFileError
from starleague.league import players, schema
from starleague.league.coordinator import Coordinator
from starleague.league.league_file import open_league_file
from starleague.league.payoff import DRAW, LOSS, WIN, GameResult, Payoff
from starleague.league.ratings.archive import Behaviour, Cell, CellCount
from starleague.league.reporting import GamesReport, PlayedGame
from tests.processes import public_folder, returned_to_other_user

MAIN, EXPLOITER, FIRST = "zerg-main-0", "zerg-main_exploiter-0", "zerg-main-0-0000"

# The tables of the last version without constraints: payoff 1, coordinator 2.
OLDER = (
  "CREATE TABLE results (id TEXT PRIMARY KEY, home TEXT NOT NULL, away TEXT NOT NULL,"
  " result INTEGER NOT NULL, time REAL NOT NULL) WITHOUT ROWID",
  "CREATE INDEX results_by_pair ON results (home, away, time)",
  "CREATE INDEX results_by_time ON results (time)",
  "CREATE TABLE pairs (first TEXT NOT NULL, second TEXT NOT NULL,"
  " games REAL NOT NULL, wins REAL NOT NULL, draws REAL NOT NULL, losses REAL NOT NULL,"
  " PRIMARY KEY (first, second)) WITHOUT ROWID",
  "CREATE INDEX pairs_by_second ON pairs (second)",
  "CREATE TABLE players (number INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL,"
  " kind TEXT NOT NULL, race TEXT NOT NULL, parent TEXT, parent_kind TEXT, steps INTEGER NOT NULL)",
  "CREATE TABLE progress (name TEXT PRIMARY KEY, steps INTEGER NOT NULL,"
  " snapshot_steps INTEGER NOT NULL, snapshots INTEGER NOT NULL) WITHOUT ROWID",
  "CREATE TABLE orders (id INTEGER PRIMARY KEY, player TEXT NOT NULL,"
  " snapshot TEXT NOT NULL, steps INTEGER NOT NULL, reset INTEGER NOT NULL,"
  " done INTEGER NOT NULL)",
  "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL)",
  "CREATE TABLE paused (name TEXT PRIMARY KEY) WITHOUT ROWID",
  "CREATE TABLE assignments (id TEXT PRIMARY KEY, home TEXT NOT NULL,"
  " away TEXT NOT NULL, branch TEXT NOT NULL, both_learn INTEGER NOT NULL,"
  " games INTEGER NOT NULL)",
  "CREATE TABLE branches (player TEXT NOT NULL, branch TEXT NOT NULL,"
  " assignments INTEGER NOT NULL, games INTEGER NOT NULL, PRIMARY KEY (player, branch))"
  " WITHOUT ROWID",
  "CREATE TABLE replays (id TEXT PRIMARY KEY, home TEXT NOT NULL,"
  " away TEXT NOT NULL, result INTEGER NOT NULL, time REAL NOT NULL, loops INTEGER NOT NULL,"
  " reasons TEXT NOT NULL, path TEXT)",
)


def start(path):
  rules = players.pseudocode_rules(minimum_steps=100, timeout_steps=200)
  return Coordinator(path, players.initial_players(["zerg"]), snapshot_rules=rules)


def filled(path):
  """A file with rows in every table."""
  league = start(path)
  one, _ = league.matches(EXPLOITER, 2, 3, holder="actor")
  league.report_games([GamesReport(one, [
    PlayedGame(0, WIN, 1.5, 700, (Behaviour(0.2, 1.5, 1008),))])], "actor")
  league.report_many([GameResult(f"g{i}", MAIN, FIRST, outcome, float(i))
                      for i, outcome in enumerate([WIN, WIN, DRAW, LOSS])], {MAIN: 250})
  league.pause(FIRST)
  league.close()
  return path


def make_older(path):
  """Rebuilds the file's tables as the older version made them, with the same rows."""
  connection = sqlite3.connect(path)
  tables = [table for each in (schema.PAYOFF, schema.COORDINATOR) for table in schema.TABLES[each]]
  rows = {table.name: connection.execute(f"SELECT * FROM {table.name}").fetchall()
          for table in tables}
  assert all(rows.values())
  connection.execute("DROP TABLE behaviours")  # it came later
  connection.execute("DELETE FROM layout WHERE component = 'behaviours'")
  for table in tables:
    connection.execute(f"DROP TABLE {table.name}")
  for statement in OLDER:
    connection.execute(statement)
  for name, found in rows.items():
    connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(found[0]))})", found)
  connection.executemany("UPDATE layout SET version = ? WHERE component = ?",
                         [(1, "payoff"), (2, "coordinator")])
  connection.commit()
  connection.close()


def content(path):
  connection = sqlite3.connect(path)
  found = {table.name: connection.execute(f"SELECT * FROM {table.name}").fetchall()
           for each in (schema.PAYOFF, schema.COORDINATOR) for table in schema.TABLES[each]}
  connection.close()
  return found


def edit(path, statement):
  connection = sqlite3.connect(path)
  connection.execute("PRAGMA ignore_check_constraints = ON")
  connection.execute(statement)
  connection.commit()
  connection.close()


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("statement, message", [
  ("UPDATE players SET kind = 'wizard' WHERE name = 'zerg-main-0'",
   "table players, row name='zerg-main-0', column kind: expected one of main, main_exploiter, "
   "league_exploiter, historical, scripted, found 'wizard'"),
  ("UPDATE players SET parent = NULL WHERE kind = 'historical'",
   "table players, row name='zerg-main-0-0000', column parent: expected the name of a historical "
   "player's parent, found None"),
  ("UPDATE progress SET steps = 'abc' WHERE name = 'zerg-main-0'",
   "table progress, row name='zerg-main-0', column steps: expected an integer from 0 to "
   "1000000000000000000, found 'abc'"),
  ("UPDATE results SET result = 7 WHERE id = 'g1'",
   "table results, row id='g1', column result: expected an integer from -1 to 1, found 7"),
  ("UPDATE results SET time = 'noon' WHERE id = 'g1'",
   "table results, row id='g1', column time: expected Unix seconds, found 'noon'"),
  ("UPDATE pairs SET games = 0", "column games: expected a positive number, found 0.0"),
  ("UPDATE assignments SET games = -3", "column games: expected an integer from 1 to 1000000"),
  ("UPDATE orders SET done = 2", "table orders, row id=1, column done: expected an integer from 0"),
  ("DROP TABLE results",
   "table results: expected columns id, home, away, result, time, found no table"),
  ("DROP TABLE progress", "table progress: expected columns name, steps, snapshot_steps, "
   "snapshots, found no table"),
  ("ALTER TABLE branches RENAME COLUMN games TO plays",
   "expected columns player, branch, assignments, games, found player, branch, assignments, plays"),
])
def test_edited_content_is_refused_in_one_line(tmp_path, older, statement, message):
  path = filled(tmp_path / "league.sqlite")
  if older:
    make_older(path)
  edit(path, statement)

  def read(path):
    open_league_file(path)
    Payoff(path, read_only=True)

  for opening in (start, read):
    with pytest.raises(DatabaseFileError) as error:
      opening(path)
    text = str(error.value)
    assert text.startswith(f"{path}: table ") and message in text and "\n" not in text
    assert text.endswith("Restore the file from a mirror, or correct it.")


def test_a_reader_needs_no_right_to_write():
  with public_folder() as shared:
    path = filled(shared / "league.sqlite")

    def read():
      counts = Payoff(path, read_only=True).results(MAIN, FIRST)
      return f"{len(open_league_file(path).players())} {tuple(counts)}"

    assert returned_to_other_user(shared, read) == "5 (4, 2, 1, 1)"


def test_an_older_file_opens_with_all_its_rows_and_gets_constraints(tmp_path):
  path = filled(tmp_path / "league.sqlite")
  before = content(path)
  make_older(path)
  assert content(path) == before
  assert len(open_league_file(path).players()) == 5  # a reader needs no migration
  assert open_league_file(path).behaviours() == []
  reader = Payoff(path, read_only=True)
  assert reader.results(MAIN, FIRST) == (4, 2, 1, 1)
  reader.close()
  league = start(path)
  assert league.payoff.results(MAIN, FIRST) == (4, 2, 1, 1)
  assert league.progress(MAIN) == (250, 250, 1, 0) and len(league.orders()) == 1
  assert league.paused == {FIRST} and len(league.leases) == 2 and len(league.replays()) == 1
  league.close()
  before["counters"] = [(name, value + (name == "starts")) for name, value in before["counters"]]
  after = content(path)
  assert {name: sorted(map(str, rows)) for name, rows in after.items()} == {
    name: sorted(map(str, rows)) for name, rows in before.items()}
  connection = sqlite3.connect(path)
  assert dict(connection.execute("SELECT * FROM layout")) == schema.VERSIONS
  assert {row[0] for row in connection.execute(
    "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")} == {
      "results_by_pair", "results_by_time", "pairs_by_second"}
  connection.close()
  start(path).close()


def test_new_files_refuse_invalid_values(tmp_path):
  path = filled(tmp_path / "league.sqlite")
  connection = sqlite3.connect(path)
  for statement in ("UPDATE players SET kind = 'wizard'", "UPDATE progress SET steps = 'abc'",
                    "UPDATE results SET result = 7", "UPDATE replays SET loops = -1",
                    "UPDATE behaviours SET army = 5", "UPDATE behaviours SET games = 0"):
    with pytest.raises(sqlite3.IntegrityError, match="CHECK constraint failed"):
      connection.execute(statement)
  connection.close()


def test_edited_behaviours_are_refused_and_those_of_another_version_left_out(tmp_path):
  path = filled(tmp_path / "league.sqlite")
  assert open_league_file(path).behaviours() == [
    CellCount(EXPLOITER, 0, Cell(1, 2, 0), 1, 0)]
  edit(path, "UPDATE behaviours SET attack = 8")
  for opening in (start, open_league_file):
    with pytest.raises(DatabaseFileError, match="column attack: expected an integer from 0 to 7"):
      opening(path)
  edit(path, "UPDATE layout SET version = 2 WHERE component = 'behaviours'")
  assert open_league_file(path).behaviours() == []
  with pytest.raises(DatabaseFileError, match="behaviours of version 1, found version 2"):
    start(path)


def test_a_file_without_behaviours_gets_their_table(tmp_path):
  path = filled(tmp_path / "league.sqlite")
  edit(path, "DROP TABLE behaviours")
  edit(path, "DELETE FROM layout WHERE component = 'behaviours'")
  assert open_league_file(path).behaviours() == []
  league = start(path)
  (one, *_), behaviour = league.matches(EXPLOITER, 1, 3, holder="actor"), Behaviour(0.0, 1.0, -1)
  league.report_games([GamesReport(one, [PlayedGame(2, WIN, 1.5, 0, (behaviour,))])], "actor")
  league.close()
  assert [each.cell for each in open_league_file(path).behaviours()] == [(0, 1, 7)]


def test_a_payoff_alone_is_migrated(tmp_path):
  path = tmp_path / "payoff.sqlite"
  connection = sqlite3.connect(path)
  for statement in (*OLDER[:5], "CREATE TABLE layout (component TEXT PRIMARY KEY, version INTEGER)",
                    "INSERT INTO layout VALUES ('payoff', 1)",
                    "INSERT INTO results VALUES ('x', 'a', 'b', 1, 2.5)",
                    "INSERT INTO pairs VALUES ('a', 'b', 1, 1, 0, 0)"):
    connection.execute(statement)
  connection.commit()
  connection.close()
  payoff = Payoff(path)
  assert payoff.results("a", "b") == (1, 1, 0, 0) and payoff.score("a", "b") == 1
  payoff.close()
