"""Tests of gradients under `vmap`."""

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import kernels

SEEN = []  # shapes of the arrays that the function below got


@jax.custom_vjp
def _weigh(x, y, weights):
  SEEN.append((x.shape, y.shape))
  return x @ weights * y[:, None]


def _forward(x, y, weights):
  return _weigh(x, y, weights), (x, y, weights)


def _backward(kept, gradient):
  x, y, weights = kept
  SEEN.append((x.shape, y.shape))
  at_product = gradient * y[:, None]
  return at_product @ weights.T, (gradient * (x @ weights)).sum(1), x.T @ at_product


_weigh.defvjp(_forward, _backward)
weigh = kernels.joining_axes("test_weigh", _weigh, inner=(1, 0))
X, Y, WEIGHTS, GRADIENT = (jax.random.normal(key, shape) for key, shape in zip(
  jax.random.split(jax.random.key(0), 4), ((4, 5, 3), (4, 5), (3, 2), (4, 5, 2)), strict=True))


def plain(x, y, weights):
  return x @ weights * y[..., None]


def loss(method, x, y, weights):
  return (jax.vmap(jax.vmap(method, (0, 0, None)), (0, 0, None))(x, y, weights) * GRADIENT).sum()


def test_the_function_sees_one_axis_in_both_directions():
  SEEN.clear()
  found = jax.grad(loss, (1, 2, 3))(weigh, X, Y, WEIGHTS)
  # Once as a part of a transformed program, whose shapes are the same.
  assert SEEN and set(SEEN) == {((20, 3), (20,))}
  expected = jax.grad(loss, (1, 2, 3))(plain, X, Y, WEIGHTS)
  jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), found, expected)


def test_without_vmap_and_with_it_after_the_gradient():
  np.testing.assert_allclose(weigh(X, Y, WEIGHTS), plain(X, Y, WEIGHTS), atol=1e-6)
  each = jax.vmap(jax.grad(lambda w, x, y, g, method: (method(x, y, w) * g).sum()),
                  (None, 0, 0, 0, None))
  np.testing.assert_allclose(each(WEIGHTS, X, Y, GRADIENT, weigh),
                             each(WEIGHTS, X, Y, GRADIENT, plain), atol=1e-5)


def test_weights_of_each_example_and_arrays_shared_by_all():
  many = jnp.stack([WEIGHTS, 2 * WEIGHTS])
  np.testing.assert_allclose(jax.vmap(weigh, (None, None, 0))(X, Y, many),
                             jnp.stack([plain(X, Y, w) for w in many]), atol=1e-5)
  np.testing.assert_allclose(jax.vmap(weigh, (None, 1, None), 1)(X[:, 0], Y, WEIGHTS),
                             jnp.stack([plain(X[:, 0], y, WEIGHTS) for y in Y.T], 1), atol=1e-6)
