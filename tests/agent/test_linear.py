"""The product that folds batch axes equals jnp.matmul in value and gradient under any vmap."""

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import linear


def _random(seed, *shape):
  return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def _outputs(product, x, weights, maps: int):
  """Value and gradients of something that the product of `maps` times vmapped rows enters."""
  def loss(x, weights):
    one = product
    for _ in range(maps):
      one = jax.vmap(one, (0, None))
    return jnp.sin(one(x, weights)).sum()

  return jax.value_and_grad(loss, argnums=(0, 1))(x, weights)


@pytest.mark.parametrize(("shape", "maps"), [
  ((3,), 0), ((5, 3), 0), ((5, 3), 1), ((2, 5, 3), 1), ((4, 2, 5, 3), 2), ((4, 2, 5, 3), 0)])
def test_product_equals_matmul(shape, maps):
  x, weights = _random(0, *shape), _random(1, 3, 7)
  for ours, theirs in zip(
      jax.tree.leaves(_outputs(linear.product, x, weights, maps)),
      jax.tree.leaves(_outputs(jnp.matmul, x, weights, maps)), strict=True):
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("axes", [(0, 0), (None, 0), (1, None)])
def test_product_vmaps_over_any_axes(axes):
  x, weights = _random(0, 4, 4, 3), _random(1, 4, 3, 7)
  weights = weights if axes[1] == 0 else weights[0]
  x = x[0] if axes[0] is None else x
  np.testing.assert_allclose(
    jax.vmap(linear.product, axes)(x, weights), jax.vmap(jnp.matmul, axes)(x, weights), rtol=1e-5)


def test_gradients_of_each_example():
  x, weights = _random(0, 4, 3), _random(1, 3, 7)

  def gradient(f):
    return jax.vmap(jax.grad(lambda w, x: jnp.sin(f(x, w)).sum()), (None, 0))(weights, x)

  ours, theirs = gradient(linear.product), gradient(jnp.matmul)
  np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_second_derivatives_and_recomputing():
  x, weights = _random(0, 4, 3), _random(1, 3, 7)
  ours, theirs = (
    jax.hessian(lambda w, f=f: jax.checkpoint(lambda w: jnp.sin(f(x, w)).sum())(w))(weights)
    for f in (linear.product, jnp.matmul))
  np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_the_weights_gradient_is_one_plain_product():
  x, weights = _random(0, 6, 5, 3), _random(1, 3, 7)
  text = str(jax.make_jaxpr(jax.grad(
    lambda w: jnp.sin(jax.vmap(linear.product, (0, None))(x, w)).sum()))(weights))
  contracted = [line for line in text.splitlines() if "dimension_numbers=" in line]
  assert contracted and all("(([0], [0])" in line or "(([1], [0])" in line for line in contracted)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_linear_is_haikus(dtype):
  x = _random(0, 4, 3).astype(dtype)
  ours, theirs = (hk.without_apply_rng(hk.transform(lambda x, f=f: jax.vmap(f(5, name="a"))(x)))
                  for f in (linear.Linear, hk.Linear))
  params = theirs.init(jax.random.key(0), x)
  for a, b in zip(jax.tree.leaves(ours.init(jax.random.key(0), x)), jax.tree.leaves(params),
                  strict=True):
    np.testing.assert_array_equal(np.asarray(a, np.float32), np.asarray(b, np.float32))
  assert ours.apply(params, x).dtype == theirs.apply(params, x).dtype
  np.testing.assert_allclose(np.asarray(ours.apply(params, x), np.float32),
                             np.asarray(theirs.apply(params, x), np.float32), rtol=1e-2)
