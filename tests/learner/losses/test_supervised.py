"""Supervised learning: illegal and unused labels, shapes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.learner import losses
from tests.learner.losses.worked import ILLEGAL, close


def test_supervised_loss_ignores_illegal_and_unused_labels():
  logits = jnp.array([[1., 0., ILLEGAL]] * 5)
  labels = jnp.array([0, 2, 1, 3, -1])
  mask = jnp.array([1, 1, 0, 1, 1])
  close(losses.supervised_loss(logits, labels, mask), [np.log1p(np.exp(-1.)), 0, 0, 0, 0])
  assert losses.illegal_labels(logits, labels).tolist() == [False, True, False, True, True]
  gradient = jax.grad(lambda x: losses.supervised_loss(x, labels, mask).sum())(logits)
  close(gradient[0], [1 / (1 + np.exp(-1.)) - 1, 1 / (1 + np.e), 0])
  assert (gradient[1:] == 0).all()


def test_supervised_shapes_are_asserted():
  with pytest.raises(AssertionError):
    losses.supervised_loss(jnp.zeros((4, 3)), jnp.zeros((3,), int))
