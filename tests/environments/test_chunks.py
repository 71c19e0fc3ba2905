"""Updates of chosen rows, in chunks."""

import functools

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

from starleague.environments import chunks

CALLS: list[list[int]] = []  # rows of each call of `tenfold`


def tenfold(row, values):
  jax.debug.callback(lambda row: CALLS.append(row.tolist()), row, ordered=True)
  return {"x": 10 * values["x"] + 100 * row[:, None], "y": 10 * values["y"] + 100 * row}


@functools.partial(jax.jit, static_argnums=0)
def updated(chunk, chosen):
  tree = {"x": jnp.arange(14, dtype=jnp.int16).reshape(7, 2), "y": jnp.arange(7.0)}
  return chunks.update_chosen(tenfold, chosen, tree, chunk)


@hypothesis.given(st.lists(st.booleans(), min_size=7, max_size=7), st.sampled_from([1, 3, 7, 32]))
def test_the_chosen_rows_alone_are_updated(chosen, chunk):
  """To 10 x + 100 i, once each; the function is not called where none is chosen."""
  CALLS.clear()
  found = updated(chunk, np.array(chosen))
  jax.effects_barrier()
  where, index = np.array(chosen), np.arange(7)
  np.testing.assert_array_equal(found["y"], np.where(where, 110.0 * index, index))
  x = np.arange(14).reshape(7, 2)
  np.testing.assert_array_equal(
    found["x"], np.where(where[:, None], 10 * x + 100 * index[:, None], x))
  assert found["x"].dtype == np.int16
  assert len(CALLS) == -(-sum(chosen) // min(chunk, 7))
  seen = [row for call in CALLS for row in call]
  assert seen[:sum(chosen)] == np.flatnonzero(where).tolist()
