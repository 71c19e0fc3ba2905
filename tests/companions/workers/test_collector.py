"""Rounds: every copy has its steps, in order; lost copies begin again."""

import jax
import numpy as np
import pytest

from starleague.actor.inference import Header
from starleague.actor.inference import slots as slots_lib
from starleague.actor.inference.service import Polled
from starleague.companions.system import Inputs, Step
from starleague.companions.workers.collector import Collector
from starleague.data import wire
from starleague.data.records import Records

COPIES, ITERATIONS = 3, 2
_SCALAR = jax.ShapeDtypeStruct((), np.float32)
_INDEX = jax.ShapeDtypeStruct((), np.int32)
FORM = wire.StepFormat(
  Step(Inputs(_SCALAR, _INDEX, _SCALAR, jax.ShapeDtypeStruct((), np.bool_)), _INDEX, (), _SCALAR,
       _SCALAR), (jax.ShapeDtypeStruct((1,), np.float32),))


class FakeListener:
  """Slots of a listener whose events are the test's."""

  def __init__(self):
    self.memory = np.zeros((2 * COPIES, slots_lib.slot_format(FORM).size), np.uint8)
    self.events, self.claimed, self.refused = [], COPIES, []

  def ask(self, slot, copy, first=0):
    step = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), FORM.step)
    slots_lib.Slot(self.memory[slot], FORM).write(Header(first, 0, 0, copy, 0, 1), step)
    self.events.append(slot)

  def poll(self, timeout_s):
    del timeout_s
    asked, self.events = self.events, []
    return Polled(asked, [])

  def request(self, slot):
    return self.memory[slot, :slots_lib.slot_format(FORM).request]

  def refuse(self, slot, reason):
    self.refused.append((slot, reason))


@pytest.fixture
def listener():
  return FakeListener()


@pytest.fixture
def collector(listener):
  return Collector(listener, FORM, COPIES, ITERATIONS)


def lose(collector, listener, slot):
  """The client of a slot is gone."""
  listener.poll = lambda timeout_s: Polled([], [slot])
  collector.poll(0.0)
  del listener.poll


def records(slots, observation, reward=0.0, discount=1.0):
  """Steps as the service records them; the core state is the observation."""
  shape = (1, len(slots))
  number = np.full(shape, observation, np.float32)
  zero, flag = np.zeros(shape, np.int32), np.zeros(shape, bool)
  step = Step(Inputs(number, zero, number * 0, flag), zero, (), np.full(shape, reward, np.float32),
              np.full(shape, discount, np.float32))
  return Records(np.array([slots], np.int32), flag, flag, wire.pack_steps(step),
                 (number[..., None],))


def advance(collector, listener, slots, observation, **step):
  """The copies of slots ask and are recorded; returns those that may ask."""
  for slot in slots:
    listener.ask(slot, slot % COPIES, first=int(observation == 0))
  asked = list(collector.poll(0.0).asked)
  collector.add(records(asked, observation, **step), np.zeros((1, len(asked)), np.int32))
  return asked


def observations(acted):
  steps = wire.unpack_steps(acted.records.step, FORM)
  return np.asarray(steps.inputs.observation).T.tolist()


def test_copies_wait_for_the_others(collector, listener):
  assert advance(collector, listener, [0, 1, 2], 0) == []  # no round has begun
  collector.begin()
  assert sorted(collector.poll(0.0).asked) == [0, 1, 2]
  collector.add(records([0, 1, 2], 0), np.zeros((1, 3)))
  assert advance(collector, listener, [1], 1) == [1]
  assert advance(collector, listener, [1], 2) == []  # it has its two steps
  assert collector.claimed == 2 and not collector.complete
  assert advance(collector, listener, [0, 2], 1) == [0, 2]
  assert collector.complete
  acted = collector.take()
  assert observations(acted) == [[0, 1]] * 3 and list(acted.restarted) == [0, 1, 2]
  np.testing.assert_array_equal(acted.records.row, [[0, 1, 2]] * 2)
  np.testing.assert_array_equal(acted.records.core_state[0][..., 0], [[0] * 3, [1] * 3])
  collector.begin()
  assert list(collector.poll(0.0).asked) == [1]  # the request that was held
  collector.add(records([1], 2), np.zeros((1, 1)))
  assert advance(collector, listener, [2, 0], 2) == [2, 0]
  assert advance(collector, listener, [0, 1, 2], 3) == [0, 1, 2]
  acted = collector.take()
  assert observations(acted) == [[2, 3]] * 3 and list(acted.restarted) == []


def test_a_copy_that_is_lost_within_a_round_takes_all_its_steps_again(collector, listener):
  collector.begin()
  advance(collector, listener, [0, 1, 2], 0)
  lose(collector, listener, 1)
  collector.add(records([1], 50), np.zeros((1, 1)))  # was in a batch when its client died
  advance(collector, listener, [0, 2], 1)
  assert not collector.complete
  for observation in (0, 1):
    advance(collector, listener, [4], observation)  # slot 4 has copy 1
  acted = collector.take()
  assert observations(acted) == [[0, 1]] * 3
  collector.begin()
  advance(collector, listener, [0, 4, 2], 2)
  lose(collector, listener, 0)
  for observation in (0, 1):
    advance(collector, listener, [3], observation)
  advance(collector, listener, [4, 2], 3)
  acted = collector.take()
  assert observations(acted) == [[0, 1], [2, 3], [2, 3]] and list(acted.restarted) == [0]
  np.testing.assert_array_equal(acted.records.first, [[True, False, False], [False] * 3])


def test_steps_of_a_complete_copy_stay_and_its_next_round_begins_again(collector, listener):
  collector.begin()
  advance(collector, listener, [0, 1, 2], 0)
  advance(collector, listener, [0], 1)
  assert advance(collector, listener, [0], 2) == []  # held
  lose(collector, listener, 0)
  assert collector.claimed == COPIES  # no slot is held
  advance(collector, listener, [1, 2], 1)
  assert observations(collector.take()) == [[0, 1]] * 3
  collector.begin()
  for observation in (0, 1):
    advance(collector, listener, [3], observation)
  for observation in (2, 3):
    advance(collector, listener, [1, 2], observation)
  acted = collector.take()
  assert observations(acted) == [[0, 1], [2, 3], [2, 3]] and list(acted.restarted) == [0]


def test_episodes_are_added_up_over_rounds(collector, listener):
  """Copies are reset, then get 1, 2 and the end, 4, then 8 and a loss, 16 and the end."""
  collector.begin()
  advance(collector, listener, [0, 1, 2], 0)
  advance(collector, listener, [0, 1, 2], 1, reward=1.0)
  assert not np.asarray(collector.take().episodes.ended).any()
  collector.begin()
  advance(collector, listener, [0, 1, 2], 2, reward=2.0, discount=0.0)
  advance(collector, listener, [0, 1, 2], 3, reward=4.0)
  acted = collector.take()
  episodes = acted.episodes
  np.testing.assert_array_equal(episodes.ended, [[True] * 3, [False] * 3])
  np.testing.assert_array_equal(acted.records.first, episodes.ended)
  np.testing.assert_array_equal(episodes.returns[0], [3.0] * 3)
  np.testing.assert_array_equal(episodes.lengths[0], [2] * 3)
  collector.begin()
  advance(collector, listener, [0, 1, 2], 4, reward=8.0)
  lose(collector, listener, 2)
  advance(collector, listener, [0, 1], 5, reward=16.0, discount=0.0)
  advance(collector, listener, [5], 0)
  advance(collector, listener, [5], 1, reward=32.0, discount=0.0)
  episodes = collector.take().episodes
  np.testing.assert_array_equal(episodes.returns[1], [28.0, 28.0, 32.0])
  np.testing.assert_array_equal(episodes.lengths[1], [3, 3, 1])


def test_a_copy_has_one_client(collector, listener):
  collector.begin()
  advance(collector, listener, [0, 1, 2], 0)
  assert advance(collector, listener, [3], 0) == []
  listener.ask(4, copy=1)
  lose(collector, listener, 1)
  assert list(collector.poll(0.0).asked) == []  # a client that has begun elsewhere
  assert [slot for slot, _ in listener.refused] == [3, 4]
  assert all("is stepped by another client" in reason for _, reason in listener.refused)


def test_silent_copies_are_those_that_have_steps_to_take(collector, listener):
  collector.begin()
  assert collector.silent(3600.0) == []
  advance(collector, listener, [0], 0)
  advance(collector, listener, [0], 1)
  assert collector.silent(-1.0) == [1, 2]
  collector.expect([1])
  assert collector.silent(3600.0) == [] and collector.silent(-1.0) == [1, 2]
