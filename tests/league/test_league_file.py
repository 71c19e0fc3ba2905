"""The league's file: what is refused with one line, what survives, what a reader sees."""

import sqlite3

import pytest

from starleague.common.database import DatabaseFileError
from starleague.league import players
from starleague.league.coordinator import Coordinator
from starleague.league.league_file import open_league_file
from starleague.league.payoff import WIN, GameResult
from starleague.league.players import LeagueError, Player

MAIN, FIRST = "zerg-main-0", "zerg-main-0-0000"


def start(path, initial=None, **options):
  return Coordinator(path, players.initial_players(["zerg"]) if initial is None else initial,
                     **options)


def filled(path):
  league = start(path)
  league.report_many([GameResult(f"{i}" * 50, MAIN, FIRST, WIN, 0.) for i in range(300)])
  league.close()
  return path


def one_line(error):
  text = str(error.value)
  assert "\n" not in text
  return text


@pytest.mark.parametrize("keep", [.3, .6, .95])
def test_a_half_written_file_is_named_and_stays(tmp_path, keep):
  path = filled(tmp_path / "league.sqlite")
  half = path.read_bytes()[:int(keep * path.stat().st_size)]
  path.write_bytes(half)
  with pytest.raises(DatabaseFileError) as error:
    start(path)
  assert "league.sqlite is not a SQLite database, or is damaged" in one_line(error)
  assert path.read_bytes() == half


def test_a_file_of_another_kind_is_named(tmp_path):
  path = tmp_path / "league.sqlite"
  path.write_text("some notes\n" * 500)
  with pytest.raises(DatabaseFileError) as error:
    start(path)
  assert "league.sqlite is not a SQLite database" in one_line(error)
  assert path.read_text() == "some notes\n" * 500


@pytest.mark.parametrize("component", ["payoff", "coordinator"])
def test_a_file_of_another_version_is_named(tmp_path, component):
  path = filled(tmp_path / "league.sqlite")
  with sqlite3.connect(path) as connection:
    connection.execute("UPDATE layout SET version = 99 WHERE component = ?", (component,))
  for opens in (start, open_league_file) if component == "coordinator" else (start,):
    with pytest.raises(DatabaseFileError) as error:
      opens(path)
    assert f"tables of {component} of version" in one_line(error)
    assert "found version 99" in one_line(error)


@pytest.mark.parametrize("composition, message", [
  ([Player("a", "main"), Player("b", "main"), Player("a", "league_exploiter")],
   "more than one player named a"),
  ([Player("e", "main_exploiter"), Player("s", "scripted")],
   "composition has 2 players and no main agent: e, s"),
  ([Player("e", "main_exploiter"), players.frozen_main_agent("zerg")],
   "e need a main agent that learns. Add one, or make league exploiters of them"),
])
def test_a_composition_that_is_refused_changes_nothing(tmp_path, composition, message):
  path = tmp_path / "league.sqlite"
  with pytest.raises(LeagueError) as error:
    start(path, composition)
  assert message in one_line(error) and "league.sqlite" in one_line(error)
  assert not list(tmp_path.iterdir())
  league = start(path)  # the file is free again and has none of the players
  assert len(league.players) == 5
  league.close()


def test_one_coordinator_at_a_time(tmp_path):
  league = start(tmp_path / "league.sqlite")
  with pytest.raises(LeagueError) as error:
    start(tmp_path / "league.sqlite")
  assert "Another coordinator holds the league in" in one_line(error)
  league.close()
  league.close()
  start(tmp_path / "league.sqlite").close()


def test_results_of_unknown_players_change_nothing(tmp_path):
  league = start(tmp_path / "league.sqlite")
  with pytest.raises(KeyError) as error:
    league.report_many([GameResult("1", MAIN, FIRST, WIN, 0.), GameResult("2", MAIN, "x", WIN, 0.)])
  assert "has no player 'x' among its 5" in one_line(error)
  assert league.payoff.results(MAIN, FIRST).games == 0
  league.close()


def test_results_of_a_clock_that_was_set_back_count(tmp_path):
  league = start(tmp_path / "league.sqlite")
  for i, seconds in enumerate([1e9, 1e9 + 1, 5., -3.]):
    league.report(GameResult(str(i), MAIN, FIRST, WIN, seconds))
  assert league.payoff.counts(MAIN, FIRST).games == pytest.approx((1 - .99 ** 4) / .01)
  assert league.payoff.results(MAIN, FIRST, since=1e9).games == 2
  league.close()


def test_a_reader_follows_a_league_that_is_served(tmp_path):
  league = start(tmp_path / "league.sqlite")
  reader = open_league_file(tmp_path / "league.sqlite")
  assert [player.name for player in reader.players()] == [player.name for player in league.players]
  assert reader.orders() == reader.replays() == reader.branches() == []
  league.set_steps(MAIN, 5 * 10 ** 9)
  order = league.report(GameResult("1", MAIN, FIRST, WIN, 0.))
  assert reader.orders() == [order] and reader.progress()[MAIN] == (5e9, 5e9, 1, 0)
  league.complete(order.id)
  league.pause(FIRST)
  assert reader.orders() == [] and reader.orders(done=True) == [order]
  assert reader.players()[-1].name == order.snapshot and reader.paused() == {FIRST}
  league.close()


def test_a_reader_names_a_missing_file(tmp_path):
  with pytest.raises(DatabaseFileError, match="nothing.sqlite: expected a file"):
    open_league_file(tmp_path / "nothing.sqlite")
