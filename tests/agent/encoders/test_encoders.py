"""All encoders together: shapes, and invariants of the rows of entities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import config, encoders, types
from tests.agent.encoders.observations import MINI, observation, transformed


def _with_entities(o, entities):
  return o._replace(entities=np.asarray(entities))


def test_rows_past_the_count_have_no_effect(encode):
  o = observation()
  entities = o.entities.copy()
  entities[20:] = 77
  for before, after in zip(jax.tree.leaves(encode(o)),
                           jax.tree.leaves(encode(_with_entities(o, entities))), strict=True):
    np.testing.assert_array_equal(before, after)


def test_permuting_entities_permutes_their_embeddings_only(encode):
  o = observation()
  order = np.concatenate([np.random.default_rng(1).permutation(20), np.arange(20, 64)])
  encoding, embedded = encode(o)
  permuted, embedded_permuted = encode(_with_entities(o, o.entities[order]))
  np.testing.assert_allclose(
    permuted.entity_embeddings, encoding.entity_embeddings[order], atol=1e-5)
  np.testing.assert_allclose(embedded_permuted, embedded, atol=1e-5)
  np.testing.assert_allclose(permuted.core_input, encoding.core_input, atol=1e-4)


def test_empty_observation_is_finite(encode):
  empty = types.zeros(types.observation_spec(MINI.max_entities, MINI.map_size))
  assert all(np.isfinite(x).all() for x in jax.tree.leaves(encode(empty)))


@pytest.mark.parametrize(("preset", "core_input", "context"), [
  ("full", 256 + 256 + 1504, 544), ("mini", None, None)])
def test_shapes_of_the_encoding(preset, core_input, context):
  sizes = config.preset(preset)
  o = types.observation_spec(sizes.max_entities, sizes.map_size)
  network = transformed(lambda o: encoders.encode(sizes, o))
  encoding = jax.eval_shape(
    network.apply, jax.eval_shape(network.init, jax.random.key(0), o), o)
  coarse, channels = sizes.coarse_size, sizes.map_downsamples[-1]
  assert encoding.entity_embeddings.shape == (sizes.max_entities, sizes.entity_size)
  assert [x.shape for x in encoding.map_skips] == (
    [(coarse, coarse, channels)] * (1 + sizes.map_blocks))
  assert {x.dtype for x in jax.tree.leaves(encoding)} == {jnp.dtype(sizes.dtype)}
  if core_input is not None:
    assert encoding.core_input.shape == (core_input,)
    assert encoding.scalar_context.shape == (context,)
