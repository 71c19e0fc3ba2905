"""The scalar encoder: classes of the rating, time, counts and build orders."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import types
from starleague.agent.encoders import scalar
from tests.agent.encoders.observations import MINI, transformed


@pytest.mark.parametrize(("mmr", "bucket"), [
  (-5, 0), (0, 0), (3500, 3), (5999, 5), (6200, 6), (7100, 6)])
def test_mmr_is_in_thousands_up_to_six(mmr, bucket):
  assert int(scalar.mmr_class(jnp.int16(mmr))) == bucket


def test_time_embedding_covers_all_timescales():
  np.testing.assert_allclose(scalar.time_embedding(jnp.int32(0), 8), [0, 0, 0, 0, 1, 1, 1, 1])
  scales = np.array([1.0, 10 ** (5 / 3), 10 ** (10 / 3), 1e5])
  np.testing.assert_allclose(
    scalar.time_embedding(jnp.int32(90), 8),
    [*np.sin(90 / scales), *np.cos(90 / scales)], atol=1e-5)


def test_negative_scores_are_finite():
  np.testing.assert_allclose(scalar.log_counts(jnp.array([-7, 0, 1])), [0, 0, np.log(2)], rtol=1e-6)


@pytest.mark.parametrize("pooling", ["flatten", "mean"])
def test_empty_build_order_is_zero_and_order_matters(pooling):
  sizes = dataclasses.replace(MINI.scalar, build_order_pooling=pooling)
  network = transformed(lambda z: scalar.BuildOrderEncoder(sizes, name="build_order")(
    z, jnp.float32))
  z = types.zeros(types.statistics_spec())
  params = jax.jit(network.init)(jax.random.key(0), z)
  apply = jax.jit(network.apply)
  np.testing.assert_array_equal(apply(params, z), 0.0)
  places = z._replace(build_order_xy=np.full((20, 2), 9, np.uint8))
  np.testing.assert_array_equal(apply(params, places), 0.0)
  orders = [z._replace(build_order=np.array([*two, *[0] * 18], np.uint8)) for two in
            ((5, 9), (9, 5))]
  forwards, backwards = (np.asarray(apply(params, order)) for order in orders)
  assert np.abs(forwards - backwards).max() > 1e-3
