"""Entropy: worked values, illegal choices, the sign of the loss."""

import jax
import jax.numpy as jnp
import pytest

from starleague.learner import losses
from tests.learner.losses.worked import ILLEGAL, close


@pytest.mark.parametrize("logits, expected", [
  ([2., 2., 2., 2.], 1.0), ([1., 0., -1.], .757679), ([0., 0.], 1.0), ([7.], 0.0)])
def test_entropy_worked(logits, expected):
  close(losses.action_entropy(jnp.array(logits)), expected)


def test_entropy_of_a_nearly_deterministic_policy():
  # H = .000499 nats, divided by log 2
  close(losses.action_entropy(jnp.array([10., 0.])), .000720, 1e-6)


def test_entropy_ignores_illegal_choices():
  close(losses.action_entropy(jnp.array([1., 0., -1., 50.]), jnp.array([1, 1, 1, 0], bool)),
        .757679)
  close(losses.action_entropy(jnp.array([1., 0., -1., ILLEGAL])), .757679)
  none = jnp.zeros(4, bool)
  value, gradient = jax.value_and_grad(losses.action_entropy)(jnp.arange(4.), none)
  assert value == 0.0 and (gradient == 0.0).all()


def test_minimising_the_entropy_loss_raises_entropy():
  """The published pseudocode lacks the minus sign: minimising it would reduce entropy."""
  logits = jnp.array([1., 0., -1.])

  def loss(logits):
    return losses.entropy_loss(losses.action_entropy(logits))

  close(loss(logits), -.757679)
  after = logits - 0.5 * jax.grad(loss)(logits)
  assert losses.action_entropy(after) > losses.action_entropy(logits) + 1e-3


def test_entropy_mask():
  close(losses.entropy_loss(jnp.array([.5, .7]), jnp.array([0, 1])), [0, -.7])
