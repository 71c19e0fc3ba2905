"""Gymnasium's environments as dm_env environments: spaces, actions, ends."""

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium import spaces

from starleague.companions.tasks.gymnasium import (
  GymnasiumEnvironment,
  decode_action,
  encode,
  spec_of,
)
from starleague.companions.tasks.registry import make_task
from starleague.companions.tasks.task import TaskError
from tests.companions.tasks import episodes


@pytest.mark.parametrize("space, value, encoded", [
  (spaces.Discrete(4, start=2), 3, [False, True, False, False]),
  (spaces.MultiDiscrete([2, 3]), [1, 0], [False, True, True, False, False]),
  (spaces.MultiDiscrete([[2], [2]], start=[[1], [1]]), [[2], [1]], [False, True, True, False]),
  (spaces.MultiBinary(2), np.array([0, 1]), [0, 1]),
  (spaces.Box(0, 9, (2,), np.uint8), np.array([4, 5], np.uint8), [4, 5]),
  (spaces.Tuple((spaces.Discrete(2), spaces.Box(0, 1, (1,)))), (1, np.array([0.5])),
   ([False, True], [0.5])),
  (spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Discrete(1)}), {"a": 0, "b": 0},
   ([True], [True, False]))])
def test_observations_are_encoded(space, value, encoded):
  found = encode(space, value)
  jax.tree.map(np.testing.assert_array_equal, found,
               encoded if isinstance(encoded, tuple) else np.array(encoded))
  jax.tree.map(lambda spec, leaf: np.testing.assert_equal(spec.shape, np.shape(leaf)),
               spec_of(space), found)


def test_spaces_of_other_kinds_are_refused():
  with pytest.raises(ValueError, match=r"an observation space Text\(.*; expected numbers, disc"):
    spec_of(spaces.Text(3))


@pytest.mark.parametrize("space, actions", [
  (spaces.Discrete(3, start=-1), [-1, 0, 1]),
  (spaces.MultiDiscrete([2, 3]), [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]])])
def test_every_action_has_a_number(space, actions):
  found = [decode_action(space, number) for number in range(len(actions))]
  np.testing.assert_array_equal(found, actions)
  assert all(space.contains(action) for action in found)


def test_cart_pole_is_that_of_gymnasium():
  task = make_task("gymnasium-CartPole-v1", copies=2)
  assert task.observation == jax.ShapeDtypeStruct((4,), np.float32)
  played = episodes.play(task, 100)
  episodes.check(task, played)
  environment = gymnasium.make("CartPole-v1")
  seed = int(jax.random.randint(played.keys[0, 1], (), 0, 2**31 - 1))
  observation, _ = environment.reset(seed=seed)
  for time in range(100):
    np.testing.assert_array_equal(played.steps.observation[time, 1], observation)
    observation, reward, ended, _, _ = environment.step(int(played.actions[time, 1]))
    assert (reward, ended) == (played.steps.reward[time + 1, 1], played.steps.first[time + 1, 1])
    if ended:
      observation, _ = environment.reset()


def test_a_truncation_is_one_in_dm_env_too():
  environment = GymnasiumEnvironment(gymnasium.make("MountainCar-v0", max_episode_steps=3), 0)
  environment.reset()
  last = [environment.step(1) for _ in range(3)][-1]
  assert last.last() and last.discount == 1.0


def test_continuous_actions_are_refused_by_name():
  with pytest.raises(TaskError, match=r"^task 'gymnasium-Pendulum-v1' has continuous actions \(.*Bo"
                                      r"x action.*\); these systems play discrete ones only$"):
    make_task("gymnasium-Pendulum-v1", copies=2)
