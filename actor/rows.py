"""Rows of a batch of games: row `2 * game + player` is a player's side of a game."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from starleague.agent import types


def gather(tree: Any, row: jax.Array) -> Any:
  """Returns the rows of a tree: [games, 2, ...] -> [len(row), ...]."""
  return jax.tree.map(lambda x: x[row], flatten(tree))


def scatter(tree: Any, row: jax.Array, where: types.Array, values: Any) -> Any:
  """Returns a tree [games, 2, ...] with new values [len(row), ...] in the rows with `where`."""
  count = 2 * jax.tree.leaves(tree)[0].shape[0]
  # A write out of bounds is dropped.
  index = jnp.where(where, row, count)
  return unflatten(jax.tree.map(
    lambda x, y: x.at[index].set(y, mode="drop"), flatten(tree), values))


def select(condition: types.Array, on_true: Any, on_false: Any) -> Any:
  """Selects between two trees per game or per row; `condition` is [games] or [games, 2]."""
  def one(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.where(
      condition.reshape(*condition.shape, *[1] * (a.ndim - condition.ndim)), a, b)
  return jax.tree.map(one, on_true, on_false)


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


def longest_waiting(params: Any, priority: jax.Array, opponents: jax.Array,
                    size: int) -> tuple[jax.Array, jax.Array]:
  """Returns the rows of highest priority.

  Args:
    params, opponents: not used; see `rollouts.Decider`.
    priority: [rows] int32; 0 for rows that are not pending.
    size: number of rows.

  Returns:
    row: [size] int32; any row where there are too few.
    filled: [size] bool.
  """
  del params, opponents
  found, row = jax.lax.top_k(priority, size)
  return row, found > 0


def grouped(priority: jax.Array, group: jax.Array, groups: int, chunk: int,
            size: int) -> tuple[jax.Array, jax.Array]:
  """Returns pending rows in chunks, each of rows of one group only.

  The rows of a group form its chunks by falling priority. The chunks with the highest sums are
  returned: full ones are preferred, and a single row is not left behind for ever, as priorities
  rise with the wait.

  Args:
    priority: [rows] int32; 0 for rows that are not pending.
    group: [rows] int32 in 0..groups - 1.
    groups: number of groups.
    chunk: rows of a chunk.
    size: number of rows, a multiple of `chunk`.

  Returns:
    row: [size] int32. The rows of a chunk come first; any row fills up the rest.
    filled: [size] bool.
  """
  count = len(priority)
  group = jnp.where(priority > 0, group, groups)  # the others come last
  order = jnp.lexsort((-priority, group))
  members = jnp.bincount(group, length=groups + 1)
  first = jnp.cumsum(members) - members
  chunks = -(-members[:groups] // chunk)
  start = chunk * jnp.append(jnp.cumsum(chunks) - chunks, 0)
  total = chunk * (count // chunk + groups)  # the most that may be needed
  sorted_group = group[order]
  place = start[sorted_group] + jnp.arange(count) - first[sorted_group]
  place = jnp.where(sorted_group < groups, place, total)
  laid_out = jnp.full((total,), count, jnp.int32).at[place].set(
    order.astype(jnp.int32), mode="drop").reshape(-1, chunk)
  sums = jnp.append(priority, 0)[laid_out].sum(axis=1)
  _, best = jax.lax.top_k(sums, size // chunk)
  row = laid_out[best].reshape(-1)
  return jnp.minimum(row, count - 1), row < count


def flatten(tree: Any) -> Any:
  """Returns a tree of rows: [games, 2, ...] -> [2 * games, ...]."""
  return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), tree)


def unflatten(tree: Any) -> Any:
  """Returns a tree of games: [2 * games, ...] -> [games, 2, ...]."""
  return jax.tree.map(lambda x: x.reshape(-1, 2, *x.shape[1:]), tree)
