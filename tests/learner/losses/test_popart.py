"""PopArt: worked moments, preserved outputs, rlax."""

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies

from starleague.learner import losses
from tests.learner.losses.worked import close
from tests.learner.rlax_without_tensorflow import rlax

seeds = strategies.integers(0, 2**32 - 1)
twin_test = hypothesis.settings(max_examples=20, deadline=None)
update_jit = jax.jit(losses.popart_update)


def state(shift, scale):
  shift, scale = jnp.atleast_1d(jnp.array(shift)), jnp.atleast_1d(jnp.array(scale))
  return losses.PopArtState(shift, scale, jnp.square(scale) + jnp.square(shift))


def test_popart_preserve_worked():
  params = {"w": jnp.array([[2.], [-1.]]), "b": jnp.array([.5])}
  old, new = state(1., 2.), state(3., 4.)
  after = losses.popart_preserve(params, old, new)
  close(after["w"], [[1.], [-.5]])
  close(after["b"], [-.25])
  features, task = jnp.array([.3, .7]), jnp.array([0])
  for layer, statistics in ((params, old), (after, new)):
    normalised = features @ layer["w"] + layer["b"]
    close(losses.popart_unnormalise(statistics, normalised, task), [1.8])


def test_popart_statistics_worked():
  new = losses.popart_statistics(losses.popart_init(1), jnp.array([10.]), jnp.array([0]))
  close(new.shift, [.003])
  close(new.second_moment, [1.0297])
  close(new.scale, [1.014737])


@twin_test
@hypothesis.given(seeds)
def test_popart_update_preserves_outputs_of_every_task(seed):
  rng = np.random.default_rng(seed)
  params = {"w": rng.normal(size=(4, 3)).astype(np.float32),
            "b": rng.normal(size=3).astype(np.float32)}
  old = state(rng.normal(size=3).astype(np.float32), np.exp(rng.normal(size=3)).astype(np.float32))
  targets, tasks = (100 * rng.normal(size=8)).astype(np.float32), rng.integers(0, 2, 8)
  after, new = update_jit(params, old, targets, tasks, step_size=0.01)
  features, every = rng.normal(size=4).astype(np.float32), np.arange(3)
  close(losses.popart_unnormalise(new, features @ after["w"] + after["b"], every),
        losses.popart_unnormalise(old, features @ params["w"] + params["b"], every), 1e-4)
  for k in range(3):
    mine = targets[tasks == k].astype(np.float64)
    step = 0.01 if len(mine) else 0.0
    mean, square = (mine.mean(), (mine**2).mean()) if len(mine) else (0.0, 0.0)
    shift = (1 - step) * np.float64(old.shift[k]) + step * mean
    moment = (1 - step) * np.float64(old.second_moment[k]) + step * square
    np.testing.assert_allclose(new.shift[k], shift, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(new.second_moment[k], moment, rtol=1e-5)
    np.testing.assert_allclose(new.scale[k], np.sqrt(moment - shift**2), rtol=1e-4)
  assert new.scale[2] == old.scale[2]  # a task without targets keeps its moments
  close(losses.popart_unnormalise(new, losses.popart_normalise(new, targets, tasks), tasks),
        targets, 1e-3)


def test_popart_equals_rlax_with_one_target_per_task():
  params = {"w": jnp.array([[2., .1], [-1., .3]]), "b": jnp.array([.5, -.5])}
  targets, tasks = jnp.array([10., -3.]), jnp.array([1, 0])
  initial, update = rlax.popart(2, step_size=3e-4, scale_lb=1e-4, scale_ub=1e6)
  expected_params, expected = update(params, initial(), targets, tasks)
  after, new = losses.popart_update(params, losses.popart_init(2), targets, tasks)
  for field in ("shift", "scale", "second_moment"):
    close(getattr(new, field), getattr(expected, field))
  close(after["w"], expected_params["w"])
  close(after["b"], expected_params["b"])


def test_popart_scale_stays_within_bounds():
  start = losses.popart_init(1)
  same = losses.popart_statistics(start, jnp.full(4, 2.0), jnp.zeros(4, int), step_size=1.0)
  close(same.scale, [1e-4], 1e-9)  # constant targets
  large = losses.popart_statistics(
    start, jnp.array([1e4, -1e4]), jnp.zeros(2, int), step_size=1.0, max_scale=100.0)
  close(large.scale, [100.0], 1e-3)


def test_popart_over_devices_equals_popart_of_the_whole_batch():
  targets, tasks = jnp.array([1., 5., -2., 7.]), jnp.array([0, 1, 0, 0])
  start = losses.popart_init(2)
  split = jax.vmap(
    lambda t, k: losses.popart_statistics(start, t, k, step_size=.1, axis_name="batch"),
    axis_name="batch")(targets.reshape(2, 2), tasks.reshape(2, 2))
  whole = losses.popart_statistics(start, targets, tasks, step_size=.1)
  for part, expected in zip(split, whole, strict=True):
    close(part, np.stack([expected] * 2))
