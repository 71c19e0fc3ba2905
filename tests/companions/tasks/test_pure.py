"""A countdown whose length is drawn: every number of it is known."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.companions.tasks.pure import Copy, make_pure_task
from tests.companions.tasks import episodes

COUNTDOWN = Copy(
  init=lambda key: jax.random.randint(key, (), 2, 6),
  step=lambda state, key, action: (state - 1, 10.0 * state + action, state == 1),
  observe=lambda state: (state, jnp.zeros(3, bool)))


def countdown(copies=4, **options):
  return make_pure_task("countdown", copies, COUNTDOWN, 2, **options)


@pytest.mark.parametrize("cheap_init", [True, False])
def test_ends_give_reward_of_the_end_and_first_observation_of_the_next_episode(cheap_init):
  task = countdown(cheap_init=cheap_init, symbols=(6,))
  assert task.symbols == (6,) and task.action_shape == ()
  played = episodes.play(task, 30)
  episodes.check(task, played)
  for copy in range(4):
    state = int(COUNTDOWN.init(played.keys[0, copy]))
    for time in range(30):
      found = jax.tree.map(lambda leaf: leaf[time + 1, copy], played.steps)  # noqa: B023
      assert found.reward == 10 * state + played.actions[time, copy]
      assert found.first == (state == 1) and found.discount == (state != 1)
      new = COUNTDOWN.init(jax.random.split(played.keys[time + 1, copy])[1])
      state = int(new) if state == 1 else state - 1
      assert found.observation[0] == state


def test_both_ways_to_reset_are_equal():
  ways = [episodes.play(countdown(cheap_init=cheap), 30).steps for cheap in (True, False)]
  episodes.assert_same(*ways)


def test_a_limit_ends_episodes_with_discount_0():
  task = countdown(limit=3)
  steps = episodes.play(task, 40).steps
  starts = np.flatnonzero(steps.first[:, 0])
  assert set(np.diff(starts)) == {2, 3}
  assert (steps.discount[steps.first][4:] == 0).all()


def test_equal_keys_give_equal_episodes_and_others_do_not():
  task = countdown()
  episodes.assert_same(episodes.play(task, 20).steps, episodes.play(task, 20).steps)
  with pytest.raises(AssertionError):
    episodes.assert_same(episodes.play(task, 20).steps, episodes.play(task, 20, seed=7).steps)


def test_a_program_is_compiled_once():
  task = countdown()
  traced = jax.jit(chex.assert_max_traces(task.step, n=1))
  keys = jax.random.split(jax.random.key(0), 4)
  state, _ = task.reset(keys)
  for _ in range(100):
    state, _ = traced(state, keys, jnp.zeros(4, jnp.int32))
  chex.clear_trace_counter()


def test_batches_of_another_size_are_refused():
  task = countdown()
  with pytest.raises(AssertionError):
    task.reset(jax.random.split(jax.random.key(0), 3))
  state, _ = task.reset(jax.random.split(jax.random.key(0), 4))
  with pytest.raises(AssertionError):
    task.step(state, jax.random.split(jax.random.key(0), 4), jnp.zeros((4, 1), jnp.int32))


def test_old_style_keys_work_too():
  task = countdown(copies=2)
  state, step = task.reset(jax.random.split(jax.random.PRNGKey(0), 2))
  assert step.observation[0].shape == (2,)
  _, step = task.step(state, jax.random.split(jax.random.PRNGKey(1), 2), jnp.zeros(2, jnp.int32))
  np.testing.assert_array_equal(step.reward, 10 * state.copies)
