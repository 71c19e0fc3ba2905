"""The entity encoder's embedding of fields."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import config, types
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


def test_fused_layers_compute_the_same_with_the_same_parameters():
  sizes = config.mini()
  entities = np.random.default_rng(1).integers(
    0, 200, (3, sizes.max_entities, types.NUM_ENTITY_COLUMNS)).astype(np.int16)
  counts = jnp.array([sizes.max_entities, 7, 0], jnp.int32)
  methods = [("plain", "plain", "none"), ("fused", "plain", "none"), ("plain", "fused", "none"),
             ("fused", "fused", "blocks")]
  outcomes = []
  for attention, mlp, remat in methods:
    own = dataclasses.replace(sizes, entity_attention=attention, entity_mlp=mlp, remat=remat)
    network = transformed(lambda *x, own=own: entity.encode(own, *x))
    params = network.init(jax.random.key(0), entities[0], counts[0])

    def loss(params, network=network):
      encoding = jax.vmap(network.apply, (None, 0, 0))(params, entities, counts)
      return sum(jnp.square(x).sum() for x in encoding)

    outcomes.append((params, *jax.jit(jax.value_and_grad(loss))(params)))
  for found in outcomes[1:]:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5 * (1 + np.abs(b).max())),
                 found, outcomes[0])
