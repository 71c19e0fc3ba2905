"""Orders: snapshots after a timeout, resets and their probability, the player; training time."""

import threading

import numpy as np
import pytest

from starleague.league import players
from starleague.league.coordinator import Coordinator, Order
from starleague.league.payoff import DRAW, LOSS, WIN
from starleague.league.players import LeagueError, Player
from starleague.league.reporting import GamesReport, PlayedGame, Receipt
from tests.league.leagues import EXPLOITER, FIRST, HUNTER, MAIN, result, start


def test_the_timeout_orders_a_snapshot_of_a_losing_player(league):
  assert league.report(result(1, MAIN, FIRST, LOSS), steps=200) is None
  order = league.report(result(2, MAIN, FIRST, DRAW), steps=201)
  assert order.snapshot == "zerg-main-0-0001"


def test_a_main_exploiter_is_reset_and_its_scores_are_deleted(league):
  league.report(result(0, HUNTER, FIRST))
  order = league.report(result(1, EXPLOITER, MAIN), steps=100)
  assert order == Order(1, EXPLOITER, "zerg-main_exploiter-0-0001", 100, reset=True)
  assert league.payoff.score(EXPLOITER, MAIN) == 1  # until the learner completes the order
  assert league.progress(EXPLOITER).resets == 0
  league.complete(order.id)
  assert league.payoff.score(EXPLOITER, MAIN) == .5
  assert league.payoff.score(MAIN, EXPLOITER) == .5
  assert league.payoff.score(HUNTER, FIRST) == 1
  assert league.payoff.results(EXPLOITER, MAIN).games == 1
  assert league.progress(EXPLOITER) == (100, 100, 1, 1)


def test_games_of_assignments_before_a_reset_have_no_score(tmp_path):
  league = start(tmp_path / "league.sqlite")
  before, = league.matches(EXPLOITER, 1, 4)
  pair, = league.evaluation_matches(1, 4, among=[FIRST, EXPLOITER])
  order = league.report(result(0, EXPLOITER, MAIN), steps=100)
  league.complete(order.id)
  after, = league.matches(EXPLOITER, 1, 4)
  assert before.away == after.away == MAIN

  def play(assignment, game, loops=0):
    receipt, = league.report_games([GamesReport(
      assignment, [PlayedGame(game, WIN, 0.0, loops)])])[0]
    return receipt

  # They are played games nevertheless: one may be the longest, but not the first win.
  assert play(before, 0, 900) == Receipt(True, ("longest",))
  assert play(before, 0, 900) == Receipt(False, ("longest",))
  assert play(pair, 0).counted
  assert league.payoff.results(EXPLOITER, MAIN) == (2, 2, 0, 0)
  assert league.payoff.counts(EXPLOITER, MAIN).games == 0
  assert league.payoff.counts(EXPLOITER, FIRST).games == 0
  assert play(after, 0, 1) == Receipt(True, ("first_win_against_main",))
  assert league.payoff.counts(EXPLOITER, MAIN).games == 1
  league.close()
  league = start(tmp_path / "league.sqlite")  # the reset is on disk
  later, = league.matches(HUNTER, 1, 4)
  assert [play(each, 1).counted for each in (before, after, later)] == [True] * 3
  assert league.payoff.counts(EXPLOITER, MAIN).games == pytest.approx(1.99)
  assert league.payoff.counts(HUNTER, later.away).games == 1  # neither was reset
  league.close()


def test_scores_survive_a_reset_without_clear_on_reset(tmp_path):
  league = start(tmp_path / "league.sqlite", clear_on_reset=False)
  assignment, = league.matches(EXPLOITER)
  order = league.report(result(1, EXPLOITER, MAIN), steps=100)
  league.complete(order.id)
  assert order.reset and league.payoff.score(EXPLOITER, MAIN) == 1
  league.report_games([GamesReport(assignment, [PlayedGame(0, WIN, 0.0)])])
  assert league.payoff.counts(EXPLOITER, MAIN).games == pytest.approx(1.99)


def test_a_quarter_of_league_exploiters_are_reset(tmp_path):
  hunters = [Player(f"hunter-{i}", "league_exploiter", "zerg") for i in range(200)]
  rules = players.pseudocode_rules(minimum_steps=0, timeout_steps=1)
  league = Coordinator(tmp_path / "league.sqlite", snapshot_rules=rules)
  for hunter in hunters:
    league.add_player(hunter)
  orders = league.report_many(
    [result(i, hunter.name, "hunter-0") for i, hunter in enumerate(hunters[1:])],
    {hunter.name: 2 for hunter in hunters[1:]})
  assert len(orders) == 199
  assert np.mean([order.reset for order in orders]) == pytest.approx(.25, abs=.08)


def test_a_report_orders_snapshots_of_the_home_player_only(league):
  league.set_steps(EXPLOITER, 1000)
  assert league.report(result(1, MAIN, EXPLOITER, LOSS), steps=50) is None
  assert league.orders() == []
  assert league.report(result(2, FIRST, EXPLOITER, LOSS)) is None  # a snapshot never changes


def test_the_learner_that_has_trained_longest_counts(league):
  assert [league.training_time(seconds) for seconds in (0.0, 12.75, 7.0, 13.0)] == [
    0.0, 12.75, 12.75, 13.0]


def test_whole_seconds_outlive_the_coordinator(tmp_path):
  with_time = start(tmp_path / "league.sqlite")
  with_time.training_time(41.875)
  with_time.close()
  again = start(tmp_path / "league.sqlite")
  assert again.training_time(0.0) == 41.0
  assert again.training_time(41.25) == 41.25
  again.close()


@pytest.mark.parametrize("seconds", [-0.5, float("nan"), float("inf")])
def test_no_time_is_refused(league, seconds):
  league.training_time(5.0)
  with pytest.raises(LeagueError, match=f"training time is {seconds} s, expected a time from 0 to"):
    league.training_time(seconds)
  assert league.training_time(0.0) == 5.0


def test_threads_see_no_time_that_falls(league):
  seen = [[] for _ in range(4)]

  def report(found, start):
    found.extend(league.training_time(start + 4 * number) for number in range(50))

  threads = [threading.Thread(target=report, args=(found, start))
             for start, found in enumerate(seen)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert all(found == sorted(found) for found in seen)
  assert league.training_time(0.0) == 199.0
