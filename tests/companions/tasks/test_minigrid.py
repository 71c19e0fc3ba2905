"""Grid worlds against xminigrid stepped by hand."""

import jax
import numpy as np
import pytest
import xminigrid

from starleague.companions.tasks import minigrid
from starleague.companions.tasks.registry import make_task
from tests.companions.tasks import episodes


@pytest.mark.parametrize("world, view, length", [
  ("Empty-5x5", 7, 300), pytest.param("MemoryS8", 3, 300, marks=pytest.mark.slow),
  pytest.param("DoorKey-5x5", 7, 300, marks=pytest.mark.slow),
  pytest.param("UnlockPickUp", 7, 300, marks=pytest.mark.slow)])
def test_a_world_is_that_of_xminigrid(world, view, length):
  task = make_task(f"xminigrid-{world}", copies=4)
  assert task.observation == jax.ShapeDtypeStruct((view, view, 2), np.uint8)
  assert (task.num_actions, task.symbols) == (6, (13, 12))
  played = episodes.play(task, length)
  episodes.check(task, played)
  environment, parameters = xminigrid.make(f"MiniGrid-{world}")
  reset = jax.jit(lambda key: environment.reset(parameters, key))
  step = jax.jit(lambda state, action: environment.step(parameters, state, action))
  for copy in range(2):
    state = reset(played.keys[0, copy])
    for time in range(length):
      np.testing.assert_array_equal(played.steps.observation[time, copy], state.observation)
      state = step(state, played.actions[time, copy])
      np.testing.assert_allclose(played.steps.reward[time + 1, copy], state.reward, rtol=1e-6)
      assert played.steps.first[time + 1, copy] == state.last()
      if state.last():
        state = reset(jax.random.split(played.keys[time + 1, copy])[1])


def test_symbols_are_below_their_numbers_and_the_view_is_a_parameter():
  task = make_task("xminigrid-Empty-5x5:view=5,limit=30", copies=4)
  steps = episodes.play(task, 40).steps
  assert steps.observation.shape[2:] == (5, 5, 2)
  assert (steps.observation.max((0, 1, 2, 3)) < task.symbols).all()
  assert steps.first[1:31].any(0).all()


def test_worlds_that_need_rule_sets_are_left_out():
  assert {"MemoryS16", "DoorKey-8x8", "UnlockPickUp"} <= set(minigrid.TASKS)
  assert not any("XLand" in name for name in minigrid.TASKS)
