"""Entropy, which keeps the policy from closing in too early.

Source: Williams and Peng 1991; Vinyals et al. 2019, Methods, for dividing each argument's by the
logarithm of its number of choices.
"""

import chex
import jax.numpy as jnp

from starleague.agent import distributions
from starleague.agent.types import Array


def action_entropy(logits: Array, legal: Array | None = None) -> Array:
  """Entropy of an argument, from 0 to 1: in units of its largest.

  `-sum_a p_a log p_a / log n`, n being the number of legal choices.

  Args:
    logits: [..., n] float; those under -5e8 are illegal.
    legal: [..., n] bool, choices that may be made; all where None.

  Returns:
    [...] float32; 0 where fewer than two choices are legal.
  """
  chex.assert_axis_dimension_gt(logits, -1, 0)
  if legal is not None:
    chex.assert_equal_shape([logits, legal])
    logits = jnp.where(legal, logits, distributions.NEGATIVE)
  return distributions.categorical_entropy(logits)


def entropy_loss(entropy: Array, mask: Array | None = None) -> Array:
  """What to minimise so that entropy grows: `-mask entropy`.

  Args:
    entropy: [...] float.
    mask: [...] bool or 0 and 1, whether the argument was used; all where None.

  Returns:
    [...] float.
  """
  return -entropy if mask is None else jnp.where(mask, -entropy, 0.0)
