"""Losses of returns reject wrong shapes."""

import jax.numpy as jnp
import pytest

from starleague.learner import losses


def test_shapes_are_asserted():
  v = jnp.zeros(3)
  for function, count in ((losses.vtrace_advantages, 5), (losses.upgo_returns, 4),
                          (losses.td_lambda_loss, 4), (losses.vtrace_targets, 5)):
    with pytest.raises(AssertionError):
      function(*[v] * (count - 1), jnp.zeros(4))
    with pytest.raises(AssertionError):
      function(*[jnp.zeros((3, 2))] * count)
