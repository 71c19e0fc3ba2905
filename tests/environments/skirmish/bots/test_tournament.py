"""Tournaments of scripted players."""

import numpy as np
import pytest

from starleague.agent import types, vocabulary
from starleague.environments.skirmish.bots import scripts, tournament

TERRAN, ZERG, PROTOSS = (types.RACES.index(race) for race in ("terran", "zerg", "protoss"))


@pytest.fixture(scope="module")
def fixtures():
  return tournament.round_robin(3, [(TERRAN, TERRAN), (ZERG, ZERG)], range(3), 2)


def test_each_pair_plays_from_both_sides_on_all_maps(fixtures):
  assert len(fixtures.map_index) == 3 * 2 * 3 * 2 * 2
  kinds = [(tuple(p), tuple(r), int(m), bool(s)) for p, r, m, s in zip(*fixtures, strict=True)]
  assert len(set(kinds)) == 36 and all(kinds.count(kind) == 2 for kind in set(kinds))
  assert {pair for pair, *_ in kinds} == {(0, 1), (0, 2), (1, 2)}


def test_points_are_wins_plus_half_the_draws():
  fixtures = tournament.Fixture(np.array([[0, 1]] * 4), np.ones((4, 2)), np.zeros(4), np.zeros(4))
  points, games = tournament.payoff(
    fixtures, tournament.nothing_played(fixtures)._replace(winner=np.array([0, 0, 1, 2])), 2)
  np.testing.assert_array_equal(points, [[0, 2.5], [1.5, 0]])
  np.testing.assert_array_equal(games, [[0, 4], [4, 0]])


def test_race_pairs_are_mirrors_or_crosses():
  assert tournament.race_pairs("default", mirrors=True) == [
    (TERRAN, TERRAN), (PROTOSS, PROTOSS), (ZERG, ZERG)]
  assert len(tournament.race_pairs("default", mirrors=False)) == 6
  assert tournament.race_pairs("mini", mirrors=False) == []


def test_games_of_two_races_count_for_the_race_of_the_row():
  """Three games of two players: Terran wins as player 0 and as player 1, then draws."""
  races = np.array([(TERRAN, ZERG), (ZERG, TERRAN), (ZERG, TERRAN), (TERRAN, PROTOSS)], np.int32)
  fixtures = tournament.Fixture(np.tile(np.array([[0, 1]], np.int32), (4, 1)), races,
                                np.zeros(4, np.int32), np.zeros(4, bool))
  outcomes = tournament.nothing_played(fixtures)._replace(winner=np.array([0, 1, 2, 1], np.int32))
  points, games = tournament.race_payoff(fixtures, outcomes, 2, (TERRAN, ZERG))
  np.testing.assert_array_equal(points, [[0, 1], [1.5, 0]])
  np.testing.assert_array_equal(games, [[0, 1], [2, 0]])
  points, games = tournament.race_payoff(fixtures, outcomes, 2, (ZERG, TERRAN))
  np.testing.assert_array_equal(points, [[0, 0.5], [0, 0]])
  np.testing.assert_array_equal(games, [[0, 2], [1, 0]])


@pytest.mark.slow
def test_games_are_played_to_their_ends_and_are_reproducible():
  names = scripts.indices_of(["rusher", "random_player"], "mini")
  fixtures = tournament.round_robin(2, [(TERRAN, TERRAN)], [0], 2)
  fixtures = fixtures._replace(players=names[fixtures.players])
  once = tournament.play(fixtures, 3, tier="mini", batch=4)
  again = tournament.play(fixtures, 3, tier="mini", batch=2)  # one after another
  np.testing.assert_array_equal(once.winner, 0)  # random play never survives a rush
  assert (once.loops > 500).all() and (once.loops <= 4480).all()
  np.testing.assert_array_equal(once.loops, again.loops)
  assert len(set(once.loops)) > 1
  np.testing.assert_array_equal(once.openings, again.openings)
  barracks = vocabulary.UNIT_TYPES.names.index("Barracks")
  np.testing.assert_array_equal(once.openings[:, 0, 0], barracks)  # what a rush begins with


@pytest.mark.slow
def test_games_under_way_alone_are_played():
  names = scripts.indices_of(["rusher", "builder"], "mini")
  fixtures = tournament.round_robin(2, [(TERRAN, TERRAN)], [0], 2)
  fixtures = fixtures._replace(players=names[fixtures.players])
  reported = []

  def report(found):
    reported.append((found.winner != tournament.UNDER_WAY).sum())
    return True

  once = tournament.play(fixtures, 3, tier="mini", batch=4, report=report)
  assert reported == sorted(reported) and reported[-1] == 4
  assert len(reported) == -(-once.loops.max() // (8 * tournament.STEPS_PER_CALL))
  # The games that have begun end, the others do not begin.
  stopped = tournament.play(fixtures, 3, tier="mini", batch=2, report=lambda found: False)
  over = stopped.winner != tournament.UNDER_WAY
  assert over.sum() == 2 and not stopped.loops[~over].any()
  np.testing.assert_array_equal(stopped.loops[over], once.loops[over])
  played = tournament.nothing_played(fixtures)
  played.winner[:2], played.loops[:2] = 2, 7
  rest = tournament.play(fixtures, 3, tier="mini", batch=4, played=played)
  np.testing.assert_array_equal(rest.winner, [2, 2, *once.winner[2:]])
  np.testing.assert_array_equal(rest.loops, [7, 7, *once.loops[2:]])
  np.testing.assert_array_equal(played.winner, [2, 2, -1, -1])
  again = tournament.play(fixtures, 4, tier="mini", played=rest)  # nothing is missing
  np.testing.assert_array_equal(again.loops, rest.loops)
