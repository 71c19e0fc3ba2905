"""Joined tasks: each copy plays its own task as it would alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.companions.tasks import joined, registry
from starleague.companions.tasks.task import TaskError, part_slices

NAME = "minatar-breakout+minatar-asterix:scale=10"


def test_copies_play_as_they_would_alone():
  both = registry.make_task(NAME, 4)
  alone = [registry.make_task(name, 2) for name in NAME.split("+")]
  keys = jax.random.split(jax.random.key(0), 4)
  state, seen = both.reset(keys)
  states, alone_seen = zip(*(task.reset(keys[2 * i:2 * i + 2]) for i, task in enumerate(alone)),
                           strict=True)
  step, steps = jax.jit(both.step), [jax.jit(task.step) for task in alone]
  states, channels = list(states), [task.observation.shape[-1] for task in alone]
  assert both.num_actions == max(task.num_actions for task in alone)
  for t in range(40):
    keys = jax.random.split(jax.random.key(t), 4)
    # The largest actions: in the task that lacks them, the first one is taken.
    action = jnp.full(4, both.num_actions - 1 - t % 2)
    state, seen = step(state, keys, action)
    for i, task in enumerate(alone):
      rows = slice(2 * i, 2 * i + 2)
      own = jnp.where(action[rows] < task.num_actions, action[rows], 0)
      states[i], expected = steps[i](states[i], keys[rows], own)
      found = seen.observation.observation[rows]
      np.testing.assert_array_equal(found[..., :channels[i]], expected.observation)
      assert not found[..., channels[i]:].any()
      for field in ("reward", "discount", "first"):
        np.testing.assert_array_equal(getattr(seen, field)[rows], getattr(expected, field))
  np.testing.assert_array_equal(seen.observation.task, [0, 0, 1, 1])
  assert part_slices(both) == {
    "/minatar-breakout": slice(0, 2), "/minatar-asterix:scale=10": slice(2, 4)}


@pytest.mark.parametrize("name, copies, message", [
  (NAME, 3, "3 copies cannot be shared by 2 tasks; expected a multiple of 2"),
  ("minatar-breakout+bsuite-catch", 2, "'bsuite-catch' cannot be joined with 'minatar-breakout'"),
  ("minatar-asterix+minatar-breakout+minatar-breakout", 3,
   "task 'minatar-asterix+minatar-breakout+minatar-breakout': found 'minatar-breakout' twice, "
   "expected tasks of different names"),
  ("minatar-breakout+", 2, "unknown task 'minatar-breakout+': did you mean minatar-breakout")])
def test_tasks_that_do_not_fit_are_named(name, copies, message):
  with pytest.raises(TaskError) as error:
    registry.make_task(name, copies)
  assert message in str(error.value)


def test_a_single_task_has_one_part():
  task = registry.make_task("minatar-breakout", 3)
  assert part_slices(task) == {"": slice(0, 3)}
  assert joined.join("one", [task]).parts == (("minatar-breakout", 3),)
