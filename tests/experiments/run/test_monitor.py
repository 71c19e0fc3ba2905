from starleague.common.results import Row
from starleague.experiments.run import monitor

ROWS = [
  Row(10.0, 5, "count/steps", 100.0), Row(10.0, 5, "count/games", 2.0),
  Row(30.0, 9, "count/steps", 200.0), Row(40.0, 9, "count/steps", 400.0),
  Row(40.0, 9, "speed/learner", 50.0), Row(40.0, 9, "loss/total", 0.5),
  Row(40.0, 9, "total/steps_learnt", 640.0), Row(40.0, 9, "games/rusher", 4.0),
  Row(40.0, 9, "score/train/rusher", 0.25, 0.1, 0.6)]


def test_totals_add_up_all_actors():
  totals = {row.tag: row for row in monitor.totals(ROWS, 45.0)}
  assert totals["total/steps"].value == 700.0
  assert totals["total/games"].value == 2.0
  assert totals["speed/actor"].value == (200.0 + 400.0) / 30.0  # of the last 30 s
  assert {row.update for row in totals.values()} == {9}


def test_a_rate_is_taken_over_the_time_there_is():
  assert monitor.actor_rate({"count/steps": [Row(1.0, 0, "count/steps", 30.0)]}, 6.0) == 5.0
  assert monitor.actor_rate({}, 6.0) == 0.0


def test_the_snapshot_shows_the_newest_figures():
  shown = monitor.snapshot(ROWS, "a", 45.0, 60.0, {"learner": "running"})
  assert (shown.updates, shown.steps_produced, shown.games, shown.steps_learnt) == (9, 700, 2, 640)
  assert shown.losses == {"total": 0.5}
  assert shown.scores["rusher"] == (0.25, 0.1, 0.6, 4)
  assert (shown.learner_rate, shown.budget_seconds) == (50.0, 60.0)
  assert shown.processes == {"learner": "running"}


def test_a_run_that_has_no_figures_yet_can_be_shown():
  shown = monitor.snapshot([], "a", 0.0, None, {})
  assert (shown.updates, shown.actor_rate, shown.scores) == (0, 0.0, {})
