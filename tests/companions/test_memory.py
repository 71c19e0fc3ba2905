"""The memory of MERLIN: reads by content, writes and retroactive writes by hand."""

import jax.numpy as jnp
import numpy as np

from starleague.companions import memory

ROWS = 4


def written(latents):
  found = memory.empty(ROWS, 3)
  for z in latents:
    found = memory.write(found, jnp.asarray(z), jnp.zeros((1, ROWS)), 0.5)
  return found


def test_writes_fill_empty_rows_and_reach_back():
  a, b, c = np.eye(3, dtype=np.float32)
  content = written([a, b, c])
  rows = np.asarray(content.rows)
  np.testing.assert_array_equal(rows[:3, :3], np.eye(3))
  # Weights of retroaction: 1/2 at the next step, 1/4 after it.
  np.testing.assert_allclose(rows[0, 3:], 0.5 * b + 0.25 * c)
  np.testing.assert_allclose(rows[1, 3:], 0.5 * c)
  assert not rows[2, 3:].any() and not rows[3].any()
  np.testing.assert_allclose(content.retroactive, [0.125, 0.25, 0.5, 0.0])


def test_a_full_memory_replaces_the_least_used_row():
  full = written(np.eye(4, 3, dtype=np.float32))
  reads = jnp.array([[0.5, 0.1, 0.3, 0.1 + 1e-3]])
  new = jnp.array([7.0, 8.0, 9.0])
  after = memory.write(full, new, reads, 0.5)
  np.testing.assert_array_equal(after.rows[1], [7, 8, 9, 0, 0, 0])
  np.testing.assert_allclose(after.usage, [1.5, 1.0, 1.3, 1.101], rtol=1e-5)


def test_reads_are_by_content_and_empty_rows_are_not_read():
  content = written(np.eye(2, 3, dtype=np.float32))
  keys = jnp.zeros((2, 6)).at[0, 0].set(1.0).at[1, 1].set(1.0)
  found, weights = memory.read(content, keys, jnp.array([100.0, 100.0]))
  np.testing.assert_allclose(weights[:, 2:], 0.0)
  np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-6)
  np.testing.assert_allclose(found, content.rows[:2], atol=1e-4)
  nothing, weights = memory.read(memory.empty(ROWS, 3), keys, jnp.ones(2))
  assert not nothing.any() and not weights.any()
