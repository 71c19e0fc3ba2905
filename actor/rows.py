"""Rows of a batch of games: row `2 * game + player` is a player's side of a game."""

from typing import Any

import jax
import jax.numpy as jnp

from starleague.agent import types


def gather(tree: Any, row: jax.Array) -> Any:
  """Returns the rows of a tree: [games, 2, ...] -> [len(row), ...]."""
  return jax.tree.map(lambda x: x[row], flatten(tree))


def scatter(tree: Any, row: jax.Array, where: types.Array, values: Any) -> Any:
  """Returns a tree [games, 2, ...] with new values [len(row), ...] in the rows with `where`."""
  leaves = jax.tree.leaves(tree)
  if not leaves:
    return tree
  count = 2 * leaves[0].shape[0]
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
