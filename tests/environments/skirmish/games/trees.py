"""Comparison of replays and states."""

import jax
import numpy as np


def leaves(tree):
  """Returns (path, numpy array) of each leaf."""
  return [(jax.tree_util.keystr(path), np.asarray(leaf))
          for path, leaf in jax.tree_util.tree_leaves_with_path(tree)]


def assert_equal(one, other):
  """Asserts that two trees have equal paths, dtypes and values."""
  for (name, values), (other_name, others) in zip(leaves(one), leaves(other), strict=True):
    assert name == other_name and values.dtype == others.dtype, name
    np.testing.assert_array_equal(values, others, err_msg=name)
