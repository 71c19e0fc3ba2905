"""Tests of the attention of a transformer's layer."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import attention
from starleague.agent.kernels import Sublayer

SETS, ROWS, CHANNELS, HEADS, SIZE = 3, 24, 12, 2, 8
KEYS = jax.random.split(jax.random.key(0), 9)
X = jax.random.normal(KEYS[0], (SETS, ROWS, CHANNELS))
PARAMETERS = Sublayer(*(
  jax.random.normal(key, shape) * scale for key, shape, scale in zip(
    KEYS[1:7], ((CHANNELS,), (CHANNELS,), (CHANNELS, 3 * HEADS * SIZE), (3 * HEADS * SIZE,),
                (HEADS * SIZE, CHANNELS), (CHANNELS,)), (1, 1, 0.3, 1, 0.25, 1), strict=True)))
MASK = jax.random.bernoulli(KEYS[7], 0.7, (SETS, ROWS)).at[1].set(True)
GRADIENT = jax.random.normal(KEYS[8], (SETS, ROWS, CHANNELS))


def numpy_attention(x, mask):
  """Head by head in float64, over the rows that exist only."""
  own = Sublayer(*(np.asarray(each, np.float64) for each in PARAMETERS))
  x = np.asarray(x, np.float64)
  rows = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
  projected = (rows * own.scale + own.offset) @ own.inner + own.inner_bias
  query, key, value = projected.reshape(ROWS, 3, HEADS, SIZE).transpose(1, 2, 0, 3)
  heads = []
  for head in range(HEADS):
    logits = query[head] @ key[head][mask].T / np.sqrt(SIZE)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    heads.append(weights / weights.sum(-1, keepdims=True) @ value[head][mask])
  return x + np.concatenate(heads, axis=-1) @ own.output + own.output_bias


def sets(method):
  def run(x, parameters=PARAMETERS):
    return jax.vmap(lambda x, mask: method(x, mask, parameters, HEADS))(x, MASK)

  return run


def by_kernel(x, parameters=PARAMETERS):
  return attention.kernel(x, attention.hiding(MASK), parameters, HEADS, interpret=True)


METHODS = {"plain": sets(attention.plain), "fused": sets(attention.fused), "kernel": by_kernel}


def gradients(method):
  """Returns the gradients of rows and of the parameters."""
  _, pull_back = jax.vjp(METHODS[method], X, PARAMETERS)
  of_x, of_parameters = pull_back(GRADIENT)
  return of_x, *of_parameters


@pytest.mark.parametrize("method", METHODS)
def test_attention_equals_numpy(method):
  expected = [numpy_attention(*x) for x in zip(X, np.asarray(MASK), strict=True)]
  np.testing.assert_allclose(METHODS[method](X), expected, atol=4e-6)


def test_the_kernels_gradient_is_that_of_the_products():
  found = attention.gradient_kernel(
    X, attention.hiding(MASK), GRADIENT, PARAMETERS, HEADS, interpret=True)
  for one, other in zip(found, gradients("plain"), strict=True):
    np.testing.assert_allclose(one, other, atol=2e-6 * np.abs(other).max())
  directions = jax.random.normal(jax.random.key(1), X.shape)
  step = 1e-2
  moved = [by_kernel(X + sign * step * directions) for sign in (1, -1)]
  slope = jnp.vdot(GRADIENT, moved[0] - moved[1]) / (2 * step)
  np.testing.assert_allclose(jnp.vdot(found[0], directions), slope, rtol=2e-3)


def test_fused_attention_has_the_gradient_of_the_products():
  for one, other in zip(gradients("fused"), gradients("plain"), strict=True):
    np.testing.assert_allclose(one, other, atol=2e-6 * np.abs(other).max())


def test_flash_attention_over_the_first_rows_equals_the_products_and_their_gradient():
  projected = jax.random.normal(jax.random.key(2), (SETS, ROWS, 3 * HEADS * SIZE))
  gradient = jax.random.normal(jax.random.key(3), (SETS, ROWS, HEADS * SIZE))
  first = jnp.arange(ROWS) < jnp.array([1, ROWS, 11])[:, None]

  def of_sets(method):
    return jax.vmap(lambda projected, mask: method(projected, mask, HEADS))

  flash = of_sets(functools.partial(attention.flash, implementation="xla"))
  found, pull_back = jax.vjp(lambda x: flash(x, first), projected)
  expected, expected_pull_back = jax.vjp(lambda x: of_sets(attention.attend)(x, first), projected)
  np.testing.assert_allclose(found, expected, atol=2e-6)
  np.testing.assert_allclose(*(f(gradient)[0] for f in (pull_back, expected_pull_back)), atol=2e-6)
  assert np.isfinite(flash(projected, jnp.zeros_like(first))).all()


@pytest.mark.parametrize("method", ["plain", "kernel"])
def test_bfloat16_differs_by_its_rounding_only(method):
  low = [x.astype(jnp.bfloat16) for x in (X, *PARAMETERS)]
  exact = METHODS["plain"](
    low[0].astype(jnp.float32), Sublayer(*(x.astype(jnp.float32) for x in low[1:])))
  found = METHODS[method](low[0], Sublayer(*low[1:]))
  assert found.dtype == jnp.bfloat16
  np.testing.assert_allclose(found.astype(jnp.float32), exact, atol=0.02 * np.abs(exact).max())


@pytest.mark.parametrize("method", ["fused", "kernel"])
def test_rows_that_do_not_exist_have_no_influence(method):
  other = jnp.where(MASK[..., None], X, 100.0)
  found, changed = METHODS[method](X), METHODS[method](other)
  np.testing.assert_array_equal(found[np.asarray(MASK)], changed[np.asarray(MASK)])
