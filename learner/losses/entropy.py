"""Entropy regularisation, which prevents premature convergence.

Sources: Williams and Peng 1991; Vinyals et al. 2019, Methods, for the normalisation of each
argument's entropy by the logarithm of its number of choices.
"""

import chex
import jax.numpy as jnp

from starleague.agent import distributions
from starleague.agent.types import Array


def action_entropy(logits: Array, legal: Array | None = None) -> Array:
  """Computes an argument's entropy normalised by log n, `-sum_a p_a log p_a / log n`.

  n is the number of legal choices, so that a uniform policy has entropy 1.

  Args:
    logits: [..., n] float; choices whose logit is below -5e8 are illegal.
    legal: [..., n] bool, legal choices; None: all are.

  Returns:
    [...] float32 in [0, 1]; 0 where fewer than two choices are legal.
  """
  chex.assert_axis_dimension_gt(logits, -1, 0)
  if legal is not None:
    chex.assert_equal_shape([logits, legal])
    logits = jnp.where(legal, logits, distributions.NEGATIVE)
  return distributions.categorical_entropy(logits)


def entropy_loss(entropy: Array, mask: Array | None = None) -> Array:
  """Computes the entropy-regularisation loss, `-mask entropy`.

  Args:
    entropy: [...] float.
    mask: [...] bool or 0 and 1, whether the argument is used; None: all are.

  Returns:
    [...] float.
  """
  return -entropy if mask is None else jnp.where(mask, -entropy, 0.0)
