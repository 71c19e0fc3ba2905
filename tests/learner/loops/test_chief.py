"""The duties of host 0: when it saves."""

import threading
import time
from types import SimpleNamespace

import pytest

from starleague.learner.loops import chief
from starleague.learner.loops.options import LearnerProcess
from tests.learner.loops.options import reinforcement_options


@pytest.fixture
def now(monkeypatch):
  """A clock that the test sets."""
  now = [1e9]
  monkeypatch.setattr(time, "time", lambda: now[0])
  monkeypatch.setattr(chief.update, "unreplicate", lambda state: state)
  monkeypatch.setattr(chief.parameters, "ParameterPublisher", lambda *arguments, **options:
                      SimpleNamespace(close=lambda: None))
  return now


def saves(tmp_path, now, before, times):
  """Returns the steps that are saved of updates 1, 2, ... at given seconds."""
  steps = list(before)
  saved = SimpleNamespace(
    steps=lambda: sorted(steps), save=lambda step, state, extra: steps.append(step))
  duties = chief.ChiefDuties(
    reinforcement_options(checkpoint_interval_s=60.0),
    LearnerProcess(tmp_path, "localhost:1", now[0]), saved)
  start, first = now[0], max(before, default=0) + 1
  for step, seconds in enumerate(times, first):
    now[0] = start + seconds
    duties.save("state", step, seconds)
  duties.close()
  return steps[len(before):]


def test_the_first_update_of_a_run_is_saved_at_once(tmp_path, now):
  assert saves(tmp_path, now, [], [20.0, 40.0, 79.0, 80.0, 100.0, 140.0]) == [1, 4, 6]


def test_a_resumed_run_saves_after_the_interval(tmp_path, now):
  assert saves(tmp_path, now, [7], [20.0, 79.0, 80.0]) == [10]


def test_a_learner_that_waits_saves_its_newest_update_once(tmp_path, now):
  """Nothing is saved before its first update, and an update after the interval only."""
  saved = []
  duties = chief.ChiefDuties(
    reinforcement_options(checkpoint_interval_s=60.0), LearnerProcess(tmp_path, "localhost:1", 0.0),
    SimpleNamespace(steps=lambda: list(saved), save=lambda step, state, extra: saved.append(step)))
  start = now[0]
  for seconds, step, waiting, expected in (
      (0.0, 0, True, []), (90.0, 0, True, []), (100.0, 1, False, [1]), (120.0, 2, False, [1]),
      (150.0, 2, True, [1]), (160.0, 2, True, [1, 2]), (300.0, 2, True, [1, 2])):
    now[0] = start + seconds
    duties.save("state", step, seconds, waiting=waiting)
    assert saved == expected
  duties.save("state", 2, 300.0, now=True)
  assert saved == [1, 2, 2]


def test_parameters_are_published_whatever_the_interval(tmp_path, now, monkeypatch):
  published = []
  monkeypatch.setattr(chief.parameters, "ParameterPublisher", lambda *arguments, **options:
                      SimpleNamespace(publish_now=lambda params, step, stop: published.append(
                        (params(), step, stop)), close=lambda: None))
  duties = chief.ChiefDuties(reinforcement_options(), LearnerProcess(tmp_path, "localhost:1", 0.0),
                             SimpleNamespace(steps=lambda: []))
  stop = threading.Event()
  duties.publish_now(SimpleNamespace(params="weights"), 7, stop)
  assert published == [("weights", 7, stop)]


def test_other_hosts_save_nothing(tmp_path):
  duties = chief.ChiefDuties(
    reinforcement_options(), LearnerProcess(tmp_path, "localhost:1", 0.0), None)
  duties.publish("state", 1)
  duties.publish_now("state", 1, threading.Event())
  duties.save("state", 1, 0.0, now=True)
  assert duties.log(1, {}, None) is False
  duties.close()
  assert list(tmp_path.iterdir()) == []
