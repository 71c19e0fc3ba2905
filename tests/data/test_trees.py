"""Leaves of pytrees: which of them are typed keys."""

import jax
import numpy as np
import pytest

from starleague.data import trees


@pytest.mark.parametrize("leaf, expected", [
  (jax.random.key(0), True),
  (jax.eval_shape(lambda: jax.random.key(0)), True),
  (jax.random.PRNGKey(0), False),
  (np.zeros(2, np.uint32), False),
  (1.0, False),
  (None, False),
])
def test_typed_keys_are_told_from_arrays(leaf, expected):
  assert trees.is_key(leaf) is expected
