"""Self-attention of a transformer's layer: norm, projection, all heads at once, and the sum.

Plain attention writes two [E, E] matrices a head to memory and reads them several times, which is
most of what a transformer over 512 entities moves. One set fits whole into the memory beside a
TPU's matrix unit. There, `fused` computes a set in one kernel, and its gradient in another, and
reads and writes nothing but the rows (after Dao et al. 2022, FlashAttention, without its blocks).
On a GPU it calls the FlashAttention of cuDNN.
"""

import functools
from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp

from starleague.agent import kernels, linear
from starleague.agent.elementwise import layer_norm, standardised
from starleague.agent.kernels import Memory, Sublayer, dot

_HIDDEN = -1e9  # added to the logits of rows that do not exist
_Attend = Callable[[jax.Array, jax.Array, int], jax.Array]


def attend(projected: jax.Array, mask: jax.Array, heads: int) -> jax.Array:
  """Computes attention by matrix products.

  Args:
    projected: [E, 3 * heads * size]: queries of all heads, their keys, their values.
    mask: [E] bool: the rows that are attended to.
    heads: their number.

  Returns:
    [E, heads * size] of the dtype of `projected`. Logits are rounded to that dtype, because float32
    ones would be twice the bytes; the softmax is float32.
  """
  size = projected.shape[1] // (3 * heads)
  hidden = hiding(mask)
  attended = []
  # One head at a time, each on its own columns: an axis of heads would cost transposes.
  columns = jnp.split(projected, 3 * heads, axis=1)
  for head in range(heads):
    query, key, value = columns[head::heads]
    logits = linear.matmul(query, key.T).astype(jnp.float32) / jnp.sqrt(float(size))
    weights = jax.nn.softmax(logits + hidden, axis=-1).astype(projected.dtype)
    attended.append(linear.matmul(weights, value))
  return jnp.concatenate(attended, axis=-1)


def flash(projected: jax.Array, mask: jax.Array, heads: int,
          implementation: Literal["cudnn", "xla"] = "cudnn") -> jax.Array:
  """Computes `attend` by `jax.nn.dot_product_attention`.

  The rows that exist must be the first ones. Keys and values of the others are not read.
  """
  query, key, value = (x.reshape(1, x.shape[0], heads, -1) for x in jnp.split(projected, 3, axis=1))
  # A softmax over nothing would be undefined: an empty set attends to its first row.
  count = jnp.maximum(mask.sum(dtype=jnp.int32), 1)[None]
  attended = jax.nn.dot_product_attention(
    query, key, value, key_value_seq_lengths=count, implementation=implementation)
  return attended.reshape(len(mask), -1)


def plain(x: jax.Array, mask: jax.Array, parameters: Sublayer, heads: int,
          method: _Attend = attend) -> jax.Array:
  """Computes the sublayer of one set.

  Args:
    x: [E, C].
    mask: [E] bool: the rows that are attended to.
    parameters: `inner` projects to queries of all heads, their keys, their values; `output`
      projects all heads back to C.
    heads: their number.
    method: computes attention.

  Returns:
    [E, C] of the dtype of `x`.
  """
  rows = layer_norm(x, parameters.scale, parameters.offset)
  projected = linear.add_bias(linear.product(rows, parameters.inner), parameters.inner_bias)
  attended = method(projected, mask, heads)
  return x + linear.add_bias(linear.product(attended, parameters.output), parameters.output_bias)


def fused(x: jax.Array, mask: jax.Array, parameters: Sublayer, heads: int) -> jax.Array:
  """Computes `plain`: on a TPU in one kernel, on a GPU in bfloat16 with cuDNN's attention.

  Kernels round float32 logits later, so that bfloat16 results differ by rounding. On a GPU the rows
  that exist must be the first ones. The gradient's kernel keeps nothing but the rows, and computes
  attention again.
  """
  # platform_dependent traces all its branches, and tracing cuDNN's call needs cuDNN.
  if jax.default_backend() == "gpu":
    return plain(x, mask, parameters, heads, flash if x.dtype == jnp.bfloat16 else attend)
  return _joined(x, hiding(mask), *parameters, heads=heads)


def hiding(mask: jax.Array) -> jax.Array:
  """Returns what is added to the logits of rows, float32: 0 if they exist."""
  return jnp.where(mask, 0.0, _HIDDEN)


def kernel(x: jax.Array, hidden: jax.Array, parameters: Sublayer, heads: int,
           interpret: bool = False) -> jax.Array:
  """Computes `plain` of N sets in a Pallas kernel.

  Args:
    x: [N, E, C].
    hidden: [N, E] of `hiding`.
    parameters: of the sublayer.
    heads: their number.
    interpret: runs it on any platform, for tests.

  Returns:
    [N, E, C].
  """
  return kernels.call(
    functools.partial(_attend_kernel, heads=heads), [x, hidden[:, None]], parameters, [x.shape[1:]],
    [], _flops(x, parameters, 2, 1, 1), heads * hidden.size * x.shape[1], interpret)[0]


def gradient_kernel(x: jax.Array, hidden: jax.Array, gradient: jax.Array, parameters: Sublayer,
                    heads: int, interpret: bool = False) -> list[jax.Array]:
  """Computes the gradients of `x`, of its dtype, and of the parameters, float32.

  Args are those of `kernel`, and `gradient` [N, E, C], of the output.
  """
  return kernels.call(
    functools.partial(_gradient_kernel, heads=heads), [x, hidden[:, None], gradient], parameters,
    [x.shape[1:]], [each.shape for each in parameters], _flops(x, parameters, 6, 3, 2),
    heads * hidden.size * x.shape[1], interpret)


def _flops(x: jax.Array, parameters: Sublayer, products: int, inner: int, output: int) -> int:
  """Counts products of two [E, E] or [E, size] matrices of all heads, and those with weights."""
  sets, rows, _ = x.shape
  with_weights = inner * parameters.inner.size + output * parameters.output.size
  return 2 * sets * rows * (products * rows * parameters.output.shape[0] + with_weights)


def _of_products(x: jax.Array, hidden: jax.Array, *parameters: jax.Array, heads: int) -> jax.Array:
  return jax.vmap(lambda x, hidden: plain(x, hidden == 0, Sublayer(*parameters), heads))(x, hidden)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _of_sets(heads: int, x: jax.Array, hidden: jax.Array, *parameters: jax.Array) -> jax.Array:
  return jax.lax.platform_dependent(
    x, hidden, tpu=lambda x, hidden: kernel(x, hidden, Sublayer(*parameters), heads),
    default=lambda *sets: _of_products(*sets, *parameters, heads=heads))


def _forward(heads: int, *arguments: jax.Array) -> tuple[jax.Array, tuple[jax.Array, ...]]:
  return _of_sets(heads, *arguments), arguments


def _backward(heads: int, arguments: tuple[jax.Array, ...],
              gradient: jax.Array) -> tuple[jax.Array | None, ...]:
  x, hidden, *parameters = arguments

  def by_kernel(gradient: jax.Array) -> list[jax.Array]:
    return gradient_kernel(x, hidden, gradient, Sublayer(*parameters), heads)

  def by_products(gradient: jax.Array) -> list[jax.Array]:
    _, pull_back = jax.vjp(
      lambda x, *parameters: _of_products(x, hidden, *parameters, heads=heads), x, *parameters)
    of_x, *of_parameters = pull_back(gradient)
    return [of_x, *(of.astype(jnp.float32) for of in of_parameters)]

  of_x, *of_parameters = jax.lax.platform_dependent(
    gradient, tpu=by_kernel, default=by_products)
  return of_x, None, *(
    of.astype(each.dtype) for of, each in zip(of_parameters, parameters, strict=True))


_of_sets.defvjp(_forward, _backward)
_joined = kernels.joining_axes(
  "starleague_attention", lambda *arguments, heads: _of_sets(heads, *arguments), inner=(2, 1),
  static=("heads",))
# By AgentConfig.entity_attention.
METHODS: dict[str, Callable[[jax.Array, jax.Array, Sublayer, int], jax.Array]] = {
  "plain": plain, "fused": fused}


def _attend_kernel(x: Memory, hidden: Memory, scale: Memory, offset: Memory, inner: Memory,
                   inner_bias: Memory, output: Memory, output_bias: Memory, y: Memory, *,
                   heads: int) -> None:
  rows = layer_norm(x[...], scale[...], offset[...])
  projected = (dot(rows, inner[...], 1, 0) + inner_bias[...]).astype(x.dtype)
  attended = []
  for query, key, value in _by_head(projected, heads):
    weights = _weights(query, key, hidden[...]).astype(value.dtype)
    attended.append(dot(weights, value, 1, 0).astype(x.dtype))
  total = dot(jnp.concatenate(attended, axis=1), output[...], 1, 0) + output_bias[...]
  y[...] = (x[...] + total).astype(y.dtype)


def _gradient_kernel(x: Memory, hidden: Memory, gradient: Memory, scale: Memory, offset: Memory,
                     inner: Memory, inner_bias: Memory, output: Memory, output_bias: Memory,
                     of_x: Memory, *of_parameters: Memory, heads: int) -> None:
  """Recomputes a set's attention and computes its gradients; those of parameters are summed."""
  del output_bias
  standard, factor = standardised(x[...])
  rows = (standard * scale[...] + offset[...]).astype(x.dtype)
  projected = (dot(rows, inner[...], 1, 0) + inner_bias[...]).astype(x.dtype)
  of_attended = dot(gradient[...], output[...], 1, 1).astype(x.dtype)
  attended, of_projected = _heads_gradients(projected, of_attended, hidden[...], heads)
  through, of_scale, of_offset = kernels.norm_gradient(
    dot(of_projected, inner[...], 1, 1), standard, factor, scale[...])
  wide = gradient[...].astype(jnp.float32)
  of_x[...] = (wide + through).astype(of_x.dtype)
  # Of the projection's two equal products, this order needs less of v3's 16 MiB beside the unit.
  kernels.add_all(of_parameters, Sublayer(
    of_scale, of_offset, dot(of_projected, rows, 0, 0).T,
    of_projected.astype(jnp.float32).sum(0, keepdims=True), dot(attended, gradient[...], 0, 0),
    wide.sum(0, keepdims=True)))


def _heads_gradients(projected: jax.Array, of_attended: jax.Array, hidden: jax.Array,
                     heads: int) -> tuple[jax.Array, jax.Array]:
  """Applies the chain rule to the two products of each head.

  Returns:
    What all heads attended to, [E, heads * size], and the gradient of `projected`, of its dtype.
  """
  dtype = projected.dtype
  attended, gradients = [], []
  size = of_attended.shape[1] // heads
  for head, (query, key, value) in enumerate(_by_head(projected, heads)):
    of_head = of_attended[:, head * size:(head + 1) * size]
    weights = _weights(query, key, hidden)
    of_weights = dot(of_head, value, 1, 1)
    of_logits = weights * (of_weights - (weights * of_weights).sum(-1, keepdims=True))
    of_logits = of_logits * size ** -0.5
    attended.append(dot(weights, value, 1, 0).astype(dtype))
    products = (dot(of_logits, key, 1, 0), dot(of_logits, query, 0, 0), dot(weights, of_head, 0, 0))
    gradients.append([of.astype(dtype) for of in products])
  of_parts = [of for part in zip(*gradients, strict=True) for of in part]
  return jnp.concatenate(attended, axis=1), jnp.concatenate(of_parts, axis=1)


def _by_head(projected: jax.Array, heads: int) -> list[list[jax.Array]]:
  """Returns queries, keys and values of each head."""
  size = projected.shape[1] // (3 * heads)
  parts = [projected[:, start:start + size] for start in range(0, projected.shape[1], size)]
  return [parts[head::heads] for head in range(heads)]


def _weights(query: jax.Array, key: jax.Array, hidden: jax.Array) -> jax.Array:
  logits = dot(query, key, 1, 1) * query.shape[1] ** -0.5 + hidden
  exponentials = jnp.exp(logits - logits.max(-1, keepdims=True))
  return exponentials / exponentials.sum(-1, keepdims=True)
