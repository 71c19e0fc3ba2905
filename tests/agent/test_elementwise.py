"""Tests of ReLU and layer norm."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import elementwise


def test_relu_has_jaxs_values_and_gradients():
  x = jnp.array([-2.0, -0.0, 0.0, 3.0])
  place = jnp.array([1.0, 2.0, 3.0, 4.0])
  found, expected = (jax.value_and_grad(lambda x, f=f: (f(x) * place).sum())(x)
                     for f in (elementwise.relu, jax.nn.relu))
  jax.tree.map(np.testing.assert_array_equal, found, expected)


def test_relus_gradient_keeps_no_input():
  _, pull_back = jax.vjp(elementwise.relu, jnp.array([-1.0, 2.0]))
  kept = jax.tree.leaves(pull_back)
  assert kept and all((x >= 0).all() for x in kept)


@pytest.mark.parametrize("axes", [(-1,), (-2, -1)])
def test_layer_norm_equals_numpy(axes):
  x, scale, offset = (np.random.default_rng(i).normal(size=size) for i, size in enumerate(
    ((3, 4, 5), 5, 5)))
  standard = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)
  found, factor = elementwise.standardised(jnp.asarray(x, jnp.float32), axes)
  np.testing.assert_allclose(found, standard, atol=1e-6)
  np.testing.assert_allclose(factor[..., 0], 1 / np.sqrt(x.var(axes) + 1e-5).reshape(
    factor.shape[:-1]), rtol=1e-5)
  low = jnp.asarray(x, jnp.bfloat16)
  norm = elementwise.layer_norm(low, jnp.float32(scale), jnp.float32(offset), axes)
  assert norm.dtype == jnp.bfloat16
  np.testing.assert_allclose(norm.astype(jnp.float32), standard * scale + offset, atol=0.05)
