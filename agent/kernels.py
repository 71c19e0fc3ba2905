"""Pallas kernels over sets of rows: their calls, and gradients under `vmap`.

A kernel takes one set, or one block of rows, after the other, and keeps what it computes in between
beside the matrix unit. Weights stay there for all of them, and so do the sums of their gradients.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

Memory = Any  # a kernel's view of an argument or its output: read and written by indices


class Sublayer(NamedTuple):
  """Parameters of a sublayer of a pre-norm transformer; its result is added to its input."""

  scale: jax.Array  # [C] float32, of the layer norm
  offset: jax.Array  # [C] float32
  inner: jax.Array  # [C, inner size], weights after the norm
  inner_bias: jax.Array  # [inner size]
  output: jax.Array  # [output inputs, C], weights before the sum
  output_bias: jax.Array  # [C]


def joining_axes(name: str, run: Callable[..., jax.Array], inner: Sequence[int],
                 static: Sequence[str] = ()) -> Callable[..., jax.Array]:
  """Returns `run` for any number of leading axes, which it sees as one, even under `vmap`.

  The gradient of weights is then one sum over everything, computed by the rule of `run` for it.
  Under `vmap`, a rule of `jax.custom_vjp` would return a gradient for each example.

  Args:
    name: of the primitive.
    run: takes arrays that have one leading axis, then weights, and static keywords; its result has
      that axis too. It has a rule for its gradient.
    inner: for each of the arrays the number of its axes after the leading ones.
    static: names of the keywords.
  """
  count = len(inner)

  def joined(*arguments: jax.Array, **options: Any) -> jax.Array:
    arrays, weights = arguments[:count], arguments[count:]
    leading = arrays[0].shape[:arrays[0].ndim - inner[0]]
    arrays = tuple(x.reshape(-1, *x.shape[x.ndim - axes:])
                   for x, axes in zip(arrays, inner, strict=True))
    y = run(*arrays, *weights, **options)
    return y.reshape(*leading, *y.shape[1:])

  def abstract(*arguments: Any, **options: Any) -> jax.core.ShapedArray:
    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arguments]
    y = jax.eval_shape(lambda *arguments: joined(*arguments, **options), *shapes)
    return jax.core.ShapedArray(y.shape, y.dtype)

  def jvp(primals: tuple[jax.Array, ...], tangents: tuple[Any, ...],
          **options: Any) -> tuple[jax.Array, jax.Array]:
    return jax.jvp(lambda *arguments: joined(*arguments, **options), primals,
                   tuple(map(ad.instantiate_zeros, tangents)))

  def batched(arguments: tuple[jax.Array, ...], axes: tuple[int | None, ...],
              **options: Any) -> tuple[jax.Array, int]:
    if any(axis is not None for axis in axes[count:]):
      return jax.vmap(lambda *arguments: joined(*arguments, **options), axes)(*arguments), 0
    size = next(x.shape[axis] for x, axis in zip(arguments, axes, strict=True) if axis is not None)
    arrays = [jnp.broadcast_to(x, (size, *x.shape)) if axis is None else jnp.moveaxis(x, axis, 0)
              for x, axis in zip(arguments[:count], axes, strict=False)]
    return primitive.bind(*arrays, *arguments[count:], **options), 0

  primitive = Primitive(name)
  primitive.def_impl(jax.jit(joined, static_argnames=static))
  primitive.def_abstract_eval(abstract)
  mlir.register_lowering(primitive, mlir.lower_fun(joined, multiple_results=False))
  ad.primitive_jvps[primitive] = jvp
  batching.primitive_batchers[primitive] = batched
  return primitive.bind


def dot(x: jax.Array, y: jax.Array, x_axis: int, y_axis: int) -> jax.Array:
  """Contracts two matrices, in float32: kernels for a TPU v3 take no operands of bfloat16."""
  return jax.lax.dot_general(x.astype(jnp.float32), y.astype(jnp.float32),
                             (((x_axis,), (y_axis,)), ((), ())))


def norm_gradient(gradient: jax.Array, standard: jax.Array, factor: jax.Array,
                  scale: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Computes the gradients of a layer norm's input, scale and offset.

  Args:
    gradient: [rows, C] float32, of its output.
    standard: [rows, C], of `standardised`.
    factor: [rows, 1], of `standardised`.
    scale: [1, C].

  Returns:
    [rows, C], [1, C] and [1, C].
  """
  scaled = gradient * scale
  centred = scaled - scaled.mean(-1, keepdims=True)
  of_x = factor * (centred - standard * (scaled * standard).mean(-1, keepdims=True))
  return of_x, (gradient * standard).sum(0, keepdims=True), gradient.sum(0, keepdims=True)


def add_all(sums: Sequence[Memory], values: Sequence[jax.Array]) -> None:
  """Adds values to outputs that all calls of a kernel's body share."""
  from jax.experimental import pallas as pl

  @pl.when(pl.program_id(0) == 0)
  def clear() -> None:
    for each in sums:
      each[...] = jnp.zeros_like(each)

  for each, value in zip(sums, values, strict=True):
    each[...] += value


def call(body: Callable[..., None], arrays: Sequence[jax.Array], weights: Sequence[jax.Array],
         outputs: Sequence[tuple[int, ...]], sums: Sequence[tuple[int, ...]], flops: int,
         transcendentals: int = 0, interpret: bool = False) -> list[jax.Array]:
  """Runs a kernel on one matrix after the other.

  Args:
    body: takes a matrix of each of `arrays`, all weights, a matrix of each output, and the sums.
    arrays: [N, rows, columns] each.
    weights: matrices, or vectors, which the body sees as [1, size].
    outputs: shapes [rows, columns] of outputs for each of the N, of the dtype of the first array.
    sums: shapes of the outputs that all bodies share, as those of `weights`.
    flops: floating-point operations of the call.
    transcendentals: exponentials of the call.
    interpret: whether Pallas's interpreter runs it, on any platform, for tests.

  Returns:
    [N, rows, columns] of each output, then the sums, float32.
  """
  from jax.experimental import pallas as pl  # 0.5 CPU-seconds, which most processes need not spend

  count, dtype = len(arrays[0]), arrays[0].dtype

  def matrix(shape: Sequence[int]) -> pl.BlockSpec:
    return pl.BlockSpec((None, *shape), lambda i: (i, 0, 0))

  def shared(shape: Sequence[int]) -> pl.BlockSpec:
    return pl.BlockSpec(_as_matrix(shape), lambda i: (0, 0))

  shapes = [*(jax.ShapeDtypeStruct((count, *shape), dtype) for shape in outputs),
            *(jax.ShapeDtypeStruct(_as_matrix(shape), jnp.float32) for shape in sums)]
  every: list[Any] = [*arrays, *weights, *shapes]
  cost = pl.CostEstimate(flops=flops, transcendentals=transcendentals,
                         bytes_accessed=sum(x.size * x.dtype.itemsize for x in every))
  found = pl.pallas_call(
    body, out_shape=shapes, grid=(count,), interpret=interpret, cost_estimate=cost,
    in_specs=[*(matrix(x.shape[1:]) for x in arrays), *(shared(x.shape) for x in weights)],
    out_specs=[*map(matrix, outputs), *map(shared, sums)])(
      *arrays, *(x.reshape(_as_matrix(x.shape)) for x in weights))
  return [*found[:len(outputs)],
          *(x.reshape(shape) for x, shape in zip(found[len(outputs):], sums, strict=True))]


def _as_matrix(shape: Sequence[int]) -> tuple[int, ...]:
  return (1, *shape)[-2:]
