"""The loop of offline learning: the learning rate's course, checkpoints, stop signals."""

import contextlib
import dataclasses
import json
import threading
import time
from types import SimpleNamespace
from typing import NamedTuple

import jax
import numpy as np
import pytest

from starleague.common.errors import UserError
from starleague.data import wire
from starleague.data.games import ordering
from starleague.experiments.run.config import settings
from starleague.experiments.run.games import registry
from starleague.experiments.run.parts import learner_options
from starleague.learner import guard
from starleague.learner.loops import offline
from starleague.learner.loops.imitation_setup import Position
from starleague.learner.offline import empty_carry
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
    found, chunks = learner.learn(Position(batch=number + 1), Chunks(number))
    assert found == {"loss": 0.5, "learning_rate": rates[-1]}
    assert chunks == Chunks(number, carry=number)  # that of the update before
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
      return {"loss": 0.5}, chunks

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


def test_updates_that_are_not_finite_end_with_a_diagnosis(options, monkeypatch, tmp_path):
  """The batch of the second update has a reward of infinity in its fourth slot."""
  config = settings.complete({"imitation": {"batch_size": 8, "unroll_length": 2}})
  options = dataclasses.replace(learner_options.offline_options(config), updates=2)
  options = dataclasses.replace(
    options, imitation=dataclasses.replace(options.imitation, max_skipped=1))
  agent = learner_options.offline_agent(registry.make_parts(config), config)

  def carried(state, chunks, behaviour):
    bad = not np.isfinite(np.asarray(chunks.columns.float32)).all()
    return state, {"loss": np.float32("nan" if bad else 1.0), "step": np.int32(state),
                   "consecutive_skipped": np.int32(bad)}, chunks.carry

  class Learner(offline.OfflineLearner):
    def __init__(self, agent, options, run_dir, data):
      self._agent, self._options, self._state, self._behaviour = agent, options, 7, ()
      self._phase = offline.Phase("offline", None, None, 1.0, 0.0, 0)
      self._carry = jax.tree.map(lambda x: x[:, None], empty_carry(
        agent.config, options.objective, 8))  # of 8 devices
      self._update = SimpleNamespace(
        carried=carried, place=offline.make_update(agent, options, agent.policy).place)
      self.step, self.position = 0, Position()

  @contextlib.contextmanager
  def batches(data, options, position):
    found = []
    for number in (1, 2):
      packed = wire.empty_batch(agent.config, 2, 8)
      reward = wire.layout(agent.config).fields["reward"].slice
      packed.float32[1, 3, reward] = np.inf if number == 2 else 0.0
      found.append((Position(batch=number), ordering.OrderedBatch(*packed, first=np.ones(8, bool))))
    yield iter(found)

  monkeypatch.setattr(offline, "OfflineLearner", Learner)
  monkeypatch.setattr(offline.train_state, "with_learning_rate", lambda state, rate: state)
  monkeypatch.setattr(offline.offline_data, "batches", batches)
  with pytest.raises(guard.NonFiniteError, match=(
      "^1 updates in a row were not finite, the last at step 7; not finite in it: loss. See .*")):
    offline.learn(
      agent, options, tmp_path, SimpleNamespace(unroll_length=2), 0.0, lambda step: None)
  report = json.loads((tmp_path / "diagnosis" / "not_finite_step_7_process_0.json").read_text())
  (leaf, found), = report["not_finite_batch_leaves"].items()
  assert leaf.endswith(".reward") and found["first_index"] == [3, 1, 0, 0]  # device 3, step 1


def test_a_batch_that_the_devices_do_not_divide_is_refused(options):
  config = settings.complete({"imitation": {"batch_size": 12, "accumulate": 2}})
  options = learner_options.offline_options(config)
  agent = learner_options.offline_agent(registry.make_parts(config), config)
  with pytest.raises(UserError, match="'imitation.batch_size' must be a multiple of 8 devices"):
    offline.make_update(agent, options, agent.policy)
