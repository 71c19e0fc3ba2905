"""UPGO: worked vectors, ties, gradients."""

import jax
import jax.numpy as jnp
import pytest

from starleague.learner import losses
from tests.learner.losses.worked import A, C, arrays, close


@pytest.mark.parametrize("case, returns, advantages", [
  (A, [1, 1, 1], [.9, .8, .7]),
  (([0, .5, -.5, .2], .1, [0] * 4, [1] * 4), [.5, .2, .2, .1], [.5, -.3, .7, -.1]),
  (([.2, .6, .1, .4], 123., [0, 0, 0, -1], [1, 1, 1, 0]), [.6, .4, .4, -1], [.4, -.2, .3, -1.4]),
  (([.3] * 3, .3, [0] * 3, [1] * 3), [.3] * 3, [0] * 3),
], ids="ABCD")
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_upgo_worked(wrap, case, returns, advantages):
  inputs = arrays(*case)
  actual = wrap(losses.upgo_returns)(*inputs)
  close(actual, returns)
  close(actual - inputs[0], advantages)


def test_upgo_follows_on_a_tie():
  """Equality counts as upgoing: step 1 earns exactly its value and is followed."""
  v_tm1, v_t, r_t, discount_t = arrays([0., .5, .25], 4., [0, .25, 0], [1, 1, 1])
  close(losses.upgo_returns(v_tm1, v_t, r_t, discount_t), [4.25, 4.25, 4.])


def test_upgo_passes_no_gradient():
  inputs = [jnp.asarray(x) for x in arrays(*C)]
  gradients = jax.grad(lambda *x: losses.upgo_returns(*x).sum(), argnums=(0, 1, 2, 3))(*inputs)
  assert all((g == 0).all() for g in gradients)
