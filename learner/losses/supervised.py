"""Imitation of recorded actions.

Source: Vinyals et al. 2019, Methods: the KL from the human's action, a certain one, to the policy,
which is the cross-entropy.
"""

import chex
import jax.numpy as jnp

from starleague.agent import distributions
from starleague.agent.types import Array


def supervised_loss(logits: Array, labels: Array, mask: Array | None = None) -> Array:
  """Cross-entropy of one argument to the choice that was made.

  `-mask log p(label)`, and 0 where the label is illegal: a human can do what the masks rule out,
  and the policy cannot learn it; it would cost 1e9.

  Args:
    logits: [..., n] float; those under -5e8 are illegal.
    labels: [...] integer.
    mask: [...] bool or 0 and 1, whether the argument was used; all where None.

  Returns:
    [...] float32.
  """
  chex.assert_shape(labels, logits.shape[:-1])
  log_prob = distributions.categorical_log_prob(logits, labels)
  return masked_cross_entropy(log_prob, ~illegal_labels(logits, labels), mask)


def masked_cross_entropy(log_prob: Array, legal: Array, mask: Array | None = None) -> Array:
  """`supervised_loss` from log-probs that are already known.

  Args:
    log_prob: [...] float, of the labels.
    legal: [...] bool, whether the label may be chosen.
    mask: [...] bool or 0 and 1, whether the argument was used; all where None.

  Returns:
    [...] float; no gradient passes where the label is illegal or the argument unused.
  """
  chex.assert_equal_shape([log_prob, legal])
  counts = legal if mask is None else legal & (mask != 0)
  return jnp.where(counts, -log_prob, 0.0)


def illegal_labels(logits: Array, labels: Array) -> Array:
  """[...] bool: labels that `supervised_loss` leaves out; their mean is a rate to watch.

  Args:
    logits: [..., n] float; those under -5e8 are illegal.
    labels: [...] integer; one outside 0 to n - 1 is illegal.
  """
  chex.assert_shape(labels, logits.shape[:-1])
  labels = labels.astype(jnp.int32)
  inside = (labels >= 0) & (labels < logits.shape[-1])
  index = jnp.clip(labels, 0, logits.shape[-1] - 1)[..., None]
  label_logit = jnp.take_along_axis(logits, index, axis=-1)[..., 0]
  return ~inside | (label_logit < 0.5 * distributions.NEGATIVE)
