"""Round robins: who meets whom, what is counted, what is shown."""

import csv
import json
import re

import numpy as np
import pytest

from starleague.agent import types
from starleague.environments.skirmish.bots import scripts, tournament
from starleague.viewers import standings

TERRAN, ZERG, PROTOSS = (types.RACES.index(race) for race in ("terran", "zerg", "protoss"))
NAMES = ("rock", "paper", "scissors")


@pytest.fixture(scope="module")
def fixtures():
  return tournament.round_robin(3, [(TERRAN, TERRAN), (ZERG, ZERG)], range(3), 2)


def winners(fixtures, decide):
  """Results of games whose winner is 0, 1 or 2 by the two players' numbers."""
  winner = np.array([decide(*pair) for pair in fixtures.players], np.int32)
  return tournament.Outcomes(winner, np.full(len(winner), 4000, np.int32))


def cyclic(a, b):
  """Paper beats rock, scissors beat paper, rock beats scissors."""
  return int((b - a) % 3 == 1)


def test_everyone_meets_everyone_from_both_sides_on_all_maps(fixtures):
  assert len(fixtures.map_index) == 3 * 2 * 3 * 2 * 2
  kinds = [(tuple(p), tuple(r), int(m), bool(s)) for p, r, m, s in zip(*fixtures, strict=True)]
  assert len(set(kinds)) == 36 and all(kinds.count(kind) == 2 for kind in set(kinds))
  assert {pair for pair, *_ in kinds} == {(0, 1), (0, 2), (1, 2)}


def test_points_are_wins_and_half_the_draws():
  fixtures = tournament.Fixture(np.array([[0, 1]] * 4), np.ones((4, 2)), np.zeros(4), np.zeros(4))
  points, games = tournament.payoff(
    fixtures, tournament.Outcomes(np.array([0, 0, 1, 2]), np.zeros(4)), 2)
  np.testing.assert_array_equal(points, [[0, 2.5], [1.5, 0]])
  np.testing.assert_array_equal(games, [[0, 4], [4, 0]])


def test_a_cycle_is_found_once_and_its_ratings_are_level(fixtures):
  table = standings.standing(NAMES, fixtures, winners(fixtures, cyclic), 0)
  np.testing.assert_array_equal(table.share, [[0.5, 0, 1], [1, 0.5, 0], [0, 1, 0.5]])
  assert standings.cycles(table) == [("rock", "scissors", "paper")]
  np.testing.assert_allclose(table.ratings, 0, atol=1e-6)
  assert (table.low <= table.ratings).all() and (table.ratings <= table.high).all()


def test_a_ladder_has_no_cycle_and_rising_ratings(fixtures):
  table = standings.standing(NAMES, fixtures, winners(fixtures, lambda a, b: int(b > a)), 0)
  assert standings.cycles(table) == [] and (np.diff(table.ratings) > 100).all()
  text = "\n".join(standings.lines("Ladder", table))
  assert "| scissors | 100% | 100% |  |" in text and "Cycle" not in text


def test_the_page_and_the_table_hold_the_shares(fixtures):
  table = standings.standing(NAMES, fixtures, winners(fixtures, cyclic), 0)
  page = standings.page({"All": table})
  panels = json.loads(re.search(r"for\(const p of (\[.*?\])\)\{const s", page)[1])
  assert panels[0]["plots"][0]["data"][0]["z"] == [[0, 100, 50], [100, 50, 0], [50, 0, 100]]
  assert "https://" not in page.split("<script>")[0] and page.count("<script") == 2
  rows = list(csv.DictReader(standings.table_csv({"All": table}).splitlines()))
  assert len(rows) == 6 and rows[0] == {
    "races": "All", "row": "rock", "column": "paper", "games": "24", "points": "0"}


def test_races_share_the_points_of_their_games():
  races = np.array([[TERRAN, ZERG], [ZERG, TERRAN], [TERRAN, ZERG], [TERRAN, PROTOSS]])
  fixtures = tournament.Fixture(np.tile([[0, 1]], (4, 1)), races, np.zeros(4), np.zeros(4))
  result = tournament.Outcomes(np.array([0, 0, 2, 1]), np.zeros(4))
  assert standings.race_lines(fixtures, result)[2:] == [
    "- Terran against Zerg: 50% [13, 87] of 3 games",
    "- Terran against Protoss: 0% [0, 79] of 1 games"]


def test_names_are_known():
  found = scripts.indices_of(["L0", "macro"], "default")
  assert [scripts.names_of("default")[i] for i in found] == ["L0", "macro"]
  with pytest.raises(ValueError, match="player 'nobody': expected one of passive, .* in tier mini"):
    scripts.indices_of(["nobody"], "mini")


def test_races_meet_their_own_or_others():
  assert tournament.race_pairs("default", mirrors=True) == [
    (TERRAN, TERRAN), (PROTOSS, PROTOSS), (ZERG, ZERG)]
  assert len(tournament.race_pairs("default", mirrors=False)) == 6
  assert tournament.race_pairs("mini", mirrors=False) == []


@pytest.mark.slow
def test_games_are_played_to_their_ends_and_repeat():
  names = scripts.indices_of(["rusher", "random_player"], "mini")
  fixtures = tournament.round_robin(2, [(TERRAN, TERRAN)], [0], 2)
  fixtures = fixtures._replace(players=names[fixtures.players])
  once = tournament.play(fixtures, 3, tier="mini", batch=4)
  again = tournament.play(fixtures, 3, tier="mini", batch=4)
  np.testing.assert_array_equal(once.winner, 0)  # random play never holds against a rush
  assert (once.loops > 500).all() and (once.loops <= 4480).all()
  np.testing.assert_array_equal(once.loops, again.loops)
