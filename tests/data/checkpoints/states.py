"""Training states, their comparison, and damage of their files."""

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import config as config_lib
from starleague.learner import train_state

MINI = config_lib.mini()
OPTIMIZER = train_state.make_optimizer(1e-2, max_norm=1.0, adjustable=True)


def make_state(seed=0, width=3, implementation="threefry2x32", optimizer=OPTIMIZER):
  rng = np.random.default_rng(seed)
  params = {"policy/~/head_1": {"w": rng.normal(size=(4, width)).astype(np.float32),
                                "b": rng.normal(size=width).astype(jnp.bfloat16)},
            "policy": {"scale": np.float32(seed)[None][0:1].reshape(()),
                       "none": np.zeros((0, 2), np.float32)}}
  key = jax.random.key(seed, impl=implementation)
  state = train_state.initial_state(params, optimizer, key)
  return state._replace(step=np.int32(seed) * np.ones((), np.int32))


def assert_same(actual, expected):
  """Asserts that trees are equal bit for bit, with their dtypes and structure."""
  assert jax.tree.structure(actual) == jax.tree.structure(expected)
  for a, e in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
    if jax.dtypes.issubdtype(e.dtype, jax.dtypes.prng_key):
      assert a.dtype == e.dtype
      a, e = jax.random.key_data(a), jax.random.key_data(e)
    a, e = np.asarray(a), np.asarray(e)
    assert a.dtype == e.dtype and a.shape == e.shape
    assert a.tobytes() == e.tobytes()


def flip_a_bit(path):
  data = bytearray(path.read_bytes())
  data[len(data) // 2] ^= 0x10
  path.write_bytes(data)


def largest_file(path):
  return max((file for file in path.rglob("*") if file.is_file() and file.name != "manifest.json"),
             key=lambda file: file.stat().st_size)
