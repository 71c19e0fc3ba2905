"""Episodes of tasks for tests: many steps in one compiled program, and one copy stepped by hand."""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from starleague.companions.tasks.task import Task, TimeStep


class Played(NamedTuple):
  """A reset and T steps, time-major.

  Attributes:
    keys: [T + 1, n]: of the reset, then of each step.
    actions: [T, n, *action_shape] int32, uniform.
    steps: TimeStep [T + 1, n, ...], numpy.
  """

  keys: jax.Array
  actions: np.ndarray
  steps: TimeStep


def play(task: Task, length: int, seed: int = 0) -> Played:
  """Plays random actions. The program is compiled once: the second call must not trace again."""
  keys = jax.random.split(jax.random.key(seed), (length + 1, task.copies))
  actions = jax.random.randint(jax.random.key(seed + 1), (length, task.copies, *task.action_shape),
                               0, task.num_actions)

  @jax.jit
  @chex.assert_max_traces(n=1)
  def run(keys, actions):
    state, first = task.reset(keys[0])
    _, steps = jax.lax.scan(lambda state, inputs: task.step(state, *inputs), state,
                            (keys[1:], actions))
    return jax.tree.map(lambda one, more: jnp.concatenate([one[None], more]), first, steps)

  steps = jax.device_get(run(keys, actions))
  chex.clear_trace_counter()
  return Played(keys, np.asarray(actions), steps)


def check(task: Task, played: Played) -> None:
  """Checks shapes and dtypes against the task's specs, and the marks of resets and ends."""
  length, copies = played.actions.shape[:2]
  steps = played.steps

  def agrees(spec, found):
    assert (found.shape, found.dtype) == ((length + 1, copies, *spec.shape), spec.dtype)
    assert spec.dtype in (bool, np.uint8, np.int16, np.int32, np.float32)

  jax.tree.map(agrees, task.observation, steps.observation)
  for found, dtype in ((steps.reward, np.float32), (steps.discount, np.float32),
                       (steps.first, np.bool_)):
    assert (found.shape, found.dtype) == ((length + 1, copies), dtype)
  assert steps.first[0].all() and (steps.discount[0] == 1).all() and (steps.reward[0] == 0).all()
  np.testing.assert_array_equal(steps.first[1:], steps.discount[1:] == 0)
  assert set(np.unique(steps.discount)) <= {0.0, 1.0}
  assert steps.first[1:].any(), "no episode ended: play longer"


def assert_same(one: TimeStep, other: TimeStep) -> None:
  """Both are equal to the bit."""
  jax.tree.map(np.testing.assert_array_equal, one, other)
