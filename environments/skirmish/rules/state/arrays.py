"""Array operations that the rules share."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Array = jax.Array | np.ndarray


def flip(values: Array) -> jax.Array:
  """The opponent's values: swaps [2, ...] along the player axis."""
  return values[::-1]  # type: ignore[return-value]


def look_up(table: Array, index: Array) -> jax.Array:
  """Looks up rows of a small constant table, in the table's dtype.

  Args:
    table: [Y] or [Y, C].
    index: [...] integers in 0..Y-1.

  Returns:
    [...] or [..., C].
  """
  return jnp.take(jnp.asarray(table), index, axis=0, mode="clip")


def pick(values: Array, index: Array) -> jax.Array:
  """Each player's values [2, m] at its own indices [2, k]; negative indices count as 0."""
  return jnp.take_along_axis(values, jnp.maximum(index, 0), axis=1, mode="clip")


def first_chosen(chosen: Array) -> jax.Array:
  """Each player's first chosen place, [2, m] bool: by a minimum, cheaper than a running sum."""
  place = jnp.arange(chosen.shape[1])
  return place == jnp.min(  # type: ignore[return-value]
    jnp.where(chosen, place, chosen.shape[1]), axis=1, keepdims=True)


def first_places(chosen: Array, most: int) -> jax.Array:
  """Each player's first chosen places, [2, m] bool, by minima: [2, most], m where there is none."""
  m, found = chosen.shape[1], []
  places = jnp.where(chosen, jnp.arange(m), m)
  for _ in range(most):
    found.append(jnp.min(places, axis=1, keepdims=True))
    places = jnp.where(places == found[-1], m, places)
  return jnp.concatenate(found, axis=1)


def min_rows(values: Array) -> jax.Array:
  """The minimum over the axis before the last: a seventh of the time of `min` on CPUs.

  Floats that are not negative have the order of their bits, and minima of integers are vectorised.

  Args:
    values: [2, m, k] float32, none negative.

  Returns:
    [2, k] float32.
  """
  bits = lax.bitcast_convert_type(values, jnp.int32)
  return lax.bitcast_convert_type(jnp.min(bits, axis=1), jnp.float32)


def argmin_rows(values: Array) -> jax.Array:
  """`argmin` over the axis before the last, as two minima: several times as fast on CPUs.

  Args:
    values: [2, m, k] float32, none negative.

  Returns:
    [2, k] int32, the first index of the minimum.
  """
  best = min_rows(values)[:, None]
  rows = jnp.arange(values.shape[1])[:, None]
  return jnp.min(jnp.where(values == best, rows, values.shape[1] - 1), axis=1)


def segment_sum(index: Array, amount: Array, size: int) -> jax.Array:
  """Sums amounts [2, k] by each player's own indices [2, k], ignoring negative ones: [2, size]."""
  index = jnp.where(index < 0, size, index)
  return jnp.zeros((2, size), amount.dtype).at[jnp.arange(2)[:, None], index].add(
    amount, mode="drop")


def squared_distance(x: Array, y: Array, to_x: Array, to_y: Array) -> jax.Array:
  """Squared distances between places; the four arguments broadcast."""
  return (to_x - x) ** 2 + (to_y - y) ** 2  # type: ignore[return-value]


def pairwise_squared_distance(x: Array, y: Array, to_x: Array, to_y: Array) -> jax.Array:
  """Squared distances between all pairs of places [..., m] and [..., k]: [..., m, k]."""
  return squared_distance(x[..., :, None], y[..., :, None], to_x[..., None, :], to_y[..., None, :])


def to_dense(index: np.ndarray, values: jax.Array, size: int) -> jax.Array:
  """Values by local index [2, Y] to values by dense index [2, size], 0 where there is none.

  Args:
    index: [Y], the dense index of each local one; local index 0 is none.
    values: [2, Y].
    size: number of dense indices.
  """
  place = np.zeros(size, np.int32)
  place[index] = np.arange(len(index))
  place[0] = 0
  return jnp.take(values.at[:, 0].set(jnp.zeros((), values.dtype)), place, axis=1)
