"""Games of MinAtar against pgx stepped by hand."""

import jax
import numpy as np
import pgx
import pytest

from starleague.companions.tasks.registry import make_task
from starleague.companions.tasks.task import TaskError
from tests.companions.tasks import episodes


@pytest.mark.parametrize("game, channels, actions, length", [
  ("breakout", 4, 3, 60), pytest.param("asterix", 4, 5, 150, marks=pytest.mark.slow),
  pytest.param("space_invaders", 6, 4, 200, marks=pytest.mark.slow),
  pytest.param("seaquest", 10, 6, 100, marks=pytest.mark.slow)])
def test_a_game_is_that_of_pgx(game, channels, actions, length):
  task = make_task(f"minatar-{game}", copies=3)
  assert task.observation == jax.ShapeDtypeStruct((10, 10, channels), bool)
  assert task.num_actions == actions
  played = episodes.play(task, length)
  episodes.check(task, played)
  environment = pgx.make(f"minatar-{game}")
  init, step = jax.jit(environment.init), jax.jit(environment.step)
  state = init(played.keys[0, 1])
  for time in range(length):
    np.testing.assert_array_equal(played.steps.observation[time, 1], state.observation)
    step_key, init_key = jax.random.split(played.keys[time + 1, 1])
    state = step(state, played.actions[time, 1], step_key)
    assert played.steps.reward[time + 1, 1] == state.rewards[0]
    assert played.steps.first[time + 1, 1] == state.terminated
    state = init(init_key) if state.terminated else state


def test_a_limit_ends_freeway_which_random_actions_do_not():
  steps = episodes.play(make_task("minatar-freeway:limit=20", copies=2), 45).steps
  np.testing.assert_array_equal(np.flatnonzero(steps.first[:, 0]), [0, 20, 40])


def test_parameters_reach_the_game():
  assert make_task("minatar-breakout:minimal=false", copies=1).num_actions == 6
  with pytest.raises(TaskError, match=r"task 'minatar-breakout:sticky=2': sticky is 2.0; expected "
                                      "a probability"):
    make_task("minatar-breakout:sticky=2", copies=1)
