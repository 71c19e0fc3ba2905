"""A tree of parameters as one matrix [n, 128], for reductions and the optimizer.

Leaf by leaf these would be hundreds of small kernels, which XLA's CPU compiler takes minutes to
compile. Leaves follow one another in the order of `jax.tree.leaves`, then zeros fill the last 8
rows. A vector would do on a CPU, but pmap adds an axis to it: a TPU stores [1, N] in another order
than [N] and copied both moments twice in each update. Its order of [1, n, 128] is that of [n, 128].
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from starleague.data.trees import Tree

_COLUMNS = 128
_ROWS = 8  # the number of rows is a multiple: a TPU stores blocks of 8 x 128


def size(tree: Tree) -> int:
  """Returns the number of elements with the zeros at the end."""
  block = _ROWS * _COLUMNS
  return -(-sum(x.size for x in jax.tree.leaves(tree)) // block) * block


def from_host(tree: Tree) -> np.ndarray:
  """Converts a tree of numpy arrays, without a compilation: [n, 128]."""
  return _matrix([np.ravel(x) for x in jax.tree.leaves(tree)], size(tree), np)


def flatten(tree: Tree) -> jax.Array:
  """Converts a tree of JAX's arrays: [n, 128]."""
  return _matrix([x.ravel() for x in jax.tree.leaves(tree)], size(tree), jnp)


def unflatten(matrix: jax.Array, template: Tree) -> Tree:
  """Inverts `flatten`.

  Args:
    matrix: [n, 128].
    template: a tree of arrays or shapes.
  """
  leaves, structure = jax.tree.flatten(template)
  ends = np.cumsum([x.size for x in leaves])
  parts = jnp.split(matrix.reshape(-1), ends)[:-1]
  return jax.tree.unflatten(structure, [
    part.reshape(x.shape).astype(x.dtype) for part, x in zip(parts, leaves, strict=True)])


def repeat(values: Tree, params: Tree) -> np.ndarray:
  """Returns one value for each parameter array as a matrix over all elements, [n, 128].

  Args:
    values: a bool or a number for each array.
    params: the parameters or their shapes.
  """
  return _matrix([np.full(x.size, value) for value, x in zip(
    jax.tree.leaves(values), jax.tree.leaves(params), strict=True)], size(params), np)


def _matrix(parts: list[Any], count: int, numpy: Any) -> Any:
  rest = count - sum(len(x) for x in parts)
  zeros = numpy.zeros(rest, parts[0].dtype) if parts else numpy.zeros(0, numpy.float32)
  return numpy.concatenate([*parts, zeros]).reshape(-1, _COLUMNS)
