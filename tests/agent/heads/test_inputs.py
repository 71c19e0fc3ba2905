"""The inputs of the heads, as encoders and core make them."""

import dataclasses

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import blocks, core, encoders, types
from starleague.agent import config as agent_config
from starleague.agent.heads.inputs import HeadInputs


@pytest.mark.parametrize("dtype", agent_config.DTYPES)
def test_encoders_and_core_give_inputs_of_the_documented_shapes(dtype):
  config = dataclasses.replace(agent_config.mini(), dtype=dtype)

  def inputs(observation):
    with blocks.float32_parameters():
      encoding = encoders.encode(config, observation)
      outputs, _ = core.unroll(
        config, encoding.core_input[None], jnp.ones(1), core.initial_state(config))
    return HeadInputs(outputs[0], encoding.scalar_context, encoding.entity_embeddings,
                      encoding.map_skips, observation)

  network = hk.without_apply_rng(hk.transform(inputs))
  spec = types.observation_spec(config.max_entities, config.map_size)
  shapes = jax.eval_shape(network.init, jax.random.key(0), spec)
  found = jax.eval_shape(network.apply, shapes, spec)
  skip = (config.coarse_size, config.coarse_size, config.location_channels)
  assert found.core.shape == (64,)
  # Two races, available actions, three parts of z, the build order.
  assert found.scalar_context.shape == (8 + 8 + 16 + 3 * 8 + 8,)
  assert found.entity_embeddings.shape == (64, 32)
  assert [x.shape for x in found.map_skips] == [skip] * (1 + config.map_blocks)
  assert {x.dtype for x in jax.tree.leaves(found[:-1])} == {jnp.dtype(dtype)}
  assert jax.tree.map(lambda x: (x.shape, np.dtype(x.dtype)), found.observation) == (
    jax.tree.map(lambda x: (x.shape, np.dtype(x.dtype)), spec))
