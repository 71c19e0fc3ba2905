"""Supervised learning from recorded actions.

Source: Vinyals et al. 2019, Methods. The KL from the human's action, a one-hot distribution, to the
policy equals the cross-entropy.
"""

import chex
import jax.numpy as jnp

from starleague.agent import distributions
from starleague.agent.types import Array


def supervised_loss(logits: Array, labels: Array, mask: Array | None = None) -> Array:
  """Computes the cross-entropy of one argument, `-mask log p(label)`, and 0 for illegal labels.

  Humans can take actions that the masks rule out. The policy cannot learn them, and each would
  cost 1e9.

  Args:
    logits: [..., n] float; choices whose logit is below -5e8 are illegal.
    labels: [...] integer.
    mask: [...] bool or 0 and 1, whether the argument is used; None: all are.

  Returns:
    [...] float32.
  """
  chex.assert_shape(labels, logits.shape[:-1])
  log_prob = distributions.categorical_log_prob(logits, labels)
  return masked_cross_entropy(log_prob, ~illegal_labels(logits, labels), mask)


def masked_cross_entropy(log_prob: Array, legal: Array, mask: Array | None = None) -> Array:
  """Computes `supervised_loss` from log-probs.

  Args:
    log_prob: [...] float, of the labels.
    legal: [...] bool, whether the label is a legal choice.
    mask: [...] bool or 0 and 1, whether the argument is used; None: all are.

  Returns:
    [...] float; 0, without a gradient, where the label is illegal or the argument unused.
  """
  chex.assert_equal_shape([log_prob, legal])
  counts = legal if mask is None else legal & (mask != 0)
  return jnp.where(counts, -log_prob, 0.0)


def illegal_labels(logits: Array, labels: Array) -> Array:
  """Marks the labels that `supervised_loss` ignores; their rate is worth monitoring.

  Args:
    logits: [..., n] float; choices whose logit is below -5e8 are illegal.
    labels: [...] integer; labels outside 0 to n - 1 are illegal.

  Returns:
    [...] bool.
  """
  chex.assert_shape(labels, logits.shape[:-1])
  labels = labels.astype(jnp.int32)
  inside = (labels >= 0) & (labels < logits.shape[-1])
  index = jnp.clip(labels, 0, logits.shape[-1] - 1)[..., None]
  label_logit = jnp.take_along_axis(logits, index, axis=-1)[..., 0]
  return ~inside | (label_logit < 0.5 * distributions.NEGATIVE)
