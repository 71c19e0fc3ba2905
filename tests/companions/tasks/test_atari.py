"""Atari games against ale-py's vectorised environment that resets one step later."""

import jax
import numpy as np
import pytest
from ale_py.vector_env import AtariVectorEnv

from starleague.companions.tasks.registry import make_task, task_names
from starleague.companions.tasks.task import TaskError
from tests.companions.tasks import episodes


@pytest.mark.parametrize("parameters, length", [("limit=20", 50), ("limit=0", 220)])
def test_a_game_is_that_of_ale(parameters, length):
  task = make_task(f"ale-Breakout:threads=1,{parameters}", copies=2)
  assert task.observation == jax.ShapeDtypeStruct((84, 84, 4), np.uint8)
  assert task.num_actions == 4
  played = episodes.play(task, length)
  episodes.check(task, played)
  limit = int(parameters.partition("=")[2])
  games = AtariVectorEnv("breakout", 1, reward_clipping=False, num_threads=1,
                         max_num_frames_per_episode=4 * limit or 10**8)
  seed = np.array([jax.random.randint(played.keys[0, 1], (), 0, 2**31 - 1)])
  frames, _ = games.reset(seed=seed)
  rewards = 0
  for time in range(length):
    np.testing.assert_array_equal(np.moveaxis(played.steps.observation[time, 1], -1, 0), frames[0])
    frames, reward, terminated, truncated, _ = games.step(played.actions[time, 1:])
    ended = bool(terminated[0] or truncated[0])
    rewards += reward[0]
    assert (played.steps.reward[time + 1, 1], played.steps.first[time + 1, 1]) == (reward[0], ended)
    if ended:  # the next step resets, whatever the action
      frames, _, _, _, _ = games.step(np.zeros(1, np.int32))
  assert rewards > 0 or limit


def test_a_limit_counts_steps():
  steps = episodes.play(make_task("ale-Pong:limit=20,threads=1", copies=1), 45).steps
  np.testing.assert_array_equal(np.flatnonzero(steps.first[:, 0]), [0, 20, 40])


def test_names_and_parameters():
  assert {"ale-Pong", "ale-MsPacman", "ale-SpaceInvaders"} <= set(task_names("ale"))
  assert make_task("ale-Pong:minimal=false", copies=1).num_actions == 18
  with pytest.raises(TaskError, match="^task 'ale-Pong:sticky=-1': sticky is -1.0; expected"):
    make_task("ale-Pong:sticky=-1", copies=1)
  with pytest.raises(TaskError, match="^unknown task 'ale-pong': did you mean ale-Pong"):
    make_task("ale-pong", copies=1)
