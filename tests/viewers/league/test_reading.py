"""Facts of a league from a run's files, and their renewal at a limited cost."""

import sqlite3

import numpy as np
import pytest

from starleague import league
from starleague.common import results
from starleague.common.errors import UserError
from starleague.common.results import Row
from starleague.league import league_file
from starleague.league.payoff import WIN, Payoff
from starleague.viewers.league import reading
from tests.viewers.league import simulated_league


@pytest.fixture(scope="module")
def run_dir(facts, tmp_path_factory):
  folder = tmp_path_factory.mktemp("runs") / facts.name
  simulated_league.write(folder, facts)
  return folder


def test_the_facts_of_a_run(run_dir, facts):
  found = reading.LeagueReader(run_dir).facts()
  assert sorted(found.branches) == sorted(facts.branches)
  assert found.behaviours == facts.behaviours and len(found.behaviours) > 100
  for field in ("name", "players", "resets", "anchor", "replays"):
    assert getattr(found, field) == getattr(facts, field), field
  np.testing.assert_array_equal(found.games, facts.games)
  np.testing.assert_allclose(found.points, facts.points)
  np.testing.assert_allclose(found.ratings, facts.ratings, atol=1e-6)
  assert {name: (progress.steps, progress.snapshots) for name, progress in found.progress.items()
          } == {name: (progress.steps, progress.snapshots)
                for name, progress in facts.progress.items()}
  assert found.curves.keys() == facts.curves.keys()
  rows = found.curves["protoss-main-0"]["loss/total"]
  expected = facts.curves["protoss-main-0"]["loss/total"]
  np.testing.assert_allclose([row.value for row in rows], [row.value for row in expected],
                             rtol=1e-8)


def test_a_league_without_players_is_refused_in_one_line(tmp_path):
  """As the file is when it has been created, before the first players are added."""
  payoff = Payoff(tmp_path / "league.sqlite")
  payoff.database.add(league_file.COMPONENT, league_file.VERSION, league_file.TABLES)
  payoff.database.add(*league_file.BEHAVIOURS)
  with pytest.raises(UserError, match="league.sqlite: expected a league with players, found none "
                     "yet; start the league, then try again$"):
    reading.LeagueReader(tmp_path).facts()


def test_changes_are_seen_while_the_league_goes_on(tmp_path):
  coordinator = league.Coordinator(
    tmp_path / "league.sqlite", league.initial_players(races=("zerg",)))
  reader = reading.LeagueReader(tmp_path)
  stamps, before = {reader.stamp()}, reader.facts()
  assert before.games.sum() == 0 and before.curves == {} and before.replays == []
  home, away = "zerg-main-0", "zerg-main_exploiter-0"
  coordinator.report(league.GameResult("1", home, away, WIN, 1.0))
  stamps.add(reader.stamp())
  results.append(tmp_path / "results.csv", [Row(1.0, 1, "loss/total", 2.0)])
  stamps.add(reader.stamp())
  after = reader.facts()
  assert len(stamps) == 3
  names = [player.name for player in after.players]
  i, j = names.index(home), names.index(away)
  assert after.games.sum() == 2 and after.games[i, j] == after.points[i, j] == 1
  assert after.ratings.value[i] > after.ratings.value[j]
  assert after.curves == {tmp_path.name: {"loss/total": [Row(1.0, 1, "loss/total", 2.0)]}}
  coordinator.close()


def test_a_folder_without_a_league_is_named(tmp_path):
  for folder in (tmp_path, tmp_path / "missing"):
    with pytest.raises(UserError, match=r"found no file league\.sqlite"):
      reading.LeagueReader(folder)
  assert list(tmp_path.iterdir()) == []


def test_files_that_are_no_league_are_named_and_unchanged(run_dir, tmp_path):
  """Another program's file, half a file, and a file of another version."""
  path = tmp_path / "league.sqlite"
  whole = (run_dir / "league.sqlite").read_bytes()
  for content in (b"results" * 1000, whole[:len(whole) // 2]):
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"league\.sqlite") as error:
      reading.LeagueReader(tmp_path).facts()
    assert "\n" not in str(error.value)
    assert path.read_bytes() == content
  path.write_bytes(whole)
  with sqlite3.connect(path) as connection:
    connection.execute("UPDATE layout SET version = 99 WHERE component = 'coordinator'")
  with pytest.raises(UserError, match="version 99"):
    reading.LeagueReader(tmp_path)


class Clock:
  """A clock that a test sets, of a function that takes a time."""

  def __init__(self):
    self.now, self.cost, self.source, self.made = 0.0, 1.0, 0, 0

  def __call__(self):
    return self.now

  def make(self):
    self.now += self.cost
    self.made += 1
    return f"value {self.source}"


def test_values_are_made_again_after_changes_but_take_a_share_of_the_time_only():
  clock = Clock()
  newest = reading.Newest(clock.make, lambda: clock.source, share=0.1, clock=clock)
  assert newest() == (1, "value 0") and clock.made == 1
  clock.now = 100.0
  assert newest() == (1, "value 0") and clock.made == 1  # nothing has changed
  clock.source = 1
  assert newest() == (2, "value 1")  # takes from 100 to 101: not again before 110
  clock.source = 2
  clock.now = 109.9
  assert newest() == (2, "value 1")
  clock.now = 110.1
  assert newest() == (3, "value 2") and clock.made == 3


def test_a_value_that_cannot_be_made_is_not_tried_all_the_time():
  clock = Clock()
  newest = reading.Newest(clock.make, lambda: clock.source, share=0.1, clock=clock)
  clock.now, clock.source = 50.0, 1
  make, newest._make = newest._make, lambda: 1 / 0
  for _ in range(3):  # the old value would look like the newest one
    with pytest.raises(ZeroDivisionError):
      newest()
  newest._make = make
  clock.now = 60.0
  assert newest() == (2, "value 1")
