"""The payoff: decay, ids, validation, intervals, durability."""

import os
import signal
import sqlite3
import threading
import time

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from starleague.league.payoff import (
  DRAW,
  LOSS,
  WIN,
  GameResult,
  Payoff,
  clear,
  wilson_bounds,
  wilson_interval,
)
from tests.processes import start_together


@pytest.fixture
def payoff(tmp_path):
  opened = Payoff(tmp_path / "league" / "payoff.sqlite")
  yield opened
  opened.close()


def results(outcomes, home="a", away="b", prefix="game"):
  return [GameResult(f"{prefix}-{i}", home, away, outcome, float(i))
          for i, outcome in enumerate(outcomes)]


def test_known_decayed_counts(payoff):
  expected = [(1, 1, 1), (1.99, .99, .497487), (2.9701, .9801, .498333),
              (3.940399, 1.970299, .625647)]
  for result, (games, wins, rate) in zip(results([WIN, LOSS, DRAW, WIN]), expected, strict=True):
    assert payoff.record(result)
    counts = payoff.counts("a", "b")
    assert counts.games == pytest.approx(games, abs=1e-9)
    assert counts.wins == pytest.approx(wins, abs=1e-9)
    assert payoff.score("a", "b") == pytest.approx(rate, abs=5e-7)
    assert payoff.score("b", "a") == pytest.approx(1 - rate, abs=5e-7)


def test_only_the_pair_of_a_result_decays(payoff):
  payoff.record(GameResult("1", "a", "b", WIN, 0.))
  payoff.record_many(results([LOSS] * 5, "a", "c"))
  assert payoff.counts("a", "b").games == 1
  assert payoff.scores("a", ["c", "b", "nobody"]).tolist() == [0, 1, .5]
  np.testing.assert_array_equal(
    payoff.matrix(["a", "b"], ["a", "b", "c"]), [[.5, 1, 0], [0, .5, .5]])
  np.testing.assert_allclose(payoff.count_matrix(["b"], ["a", "c"])[..., 0], [[1, 0]])


@hypothesis.given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc"),
                                     st.sampled_from([WIN, DRAW, LOSS])), max_size=30),
                  st.integers(1, 30))
@hypothesis.settings(max_examples=15)
def test_counts_equal_those_of_a_plain_implementation(tmp_path_factory, games, size):
  """The plain one stores both directions of a pair, as the published pseudocode does."""
  payoff = Payoff(tmp_path_factory.mktemp("twin") / "payoff.sqlite")
  twin = {(a, b): np.zeros(4) for a in "abc" for b in "abc"}
  batch = [GameResult(str(i), *game, 0.) for i, game in enumerate(games)]
  for start in range(0, len(batch), size):
    payoff.record_many(batch[start:start + size])
  for home, away, result in games:
    if home != away:
      for key, sign in (((home, away), 1), ((away, home), -1)):
        twin[key] = twin[key] * .99 + [1, result * sign == 1, result == 0, result * sign == -1]
  for key, counts in twin.items():
    np.testing.assert_allclose(payoff.counts(*key), counts, rtol=1e-12)
  names = list("abc")
  rates = payoff.matrix(names, names)
  np.testing.assert_allclose(rates + rates.T, 1, atol=1e-12)
  payoff.close()


def test_an_id_counts_once(payoff):
  batch = results([WIN, WIN, LOSS])
  assert payoff.record_many(batch + batch[:2]) == 3
  assert payoff.record_many(batch) == 0
  assert not payoff.record(batch[0]._replace(time=99.))  # repeated later
  assert payoff.counts("a", "b").games == pytest.approx(2.9701)
  assert payoff.results("a", "b").games == 3


def test_a_contradicting_result_of_the_same_id_is_refused(payoff):
  payoff.record(GameResult("game-1", "a", "b", WIN, 0.))
  batch = [GameResult("game-2", "a", "b", WIN, 0.), GameResult("game-1", "a", "b", LOSS, 0.)]
  with pytest.raises(ValueError, match="'game-1' says .* was counted under that id"):
    payoff.record_many(batch)
  assert payoff.results("a", "b").games == 1
  assert payoff.counts("a", "b").games == 1


@pytest.mark.parametrize("change, message", [
  ({"result": 2}, "result is 2, expected 1, 0 or -1"),
  ({"id": ""}, "id is '', expected a text"),
  ({"home": None}, "home is None"),
  ({"time": float("nan")}, "time is nan"),
  ({"time": "yesterday"}, "time is 'yesterday'"),
])
def test_results_are_validated_before_any_is_counted(payoff, change, message):
  good = GameResult("good", "a", "b", WIN, 0.)
  with pytest.raises(ValueError, match=message):
    payoff.record_many([good, good._replace(**{"id": "bad", **change})])
  assert payoff.results("a", "b").games == 0


def test_a_game_of_a_player_against_itself_has_no_score(payoff):
  payoff.record(GameResult("mirror", "a", "a", WIN, 0.))
  assert payoff.score("a", "a") == .5
  assert payoff.results("a", "a") == (1, 1, 0, 0)


def test_results_of_a_period(payoff):
  payoff.record_many(results([WIN] * 8 + [LOSS] * 2))  # times 0 to 9
  payoff.record(GameResult("return", "b", "a", WIN, 10.))
  payoff.record(GameResult("draw", "b", "a", DRAW, 11.))
  assert payoff.results("a", "b") == (12, 8, 1, 3)
  assert payoff.results("b", "a") == (12, 3, 1, 8)
  assert payoff.results("a", "b", since=8., until=10.) == (2, 0, 0, 2)
  interval = payoff.interval("a", "b", until=10.)
  assert interval.games == 10 and interval.score == .8
  assert (interval.low, interval.high) == pytest.approx((.490157, .943319), abs=5e-7)
  assert payoff.interval("a", "b", since=50.) == (.5, 0, 1, 0)


def test_pruning_keeps_scores(payoff):
  payoff.record_many(results([WIN, LOSS, WIN]))
  before = payoff.counts("a", "b")
  assert payoff.prune(2.) == 2
  assert payoff.results("a", "b").games == 1
  assert payoff.counts("a", "b") == before


def test_clearing_a_player_leaves_the_others(payoff):
  payoff.record_many(results([WIN]) + results([WIN], "b", "c", "other"))
  with payoff._database.transaction() as connection:
    clear(connection, "a")
  payoff.apply_clear("a")
  assert payoff.counts("a", "b").games == 0
  assert payoff.score("b", "c") == 1
  assert payoff.results("a", "b").games == 1


@pytest.mark.parametrize("wins, games, z, bounds", [
  (8, 10, 1.96, (.490157, .943319)),
  (0, 10, 1.96, (0, 3.8416 / 13.8416)),
  (10, 10, 1.96, (10 / 13.8416, 1)),
  (50, 100, 1.96, (.403830, .596170)),
  (0, 0, 1.96, (0, 1)),
  (5, 10, 0, (.5, .5)),
])
def test_wilson_interval(wins, games, z, bounds):
  assert wilson_interval(wins, games, z) == pytest.approx(bounds, abs=5e-7)


@hypothesis.given(st.integers(1, 1000).flatmap(
  lambda games: st.tuples(st.integers(0, 2 * games), st.just(games))))
@hypothesis.settings(max_examples=30)
def test_wilson_interval_holds_the_rate(points):
  half_wins, games = points
  low, high = wilson_interval(half_wins / 2, games)
  assert 0 <= low <= half_wins / 2 / games <= high <= 1
  assert wilson_interval(games - half_wins / 2, games) == pytest.approx((1 - high, 1 - low))


def test_wilson_interval_refuses_more_wins_than_games():
  with pytest.raises(ValueError, match="found 3 wins in 2 games"):
    wilson_interval(3, 2)


def test_a_file_that_is_no_database_is_named(tmp_path):
  path = tmp_path / "payoff.sqlite"
  path.write_text("this is no database, and long enough to be read as a header" * 20)
  with pytest.raises(ValueError, match="payoff.sqlite is not a SQLite database"):
    Payoff(path)


def test_another_layout_is_refused(tmp_path):
  path = tmp_path / "payoff.sqlite"
  Payoff(path).close()
  connection = sqlite3.connect(path)
  connection.execute("UPDATE layout SET version = 99")
  connection.commit()
  connection.close()
  with pytest.raises(ValueError, match="of version 2, found version 99"):
    Payoff(path)


def test_threads_share_one_payoff(payoff):
  def play(prefix):
    for result in results([WIN] * 25, prefix=prefix):
      payoff.record(result)
  threads = [threading.Thread(target=play, args=(str(i),)) for i in range(4)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join(timeout=60)
  assert payoff.results("a", "b").games == 100


def _record(path, prefix, number, started):
  payoff = Payoff(path)
  started.set()
  for result in results([WIN, LOSS] * (number // 2), prefix=prefix):
    payoff.record(result)


def test_two_processes_lose_no_result(tmp_path):
  path = tmp_path / "payoff.sqlite"
  processes = start_together(_record, [(path, "one", 100), (path, "two", 100)])
  for process in processes:
    process.join(60)
    assert process.exitcode == 0
  payoff = Payoff(path)
  assert payoff.results("a", "b") == (200, 100, 0, 100)
  assert payoff.counts("a", "b").games == pytest.approx((1 - .99 ** 200) / .01)


def test_a_killed_process_leaves_whole_transactions(tmp_path):
  path = tmp_path / "payoff.sqlite"
  process, = start_together(_record, [(path, "victim", 100_000)])
  deadline = time.monotonic() + 60
  payoff = Payoff(path)
  while payoff.results("a", "b").games < 20 and time.monotonic() < deadline:
    time.sleep(.01)
  os.kill(process.pid, signal.SIGKILL)
  process.join(60)
  assert process.exitcode == -signal.SIGKILL
  number = int(payoff.results("a", "b").games)
  assert number >= 20
  # The decayed counts match the stored results exactly.
  assert payoff.counts("a", "b").games == pytest.approx((1 - .99 ** number) / .01, rel=1e-9)
  sent_again = results([WIN, LOSS] * number, prefix="victim")
  assert payoff.record_many(sent_again) == 2 * number - number
  assert payoff.results("a", "b").games == 2 * number


def test_thousands_of_results_a_minute(payoff):
  """Fifty a second are three thousand a minute; one transaction takes far more."""
  batch = [GameResult(f"r{i}", f"p{i % 40}", f"p{(i * 7 + 1) % 40}", (i % 3) - 1, float(i))
           for i in range(5000)]
  start = time.monotonic()
  assert payoff.record_many(batch) == 5000
  assert time.monotonic() - start < 60


def test_ages_of_pairs_outlive_a_restart(tmp_path, monkeypatch):
  """The newest result of either direction counts; one of a clock ahead is as old as the start."""
  path = tmp_path / "league.sqlite"
  first = Payoff(path)
  first.record_many([GameResult(str(number), home, away, WIN, when) for number, (home, away, when)
                     in enumerate([("a", "b", 900.0), ("b", "a", 700.0), ("c", "a", 400.0),
                                   ("a", "c", 600.0), ("b", "c", 5000.0), ("d", "a", 50.0)])])
  first.prune(100.0)
  first.close()
  monkeypatch.setattr("time.time", lambda: 1000.0)
  monkeypatch.setattr("time.monotonic", lambda: 7.0)
  table = Payoff(path, shared=False).table()
  monkeypatch.setattr("time.monotonic", lambda: 9.0)
  a, b, c, d = table.numbers("abcd")
  _, ages = table.of_pairs(np.array([a, c, b, a]), np.array([b, a, c, d]))
  assert ages.tolist() == [102.0, 402.0, 2.0, 1002.0]


def test_a_reader_sees_changes_and_makes_none(tmp_path):
  path = tmp_path / "league.sqlite"
  with pytest.raises(ValueError, match=r"league\.sqlite"):
    Payoff(path, read_only=True)
  assert not path.exists()
  writer = Payoff(path)
  reader = Payoff(path, read_only=True)
  assert reader.score("a", "b") == 0.5
  writer.record(GameResult("1", "a", "b", WIN, 0.0))
  assert reader.score("a", "b") == 1.0
  with pytest.raises(sqlite3.OperationalError, match="readonly"):
    reader.record(GameResult("2", "a", "b", WIN, 0.0))
  assert writer.counts("a", "b").games == 1


def test_a_reader_without_the_right_to_write_sees_changes_of_a_closed_file(tmp_path, monkeypatch):
  writer = Payoff(tmp_path / "league.sqlite")
  writer.close()  # removes SQLite's log: the reader opens the file as immutable
  monkeypatch.setattr(os, "access", lambda path, mode: False)
  reader = Payoff(writer.path, read_only=True)
  assert reader.score("a", "b") == 0.5
  writer.record(GameResult("1", "a", "b", WIN, 0.0))
  writer.close()
  assert reader.score("a", "b") == 1.0


def test_wilson_bounds():
  """Newcombe 1998: 81 of 263 gives 0.2553 to 0.3662; 0 of 20 and 1 of 29; none without games."""
  low, high = wilson_bounds(np.array([81, 0, 1, 0.]), np.array([263, 20, 29, 0.]))
  np.testing.assert_allclose(low, [.2553, 0, .0061, 0], atol=5e-5)
  np.testing.assert_allclose(high, [.3662, .1611, .1718, 1], atol=5e-5)


def test_mirrored_scores_have_mirrored_bounds():
  points = np.linspace(0, 7, 15)
  low, high = wilson_bounds(points, np.full(15, 7.))
  np.testing.assert_allclose(low, 1 - high[::-1], atol=1e-15)
  assert (low <= points / 7).all() and (points / 7 <= high).all()
