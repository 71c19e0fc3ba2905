from starleague.common.progress import Progress
from starleague.common.results import Row
from starleague.experiments.run.progress.monitor import Monitor

ROWS = [
  Row(10.0, 5, "count/steps", 100.0), Row(10.0, 5, "count/games", 2.0),
  Row(30.0, 9, "count/steps", 200.0), Row(40.0, 9, "count/steps", 400.0),
  Row(40.0, 9, "speed/learner", 50.0), Row(40.0, 9, "loss/total", 0.5),
  Row(40.0, 9, "total/steps_learnt", 640.0), Row(40.0, 9, "games/rusher", 4.0),
  Row(40.0, 9, "score/train/rusher", 0.25, 0.1, 0.6)]
TRAINING = Progress("training", 40.0, 60.0, "s")


def make_monitor(rows):
  monitor = Monitor("a")
  monitor.add(rows)
  return monitor


def test_totals_add_up_all_actors():
  totals = {row.tag: row for row in make_monitor(ROWS).totals(45.0)}
  assert totals["total/steps"].value == 700.0
  assert totals["total/games"].value == 2.0
  assert totals["speed/actor"].value == (200.0 + 400.0) / 30.0  # of the last 30 s
  assert {row.update for row in totals.values()} == {9}


def test_a_rate_is_taken_over_the_elapsed_time_at_first():
  assert make_monitor([Row(1.0, 0, "count/steps", 30.0)]).actor_rate(6.0) == 5.0
  assert make_monitor([]).actor_rate(6.0) == 0.0


def test_the_snapshot_shows_the_newest_figures():
  shown = make_monitor(ROWS).snapshot(45.0, TRAINING, {"learner": "running"})
  assert (shown.updates, shown.steps_produced, shown.games, shown.steps_learnt) == (9, 700, 2, 640)
  assert shown.losses == {"total": 0.5}
  assert shown.scores["rusher"] == (0.25, 0.1, 0.6, 4)
  assert (shown.learner_rate, shown.progress) == (50.0, TRAINING)
  assert shown.processes == {"learner": "running"}


def test_imitation_counts_its_own_updates():
  rows = [Row(5.0, 300, "imitation/speed/learner", 900.0),
          Row(5.0, 300, "imitation/loss/held_out", 2.5),
          Row(5.0, 300, "imitation/total/steps_learnt", 4096.0)]
  imitating = make_monitor(rows).snapshot(6.0, Progress("imitation", 5.0, 60.0, "s"), {})
  assert (imitating.updates, imitating.learner_rate, imitating.steps_learnt) == (300, 900.0, 4096)
  assert imitating.losses == {"held_out": 2.5}
  assert make_monitor(rows).totals(6.0) == []  # nothing was played
  later = make_monitor([*rows, *ROWS]).snapshot(45.0, TRAINING, {})
  assert (later.updates, later.learner_rate, later.losses) == (9, 50.0, {"total": 0.5})


def test_rows_added_in_parts_give_the_same_snapshot():
  whole, parts = make_monitor(ROWS), Monitor("a")
  for row in ROWS:
    parts.add([row])
  assert parts.snapshot(45.0, TRAINING, {}) == whole.snapshot(45.0, TRAINING, {})
  late = Row(20.0, 7, "loss/total", 9.0)  # written late, by a slower process
  parts.add([late])
  assert parts.snapshot(45.0, TRAINING, {}).losses == {"total": 0.5}


def test_a_run_without_figures_has_a_snapshot():
  shown = make_monitor([]).snapshot(0.0, Progress("setup"), {})
  assert (shown.updates, shown.actor_rate, shown.scores) == (0, 0.0, {})


def test_a_learner_that_records_nothing_waits():
  """It records every 10 s; without trajectories there is no update and no record."""
  rows = [Row(seconds, 1, tag, value) for seconds in (30.0, 40.0)
          for tag, value in (("speed/learner", 50.0), ("speed/waiting", 0.25))]
  parts = make_monitor(rows)
  found = [(shown.learner_rate, shown.waiting) for shown in (
    parts.snapshot(seconds, TRAINING, {}) for seconds in (45.0, 70.0, 70.5))]
  assert found == [(50.0, 0.25), (50.0, 0.25), (0.0, 1.0)]
