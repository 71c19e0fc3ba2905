"""Attention of one set of rows over itself, all heads at once.

Plain attention writes two [E, E] matrices a head to memory and reads them several times, which is
most of what a transformer over 512 entities moves. One set fits whole into the memory beside a
TPU's matrix unit. There, `fused` computes a set in one kernel, and its gradient in another, and
reads and writes nothing but the projections (after Dao et al. 2022, FlashAttention, without its
blocks). On a GPU it calls the FlashAttention of cuDNN.
"""

import functools
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp

from starleague.agent import linear

Memory = Any  # a kernel's view of an argument or its output: read and written by indices
_HIDDEN = -1e9  # added to the logits of rows that do not exist


def plain(projected: jax.Array, mask: jax.Array, heads: int) -> jax.Array:
  """Computes attention by matrix products.

  Args:
    projected: [E, 3 * heads * size]: queries of all heads, their keys, their values.
    mask: [E] bool: the rows that are attended to.
    heads: their number.

  Returns:
    [E, heads * size] of the dtype of `projected`; logits and softmax are float32.
  """
  size = projected.shape[1] // (3 * heads)
  bias = jnp.where(mask, 0.0, _HIDDEN)
  attended = []
  # One head at a time, each on its own columns: an axis of heads would cost transposes.
  columns = jnp.split(projected, 3 * heads, axis=1)
  for head in range(heads):
    query, key, value = columns[head::heads]
    logits = linear.matmul(query, key.T).astype(jnp.float32) / jnp.sqrt(float(size))
    weights = jax.nn.softmax(logits + bias, axis=-1).astype(projected.dtype)
    attended.append(linear.matmul(weights, value))
  return jnp.concatenate(attended, axis=-1)


def fused(projected: jax.Array, mask: jax.Array, heads: int) -> jax.Array:
  """Computes `plain` in one kernel: on a TPU, and in bfloat16 on a GPU. Elsewhere it calls `plain`.

  Kernels round float32 logits later, so that bfloat16 results differ by rounding. On a GPU the rows
  that exist must be the first ones. The gradient recomputes the weights.
  """
  # platform_dependent traces all its branches, and tracing cuDNN's call needs cuDNN.
  if jax.default_backend() == "gpu" and projected.dtype == jnp.bfloat16:
    return flash(projected, mask, heads)
  return _fused(projected, mask, heads)


def flash(projected: jax.Array, mask: jax.Array, heads: int,
          implementation: Literal["cudnn", "xla"] = "cudnn") -> jax.Array:
  """Computes `plain` by `jax.nn.dot_product_attention`.

  The rows that exist must be the first ones. Keys and values of the others are not read.
  """
  query, key, value = (x.reshape(1, x.shape[0], heads, -1) for x in jnp.split(projected, 3, axis=1))
  # A softmax over nothing would be undefined: an empty set attends to its first row.
  count = jnp.maximum(mask.sum(dtype=jnp.int32), 1)[None]
  attended = jax.nn.dot_product_attention(
    query, key, value, key_value_seq_lengths=count, implementation=implementation)
  return attended.reshape(len(mask), -1)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _fused(projected: jax.Array, mask: jax.Array, heads: int) -> jax.Array:
  return jax.lax.platform_dependent(
    projected, mask, tpu=functools.partial(kernel, heads=heads),
    default=functools.partial(plain, heads=heads))


def kernel(projected: jax.Array, mask: jax.Array, heads: int, interpret: bool = False) -> jax.Array:
  """Computes `plain` in a Pallas kernel; `interpret` runs it on any platform, for tests."""
  width = projected.shape[1] // 3
  return _call(_attend_kernel, width, 2, heads, interpret, projected, _bias(mask))


def gradient_kernel(projected: jax.Array, mask: jax.Array, gradient: jax.Array, heads: int,
                    interpret: bool = False) -> jax.Array:
  """Computes the gradient of `projected` from that of the output in a Pallas kernel."""
  width = projected.shape[1]
  return _call(_gradient_kernel, width, 5, heads, interpret, projected, _bias(mask), gradient)


def _fused_forward(projected: jax.Array, mask: jax.Array,
                   heads: int) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
  return _fused(projected, mask, heads), (projected, mask)


def _fused_backward(heads: int, arguments: tuple[jax.Array, jax.Array],
                    gradient: jax.Array) -> tuple[jax.Array, None]:
  def by_products(projected: jax.Array, mask: jax.Array, gradient: jax.Array) -> jax.Array:
    _, pull_back = jax.vjp(lambda x: plain(x, mask, heads), projected)
    return pull_back(gradient)[0]

  return jax.lax.platform_dependent(
    *arguments, gradient, tpu=functools.partial(gradient_kernel, heads=heads),
    default=by_products), None


_fused.defvjp(_fused_forward, _fused_backward)
# By AgentConfig.entity_attention.
METHODS: dict[str, Callable[[jax.Array, jax.Array, int], jax.Array]] = {
  "plain": plain, "fused": fused}


def _bias(mask: jax.Array) -> jax.Array:
  return jnp.where(mask, 0.0, _HIDDEN)[None]


def _attend_kernel(projected: Memory, bias: Memory, output: Memory, *, heads: int) -> None:
  for head in range(heads):
    columns = _columns(projected, head, heads)
    query, key, value = (projected[:, part] for part in columns)
    weights = _weights(query, key, bias[...]).astype(value.dtype)
    output[:, columns[0]] = _dot(weights, value, 1, 0).astype(output.dtype)


def _gradient_kernel(projected: Memory, bias: Memory, gradient: Memory,
                     output: Memory, *, heads: int) -> None:
  """Recomputes the weights of each head, then applies the chain rule to its two products."""
  for head in range(heads):
    columns = _columns(projected, head, heads)
    query, key, value = (projected[:, part] for part in columns)
    of_attended = gradient[:, columns[0]]
    weights = _weights(query, key, bias[...])
    of_weights = _dot(of_attended, value, 1, 1)
    of_logits = weights * (of_weights - (weights * of_weights).sum(-1, keepdims=True))
    of_logits = (of_logits * query.shape[1] ** -0.5).astype(query.dtype)
    gradients = (_dot(of_logits, key, 1, 0), _dot(of_logits, query, 0, 0),
                 _dot(weights.astype(value.dtype), of_attended, 0, 0))
    for part, of_part in zip(columns, gradients, strict=True):
      output[:, part] = of_part.astype(output.dtype)


def _columns(projected: Memory, head: int, heads: int) -> tuple[slice, slice, slice]:
  """Returns the columns of a head's queries, keys and values."""
  size = projected.shape[1] // (3 * heads)
  query, key, value = (
    slice((part * heads + head) * size, (part * heads + head + 1) * size) for part in range(3))
  return query, key, value


def _weights(query: jax.Array, key: jax.Array, bias: jax.Array) -> jax.Array:
  logits = _dot(query, key, 1, 1) * query.shape[1] ** -0.5 + bias
  exponentials = jnp.exp(logits - logits.max(-1, keepdims=True))
  return exponentials / exponentials.sum(-1, keepdims=True)


def _dot(x: jax.Array, y: jax.Array, x_axis: int, y_axis: int) -> jax.Array:
  """Contracts two matrices, in float32: kernels for a TPU v3 take no operands of bfloat16."""
  return jax.lax.dot_general(x.astype(jnp.float32), y.astype(jnp.float32),
                             (((x_axis,), (y_axis,)), ((), ())))


def _call(body: Callable[..., None], width: int, products: int, heads: int, interpret: bool,
          projected: jax.Array, *others: jax.Array) -> jax.Array:
  """Runs a kernel on a set; under `vmap` on one set after the other."""
  from jax.experimental import pallas as pl  # 0.5 CPU-seconds, which most processes need not spend

  rows, size = projected.shape[0], projected.shape[1] // (3 * heads)
  output = jax.ShapeDtypeStruct((rows, width), projected.dtype)
  arguments = (projected, *others)
  moved = rows * width * projected.dtype.itemsize + sum(
    x.size * x.dtype.itemsize for x in arguments)
  cost = pl.CostEstimate(flops=2 * products * heads * rows * rows * size, bytes_accessed=moved,
                         transcendentals=heads * rows * rows)
  return pl.pallas_call(functools.partial(body, heads=heads), out_shape=output,
                        cost_estimate=cost, interpret=interpret)(*arguments)
