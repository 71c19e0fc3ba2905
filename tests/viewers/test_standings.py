"""Standings of a round robin: scores, ratings, cycles, the page."""

import csv

import numpy as np
import pytest

from starleague.agent import types
from starleague.environments.skirmish.bots import tournament
from starleague.viewers import standings
from tests.viewers.pages import check_self_contained, plots_of

TERRAN, ZERG, PROTOSS = (types.RACES.index(race) for race in ("terran", "zerg", "protoss"))
NAMES = ("rock", "paper", "scissors")


@pytest.fixture(scope="module")
def fixtures():
  return tournament.round_robin(3, [(TERRAN, TERRAN), (ZERG, ZERG)], range(3), 2)


def winners(fixtures, decide):
  """Returns outcomes whose winner is 0, 1 or 2, decided from the two players' indices."""
  winner = np.array([decide(*pair) for pair in fixtures.players], np.int32)
  return tournament.nothing_played(fixtures)._replace(winner=winner)


def cyclic(a, b):
  """Paper beats rock, scissors beat paper, rock beats scissors."""
  return int((b - a) % 3 == 1)


def test_cycle_is_found_once_and_its_ratings_are_equal(fixtures):
  table = standings.standing(NAMES, fixtures, winners(fixtures, cyclic), 0)
  np.testing.assert_array_equal(table.score, [[0.5, 0, 1], [1, 0.5, 0], [0, 1, 0.5]])
  assert standings.cycles(table) == [("rock", "scissors", "paper")]
  np.testing.assert_allclose(table.ratings, 0, atol=1e-6)
  assert (table.low <= table.ratings).all() and (table.ratings <= table.high).all()


def test_ladder_has_no_cycle_and_rising_ratings(fixtures):
  table = standings.standing(NAMES, fixtures, winners(fixtures, lambda a, b: int(b > a)), 0)
  assert standings.cycles(table) == [] and (np.diff(table.ratings) > 100).all()
  text = "\n".join(standings.lines("Ladder", table))
  assert "| scissors | 100% | 100% |  |" in text and "Cycle" not in text


def test_tables_of_two_races_have_no_ratings():
  """Terran wins every game, so no player is stronger."""
  fixtures = tournament.round_robin(3, [(TERRAN, ZERG), (ZERG, TERRAN)], range(3), 2)
  outcomes = tournament.nothing_played(fixtures)._replace(
    winner=(fixtures.races[:, 0] == ZERG).astype(np.int32))
  table = standings.of_races(NAMES, fixtures, outcomes, 0, (TERRAN, ZERG))
  np.testing.assert_array_equal(table.score, 1 - 0.5 * np.eye(3))
  np.testing.assert_array_equal(table.games, 12 - 12 * np.eye(3))
  assert standings.lines("T", table)[2:5] == [
    "| | rock | paper | scissors |", "|---|---|---|---|", "| rock |  | 100% | 100% |"]
  assert standings.cycles(table) == []
  heat, = plots_of(standings.page({"T": table}))
  assert heat["data"][0]["z"][2] == [None, 100, 100]


def test_a_table_of_mirror_matches_has_the_ratings_of_these_games(fixtures):
  table = standings.of_races(NAMES, fixtures, winners(fixtures, cyclic), 0, (ZERG, ZERG))
  assert table.games[0, 1] == 12 and len(table.ratings) == 3


def test_page_and_table_hold_the_scores(fixtures):
  table = standings.standing(NAMES, fixtures, winners(fixtures, cyclic), 0)
  page = standings.page({"All </script>": table})
  heat, _ = plots_of(page)
  assert "<h2>All &lt;/script&gt;</h2>" in page
  assert heat["data"][0]["z"] == [[0, 100, None], [100, None, 0], [None, 0, 100]]
  assert heat["data"][0]["hoverongaps"] is False
  check_self_contained(page)
  assert "https://" not in page.split("<script>")[0]
  rows = list(csv.DictReader(standings.table_csv({"All": table}).splitlines()))
  assert len(rows) == 6 and rows[0] == {
    "races": "All", "row": "rock", "column": "paper", "games": "24", "points": "0"}


def test_pairs_without_games_are_empty_cells(fixtures):
  one = standings.select(fixtures, fixtures.players.max(1) == 1)  # scissors play nobody
  table = standings.standing(NAMES, one, winners(one, cyclic), 0)
  heat, _ = plots_of(standings.page({"All": table}))
  assert heat["data"][0]["z"] == [[None, None, None], [100, None, None], [None, 0, None]]


def test_race_lines_show_scores_with_intervals():
  races = np.array([[TERRAN, ZERG], [ZERG, TERRAN], [TERRAN, ZERG], [TERRAN, PROTOSS]])
  fixtures = tournament.Fixture(np.tile([[0, 1]], (4, 1)), races, np.zeros(4), np.zeros(4))
  result = tournament.nothing_played(fixtures)._replace(winner=np.array([0, 0, 2, 1]))
  assert standings.race_lines(fixtures, result)[2:] == [
    "- Terran against Zerg: 50% [13, 87] of 3 games",
    "- Terran against Protoss: 0% [0, 79] of 1 games"]


def test_openings_of_both_sides_count(fixtures):
  """Rock opens in two ways, as often; scissors differ in one of 24 games with each opponent."""
  found = tournament.nothing_played(fixtures)
  found.openings[fixtures.players == 0] = 1 + np.arange(48)[:, None] % 2
  found.openings[np.flatnonzero(fixtures.players[:, 1] == 2)[[0, 24]], 1, 5] = 7
  assert standings.opening_line(NAMES, fixtures, found) == (
    "Entropy of the first 6 units and buildings, bits: rock 1.0, paper 0.0, scissors 0.2.")
  one = standings.select(fixtures, fixtures.players[:, 1] == 1)
  assert "rock 1.0, paper 0.0." in standings.opening_line(
    NAMES, one, standings.select(found, fixtures.players[:, 1] == 1))
