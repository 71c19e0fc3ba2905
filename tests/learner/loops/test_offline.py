"""The loop of offline learning: the learning rate's course, checkpoints, stop signals."""

import contextlib
import threading
import time
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from starleague.common.errors import UserError
from starleague.experiments.run.config import settings
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import learner_options
from starleague.learner.loops import offline
from starleague.learner.loops.imitation_setup import Position
from starleague.learner.prefetch import Waiting


class Prefetched:
  def __init__(self, batches):
    self._batches = batches

  def __iter__(self):
    return self._batches

  def waiting(self):
    return Waiting(0, 0.0, 0.0)


class Chunks(NamedTuple):
  number: int
  carry: int = -1


@pytest.fixture
def options():
  return learner_options.offline_options(settings.complete({
    "offline": {"updates": 4}, "imitation": {
      "learning_rate": 2e-3, "warm_up": 0.5, "final_rate": 0.5, "checkpoint_interval_s": 20.0}}))


def test_the_learning_rate_follows_the_share_of_the_updates(options, monkeypatch):
  rates = []
  monkeypatch.setattr(offline.train_state, "with_learning_rate",
                      lambda state, rate: rates.append(rate) or state)
  learner = object.__new__(offline.OfflineLearner)
  learner._options, learner._state, learner._carry, learner._behaviour = options, 0, 0, "clone"
  learner._phase = offline.Phase("offline", None, None, options.learning_rate, 0.0, 0)
  learner.step, learner.position = 0, Position()

  def carried(state, chunks, behaviour):
    assert chunks.carry == state == learner.step and behaviour == "clone"
    return state + 1, {"loss": 0.5}, state + 1

  learner._update = SimpleNamespace(carried=carried)
  for number in range(4):
    found = learner.learn(Position(batch=number + 1), Chunks(number))
    assert found == {"loss": 0.5, "learning_rate": rates[-1]}
  np.testing.assert_allclose(rates, [0.0, 1e-3, 2e-3, 1.5e-3])
  assert (learner.step, learner.position) == (4, Position(batch=4))


def test_a_checkpoint_names_its_dataset(options, monkeypatch):
  saved = []
  learner = object.__new__(offline.OfflineLearner)
  learner._state, learner._carry, learner._data = (), (), SimpleNamespace(digest="ab12")
  learner._saved = SimpleNamespace(save=lambda *arguments: saved.append(arguments))
  learner.step, learner.position = 7, Position(batch=7)
  monkeypatch.setattr(offline, "Saved", lambda *parts: "state")
  monkeypatch.setattr(offline.update, "unreplicate", lambda state: SimpleNamespace(
    params="params", _replace=lambda params: "rest"))
  learner.save()
  assert saved == [(7, "state", Position(batch=7, dataset="ab12")._asdict())]


@pytest.fixture
def learning(options, monkeypatch, tmp_path):
  """The loop with a learner that takes 10 s for an update."""
  now, events, stop, logged = [1000.0], [], threading.Event(), []

  class Learner:
    step, position = 1, Position(batch=1)

    def __init__(self, *arguments):
      pass

    def place(self, item):
      return item

    def readable(self, chunks):
      return chunks

    def learn(self, position, chunks):
      self.step += 1
      events.append(chunks.number)
      now[0] += 10.0
      return {"loss": 0.5}

    def save(self):
      events.append(f"save {self.step}")

  @contextlib.contextmanager
  def batches(data, options, position):
    yield ((Position(batch=n), Chunks(n)) for n in range(position.batch + 1, 99))

  @contextlib.contextmanager
  def prefetched(source, place, timeout):
    yield Prefetched(map(place, source))

  @contextlib.contextmanager
  def log(*arguments):
    logged[:] = arguments
    yield lambda step, values, waiting, last: False

  monkeypatch.setattr(time, "time", lambda: now[0])
  monkeypatch.setattr(offline, "OfflineLearner", Learner)
  monkeypatch.setattr(offline, "MetricsLog", log)
  monkeypatch.setattr(offline.offline_data, "batches", batches)
  monkeypatch.setattr(offline.prefetch, "prefetch", prefetched)
  monkeypatch.setattr(offline.stopping, "stop_event", lambda: stop)
  monkeypatch.setattr(offline.guard, "Guard", lambda *_, **__: SimpleNamespace(
    check=lambda values, chunks: None, finish=lambda: events.append("finish")))

  def learn():
    data = SimpleNamespace(unroll_length=5)
    return offline.learn(None, options, tmp_path, data, 0.0, lambda step: None)

  return SimpleNamespace(learn=learn, events=events, stop=stop, logged=logged)


def test_a_resumed_run_learns_the_updates_that_are_left_and_saves(learning):
  assert learning.learn()
  # From update 1 to 4; a checkpoint after 20 s, and one at the end.
  assert learning.events == [2, 3, "save 3", 4, "finish", "save 4"]


def test_steps_are_counted_with_the_length_of_the_datas_chunks(learning, options):
  """A recording may have other chunks than imitation."""
  learning.learn()
  assert options.imitation.unroll_length != 5
  assert learning.logged[2:4] == [1, options.imitation.batch_size * 5]


def test_a_run_resumed_with_fewer_updates_than_it_has_is_over(learning, monkeypatch):
  monkeypatch.setattr(offline.OfflineLearner, "step", 6)
  assert learning.learn()
  assert learning.events == ["finish", "save 6"]


def test_a_signal_ends_the_run_after_the_update_at_hand(learning):
  learning.stop.set()
  assert not learning.learn()
  assert learning.events == [2, "finish", "save 2"]


def test_a_batch_that_the_devices_do_not_divide_is_refused(options):
  config = settings.complete({"imitation": {"batch_size": 12, "accumulate": 2}})
  options = learner_options.offline_options(config)
  agent = learner_options.offline_agent(registry.make_parts(config), config)
  with pytest.raises(UserError, match="'imitation.batch_size' must be a multiple of 8 devices"):
    offline.make_update(agent, options, agent.policy)
