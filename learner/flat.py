"""A tree of parameters as one matrix [n, 128], for reductions and the optimizer.

Leaf by leaf, reductions would be hundreds of small kernels, which XLA's CPU compiler takes minutes
to compile. Leaves follow one another in the order of `jax.tree.leaves`; zeros fill the last rows.

A vector would do on a CPU. On a TPU, pmap's leading axis changes the memory layout of a vector, and
the compiler copied both of Adam's moments twice in each update. The layout of a matrix stays.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from starleague.data.trees import Tree

_COLUMNS = 128
_ROWS = 8  # the number of rows is a multiple: a TPU stores blocks of 8 x 128


def flatten(tree: Tree, numpy: Any = jnp) -> Any:
  """Converts a tree of arrays of one dtype to a matrix.

  Args:
    tree: at least one array.
    numpy: numpy for host arrays, which compiles nothing, or jax.numpy.

  Returns:
    [n, 128] of their dtype.
  """
  leaves = [numpy.ravel(x) for x in jax.tree.leaves(tree)]
  rest = numpy.zeros(-sum(len(x) for x in leaves) % (_ROWS * _COLUMNS), leaves[0].dtype)
  return numpy.concatenate([*leaves, rest]).reshape(-1, _COLUMNS)


def unflatten(matrix: jax.Array, template: Tree) -> Tree:
  """Inverts `flatten`.

  Args:
    matrix: [n, 128].
    template: a tree of arrays or shapes.
  """
  leaves, structure = jax.tree.flatten(template)
  parts = jnp.split(matrix.reshape(-1), np.cumsum([x.size for x in leaves]))[:-1]
  return jax.tree.unflatten(structure, [
    part.reshape(x.shape).astype(x.dtype) for part, x in zip(parts, leaves, strict=True)])


def repeat(values: Tree, params: Tree) -> np.ndarray:
  """Returns one value for each parameter array as a matrix over all elements, [n, 128].

  Args:
    values: a bool or a number for each array.
    params: the parameters or their shapes.
  """
  return flatten(jax.tree.map(lambda value, x: np.full(x.size, value), values, params), np)
