"""Tests of attention over a set."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import attention

SETS, ROWS, HEADS, SIZE = 3, 24, 2, 8
PROJECTED, MASK_KEY, GRADIENT = jax.random.split(jax.random.key(0), 3)
PROJECTED = jax.random.normal(PROJECTED, (SETS, ROWS, 3 * HEADS * SIZE))
MASK = jax.random.bernoulli(MASK_KEY, 0.7, (SETS, ROWS)).at[1].set(True)
GRADIENT = jax.random.normal(GRADIENT, (SETS, ROWS, HEADS * SIZE))


def numpy_attention(projected, mask):
  """Head by head in float64, over the rows that exist only."""
  query, key, value = np.asarray(projected, np.float64).reshape(ROWS, 3, HEADS, SIZE).transpose(
    1, 2, 0, 3)
  heads = []
  for head in range(HEADS):
    logits = query[head] @ key[head][mask].T / np.sqrt(SIZE)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    heads.append(weights / weights.sum(-1, keepdims=True) @ value[head][mask])
  return np.concatenate(heads, axis=-1)


def sets(attend):
  return jax.vmap(lambda projected, mask: attend(projected, mask, HEADS))


@pytest.mark.parametrize("attend", [
  attention.plain, attention.fused, functools.partial(attention.kernel, interpret=True)],
  ids=["plain", "fused", "kernel"])
def test_attention_equals_numpy(attend):
  found = sets(attend)(PROJECTED, MASK)
  expected = [numpy_attention(*x) for x in zip(PROJECTED, np.asarray(MASK), strict=True)]
  np.testing.assert_allclose(found, expected, atol=2e-6)


def plain_gradient(projected, mask, gradient):
  _, pull_back = jax.vjp(lambda x: sets(attention.plain)(x, mask), projected)
  return pull_back(gradient)[0]


def test_the_kernels_gradient_is_that_of_the_products():
  found = jax.vmap(functools.partial(attention.gradient_kernel, heads=HEADS, interpret=True))(
    PROJECTED, MASK, GRADIENT)
  np.testing.assert_allclose(found, plain_gradient(PROJECTED, MASK, GRADIENT), atol=2e-6)
  directions = jax.random.normal(jax.random.key(1), PROJECTED.shape)
  step = 1e-2
  moved = [sets(functools.partial(attention.kernel, interpret=True))(
    PROJECTED + sign * step * directions, MASK) for sign in (1, -1)]
  slope = jnp.vdot(GRADIENT, moved[0] - moved[1]) / (2 * step)
  np.testing.assert_allclose(jnp.vdot(found, directions), slope, rtol=2e-3)


def test_fused_attention_has_the_gradient_of_the_products_under_jit_and_vmap():
  @jax.jit
  def gradient(projected):
    return jax.grad(lambda x: jnp.vdot(sets(attention.fused)(x, MASK), GRADIENT))(projected)

  np.testing.assert_allclose(
    gradient(PROJECTED), plain_gradient(PROJECTED, MASK, GRADIENT), atol=2e-6)


def test_flash_attention_over_the_first_rows_equals_the_products_and_their_gradient():
  first = jnp.arange(ROWS) < jnp.array([1, ROWS, 11])[:, None]
  attend = sets(functools.partial(attention.flash, implementation="xla"))
  found, pull_back = jax.vjp(lambda x: attend(x, first), PROJECTED)
  expected, expected_pull_back = jax.vjp(lambda x: sets(attention.plain)(x, first), PROJECTED)
  np.testing.assert_allclose(found, expected, atol=2e-6)
  np.testing.assert_allclose(*(f(GRADIENT)[0] for f in (pull_back, expected_pull_back)), atol=2e-6)
  assert np.isfinite(attend(PROJECTED, jnp.zeros_like(first))).all()


def test_bfloat16_differs_by_its_rounding_only():
  low = PROJECTED.astype(jnp.bfloat16)
  exact = sets(attention.plain)(low.astype(jnp.float32), MASK)
  for attend in (attention.plain, functools.partial(attention.kernel, interpret=True)):
    found = sets(attend)(low, MASK)
    assert found.dtype == jnp.bfloat16
    np.testing.assert_allclose(found.astype(jnp.float32), exact, atol=0.03)


def test_rows_that_do_not_exist_have_no_influence():
  other = jnp.where(MASK[..., None], PROJECTED, 100.0)
  for attend in (attention.fused, functools.partial(attention.kernel, interpret=True)):
    found, changed = sets(attend)(PROJECTED, MASK), sets(attend)(other, MASK)
    np.testing.assert_array_equal(found[np.asarray(MASK)], changed[np.asarray(MASK)])
