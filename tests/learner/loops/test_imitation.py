"""The loop of imitation: phases in order, the share that is done, evaluations, checkpoints."""

import pathlib
import threading
import time
from contextlib import nullcontext
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from starleague.common import progress, run_files
from starleague.data.z.statistics_library import StatisticsLibrary
from starleague.learner.loops import imitation
from starleague.learner.loops.imitation_setup import Phase, Position, Recorded
from starleague.learner.prefetch import Waiting

NO_ROWS = np.arange(0)


def phase_of(name="imitation", seconds=0.0, epochs=0):
  return Phase(name, NO_ROWS, NO_ROWS, 2e-3, seconds, epochs)


@pytest.fixture
def imitator(tmp_path):
  """An imitator without an agent; an epoch has 4 batches."""
  made = object.__new__(imitation.Imitator)
  made._run_dir, made._batches, made._step, made._rate = tmp_path, 4, 10, 0.0
  made._options = SimpleNamespace(warm_up=0.2, final_rate=0.1, max_skipped=3,
                                  evaluate_interval_s=30.0, checkpoint_interval_s=20.0)
  made.position = Position()
  return made


@pytest.mark.parametrize("seconds, epochs, expected", [
  (40.0, 0, 0.25), (0.0, 4, 0.375), (40.0, 4, 0.375), (12.5, 4, 0.8), (5.0, 0, 1.0)])
def test_the_nearer_limit_of_a_phase_counts(imitator, seconds, epochs, expected):
  """After 10 s, at batch 2 of 4 in the second epoch."""
  phase = phase_of(seconds=seconds, epochs=epochs)
  assert imitator._done(phase, Position(epoch=1, batch=2, seconds=99.0), 10.0) == expected


def test_the_learning_rate_is_that_of_the_share(imitator):
  rates = [imitator._rate_at(phase_of(seconds=100.0), Position(), seconds)
           for seconds in (0.0, 10.0, 20.0, 60.0, 100.0)]
  np.testing.assert_allclose(rates, [0.0, 1e-3, 2e-3, 1.1e-3, 2e-4])


@pytest.mark.parametrize("phase, expected", [
  (phase_of(seconds=40.0), progress.Progress("imitation", 10.0, 40.0, "s", "")),
  (phase_of("fine-tuning", epochs=4),
   progress.Progress("imitation", 1.5, 4.0, "epochs", "fine-tuning")),
])
def test_the_progress_has_the_unit_of_the_limit(imitator, tmp_path, phase, expected):
  imitator.position = Position(epoch=1, batch=2, seconds=10.0)
  imitator._report(phase)
  assert progress.read(tmp_path) == expected


class Chunks(NamedTuple):
  number: int
  carry: int = -1


@pytest.fixture
def learning(imitator, monkeypatch):
  """The imitator with fakes: the state and the carry count updates, each of which takes 10 s."""
  now, events, stop = [1000.0], [], threading.Event()

  def carried(state, chunks):
    assert chunks.carry == state  # the carry of the update before
    events.append(("update", chunks.number))
    now[0] += 10.0
    return state + 1, {"loss": 0.5}, state + 1

  monkeypatch.setattr(time, "time", lambda: now[0])
  monkeypatch.setattr(imitation.stopping, "stop_event", lambda: stop)
  monkeypatch.setattr(imitation.guard, "Guard", lambda *_, **options: SimpleNamespace(
    check=lambda values, chunks: None, finish=lambda: events.append("finish")))
  monkeypatch.setattr(imitation.train_state, "with_learning_rate", lambda state, rate: state)
  imitator._state = imitator._carry = 0
  imitator._update = SimpleNamespace(carried=carried)
  imitator._saved = SimpleNamespace(steps=lambda: [10])
  imitator.log = lambda step, values, waiting: False
  imitator.move_to = lambda position: events.append(("save", position.batch))
  imitator._measure = lambda phase: events.append("measure")
  return SimpleNamespace(imitator=imitator, events=events, stop=stop)


class Batches(list):
  def waiting(self):
    return Waiting(0, 0.0, 0.0)


def batches(count):
  return Batches((Position(batch=n + 1), Chunks(n)) for n in range(count))


def test_a_phase_ends_at_its_seconds_those_before_a_resume_included(learning):
  learning.imitator.position = Position(seconds=15.0)
  assert learning.imitator._learn(phase_of(seconds=40.0), batches(9))
  assert [event for event in learning.events if event[0] == "update"] == [
    ("update", 0), ("update", 1), ("update", 2)]
  assert learning.imitator.position == Position(batch=3, seconds=45.0)
  assert learning.imitator._step == 13 and learning.events[-1] == "finish"


class Rated(NamedTuple):
  updates: int
  rate: float


def test_an_update_has_the_learning_rate_of_its_time(learning, monkeypatch):
  """A phase of 40 s with a rise of 8 s: updates start after 0, 10, 20 and 30 s."""
  imitator, rates = learning.imitator, []
  carried = imitator._update.carried

  def rated(state, chunks):
    rates.append(state.rate)
    updates, *rest = carried(state.updates, chunks)
    return state._replace(updates=updates), *rest

  monkeypatch.setattr(imitation.train_state, "with_learning_rate",
                      lambda state, rate: state._replace(rate=rate))
  imitator._rate = np.nan  # as in a new process
  imitator._state, imitator._update = Rated(0, np.nan), SimpleNamespace(carried=rated)
  assert imitator._learn(phase_of(seconds=40.0), batches(9))
  np.testing.assert_allclose(rates, [0.0, 1.98271e-3, 1.444415e-3, 5.99987e-4], rtol=1e-5)


def test_a_phase_is_over_after_its_epochs_even_if_the_last_has_fewer_batches(learning):
  """The first epoch has 4 batches, the second 3."""
  imitator, phase = learning.imitator, phase_of(epochs=2)
  assert imitator._learn(phase, Batches(
    (Position(epoch=1, batch=n + 1), Chunks(n)) for n in range(3)))
  assert imitator.position == Position(epoch=2, seconds=30.0)
  assert imitator._done(phase, imitator.position, 30.0) == 1.0
  assert imitator._done(phase_of(epochs=4), imitator.position, 30.0) == 0.5  # goes on from there


def test_evaluations_save_as_well_and_delay_the_next_checkpoint(learning):
  assert learning.imitator._learn(phase_of(epochs=9), batches(6))
  saved = [event for event in learning.events if event[0] != "update"]
  assert saved == [("save", 2), "measure", ("save", 5), "measure", "finish"]


def test_the_first_update_of_a_run_is_saved_at_once(learning):
  learning.imitator._saved = SimpleNamespace(steps=lambda: [])
  assert learning.imitator._learn(phase_of(epochs=9), batches(2))
  assert learning.events == [("update", 0), ("save", 1), ("update", 1), "finish"]


def test_a_signal_ends_a_phase_after_the_update_at_hand(learning):
  learning.stop.set()
  assert not learning.imitator._learn(phase_of(epochs=9), batches(9))
  assert learning.events == [("update", 0), "finish"]


ALONE = Recorded(pathlib.Path("games"))
FIRST = ALONE._replace(first_alone=True)
LABELLED = ALONE._replace(labels=pathlib.Path("labels"))


@pytest.mark.parametrize("recorded, first, stopped_in, complete, expected", [
  (ALONE, 0, None, True, ["main", "fine", "closed"]),
  (ALONE, 1, None, True, ["fine", "closed"]),
  (ALONE, 2, None, True, ["closed"]),  # completed by an earlier version
  (ALONE, 0, "main", False, ["main", "closed"]),
  (ALONE, 0, "fine", False, ["main", "fine", "closed"]),
  (FIRST, 0, None, True, ["main", "closed"]),
  (FIRST, 0, "main", False, ["main", "closed"]),
  (LABELLED, 0, None, True, ["labels", "fine", "closed"]),
  (LABELLED, 1, None, True, ["labels", "fine", "closed"]),
  (LABELLED, 2, None, True, ["fine", "closed"]),
  (LABELLED, 0, "labels", False, ["labels", "closed"]),
])
def test_phases_run_in_order_from_the_position(
    monkeypatch, tmp_path, recorded, first, stopped_in, complete, expected):
  events = []

  class Log:
    def __enter__(self):
      return self

    def __exit__(self, *exception):
      events.append("closed")

  class Imitator:
    def __init__(self, *arguments):
      self.position, self.log = Position(phase=first), Log()

    def run(self, number, phase):
      events.append(phase)
      return phase != stopped_in

  monkeypatch.setattr(imitation.stopping, "end_at_once", lambda: None)
  monkeypatch.setattr(imitation, "Imitator", Imitator)
  monkeypatch.setattr(imitation.imitation_setup, "read_recorded",
                      lambda recorded, *_: (None, 9 if recorded.labels else None))
  monkeypatch.setattr(
    imitation.imitation_setup, "make_phases", lambda options, data, labelled:
    ["main", "fine"] if labelled is None else ["main", "labels", "fine"])
  monkeypatch.setattr(imitation.imitation_setup, "make_library",
                      lambda *_: StatisticsLibrary.from_games([]))
  done = imitation.imitate(None, None, tmp_path, recorded, 0.0)
  assert done is complete and events == expected
  assert not len(StatisticsLibrary.load(tmp_path / run_files.LIBRARY))


@pytest.fixture
def running(imitator, monkeypatch):
  """The imitator with fakes: its phase learns two batches of the first epoch."""
  events = []

  def learn(phase, batches):
    events.append(f"learn {phase.name}")
    imitator.position = imitator.position._replace(batch=imitator.position.batch + 2)
    return True

  def move_to(position):
    imitator.position = position

  monkeypatch.setattr(imitation.games, "num_batches", lambda *_: 4)
  monkeypatch.setattr(imitation.imitation_setup, "batches", lambda *_: None)
  monkeypatch.setattr(imitation.prefetch, "prefetch", lambda *_, **options: nullcontext())
  monkeypatch.setattr(imitation.checkpoints, "load_params", lambda path: path.name)
  imitator._data = None
  imitator._options = SimpleNamespace(batch_size=1, unroll_length=1, seed=0, timeout_s=1.0)
  imitator._compile = lambda: None
  imitator._set_params = lambda params: events.append(f"set {params}")
  imitator._measure = lambda phase: events.append(f"measure {phase.name}")
  imitator._learn, imitator.move_to = learn, move_to
  return SimpleNamespace(imitator=imitator, events=events)


@pytest.mark.parametrize(
  "limits", [{"epochs": 1}, {"seconds": 30.0}, {"epochs": 9, "seconds": 9.0}])
def test_a_complete_phase_within_its_limits_learns_nothing(running, tmp_path, limits):
  position = Position(batch=4, seconds=30.0, complete=True)
  running.imitator.position = position
  assert running.imitator.run(0, phase_of(**limits))
  assert running.events == [] and running.imitator.position == position
  assert progress.read(tmp_path) == progress.Progress(progress.SETUP)


@pytest.mark.parametrize("limits", [{"epochs": 2}, {"seconds": 60.0}])
def test_a_complete_phase_continues_if_its_limits_are_raised(running, limits):
  running.imitator.position = Position(batch=4, seconds=30.0, complete=True)
  assert running.imitator.run(0, phase_of(**limits))
  assert running.events == ["learn imitation", "measure imitation"]
  assert running.imitator.position == Position(batch=6, seconds=30.0, complete=True)


@pytest.mark.parametrize("position", [
  Position(batch=4, seconds=30.0, complete=True),  # the first phase has just ended
  Position(phase=1),  # an earlier version completed the first phase, or a crash came before updates
])
def test_a_phase_starts_from_the_best_parameters_which_it_measures(running, position):
  running.imitator.position = position
  assert running.imitator.run(1, phase_of("fine-tuning", seconds=20.0))
  assert running.events == [f"set {run_files.IMITATED}", "measure fine-tuning",
                            "learn fine-tuning", "measure fine-tuning"]
  assert running.imitator.position == Position(phase=1, batch=2, complete=True)


def test_a_phase_that_was_stopped_continues_with_its_newest_parameters(running):
  running.imitator.position = Position(phase=1, batch=2, seconds=5.0)
  assert running.imitator.run(1, phase_of("fine-tuning", seconds=20.0))
  assert running.events == ["learn fine-tuning", "measure fine-tuning"]
  running.imitator._learn = lambda phase, batches: False
  running.imitator.position = Position(phase=1, batch=2, seconds=5.0)
  assert not running.imitator.run(1, phase_of("fine-tuning", seconds=20.0))
  assert running.imitator.position == Position(phase=1, batch=2, seconds=5.0)


def test_a_checkpoint_names_its_dataset(imitator, monkeypatch):
  saved = []
  monkeypatch.setattr(imitation, "Saved", lambda *parts: "state")
  imitator._state, imitator._carry = SimpleNamespace(), ()
  imitator._data = SimpleNamespace(digest="ab12")
  imitator._saved = SimpleNamespace(save=lambda *arguments: saved.append(arguments))
  monkeypatch.setattr(imitation.update, "unreplicate", lambda state: SimpleNamespace(
    params="params", _replace=lambda params: "rest"))
  imitator.move_to(Position(phase=1, batch=3))
  assert saved == [(10, "state", Position(phase=1, batch=3, dataset="ab12")._asdict())]


def test_only_a_lower_held_out_loss_replaces_the_best_parameters(imitator, monkeypatch):
  written, saved = [], []
  monkeypatch.setattr(imitation.update, "unreplicate", lambda params: params)
  imitator._state = SimpleNamespace(params="params")
  imitator.move_to = lambda position: saved.append("checkpoint")
  imitator.log = SimpleNamespace(write=lambda step, values: written.append((step, values)))
  imitator._best = SimpleNamespace(
    loss=lambda phase: 2.0, save=lambda *arguments: saved.append(arguments))
  phase = phase_of(epochs=1)
  for loss in (2.0, 1.5):
    imitator._evaluate = lambda params, rows, loss=loss: {"loss": loss, "accuracy": 0.5}
    imitator._measure(phase)
  assert written == [(10, {"loss/held_out": loss, "held_out/accuracy": 0.5})
                     for loss in (2.0, 1.5)]
  assert saved == ["checkpoint", "checkpoint", (10, "params", phase, 1.5)]
