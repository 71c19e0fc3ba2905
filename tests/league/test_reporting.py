"""Reported games: receipts, orders of both sides, notable games, shared transactions."""

import sqlite3
import threading

import pytest

from starleague.common import disk
from starleague.league import players
from starleague.league.coordinator import Coordinator
from starleague.league.league_file import BranchCount, Replay, open_league_file
from starleague.league.payoff import DRAW, LOSS, WIN, GameResult
from starleague.league.players import Player
from starleague.league.ratings import archive
from starleague.league.ratings.archive import NEVER, Behaviour, CellCount
from starleague.league.reporting import GamesReport, PlayedGame, Receipt

MAIN, RIVAL, EXPLOITER = "zerg-main-0", "terran-main-0", "zerg-main_exploiter-0"
FIRST = "zerg-main-0-0000"
RULES = players.pseudocode_rules(minimum_steps=100, timeout_steps=200)


@pytest.fixture
def league(tmp_path):
  opened = Coordinator(tmp_path / "league.sqlite", players.initial_players(["zerg", "terran"]),
                       snapshot_rules=RULES)
  yield opened
  opened.close()


def against(league, home, away):
  """An assignment of a pair; matches are drawn until there is one."""
  return next(each for _ in range(500) for each in league.matches(home, 1, 100)
              if each.away == away)


def report(league, assignment, *games):
  return league.report_games([GamesReport(assignment, [PlayedGame(*game) for game in games])])[0]


def test_a_report_is_counted_by_pair_and_branch(league):
  first, second = against(league, MAIN, RIVAL), against(league, EXPLOITER, MAIN)
  receipts = league.report_games([
    GamesReport(first, [PlayedGame(0, WIN, 1.), PlayedGame(1, DRAW, 2.)]),
    GamesReport(second, [PlayedGame(5, LOSS, 3.), PlayedGame(5, LOSS, 3.)])])
  assert [[each.counted for each in part] for part in receipts] == [[True, True], [True, False]]
  assert league.payoff.results(MAIN, RIVAL) == (2, 1, 1, 0)
  assert league.payoff.results(EXPLOITER, MAIN) == (1, 0, 0, 1)
  assert league.payoff.results(EXPLOITER, MAIN, since=3.5).games == 0
  counts = {each[:2]: each for each in open_league_file(league.payoff.path).branches()}
  assert counts[MAIN, "self_play"].games == 2 and counts[EXPLOITER, "exploit"].games == 1
  assert counts[EXPLOITER, "exploit"] == BranchCount(
    EXPLOITER, "exploit", counts[EXPLOITER, "exploit"].assignments, 1)
  assert sum(each.assignments for each in counts.values()) == len(league.leases)


@pytest.mark.parametrize("away, learns, expected", [
  (RIVAL, True, [MAIN, RIVAL]),  # both learn from live self-play
  (FIRST, False, [MAIN]),
])
def test_a_snapshot_is_due_for_each_side_that_learns(league, away, learns, expected):
  assignment = against(league, MAIN, away)
  assert assignment.both_learn is learns
  for name in (MAIN, RIVAL):
    league.set_steps(name, 201)
  assert league.orders() == []  # at a game, as published
  report(league, assignment, (0, DRAW, 0.))
  assert [order.player for order in league.orders()] == expected


def test_the_live_opponent_of_an_exploiter_gets_no_order(league):
  league.set_steps(MAIN, 201)
  report(league, against(league, EXPLOITER, MAIN), (0, WIN, 0.))
  assert league.orders() == []


@pytest.mark.parametrize("game, change, message", [
  ((100, WIN, 0.), {}, "has games 0 to 99, found game 100"),
  ((0, 2, 0.), {}, "result is 2"),
  ((0, WIN, float("inf")), {}, "time is inf"),
  ((0, WIN, 0., -1), {}, "loops is -1, expected a count"),
  ((0, WIN, 0.), {"away": "nobody"}, "no player 'nobody'"),
  ((0, WIN, 0.), {"away": RIVAL}, "expected one that the league gave"),
  ((0, WIN, 0.), {"id": "1-1/0"}, "'1-1/0': expected one that the league gave"),
])
def test_a_request_with_an_invalid_report_counts_nothing(league, game, change, message):
  good, bad = against(league, EXPLOITER, MAIN), against(league, EXPLOITER, MAIN)
  with pytest.raises((ValueError, KeyError), match=message):
    league.report_games([GamesReport(good, [PlayedGame(0, WIN, 0.)]),
                         GamesReport(bad._replace(**change), [PlayedGame(*game)])])
  assert league.payoff.results(EXPLOITER, MAIN).games == 0


def test_notable_games_are_kept_with_their_replays(league):
  exploit, mirror = against(league, EXPLOITER, MAIN), against(league, MAIN, MAIN)
  lost = report(league, exploit, *((game, LOSS, 1., 500) for game in range(20)))
  assert [receipt.reasons for receipt in lost] == [("longest",)] + [()] * 19
  assert report(league, exploit, (20, WIN, 2., 400)) == [
    Receipt(True, ("upset", "first_win_against_main"))]
  assert report(league, exploit, (21, WIN, 3.)) == [Receipt(True, ())]  # no replay to keep
  assert report(league, mirror, (0, WIN, 4., 501)) == [Receipt(True, ("longest",))]
  # A repeated report gets the same reasons: the actor may have died before it saved the replay.
  assert report(league, exploit, (20, WIN, 2., 400)) == [
    Receipt(False, ("upset", "first_win_against_main"))]
  # An evaluator that takes over the assignment plays other games under the same numbers.
  for other in ((20, DRAW, 2., 400), (20, WIN, 2., 401), (20, WIN, 9., 400)):
    assert report(league, exploit, other) == [Receipt(False, ())]
  league.keep_replay(f"{exploit.id}/20", "replays/upset.json")
  with pytest.raises(KeyError, match="keeps no replay of game 'other/7'"):
    league.keep_replay("other/7", "x")
  kept = open_league_file(league.payoff.path).replays()
  assert kept == league.replays() and [each.path for each in kept] == [
    None, "replays/upset.json", None]
  assert kept[1] == Replay(f"{exploit.id}/20", EXPLOITER, MAIN, WIN, 2., 400,
                           ("upset", "first_win_against_main"), "replays/upset.json")


def test_the_longest_game_is_known_after_a_restart(tmp_path):
  path = tmp_path / "league.sqlite"
  league = Coordinator(path, players.initial_players(["zerg"]))
  report(league, league.matches(EXPLOITER, 1, 9)[0], (0, DRAW, 0., 700))
  league.close()
  league = Coordinator(path)
  assert report(league, league.matches(EXPLOITER, 1, 9)[0], (0, DRAW, 0., 700), (1, DRAW, 0., 701)
                ) == [Receipt(True, ()), Receipt(True, ("longest",))]
  league.close()


def test_a_contradiction_is_refused_alone(league):
  """One transaction holds reports of several threads; a refused one leaves the others."""
  league.report(GameResult("g", MAIN, FIRST, WIN, 0.))
  errors, lock = [], league.payoff.database.lock
  def play(identifier, outcome):
    try:
      league.report_many([GameResult(f"new-{identifier}", MAIN, FIRST, WIN, 0.),
                          GameResult(identifier, MAIN, FIRST, outcome, 0.)])
    except ValueError as error:
      errors.append(str(error))
  threads = [threading.Thread(target=play, args=each)
             for each in (("g", LOSS), ("h", LOSS), ("i", DRAW))]
  with lock:  # all three queue up
    for thread in threads:
      thread.start()
    while len(league._reports._batches._queue) < 3:
      pass
  for thread in threads:
    thread.join(60)
  assert len(errors) == 1 and "'g' says" in errors[0]
  assert league.payoff.results(MAIN, FIRST) == (5, 3, 1, 1)
  assert league.payoff.counts(MAIN, FIRST).games == pytest.approx((1 - .99 ** 5) / .01)


def test_a_disk_that_fails_leaves_memory_as_it_was(league):
  """The same report succeeds once the disk works."""
  assignment = against(league, EXPLOITER, MAIN)
  database = league.payoff.database
  pages = database.rows("PRAGMA page_count")[0][0]
  database.rows(f"PRAGMA max_page_count = {pages}")
  with pytest.raises(disk.DiskFullError, match="no space left, "):
    league.report_many([GameResult(f"{i}" * 90, MAIN, FIRST, WIN, 0.) for i in range(3000)])
  assert league.payoff.counts(MAIN, FIRST).games == 0
  database.rows("PRAGMA query_only = ON")
  with pytest.raises(sqlite3.OperationalError, match="readonly"):
    report(league, assignment, (0, WIN, 0., 900))
  assert league.payoff.counts(EXPLOITER, MAIN).games == 0
  database.rows("PRAGMA query_only = OFF")
  database.rows(f"PRAGMA max_page_count = {pages + 1000}")
  assert report(league, assignment, (0, WIN, 0., 900)) == [
    Receipt(True, ("first_win_against_main", "longest"))]
  league.flush()
  assert open_league_file(league.payoff.path).assignments() == league.leases.assignments()


def test_players_may_join_later(league):
  league.add_player(Player("newcomer", "league_exploiter", "zerg"))
  league.set_steps("newcomer", 201)
  report(league, league.matches("newcomer", 1, 2)[0], (0, DRAW, 0.))
  assert [order.snapshot for order in league.orders()] == ["newcomer-0001"]


RUSH, LATE = Behaviour(0.2, 1.0, 1000), Behaviour(0.4, 2.0, NEVER)


def behaviours(league):
  return open_league_file(league.payoff.path).behaviours()


def test_behaviours_are_counted_by_player_and_cell_once(league):
  league.set_steps(MAIN, 40)
  league.set_steps(RIVAL, 2)
  assignment = against(league, MAIN, FIRST)
  games = [PlayedGame(game, WIN, 1., 0, (RUSH, LATE)) for game in range(2)]
  for _ in range(2):  # a repeated report changes nothing
    league.report_games([GamesReport(assignment, games)])
  assert behaviours(league) == [
    CellCount(MAIN, 0, (1, 1, 0), 2, 42), CellCount(FIRST, 0, (3, 3, 7), 2, 42)]
  league.set_steps(MAIN, 60)
  later = [PlayedGame(2, WIN, 1., 0, (RUSH,)), PlayedGame(3, WIN, 1.)]  # not known
  league.report_games([GamesReport(assignment, later)])
  league.set_steps(MAIN, 80)
  league.report_games([GamesReport(assignment, [PlayedGame(4, WIN, 1., 0, (RUSH, RUSH))])])
  assert behaviours(league) == [
    CellCount(MAIN, 0, (1, 1, 0), 4, 62),  # the steps of its third game
    CellCount(FIRST, 0, (1, 1, 0), 1, 82), CellCount(FIRST, 0, (3, 3, 7), 2, 42)]


def test_games_after_a_snapshot_are_counted_apart_and_those_of_scripts_not_at_all(league):
  league.add_player(Player("L5", players.SCRIPTED))
  assignment = against(league, MAIN, FIRST)
  league.report_games([GamesReport(assignment, [PlayedGame(0, WIN, 1., 0, (RUSH, RUSH))])])
  league.report_many([], {MAIN: 250})
  league.report(GameResult("due", MAIN, FIRST, WIN, 1.))
  (order,) = league.orders(MAIN)
  league.complete(order.id)
  league.report_games([GamesReport(assignment, [PlayedGame(1, WIN, 1., 0, (RUSH, RUSH))])])
  scripted = next(each for each in league.evaluation_matches(50, 1, among=[MAIN, "L5"])
                  if "L5" in each[1:3])
  home = scripted.home == "L5"
  league.report_games([GamesReport(scripted, [
    PlayedGame(0, DRAW, 1., 0, (RUSH, LATE) if home else (LATE, RUSH))])])
  assert [each[:4] for each in behaviours(league)] == [
    (MAIN, 0, (1, 1, 0), 1), (MAIN, 1, (1, 1, 0), 1), (MAIN, 1, (3, 3, 7), 1),
    (FIRST, 0, (1, 1, 0), 2)]


@pytest.mark.parametrize("found", [
  (Behaviour(1.1, 1.0, 8),), (Behaviour(0.0, -1.0, 8),), (Behaviour(0.0, 1.0, -2),), (RUSH,) * 3])
def test_impossible_behaviours_are_refused(league, found):
  assignment = against(league, MAIN, FIRST)
  with pytest.raises(ValueError, match=r"Game .*/0: behaviours are .*, expected at most two of a"):
    league.report_games([GamesReport(assignment, [PlayedGame(0, WIN, 1., 0, found)])])
  assert league.payoff.results(MAIN, FIRST).games == 0 and behaviours(league) == []


def test_a_game_of_a_player_against_itself_counts_once_for_a_cell(league):
  assignment = against(league, MAIN, MAIN)
  for game, sides in enumerate(((RUSH, RUSH), (RUSH, LATE), (LATE,))):
    league.report_games([GamesReport(assignment, [PlayedGame(game, WIN, 1., 0, sides)])])
  assert [each[:4] for each in behaviours(league)] == [
    (MAIN, 0, (1, 1, 0), 2), (MAIN, 0, (3, 3, 7), 2)]


@pytest.mark.parametrize("live, held", [(0, 290), (1, 280), (2, 270), (3, 0)])
def test_a_snapshots_games_keep_the_steps_at_which_it_held_the_cell(league, live, held):
  """With the games of its parent before it, `live` of them at step 0."""
  assignment = against(league, MAIN, FIRST)
  league.report_games([GamesReport(assignment, [
    PlayedGame(game, WIN, 1., 0, (RUSH,)) for game in range(live)])])
  league.report_many([GameResult("due", MAIN, FIRST, WIN, 1.)], {MAIN: 250})
  snapshot = league.complete(league.orders(MAIN)[0].id).name
  match, = league.evaluation_matches(1, 9, among=[snapshot, FIRST])
  sides = (RUSH, LATE) if match.home == snapshot else (LATE, RUSH)
  for game in range(5):
    league.set_steps(MAIN, 270 + 10 * game)
    league.report_games([GamesReport(match, [PlayedGame(game, WIN, 1., 0, sides)])])
    _, points = archive.fill(
      [each for each in behaviours(league) if each.player != FIRST], [MAIN, snapshot], [0.5, 0.5])
    games = live + game + 1
    assert [point.steps for point in points] == [held] * (games >= archive.FEWEST_GAMES)
