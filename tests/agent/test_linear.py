"""Products and biases equal those of jax.numpy in value and gradient under any vmap."""

import functools

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import linear


def _random(seed, *shape):
  return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


def _outputs(function, x, weights, maps: int):
  """Value and gradients of something that a function of `maps` times vmapped rows enters."""
  def loss(x, weights):
    one = function
    for _ in range(maps):
      one = jax.vmap(one, (0, None))
    return jnp.sin(one(x, weights)).sum()

  return jax.value_and_grad(loss, argnums=(0, 1))(x, weights)


_SHAPES = pytest.mark.parametrize(("shape", "maps"), [
  ((3,), 0), ((5, 3), 0), ((5, 3), 1), ((2, 5, 3), 1), ((4, 2, 5, 3), 2), ((4, 2, 5, 3), 0)])


def _assert_equal(ours, theirs, x, weights, maps):
  for one, other in zip(jax.tree.leaves(_outputs(ours, x, weights, maps)),
                        jax.tree.leaves(_outputs(theirs, x, weights, maps)), strict=True):
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@_SHAPES
@pytest.mark.parametrize("outputs", [7, 2])  # more and fewer than inputs: two forms of gradient
def test_product_equals_matmul(shape, maps, outputs):
  _assert_equal(linear.product, jnp.matmul, _random(0, *shape), _random(1, 3, outputs), maps)


@_SHAPES
def test_a_float32_result_of_bfloat16_is_exact_and_has_gradients_of_bfloat16(shape, maps):
  x, weights = (_random(i, *size).astype(jnp.bfloat16) for i, size in enumerate((shape, (3, 7))))
  wide = functools.partial(linear.product, dtype=jnp.float32)
  found = wide(x, weights)
  assert found.dtype == jnp.float32
  np.testing.assert_allclose(
    found, np.asarray(x, np.float64) @ np.asarray(weights, np.float64), rtol=1e-6, atol=1e-6)
  assert (found != found.astype(jnp.bfloat16)).any()  # float32 of what bfloat16 cannot hold

  def narrow(x, weights):
    # The same cosines of the loss, which depend on the result, without the result's rounding.
    product = linear.product(x, weights)
    return product.astype(jnp.float32) + jax.lax.stop_gradient(
      wide(x, weights) - product.astype(jnp.float32))

  ours, theirs = (_outputs(function, x, weights, maps)[1] for function in (wide, narrow))
  for one, other in zip(ours, theirs, strict=True):
    assert one.dtype == jnp.bfloat16
    np.testing.assert_array_equal(one.astype(jnp.float32), other.astype(jnp.float32))


@_SHAPES
def test_a_float32_result_changes_no_bit_of_float32(shape, maps):
  x = _random(0, *shape)
  plain, wide = (hk.without_apply_rng(hk.transform(
    lambda x, dtype=dtype: linear.Linear(7, name="a", dtype=dtype)(x)))
    for dtype in (None, jnp.float32))
  params = plain.init(jax.random.key(0), x)
  jax.tree.map(np.testing.assert_array_equal, params, wide.init(jax.random.key(0), x))
  ours, theirs = (_outputs(lambda x, params, f=f: f.apply(params, x), x, params, maps)
                  for f in (wide, plain))
  jax.tree.map(np.testing.assert_array_equal, ours, theirs)


@_SHAPES
def test_add_bias_equals_add(shape, maps):
  _assert_equal(linear.add_bias, jnp.add, _random(0, *shape), _random(1, 3), maps)


@pytest.mark.parametrize("outputs", [7, 2])  # more and fewer than inputs: two forms of gradient
@pytest.mark.parametrize("shape", [(5, 3), (4, 5, 3), (2, 4, 5, 3)])
def test_matmul_of_activations_equals_matmul(shape, outputs):
  arguments = _random(0, *shape), _random(1, *shape[:-2], 3, outputs)

  def value_and_gradients(function):
    for _ in shape[2:]:
      function = jax.vmap(function)
    return jax.value_and_grad(lambda *a: jnp.sin(function(*a)).sum(), (0, 1))(*arguments)

  for ours, theirs in zip(jax.tree.leaves(value_and_gradients(linear.matmul)),
                          jax.tree.leaves(value_and_gradients(jnp.matmul)), strict=True):
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("axes", [(0, 0), (None, 0), (1, None)])
def test_add_bias_vmaps_over_any_axes(axes):
  x, bias = _random(0, 4, 4, 3), _random(1, 4, 3)
  bias = bias if axes[1] == 0 else bias[0]
  x = x[0] if axes[0] is None else x

  def gradients(function):
    def loss(x, bias):
      return jnp.sin(function(x, bias)).sum()
    return jax.vmap(jax.grad(loss, (0, 1)), axes)(x, bias)

  for ours, theirs in zip(gradients(linear.add_bias), gradients(jnp.add), strict=True):
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.parametrize("axes", [(0, 0), (None, 0), (1, None)])
def test_product_vmaps_over_any_axes(axes):
  x, weights = _random(0, 4, 4, 3), _random(1, 4, 3, 7)
  weights = weights if axes[1] == 0 else weights[0]
  x = x[0] if axes[0] is None else x
  np.testing.assert_allclose(
    jax.vmap(linear.product, axes)(x, weights), jax.vmap(jnp.matmul, axes)(x, weights), rtol=1e-5)


def test_the_gradient_of_one_argument():
  x, weights, bias = _random(0, 4, 3), _random(1, 3, 7), _random(2, 7)
  for ours, theirs, second in ((linear.product, jnp.matmul, weights),
                               (linear.add_bias, jnp.add, bias)):
    first = x if second is weights else x @ weights
    for argument in (0, 1):
      found, wanted = (jax.grad(lambda *a, f=f: jnp.sin(f(*a)).sum(), argument)(first, second)
                       for f in (ours, theirs))
      np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


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


@pytest.mark.parametrize("outputs", [7, 2])
def test_the_weights_gradient_is_one_plain_product(outputs):
  x, weights = _random(0, 6, 5, 3), _random(1, 3, outputs)
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
