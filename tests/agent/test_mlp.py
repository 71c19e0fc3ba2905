"""Tests of the MLP of a transformer's layer."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import mlp
from starleague.agent.kernels import Sublayer

ROWS, CHANNELS, HIDDEN = 300, 12, 40  # a whole block of rows and a part
KEYS = jax.random.split(jax.random.key(0), 8)
X = jax.random.normal(KEYS[0], (ROWS, CHANNELS))
PARAMETERS = Sublayer(*(
  jax.random.normal(key, shape) * scale for key, shape, scale in zip(
    KEYS[1:7], ((CHANNELS,), (CHANNELS,), (CHANNELS, HIDDEN), (HIDDEN,), (HIDDEN, CHANNELS),
                (CHANNELS,)), (1, 1, 0.3, 1, 0.15, 1), strict=True)))
GRADIENT = jax.random.normal(KEYS[7], (ROWS, CHANNELS))


def numpy_mlp():
  """Returns output, hidden rows and all gradients in float64, by the chain rule."""
  x, gradient = (np.asarray(each, np.float64) for each in (X, GRADIENT))
  own = Sublayer(*(np.asarray(each, np.float64) for each in PARAMETERS))
  deviation = np.sqrt(x.var(1, keepdims=True) + 1e-5)
  standard = (x - x.mean(1, keepdims=True)) / deviation
  rows = standard * own.scale + own.offset
  hidden = np.maximum(rows @ own.inner + own.inner_bias, 0)
  at_hidden = gradient @ own.output.T * (hidden > 0)
  at_rows = at_hidden @ own.inner.T
  at_standard = at_rows * own.scale
  # The derivative of a standardised row is I - 1 1' / C - s s' / C, divided by its deviation.
  jacobian = (np.eye(CHANNELS) - 1 / CHANNELS
              - standard[:, :, None] * standard[:, None] / CHANNELS) / deviation[:, :, None]
  return x + hidden @ own.output + own.output_bias, hidden, (
    gradient + np.einsum("rij,rj->ri", jacobian, at_standard), (at_rows * standard).sum(0),
    at_rows.sum(0), rows.T @ at_hidden, at_hidden.sum(0), hidden.T @ gradient, gradient.sum(0))


def assert_close(found, expected):
  for one, other in zip(found, expected, strict=True):
    np.testing.assert_allclose(one, other, atol=2e-6 * np.abs(other).max())


def test_the_kernel_equals_numpy():
  y, hidden, _ = numpy_mlp()
  assert_close(mlp.kernel(X, PARAMETERS, interpret=True), (y, hidden))


def test_the_kernels_gradients_equal_numpys():
  _, hidden, gradients = numpy_mlp()
  found = mlp.gradient_kernel(
    X, jnp.asarray(hidden, jnp.float32), GRADIENT, PARAMETERS, interpret=True)
  assert_close(found, gradients)


@pytest.mark.parametrize("method", mlp.METHODS)
@pytest.mark.parametrize("leading", [(ROWS,), (10, 30), (2, 5, 30)])
def test_outputs_and_gradients_equal_numpys_under_any_number_of_vmaps(method, leading):
  def run(x, *parameters):
    def one(x):
      return mlp.METHODS[method](x, Sublayer(*parameters))

    for _ in leading:
      one = jax.vmap(one)
    return one(x.reshape(*leading, CHANNELS)).reshape(ROWS, CHANNELS)

  y, pull_back = jax.vjp(run, X, *PARAMETERS)
  expected, _, gradients = numpy_mlp()
  assert_close((y, *pull_back(GRADIENT)), (expected, *gradients))


def test_bfloat16_differs_by_its_rounding_only():
  low = [x.astype(jnp.bfloat16) for x in (X, *PARAMETERS)]
  x, *parameters = (x.astype(jnp.float32) for x in low)
  exact = mlp.plain(x, Sublayer(*parameters))
  for found in (mlp.fused(low[0], Sublayer(*low[1:])),
                mlp.kernel(low[0], Sublayer(*low[1:]), interpret=True)[0]):
    assert found.dtype == jnp.bfloat16
    np.testing.assert_allclose(found.astype(jnp.float32), exact, atol=0.02 * np.abs(exact).max())
