"""dm_env environments behind the callback."""

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dm_env import specs

from starleague.companions.tasks.host import make_host_task
from starleague.companions.tasks.task import TaskError
from tests.companions.tasks import episodes


class Walk(dm_env.Environment):
  """Walks right with action 1; ends at 3; discounts of 0.5 on the way; breaks where told."""

  def __init__(self, seed, breaks_at=None, dtype=np.float64):
    self.seed, self.breaks_at, self.dtype = seed, breaks_at, dtype

  def reset(self):
    self.place = 0
    return dm_env.restart(self._observation())

  def step(self, action):
    self.place += action
    if self.place == self.breaks_at:
      raise ZeroDivisionError("the floor is missing")
    if self.place == 3:
      return dm_env.truncation(5.0, self._observation(), discount=1.0)
    return dm_env.transition(0.25, self._observation(), discount=0.5)

  def _observation(self):
    return (np.full(2, self.place, self.dtype), np.array(self.seed % 7, np.int64))

  def observation_spec(self):
    return (specs.Array((2,), self.dtype, "place"), specs.Array((), np.int64, "seed"))

  def action_spec(self):
    return specs.DiscreteArray(2)


def walk(copies=3, limit=0, **options):
  return make_host_task("walk", copies, lambda seed: Walk(seed, **options), limit=limit)


def keys(copies=3, seed=0):
  return jax.random.split(jax.random.key(seed), copies)


def test_truncations_end_episodes_and_wide_dtypes_are_narrowed():
  task = walk()
  assert [leaf.dtype for leaf in task.observation] == [np.float32, np.int32]
  played = episodes.play(task, 40)
  episodes.check(task, played)
  for copy in range(3):
    place = 0
    for action, observation, reward, first in zip(
        played.actions[:, copy], played.steps.observation[0][1:, copy],
        played.steps.reward[1:, copy], played.steps.first[1:, copy], strict=True):
      place += action
      assert (reward, first) == ((5.0, True) if place == 3 else (0.25, False))
      place %= 3
      assert (observation == place).all()


@pytest.mark.parametrize("dtype, narrowed", [
  (np.uint8, np.uint8), (bool, bool), (np.int8, np.int16), (np.int64, np.int32),
  (np.float16, np.float32)])
def test_dtypes(dtype, narrowed):
  assert walk(dtype=dtype).observation[0].dtype == narrowed


def test_a_limit_ends_episodes():
  task = walk(limit=4)
  state, _ = task.reset(keys())
  ends = []
  for _ in range(9):
    state, step = task.step(state, keys(), jnp.zeros(3, jnp.int32))
    ends.append((bool(step.first.all()), float(step.discount[0])))
  assert ends == 2 * ([(False, 1.0)] * 3 + [(True, 0.0)]) + [(False, 1.0)]


def test_copies_are_seeded_by_the_keys_of_the_reset():
  task = walk(copies=32)
  seeds = [np.asarray(task.reset(keys(32, seed))[1].observation[1]) for seed in (0, 0, 1)]
  np.testing.assert_array_equal(seeds[0], seeds[1])
  assert (seeds[0] != seeds[2]).any() and len(set(seeds[0])) == 7


@pytest.mark.parametrize("compiled", [True, False])
def test_an_error_names_the_task_and_the_copy(compiled):
  task = walk(breaks_at=2)
  step = jax.jit(task.step) if compiled else task.step
  state, _ = task.reset(keys())
  state, _ = step(state, keys(), jnp.ones(3, jnp.int32))
  with pytest.raises(Exception, match="task 'walk', copy 1: ZeroDivisionError: the floor is miss"):
    jax.block_until_ready(step(state, keys(), jnp.array([0, 1, 0])))


def test_after_an_error_another_task_works():
  test_an_error_names_the_task_and_the_copy(compiled=True)
  episodes.check(walk(), episodes.play(walk(), 20))


def test_an_old_state_is_refused():
  task = walk()
  old, _ = task.reset(keys())
  new, _ = task.step(old, keys(), jnp.zeros(3, jnp.int32))
  with pytest.raises(Exception, match="task 'walk': the state of step 1 is stepped, but the "
                                      "environments are at step 2; keep the latest state only"):
    jax.block_until_ready(task.step(old, keys(), jnp.zeros(3, jnp.int32)))
  task.step(new, keys(), jnp.zeros(3, jnp.int32))


def test_continuous_actions_are_refused():
  class Continuous(Walk):
    def action_spec(self):
      return specs.BoundedArray((2,), np.float32, -1, 1, "force")

  with pytest.raises(TaskError, match=r"^task 'pull' has continuous actions \(BoundedArray.*force.*"
                                      r"\); these systems play discrete ones only$"):
    make_host_task("pull", 2, Continuous)


def test_the_environments_are_those_that_the_task_steps():
  task = walk()
  state, first = task.reset(keys())
  for _ in range(4):
    state, step = task.step(state, keys(), jnp.array([0, 1, 1]))
  batch = walk().host
  np.testing.assert_array_equal(
    batch.reset(np.asarray(first.observation[1])).observation[0], np.zeros((3, 2)))
  for _ in range(4):
    found = batch.step(np.array([0, 1, 1]))
  assert found.observation[0].tolist() == np.asarray(step.observation[0]).tolist()
  assert (found.reward.tolist(), found.first.tolist()) == (
    np.asarray(step.reward).tolist(), np.asarray(step.first).tolist())
