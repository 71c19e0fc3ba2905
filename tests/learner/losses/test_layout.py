"""Batched losses are one scan of [T, B] arrays without a transposition."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.learner import losses

T, R, B = 7, 3, 5
LOSSES = [
  (losses.vtrace_advantages, 5), (losses.vtrace_targets, 5), (losses.upgo_returns, 4),
  (losses.td_lambda_loss, 4), (lambda v_tm1, *x: losses.td_lambda_returns(*x), 4),
  (lambda v_tm1, v_t, *x: losses.discounted_returns(*x), 4),
]
NAMES = ["vtrace_advantages", "vtrace_targets", "upgo_returns", "td_lambda_loss",
         "td_lambda_returns", "discounted_returns"]


def inputs(count, *shape):
  rng = np.random.default_rng(0)
  return [jnp.asarray(rng.normal(size=(T, *shape)), jnp.float32) for _ in range(count)]


def equations(jaxpr):
  """All equations of a jaxpr and of those inside it."""
  for equation in jaxpr.eqns:
    yield equation
    for value in jax.tree.leaves(equation.params, is_leaf=lambda x: hasattr(x, "jaxpr")):
      if hasattr(value, "jaxpr"):
        yield from equations(value.jaxpr)


@pytest.mark.parametrize("loss, count", LOSSES, ids=NAMES)
def test_batched_loss_is_one_time_major_scan_without_transposition(loss, count):
  """Discounts and ratios are shared by the R baselines, as in the objective."""
  shared = [None if i >= 3 else 1 for i in range(count)]
  over_both = jax.vmap(jax.vmap(loss, 1, 1), shared, 1)
  arrays = [*inputs(3, R, B), *inputs(count - 3, B)]
  found = list(equations(jax.make_jaxpr(over_both)(*arrays).jaxpr))
  scan, = (equation for equation in found if equation.primitive.name == "scan")
  assert {x.aval.shape for x in scan.outvars} >= {(T, R, B)}
  # Whole arrays, that is: the last step alone is moved to be the scan's first carry.
  assert not [x for equation in found if equation.primitive.name == "transpose"
              for x in equation.invars if x.aval.size >= T * B]


@pytest.mark.parametrize("loss, count", LOSSES, ids=NAMES)
def test_batch_axis_may_be_anywhere(loss, count):
  arrays = inputs(count, B)
  expected = np.stack([loss(*(x[:, b] for x in arrays)) for b in range(B)], 1)
  middle = jax.vmap(loss, in_axes=1, out_axes=1)(*arrays)
  first = jax.vmap(loss)(*(x.T for x in arrays))
  np.testing.assert_allclose(middle, expected, rtol=1e-6, atol=1e-6)
  np.testing.assert_allclose(first.T, expected, rtol=1e-6, atol=1e-6)


def test_gradient_adds_no_scan():
  arrays = inputs(5, B)

  def loss(v_tm1, v_t, r_t, discount_t, rho):
    each = jax.vmap(losses.td_lambda_loss, 1, 1)(v_tm1, v_t, r_t, discount_t)
    advantages = jax.vmap(losses.vtrace_advantages, 1, 1)(v_tm1, v_t, r_t, discount_t, rho)
    return (each - advantages).sum()

  def scans(function):
    return sum(equation.primitive.name == "scan"
               for equation in equations(jax.make_jaxpr(function)(*arrays).jaxpr))

  assert scans(jax.grad(loss, argnums=(0, 1))) == scans(loss) == 2
