"""The MLP of a transformer's layer: norm, a hidden layer with ReLU, a linear layer, and the sum.

Hidden rows are the widest activations of a transformer. As matrix products, their gradient is
written to memory, and both are read by each of the next products. On a TPU, `fused` has a kernel
that writes hidden rows once, where a gradient will need them. A second one reads them once, and
computes all gradients of a block of rows.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from starleague.agent import kernels, linear
from starleague.agent.elementwise import layer_norm, relu, standardised
from starleague.agent.kernels import Memory, Sublayer, dot

_BLOCK = 256  # rows of a block; v3 has 16 MiB beside its matrix unit, for float32 copies too


def plain(x: jax.Array, parameters: Sublayer) -> jax.Array:
  """Computes the sublayer by matrix products: [..., C] -> [..., C] of the dtype of `x`."""
  return x + _output(_hidden(x, parameters), parameters)


def fused(x: jax.Array, parameters: Sublayer) -> jax.Array:
  """Computes `plain`. On a TPU, kernels compute it and its gradient where one is wanted."""
  if jax.default_backend() == "gpu":  # `_backward` would compute hidden rows again
    return plain(x, parameters)
  return _joined(x, *parameters)


def _hidden(x: jax.Array, parameters: Sublayer) -> jax.Array:
  rows = layer_norm(x, parameters.scale, parameters.offset)
  return relu(linear.add_bias(linear.product(rows, parameters.inner), parameters.inner_bias))


def _output(hidden: jax.Array, parameters: Sublayer) -> jax.Array:
  return linear.add_bias(linear.product(hidden, parameters.output), parameters.output_bias)


def kernel(x: jax.Array, parameters: Sublayer,
           interpret: bool = False) -> tuple[jax.Array, jax.Array]:
  """Computes the output [rows, C] and the hidden rows [rows, hidden size].

  Args:
    x: [rows, C].
    parameters: of the sublayer.
    interpret: runs it on any platform, for tests.
  """
  channels, hidden = parameters.inner.shape
  y, kept = kernels.call(
    _forward_kernel, [_blocks(x)], parameters, [(_BLOCK, channels), (_BLOCK, hidden)], [],
    4 * x.size * hidden, interpret=interpret)
  return _rows(y, len(x)), _rows(kept, len(x))


def gradient_kernel(x: jax.Array, hidden: jax.Array, gradient: jax.Array, parameters: Sublayer,
                    interpret: bool = False) -> list[jax.Array]:
  """Computes the gradients of `x`, of its dtype, and of the parameters, float32.

  Args:
    x: [rows, C].
    hidden: [rows, hidden size], as `kernel` returns them.
    gradient: [rows, C], of the output.
    parameters: of the sublayer.
    interpret: runs it on any platform, for tests.
  """
  of_x, *of_parameters = kernels.call(
    _gradient_kernel, [_blocks(each) for each in (x, hidden, gradient)], parameters,
    [(_BLOCK, x.shape[1])], [each.shape for each in parameters], 8 * x.size * hidden.shape[1],
    interpret=interpret)
  return [_rows(of_x, len(x)), *of_parameters]


def _blocks(x: jax.Array) -> jax.Array:
  """[rows, C] -> [N, _BLOCK, C]; rows of zeros, which add nothing to a gradient, fill the last."""
  return jnp.pad(x, ((0, -len(x) % _BLOCK), (0, 0))).reshape(-1, _BLOCK, x.shape[1])


def _rows(blocks: jax.Array, rows: int) -> jax.Array:
  return blocks.reshape(-1, blocks.shape[-1])[:rows]


@jax.custom_vjp
def _of_rows(x: jax.Array, *parameters: jax.Array) -> jax.Array:
  # Without a gradient, XLA's compiler keeps hidden rows beside the matrix unit by itself.
  return plain(x, Sublayer(*parameters))


def _forward(x: jax.Array, *parameters: jax.Array) -> tuple[jax.Array, tuple[jax.Array, ...]]:
  sublayer = Sublayer(*parameters)

  def products(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    hidden = _hidden(x, sublayer)
    return x + _output(hidden, sublayer), hidden

  y, hidden = jax.lax.platform_dependent(
    x, tpu=lambda x: kernel(x, sublayer), default=products)
  return y, (x, hidden, *parameters)


def _backward(kept: tuple[jax.Array, ...], gradient: jax.Array) -> tuple[jax.Array, ...]:
  x, hidden, *parameters = kept

  def by_kernel(gradient: jax.Array) -> list[jax.Array]:
    return gradient_kernel(x, hidden, gradient, Sublayer(*parameters))

  def by_products(gradient: jax.Array) -> list[jax.Array]:
    _, pull_back = jax.vjp(lambda x, *parameters: plain(x, Sublayer(*parameters)), x, *parameters)
    of_x, *of_parameters = pull_back(gradient)
    return [of_x, *(of.astype(jnp.float32) for of in of_parameters)]

  found = jax.lax.platform_dependent(gradient, tpu=by_kernel, default=by_products)
  return tuple(of.astype(each.dtype) for of, each in zip(found, (x, *parameters), strict=True))


_of_rows.defvjp(_forward, _backward)
_joined = kernels.joining_axes("starleague_mlp", _of_rows, inner=(1,))
# By AgentConfig.entity_mlp.
METHODS: dict[str, Callable[[jax.Array, Sublayer], jax.Array]] = {"plain": plain, "fused": fused}


def _forward_kernel(x: Memory, scale: Memory, offset: Memory, inner: Memory, inner_bias: Memory,
                    output: Memory, output_bias: Memory, y: Memory, hidden: Memory) -> None:
  rows = layer_norm(x[...], scale[...], offset[...])
  hidden[...] = jnp.maximum(
    dot(rows, inner[...], 1, 0) + inner_bias[...], 0).astype(hidden.dtype)
  y[...] = (x[...] + dot(hidden[...], output[...], 1, 0) + output_bias[...]).astype(y.dtype)


def _gradient_kernel(x: Memory, hidden: Memory, gradient: Memory, scale: Memory, offset: Memory,
                     inner: Memory, inner_bias: Memory, output: Memory, output_bias: Memory,
                     of_x: Memory, *of_parameters: Memory) -> None:
  """Computes a block's gradients; those of the parameters are summed over the blocks."""
  del inner_bias, output_bias
  standard, factor = standardised(x[...])
  rows = (standard * scale[...] + offset[...]).astype(x.dtype)
  # Some TPUs compare no bfloat16.
  active = hidden[...].astype(jnp.float32) > 0
  at_hidden = jnp.where(active, dot(gradient[...], output[...], 1, 1), 0)
  at_hidden = at_hidden.astype(x.dtype)
  through, of_scale, of_offset = kernels.norm_gradient(
    dot(at_hidden, inner[...], 1, 1), standard, factor, scale[...])
  wide = gradient[...].astype(jnp.float32)
  of_x[...] = (wide + through).astype(of_x.dtype)
  kernels.add_all(of_parameters, Sublayer(
    of_scale, of_offset, dot(rows, at_hidden, 0, 0),
    at_hidden.astype(jnp.float32).sum(0, keepdims=True), dot(hidden[...], gradient[...], 0, 0),
    wide.sum(0, keepdims=True)))
