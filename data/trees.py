"""Pytrees of arrays and typed keys."""

from typing import Any

import jax

Tree = Any  # a pytree of arrays and typed keys


def is_key(leaf: Any) -> bool:
  """Returns whether a leaf is a typed key."""
  return hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
