"""Array operations against numpy."""

import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules.state import arrays


def test_flip_swaps_the_players():
  np.testing.assert_array_equal(arrays.flip(np.array([[1, 2], [3, 4]])), [[3, 4], [1, 2]])


def test_look_up_keeps_the_tables_dtype():
  found = arrays.look_up(np.array([0.0, 1.5, 2.5], np.float32), np.array([[2, 0], [1, 1]]))
  assert found.dtype == np.float32
  np.testing.assert_array_equal(found, [[2.5, 0.0], [1.5, 1.5]])


def test_pick_counts_negative_indices_as_zero():
  found = arrays.pick(np.array([[1, 2, 3], [4, 5, 6]]), np.array([[2, -1], [0, 1]]))
  np.testing.assert_array_equal(found, [[3, 1], [4, 5]])


@hypothesis.settings(max_examples=25, deadline=None)
@hypothesis.given(values=hnp.arrays(
  np.float32, (2, 5, 3), elements=st.floats(0.0, np.inf, width=32)))
def test_min_rows_is_the_minimum(values):
  np.testing.assert_array_equal(arrays.min_rows(np.abs(values)), np.abs(values).min(axis=1))


@hypothesis.settings(max_examples=25, deadline=None)
@hypothesis.given(values=hnp.arrays(np.float32, (2, 5, 3), elements=st.integers(0, 3)))
def test_argmin_rows_is_the_first_minimum(values):
  np.testing.assert_array_equal(arrays.argmin_rows(values), np.argmin(values, axis=1))


def test_argmin_rows_ignores_infinite_rows():
  values = np.full((2, 3, 1), np.inf, np.float32)
  values[:, 2] = 4.0
  np.testing.assert_array_equal(arrays.argmin_rows(values), [[2], [2]])


@hypothesis.settings(max_examples=25, deadline=None)
@hypothesis.given(index=hnp.arrays(np.int32, (2, 6), elements=st.integers(-1, 3)),
                  amount=hnp.arrays(np.int32, (2, 6), elements=st.integers(-9, 9)))
def test_segment_sum_ignores_negative_indices(index, amount):
  expected = np.zeros((2, 4), np.int32)
  for p in range(2):
    np.add.at(expected[p], index[p][index[p] >= 0], amount[p][index[p] >= 0])
  np.testing.assert_array_equal(arrays.segment_sum(index, amount, 4), expected)


def test_pairwise_distances_are_those_of_each_pair():
  x, y = np.array([[0.0, 3.0]]), np.array([[0.0, 4.0]])
  found = arrays.pairwise_squared_distance(x, y, x[:, :1], y[:, :1])
  np.testing.assert_array_equal(found, [[[0.0], [25.0]]])


def test_dense_values_have_no_entry_of_the_local_zero():
  values = jnp.array([[9, 3, 4], [9, 1, 2]])
  found = arrays.to_dense(np.array([0, 4, 2]), values, 6)
  np.testing.assert_array_equal(found, [[0, 0, 4, 0, 3, 0], [0, 0, 2, 0, 1, 0]])
