"""The entity encoder's embedding of fields."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import types
from starleague.agent.encoders import entity
from tests.agent.encoders.observations import transformed


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_looking_rows_up_equals_multiplying_one_hots(dtype):
  rows = np.random.default_rng(0).integers(
    0, 300, (16, types.NUM_ENTITY_COLUMNS)).astype(np.int16)
  networks = [transformed(lambda x, method=method: entity.FieldEmbedding(
    8, method, name="fields")(x, jnp.dtype(dtype))) for method in ("gather", "one_hot")]
  params = jax.jit(networks[0].init)(jax.random.key(0), rows)
  gathered, multiplied = (jax.jit(network.apply)(params, rows) for network in networks)
  assert gathered.dtype == multiplied.dtype == jnp.dtype(dtype)
  tolerance = 1e-5 if dtype == "float32" else 0.03
  np.testing.assert_allclose(np.asarray(gathered, np.float32), np.asarray(multiplied, np.float32),
                             rtol=tolerance, atol=tolerance)
