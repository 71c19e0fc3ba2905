"""Linear layers whose weight gradient is one plain matrix product under any number of vmaps.

The gradient of a product's weights contracts every batch axis. Under `vmap`, JAX emits a product
that contracts several axes, for which XLA transposes both arguments: two to five times the time on
a CPU. Here vmap folds the batch axis into the rows, which leaves one axis to contract.
"""

import haiku as hk
import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

_product = Primitive("starleague_product")


def product(x, weights):
  """Computes [..., inputs] @ [inputs, outputs] -> [..., outputs]; differentiable, vmappable."""
  return _product.bind(x, weights)


def _rows(x):
  return x.reshape(-1, x.shape[-1])


def _weights_gradient(gradient, x, weights):
  del weights
  return jnp.matmul(_rows(x).T, _rows(gradient))


def _batched(arguments, axes):
  (x, weights), (x_axis, weights_axis) = arguments, axes
  if weights_axis is not None:
    return jax.vmap(jnp.matmul, (x_axis, weights_axis))(x, weights), 0
  x = jnp.moveaxis(x, x_axis, 0)
  return product(_rows(x), weights).reshape(*x.shape[:-1], weights.shape[-1]), 0


_product.def_impl(jax.jit(jnp.matmul))
_product.def_abstract_eval(lambda x, weights: jax.core.ShapedArray(
  (*x.shape[:-1], weights.shape[-1]), jnp.promote_types(x.dtype, weights.dtype)))
mlir.register_lowering(_product, mlir.lower_fun(jnp.matmul, multiple_results=False))
ad.defbilinear(_product, lambda gradient, x, weights: product(gradient, weights.T),
               _weights_gradient)
batching.primitive_batchers[_product] = _batched


class Linear(hk.Module):
  """Haiku's Linear, with the same parameters and initialisation, computed by `product`."""

  def __init__(self, output_size: int, with_bias: bool = True,
               w_init: hk.initializers.Initializer | None = None, name: str | None = None):
    super().__init__(name=name)
    self._output_size, self._with_bias, self._w_init = output_size, with_bias, w_init

  def __call__(self, x):
    """[..., inputs] -> [..., output_size] of x's dtype."""
    inputs = x.shape[-1]
    init = self._w_init or hk.initializers.TruncatedNormal(inputs ** -0.5)
    weights = hk.get_parameter("w", (inputs, self._output_size), x.dtype, init)
    y = product(x, weights)
    if not self._with_bias:
      return y
    return y + hk.get_parameter("b", (self._output_size,), x.dtype, jnp.zeros)
