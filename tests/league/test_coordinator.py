"""The coordinator: reports, orders, resets, resuming after a restart."""

import itertools
import math
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from starleague.league.coordinator import Options, Order
from starleague.league.league_file import open_league_file
from starleague.league.payoff import wilson_interval
from starleague.league.players import Player
from starleague.league.reporting import GamesReport, PlayedGame
from tests.league.leagues import EXPLOITER, FIRST, HUNTER, MAIN, result, start


def test_a_main_agent_that_beats_the_past_gets_a_snapshot_and_continues(league):
  assert league.report(result(1, MAIN, FIRST), steps=99) is None  # too early
  order = league.report(result(2, MAIN, FIRST), steps=150)
  assert order == Order(1, MAIN, "zerg-main-0-0001", 150, reset=False)
  assert league.orders(MAIN) == [order] == league.orders()
  assert league.report(result(3, MAIN, FIRST), steps=900) is None  # one order at a time
  # The snapshot joins the league only once it is saved.
  assert "zerg-main-0-0001" not in [player.name for player in league.players]
  copy = league.complete(order.id)
  assert copy == Player("zerg-main-0-0001", "historical", "zerg", MAIN, "main", 150)
  assert league.players[-1] == copy and league.orders() == []
  assert league.progress(MAIN) == (900, 150, 1, 0)
  assert league.payoff.score(MAIN, FIRST) == 1  # without a reset, its scores stay
  assert league.complete(order.id) == copy  # idempotent
  assert len(league.players) == 5


def test_steps_never_decrease(league):
  league.set_steps(MAIN, 80)
  league.set_steps(MAIN, 70)
  assert league.progress(MAIN).steps == 80


@pytest.mark.parametrize("arguments, error, message", [
  ((result(1, "nobody", MAIN),), KeyError, "no player 'nobody'"),
  ((result(1, MAIN, "nobody"),), KeyError, "no player 'nobody'"),
  ((result(1, MAIN, FIRST, 7),), ValueError, "result is 7"),
  ((result(1, MAIN, FIRST), -1), ValueError, f"{MAIN}: steps is -1"),
  ((result(1, FIRST, MAIN), 5), ValueError, f"{FIRST} is historical"),
])
def test_invalid_reports_are_refused_and_not_counted(league, arguments, error, message):
  with pytest.raises(error, match=message):
    league.report(*arguments)
  assert league.payoff.results(MAIN, FIRST).games == 0


def test_error_messages_name_player_and_file(league):
  with pytest.raises(KeyError, match="league.sqlite gave no order 9"):
    league.complete(9)
  with pytest.raises(ValueError, match=f"already has a player '{MAIN}'"):
    league.add_player(Player(MAIN, "main"))
  with pytest.raises(ValueError, match=f"{FIRST} is historical: it does not learn"):
    league.progress(FIRST)
  with pytest.raises(ValueError, match="needs two players"):
    league.evaluation_matches(among=[MAIN, MAIN])


def test_evaluators_of_paused_players_wait(league):
  for player in league.players:
    league.pause(player.name)
  assert league.evaluation_matches() == []


def test_matches_follow_the_rules_and_resume_after_a_restart(tmp_path):
  """A league that is restarted before every match makes the same matches."""
  whole = start(tmp_path / "whole.sqlite", seed=3)
  expected = [whole.get_match(name) for name in (MAIN, EXPLOITER, HUNTER) * 10]
  found = []
  for name in (MAIN, EXPLOITER, HUNTER) * 10:
    restarted = start(tmp_path / "restarted.sqlite", seed=3)
    found.append(restarted.get_match(name))
    restarted.close()
  assert found == expected
  assert len(set(expected)) > 3
  other = start(tmp_path / "other.sqlite", seed=4)
  assert [other.get_match(name) for name in (MAIN, EXPLOITER, HUNTER) * 10] != expected
  assert {match.away for match in expected if match.home == HUNTER} == {FIRST}


def test_a_restart_resumes_everything(tmp_path):
  path = tmp_path / "league.sqlite"
  league = start(path)
  league.complete(league.report(result(1, MAIN, FIRST), steps=150).id)
  pending = league.report(result(2, EXPLOITER, MAIN), steps=120)
  league.close()
  resumed = start(path)
  assert resumed.players == league.players and len(resumed.players) == 5
  assert resumed.progress(MAIN) == (150, 150, 1, 0)
  assert resumed.orders() == [pending]
  assert resumed.payoff.score(MAIN, FIRST) == 1
  assert resumed.report(result(1, MAIN, FIRST), steps=150) is None  # counted before
  assert resumed.payoff.results(MAIN, FIRST).games == 1


_VICTIM = """
import sys
from starleague.league import Coordinator, GameResult, initial_players, pseudocode_rules
rules = pseudocode_rules(minimum_steps=100, timeout_steps=200)
league = Coordinator(sys.argv[1], initial_players(["zerg"]), snapshot_rules=rules)
for i in range(1_000_000):
  order = league.report(GameResult(f"g{i}", "zerg-main-0", "zerg-main-0-0000", 1, float(i)), 10 * i)
  if order:
    league.complete(order.id)
  print(i, flush=True)
"""


def test_a_killed_coordinator_keeps_all_answered_reports(tmp_path):
  path = tmp_path / "league.sqlite"
  with subprocess.Popen([sys.executable, "-c", _VICTIM, path], stdout=subprocess.PIPE,
                        text=True) as process:
    last = -1
    for line in process.stdout:
      last = int(line)
      if last == 60:
        os.kill(process.pid, signal.SIGKILL)
  assert last >= 60 and process.returncode == -signal.SIGKILL
  resumed = start(path)
  assert resumed.payoff.results(MAIN, FIRST).games in (last + 1, last + 2)
  progress = resumed.progress(MAIN)
  assert progress.steps in (10 * last, 10 * last + 10)
  copies = [player for player in resumed.players if player.parent == MAIN]
  assert progress.snapshots - len(resumed.orders(MAIN)) == len(copies) - 1
  # The player beats the past at 100 steps. Later snapshots wait for the timeout: no game was played
  # against the previous snapshot, and an unknown score is not above 0.7.
  assert [player.steps for player in copies[:4]] == [0, 100, 310, 520]


def test_a_finished_assignment_leaves_the_file_after_a_kill(tmp_path):
  """The transaction after that of its last game deletes it; a kill may come in between."""
  path = tmp_path / "league.sqlite"
  league = start(path)
  finished, open_one = league.matches(MAIN, 2, 1)
  league.flush()
  league.report_games([GamesReport(finished, [PlayedGame(0, 1, 0.)])])
  stored = open_league_file(path)
  assert stored.assignments() == [finished, open_one]
  league._reports.flush = lambda: None  # killed
  league.close()
  resumed = start(path)
  resumed.flush()
  assert stored.assignments() == resumed.leases.assignments() == [open_one]
  resumed.close()


def test_reports_of_many_threads_cause_one_order(league):
  league.set_steps(MAIN, 1000)
  orders = []
  def play(prefix):
    for i in range(10):
      order = league.report(result(f"{prefix}-{i}", MAIN, FIRST))
      if order:
        orders.append(order)
  threads = [threading.Thread(target=play, args=(i,)) for i in range(4)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join(timeout=60)
  assert len(orders) == 1 and league.orders() == orders
  assert league.payoff.results(MAIN, FIRST).games == 40


def test_evaluators_play_the_pairs_known_least(tmp_path):
  """Each pair is one with the widest interval; the widths are computed one by one here."""
  league = start(tmp_path / "league.sqlite", options=Options(half_life_s=math.inf))
  names = [player.name for player in league.players]
  rng = np.random.default_rng(0)
  def width(home, away):
    counts = league.payoff.counts(home, away)
    low, high = wilson_interval(counts.wins + .5 * counts.draws, counts.games)
    return high - low
  for _ in range(40):
    widths = {(a, b): width(a, b) for a, b in itertools.combinations(names, 2)}
    assignment, = league.evaluation_matches()
    pair = (assignment.home, assignment.away)
    chosen = widths.get(pair) or widths[pair[::-1]]
    assert chosen == pytest.approx(max(widths.values()), abs=1e-8)
    outcome = int(rng.integers(-1, 2))
    league.report_games([GamesReport(assignment, [PlayedGame(0, outcome, 0.)])])
  games = league.payoff.count_matrix(names, names)[..., 0]
  assert (games[~np.eye(len(names), dtype=bool)] > 2).all()
  league.close()


def test_a_league_of_random_results_is_consistent(league):
  """With random results, snapshots join and play, and all matches are within the league."""
  rng = np.random.default_rng(5)
  steps = dict.fromkeys((MAIN, EXPLOITER, HUNTER), 0)
  branches = set()
  for i in range(180):
    home = (MAIN, EXPLOITER, HUNTER)[i % 3]
    match = league.get_match(home)
    branches.add(match.branch)
    league.player(match.away)
    steps[home] += 40
    league.report(result(i, home, match.away, int(rng.integers(-1, 2))), steps[home])
    for order in league.orders(home):
      league.complete(order.id)
  assert {"pfsp", "self_play", "exploit"} <= branches
  assert len(league.players) > 15
  for name in steps:
    gaps = np.diff([player.steps for player in league.players if player.parent == name])
    assert (gaps >= 100).all() and (gaps <= 240).all()


@pytest.mark.parametrize("steps", [-1, 10 ** 18 + 1, math.inf, math.nan, 1.5])
def test_steps_out_of_range_are_refused(league, steps):
  with pytest.raises(ValueError, match=f"{MAIN}: steps is {steps}, expected a whole number from 0"):
    league.set_steps(MAIN, steps)
  assert league.progress(MAIN).steps == 0
  league.set_steps(MAIN, 10 ** 18)
  assert league.progress(MAIN).steps == 10 ** 18


@pytest.mark.parametrize("folder", ["players", "learners"])
@pytest.mark.parametrize("state", ["empty", "missing"])
def test_a_run_that_lost_its_league_file_is_refused(tmp_path, folder, state):
  path = tmp_path / "league.sqlite"
  (tmp_path / folder).mkdir()
  start(path).close()  # an empty folder is no run
  (tmp_path / folder / FIRST).mkdir()  # it may be there before a league begins
  start(path).close()
  path.unlink()
  start(path).close()
  (tmp_path / folder / f"{MAIN}-0001").mkdir()
  for suffix in ("", "-wal", "-shm"):
    path.with_name(path.name + suffix).unlink(missing_ok=True)
  if state == "empty":
    path.touch()
  with pytest.raises(ValueError, match=f"league.sqlite is {state}, expected .*/{folder} has "
                     "content. Restore the file from a mirror, or choose another --run"):
    start(path)
  assert path.exists() == (state == "empty") and not (path.exists() and path.stat().st_size)
