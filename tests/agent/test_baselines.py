"""The five value functions: squashing, and the inputs of each."""

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import baselines, config, types

MINI = config.mini()


@pytest.mark.parametrize(("x", "expected"), [
  (0.0, 0.0), (0.5, 0.423845), (1.0, 0.639093), (-2.0, -0.803813), (10.0, 0.959526)])
def test_bounded_value(x, expected):
  np.testing.assert_allclose(baselines.bounded_value(jnp.float32(x)), expected, atol=1e-6)


def test_bounded_value_has_slope_one_at_zero():
  np.testing.assert_allclose(jax.grad(baselines.bounded_value)(0.0), 1.0, rtol=1e-6)


@pytest.fixture(scope="module")
def values():
  core_output = jax.random.normal(jax.random.key(0), (MINI.core_size,))
  observation = types.zeros(types.observation_spec(MINI.max_entities, MINI.map_size))
  privileged = types.zeros(types.privileged_spec())
  network = hk.without_apply_rng(hk.transform(lambda *x: baselines.values(MINI, *x)))
  params = jax.jit(network.init)(jax.random.key(1), core_output, observation, privileged)
  apply = jax.jit(network.apply)

  def run(change=lambda observation, privileged: (observation, privileged), scale=1.0):
    scaled = {name: jax.tree.map(lambda x: x * scale, entries) if name.endswith("_value") else
              entries for name, entries in params.items()}
    return np.asarray(apply(scaled, core_output, *change(observation, privileged)))
  return run


def _changed(values, change):
  return {reward for reward, before, after in zip(
    types.REWARDS, values(), values(change), strict=True) if before != after}


def _privileged(part):
  """(field of z) -> a change of that part of the privileged inputs."""
  def of_field(field):
    def change(observation, privileged):
      z = getattr(privileged, part)
      ones = z._replace(**{field: np.ones_like(getattr(z, field))})
      return observation, privileged._replace(**{part: ones})
    return change
  return of_field


def _target(field):
  def change(observation, privileged):
    ones = np.ones_like(getattr(observation.statistics, field))
    return observation._replace(
      statistics=observation.statistics._replace(**{field: ones})), privileged
  return change


@pytest.mark.parametrize("side", [
  _privileged("executed"), _target, _privileged("opponent_statistics")])
@pytest.mark.parametrize(("field", "readers"), [
  ("units", {"winloss", "build_order", "built_units"}),
  ("upgrades", {"build_order", "upgrades"}),
  ("effects", {"build_order", "effects"}),
  ("build_order", set(types.REWARDS)),
])
def test_each_value_reads_its_part_of_the_statistics(values, side, field, readers):
  assert _changed(values, side(field)) == readers


@pytest.mark.parametrize("field", [
  "cumulative_score", "opponent_player", "opponent_upgrades", "opponent_unit_counts",
  "opponent_cumulative_score"])
def test_all_values_read_the_privileged_scalars(values, field):
  def change(observation, privileged):
    return observation, privileged._replace(
      **{field: np.ones_like(getattr(privileged, field)) * 9})
  assert _changed(values, change) == set(types.REWARDS)


def test_only_winloss_is_bounded(values):
  large = values(scale=1e4)
  assert large.dtype == np.float32
  assert abs(large[0]) <= 1.0
  assert (np.abs(large[1:]) > 2.0).all()
  np.testing.assert_allclose(large[1:], values()[1:] * 1e4, rtol=1e-3)
