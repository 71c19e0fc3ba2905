"""Parameters as one matrix."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.learner import flat

PARAMS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.float32(7.0),
          "c": np.full(1100, 8.0, np.float32)}
VALUES = [*range(6), 7, *[8] * 1100, *[0] * (2048 - 1107)]


def test_leaves_follow_one_another_and_zeros_fill_the_last_rows():
  for found in (flat.flatten(PARAMS, np), jax.jit(flat.flatten)(jax.tree.map(jnp.asarray, PARAMS))):
    assert found.shape == (16, 128) and found.dtype == np.float32
    np.testing.assert_array_equal(found.ravel(), VALUES)


def test_unflatten_inverts_flatten():
  back = jax.jit(flat.unflatten)(flat.flatten(PARAMS, np), PARAMS)
  jax.tree.map(np.testing.assert_array_equal, back, PARAMS)
  assert jax.tree.map(jnp.shape, back) == {"a": (2, 3), "b": (), "c": (1100,)}


def test_repeat_gives_all_elements_of_an_array_its_value():
  found = flat.repeat({"a": False, "b": True, "c": True}, PARAMS)
  assert found.dtype == bool
  np.testing.assert_array_equal(np.flatnonzero(found), np.arange(6, 1107))


@pytest.mark.parametrize("size, padded", [(0, 0), (1, 1024), (1024, 1024), (1025, 2048)])
def test_sizes_are_whole_blocks(size, padded):
  assert flat.flatten({"a": np.zeros(size, np.float32)}, np).shape == (padded // 128, 128)
