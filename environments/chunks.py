"""Updates of some rows of a batch, in chunks."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from starleague.agent import types


def update_chosen(function: Callable[[jax.Array, Any], Any], chosen: types.Array, tree: Any,
                  chunk: int) -> Any:
  """Updates the chosen rows of a tree in chunks: on a CPU, the others cost nothing.

  An accelerator takes as long for all rows as for a few: there all are one chunk.

  Args:
    function: (row [chunk] int32, their values [chunk, ...]) -> new values. Its result for a row
      must depend on that row only; the last chunk is filled up with copies of the last row.
    chosen: [rows] bool.
    tree: leaves [rows, ...].
    chunk: rows of a call of the function.
  """
  count = len(chosen)
  chunk = min(chunk, count) if jax.default_backend() == "cpu" else count
  # The chosen rows in order, then `count`: reads there are clipped, writes dropped.
  place = jnp.where(chosen, jnp.cumsum(chosen) - 1, count + chunk)
  order = jnp.full((count + chunk,), count, jnp.int32).at[place].set(
    jnp.arange(count, dtype=jnp.int32), mode="drop")
  total = chosen.sum()

  def update(carry: tuple[jax.Array, Any]) -> tuple[jax.Array, Any]:
    start, tree = carry
    index = jax.lax.dynamic_slice(order, (start,), (chunk,))
    row = jnp.minimum(index, count - 1)
    values = function(row, jax.tree.map(lambda x: x[row], tree))
    return start + chunk, jax.tree.map(
      lambda x, y: x.at[index].set(y.astype(x.dtype), mode="drop"), tree, values)

  return jax.lax.while_loop(lambda carry: carry[0] < total, update, (jnp.int32(0), tree))[1]
