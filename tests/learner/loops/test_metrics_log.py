"""Records of an update's metrics: their interval, their rates and their names."""

import itertools
import time

import jax.numpy as jnp
import pytest

from starleague.common import results
from starleague.learner.loops.metrics_log import MetricsLog
from starleague.learner.prefetch import Waiting


@pytest.fixture
def now(monkeypatch):
  """A clock that the test sets; the run began at 1000."""
  now = [1010.0]
  monkeypatch.setattr(time, "time", lambda: now[0])
  return now


def rows(tmp_path):
  return [tuple(row)[:4] for row in results.read(tmp_path / results.FILE_NAME)]


def make_log(tmp_path, prefix=""):
  return MetricsLog(tmp_path, 1000.0, step=4, steps_per_update=32, interval_s=10.0, prefix=prefix)


def test_the_first_update_is_recorded_and_then_one_each_interval(tmp_path, now):
  with make_log(tmp_path) as log:
    assert log(5, {"loss/total": jnp.float32(0.5)}, Waiting(1, 6.0, 8.0))
    now[0] = 1019.9
    assert not log(6, {"loss/total": jnp.float32(9.0)}, Waiting(2, 7.0, 9.0))
    now[0] = 1020.0
    assert log(9, {"loss/total": 0.25}, Waiting(5, 8.5, 18.0))
  assert rows(tmp_path) == [
    (10.0, 5, "loss/total", 0.5), (10.0, 5, "total/steps_learnt", 160.0),
    (20.0, 9, "loss/total", 0.25), (20.0, 9, "total/steps_learnt", 288.0),
    (20.0, 9, "speed/learner", 12.8),  # 4 updates of 32 steps in 10 s
    (20.0, 9, "speed/waiting", 0.25)]  # 2.5 of 10 s since the last record


def test_the_last_update_is_recorded_before_its_interval_is_over(tmp_path, now):
  with make_log(tmp_path) as log:
    log(5, {"loss/total": 0.5}, Waiting(1, 0.0, 0.0))
    now[0] = 1012.0
    assert not log(6, {"loss/total": 0.25}, Waiting(2, 0.0, 1.0))
    assert log(7, {"loss/total": 0.125}, Waiting(3, 0.0, 2.0), last=True)
    assert log(7, {"loss/total": 0.125}, Waiting(3, 0.0, 2.0), last=True)  # no time between
  losses = [row for row in rows(tmp_path) if row[2] == "loss/total"]
  assert losses == [(10.0, 5, "loss/total", 0.5), *[(12.0, 7, "loss/total", 0.125)] * 2]
  speeds = [row for row in rows(tmp_path) if row[2] == "speed/learner"]
  assert speeds == [(12.0, 7, "speed/learner", 32.0)]  # 2 updates of 32 steps in 2 s


def test_means_are_over_the_steps_that_use_an_argument_where_there_are_any(tmp_path, now):
  with make_log(tmp_path) as log:
    log(5, {"kl/delay": 0.0, "used/delay": 0.0, "kl/queued": 0.125, "used/queued": 0.5},
        Waiting(1, 0.0, 0.0))
  assert {tag: value for _, _, tag, value in rows(tmp_path)} == {
    "used/delay": 0.0, "kl/queued": 0.25, "used/queued": 0.5, "total/steps_learnt": 160.0}


def test_rows_of_one_write_have_one_time(tmp_path, monkeypatch):
  with make_log(tmp_path) as log:
    monkeypatch.setattr(time, "time", itertools.count(1010.0, 0.5).__next__)
    log.write(7, {"total/steps": 64.0, "return/train": 0.5, "return/train/a": 0.25})
  assert len({seconds for seconds, *_ in rows(tmp_path)}) == 1 and len(rows(tmp_path)) == 3


def test_tags_have_the_phase_and_a_group(tmp_path, now):
  with make_log(tmp_path, "imitation/") as log:
    log.write(7, {"learning_rate": 0.5, "held_out/accuracy": 0.75})
  assert rows(tmp_path) == [(10.0, 7, "imitation/update/learning_rate", 0.5),
                            (10.0, 7, "imitation/held_out/accuracy", 0.75)]
  assert len(list((tmp_path / "tensorboard" / "imitation").glob("events*"))) == 1
