"""A worker sends each step of its copies once, with the right flags, last actions and rewards."""

import numpy as np
import pytest

from starleague.actor.inference import ServiceError
from starleague.companions.system import step_format
from starleague.companions.workers import worker
from tests.companions.workers import counted

SEEDS, NOISE, STEPS = np.array([4, 7]), np.array([1, 2], np.int32), 12


class FakeClient:
  """Answers the action (moment + copy) modulo 3, and ends after some steps."""

  def __init__(self):
    self.asked = []

  def act_all(self, headers, step):
    if len(self.asked) == STEPS:
      raise ServiceError("the service has ended")
    self.asked.append((headers, step))
    return np.array([(len(self.asked) + copy) % counted.ACTIONS for copy in (1, 2)], np.int32)


@pytest.fixture(scope="module")
def asked():
  client, task = FakeClient(), counted.make(2)
  form = step_format(counted.make_system(), task)
  with pytest.raises(ServiceError):
    worker.act(client, form, task.host, SEEDS, NOISE)
  return client.asked


def test_headers_number_the_steps(asked):
  for number, (header, _) in enumerate(asked):
    assert (header.first, header.last, header.player, header.number, header.recorded) == (
      int(number == 0), 0, 0, number, 1)
    np.testing.assert_array_equal(header.seed, NOISE)


def test_steps_are_those_of_the_environments(asked):
  for copy, seed in enumerate(SEEDS.tolist()):
    seen, reward, action, first = counted.Seen(seed, 0, 0, 0), np.float32(0), 0, True
    for number, (_, step) in enumerate(asked):
      assert step.inputs.observation[copy].tolist() == list(seen)
      assert step.inputs.first[copy] == first
      assert step.reward[copy] == reward
      assert step.discount[copy] == (0.0 if first and number else 1.0)
      assert step.inputs.last_action[copy] == (0 if first else action)
      assert step.inputs.last_reward[copy] == (0.0 if first else reward)
      assert step.action[copy] == step.behaviour[copy] == 0  # the service writes them
      action = (number + 1 + copy + 1) % counted.ACTIONS
      reward = counted.reward(seen, action)
      first = seen.step + 1 == counted.length(seed, seen.episode)
      seen = counted.Seen(seed, seen.moment + 1, seen.episode + first,
                          0 if first else seen.step + 1)
  assert sum(step.inputs.first.sum() for _, step in asked) > 6
