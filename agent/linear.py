"""Linear layers whose gradient is plain matrix products under any number of vmaps.

The gradient of a product's weights contracts every batch axis. Under `vmap`, JAX emits a product
that contracts several axes, for which XLA transposes both arguments: two to five times the time on
a CPU. Here vmap folds the batch axis into the rows, which leaves one axis to contract.
"""

from typing import cast

import haiku as hk
import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.typing import DTypeLike

from starleague.agent.types import Array

_product = Primitive("starleague_product")
_add_bias = Primitive("starleague_add_bias")

_Precision = jax.lax.Precision | None
_Dtype = DTypeLike | None
_Axis = int | None  # the axis of vmap; None for an argument without one


def product(x: Array, weights: Array, precision: _Precision = None,
            dtype: _Dtype = None) -> jax.Array:
  """Computes [..., inputs] @ [inputs, outputs] -> [..., outputs]; differentiable, vmappable.

  Args:
    x: any float.
    weights: any float.
    precision: of the product and its gradients.
    dtype: of the result; None: of the arguments. Gradients are computed in the arguments' dtype.
  """
  dtype = None if dtype is None else jnp.dtype(dtype)
  return _product.bind(x, weights, precision=precision, dtype=dtype)


def add_bias(x: Array, bias: Array) -> jax.Array:
  """Computes [..., C] + [C] -> [..., C]; differentiable, vmappable."""
  return _add_bias.bind(x, bias)


def _rows(x: jax.Array) -> jax.Array:
  return x.reshape(-1, x.shape[-1])


def _matmul(x: Array, weights: Array, precision: _Precision, dtype: _Dtype = None) -> jax.Array:
  if dtype is not None and x.dtype != dtype:
    # XLA may leave out roundings between operations, in one program and not in another. The bits of
    # a result that is not rounded itself would then differ between acting and learning.
    form = jnp.finfo(x.dtype)
    x = jax.lax.reduce_precision(x.astype(dtype), form.nexp, form.nmant).astype(x.dtype)
  return jnp.matmul(x, weights, precision=precision, preferred_element_type=dtype)


def _input_gradient(gradient: jax.Array, x: ad.UndefinedPrimal, weights: jax.Array, *,
                    precision: _Precision, dtype: _Dtype) -> jax.Array:
  gradient = gradient if dtype is None else gradient.astype(x.aval.dtype)
  return product(gradient, weights.T, precision)


def _weights_gradient(gradient: jax.Array, x: jax.Array, weights: ad.UndefinedPrimal, *,
                      precision: _Precision, dtype: _Dtype) -> jax.Array:
  gradient = gradient if dtype is None else gradient.astype(weights.aval.dtype)
  x, gradient = _rows(x), _rows(gradient)
  if len(x) >= x.shape[1] > gradient.shape[1]:
    # A CPU contracts the rows in half the time with the wider matrix on the right. The barrier
    # keeps XLA from swapping them again.
    return jax.lax.optimization_barrier(_matmul(gradient.T, x, precision)).T
  return _matmul(x.T, gradient, precision)


def _batched_product(arguments: tuple[jax.Array, jax.Array], axes: tuple[_Axis, _Axis], *,
                     precision: _Precision, dtype: _Dtype) -> tuple[jax.Array, int]:
  (x, weights), (x_axis, weights_axis) = arguments, axes
  if weights_axis is not None:
    return jax.vmap(lambda x, weights: _matmul(x, weights, precision, dtype),
                    (x_axis, weights_axis))(x, weights), 0
  x = jnp.moveaxis(x, cast(int, x_axis), 0)  # vmap has an axis in one of the two at least
  y = product(_rows(x), weights, precision, dtype)
  return y.reshape(*x.shape[:-1], weights.shape[-1]), 0


_product.def_impl(jax.jit(_matmul, static_argnames=("precision", "dtype")))
_product.def_abstract_eval(lambda x, weights, *, precision, dtype: jax.core.ShapedArray(
  (*x.shape[:-1], weights.shape[-1]), dtype or jnp.promote_types(x.dtype, weights.dtype)))
mlir.register_lowering(_product, mlir.lower_fun(_matmul, multiple_results=False))
ad.defbilinear(_product, _input_gradient, _weights_gradient)
batching.primitive_batchers[_product] = _batched_product


def _add_bias_transpose(
    gradient: jax.Array, x: jax.Array | ad.UndefinedPrimal,
    bias: jax.Array | ad.UndefinedPrimal) -> tuple[jax.Array | None, jax.Array | None]:
  """The bias's gradient is a product with ones: as a sum, a CPU takes 3 to 15 times as long."""
  of_bias = None
  if ad.is_undefined_primal(bias):
    rows = _rows(gradient)
    of_bias = jnp.matmul(jnp.ones(len(rows), rows.dtype), rows)
  return gradient if ad.is_undefined_primal(x) else None, of_bias


def _batched_add_bias(arguments: tuple[jax.Array, jax.Array],
                      axes: tuple[_Axis, _Axis]) -> tuple[jax.Array, int]:
  (x, bias), (x_axis, bias_axis) = arguments, axes
  if bias_axis is not None:
    return jax.vmap(jnp.add, (x_axis, bias_axis))(x, bias), 0
  return add_bias(jnp.moveaxis(x, cast(int, x_axis), 0), bias), 0


_add_bias.def_impl(jax.jit(jnp.add))
_add_bias.def_abstract_eval(lambda x, bias: jax.core.ShapedArray(
  x.shape, jnp.promote_types(x.dtype, bias.dtype)))
mlir.register_lowering(_add_bias, mlir.lower_fun(jnp.add, multiple_results=False))
ad.deflinear2(_add_bias, _add_bias_transpose)
batching.primitive_batchers[_add_bias] = _batched_add_bias


@jax.custom_vjp
def matmul(x: jax.Array, y: jax.Array) -> jax.Array:
  """Computes [N, inputs] @ [inputs, outputs] of two activations; differentiable, vmappable."""
  return x @ y


def _matmul_forward(x: jax.Array,
                    y: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
  return x @ y, (x, y)


def _matmul_backward(arguments: tuple[jax.Array, jax.Array],
                     gradient: jax.Array) -> tuple[jax.Array, jax.Array]:
  x, y = arguments
  if x.shape[1] > gradient.shape[1]:  # the wider matrix on the right, as in _weights_gradient
    of_y = jax.lax.optimization_barrier(gradient.T @ x).T
  else:
    of_y = jax.lax.optimization_barrier(x.T @ gradient)
  return gradient @ y.T, of_y


matmul.defvjp(_matmul_forward, _matmul_backward)


class Linear(hk.Module):
  """Haiku's Linear, with the same parameters and initialisation, computed by `product`."""

  def __init__(self, output_size: int, with_bias: bool = True,
               w_init: hk.initializers.Initializer | None = None, name: str | None = None,
               dtype: _Dtype = None):
    """Creates the layer.

    Args:
      output_size: width of the result.
      with_bias: whether a bias is added.
      w_init: initialiser of the weights; None: Haiku's default.
      name: of the module.
      dtype: of the result and the bias; None: x's. float32 of bfloat16 inputs is not rounded.
    """
    super().__init__(name=name)
    self._output_size, self._with_bias, self._w_init = output_size, with_bias, w_init
    self._dtype = dtype

  def __call__(self, x: Array) -> jax.Array:
    """[..., inputs] -> [..., output_size] of x's dtype, unless the layer has its own."""
    if not self._with_bias:
      return product(x, self._weights(x.shape[-1], x.dtype), dtype=self._dtype)
    weights, bias = self.parameters(x.shape[-1], x.dtype)
    return add_bias(product(x, weights, dtype=self._dtype), bias)

  def parameters(self, inputs: int, dtype: DTypeLike) -> tuple[jax.Array, jax.Array]:
    """Returns the weights [inputs, output_size] and the bias [output_size], for a fused layer."""
    weights = self._weights(inputs, dtype)
    return weights, hk.get_parameter("b", (self._output_size,), self._dtype or dtype, jnp.zeros)

  def _weights(self, inputs: int, dtype: DTypeLike) -> jax.Array:
    init = self._w_init or hk.initializers.TruncatedNormal(inputs ** -0.5)
    return hk.get_parameter("w", (inputs, self._output_size), dtype, init)
