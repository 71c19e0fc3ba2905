"""The members of a league: reading, adding and pausing players."""

import pytest

from starleague.common.database import Database
from starleague.league import league_file, players
from starleague.league.members import Members
from starleague.league.players import LeagueError, Player, UnknownPlayerError

MAIN, EXPLOITER, FIRST = "zerg-main-0", "zerg-main_exploiter-0", "zerg-main-0-0000"


@pytest.fixture
def database(tmp_path):
  opened = Database(tmp_path / "league.sqlite", league_file.COMPONENT, league_file.VERSION,
                    league_file.TABLES)
  yield opened
  opened.close()


def names(found):
  return [player.name for player in found]


def initial():
  return players.initial_players(["zerg"], league_exploiters=0)


def test_players_stay_in_order_of_creation_and_are_added_once(database):
  members = Members(database, initial())
  assert names(members.all()) == [MAIN, FIRST, EXPLOITER]
  members.add(Player("late", "scripted"))
  with pytest.raises(LeagueError, match="already has a player 'late'. Choose another name"):
    members.add(Player("late", "scripted"))
  again = Members(database, [*initial(), Player("later", "scripted")])
  assert names(again.all()) == [MAIN, FIRST, EXPLOITER, "late", "later"]


def test_only_known_players_are_found_and_only_learning_ones_have_learners(database):
  members = Members(database, initial())
  assert members.get(FIRST).parent == MAIN and members.learner(MAIN).name == MAIN
  with pytest.raises(UnknownPlayerError, match="no player 'x' among its 3"):
    members.get("x")
  with pytest.raises(LeagueError, match=f"{FIRST} is historical: it does not learn"):
    members.learner(FIRST)


def test_the_reference_set_is_one_tuple_until_a_player_joins(database):
  members = Members(database, initial())
  main, exploiter = members.get(MAIN), members.get(EXPLOITER)
  found = members.reference_set(main)
  assert found == (FIRST,) and members.reference_set(exploiter) == (MAIN,)
  assert members.reference_set(main) is found
  late = players.snapshot(main, 1, 50)
  members.add(late)
  members.pause(FIRST, True)
  assert members.reference_set(main) == (FIRST, late.name)


def test_paused_players_leave_the_roster_and_stay_paused_after_a_restart(database):
  members = Members(database, initial())
  before = members.roster
  members.pause(MAIN, True)
  assert names(before.players) == [MAIN, FIRST, EXPLOITER]
  assert names(members.roster.players) == [FIRST, EXPLOITER]
  assert not members.have_games(FIRST, MAIN) and members.have_games(FIRST, EXPLOITER)
  assert not members.has_opponents()  # its only main agent is paused
  again = Members(database, ())
  assert again.paused == {MAIN}
  again.pause(MAIN, False)
  assert again.paused == frozenset() and again.has_opponents()


def test_a_refused_composition_adds_nothing(database):
  with pytest.raises(LeagueError, match="league.sqlite: the composition has 1 players and no main"):
    Members(database, [Player("s", "scripted")])
  assert Members(database, ()).all() == []
