"""Choice of rows: by waiting time, and in chunks of one group."""


import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

from starleague.actor import rows


def test_rows_that_waited_longest_are_chosen():
  row, filled = rows.longest_waiting(None, jnp.array([0, 3, 1, 5, 0]), None, 4)
  np.testing.assert_array_equal(row[:3], [3, 1, 2])
  np.testing.assert_array_equal(filled, [True, True, True, False])


def test_chunks_hold_rows_of_one_group():
  """Group 0 has rows 0, 2, 4, 5 and group 1 rows 1 and 3; the chunk of 0 and 4 waited 9 in all."""
  priority = jnp.array([5, 1, 2, 1, 4, 1])
  group = jnp.array([0, 1, 0, 1, 0, 0])
  row, filled = rows.grouped(priority, group, 2, chunk=2, size=4)
  np.testing.assert_array_equal(row, [0, 4, 2, 5])
  assert filled.all()


def test_one_row_that_waited_longer_than_a_full_chunk_goes_first():
  priority, group = jnp.array([1, 1, 1, 4]), jnp.array([0, 0, 0, 1])
  row, filled = rows.grouped(priority, group, 2, chunk=3, size=3)
  assert row[0] == 3
  np.testing.assert_array_equal(filled, [True, False, False])


PENDING = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2)), min_size=12, max_size=12)


@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(PENDING)
def test_chunks_are_the_best_ones(pending):
  """Compares with an enumeration of all chunks."""
  chunk, size, groups = 2, 6, 3
  priority, group = np.array(pending).T
  row, filled = jax.jit(rows.grouped, static_argnums=(2, 3, 4))(priority, group, groups, chunk,
                                                                size)
  row, filled = np.asarray(row), np.asarray(filled)
  assert len(set(row[filled])) == filled.sum()
  assert (priority[row[filled]] > 0).all()
  for members, used in zip(row.reshape(-1, chunk), filled.reshape(-1, chunk), strict=True):
    assert len(set(group[members[used]])) <= 1
    assert (np.diff(used.astype(int)) <= 0).all()  # filled ones come first
  sums = []
  for number in range(groups):
    own = sorted(priority[(group == number) & (priority > 0)], reverse=True)
    sums += [sum(own[i:i + chunk]) for i in range(0, len(own), chunk)]
  found = (priority[row] * filled).reshape(-1, chunk).sum(axis=1)
  best = sorted(sums, reverse=True)[:size // chunk]
  np.testing.assert_array_equal(found, best + [0] * (size // chunk - len(best)))
