"""The encoders: an observation to the inputs of core and heads."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from starleague.agent import types
from starleague.agent.config import AgentConfig
from starleague.agent.encoders import entity, scalar, spatial


class Encoding(NamedTuple):
  """An encoded observation, of config.dtype."""

  core_input: jax.Array  # [C]: entities, map and scalars, concatenated
  scalar_context: jax.Array  # [C]: gates the heads
  entity_embeddings: jax.Array  # [E, entity_size]
  map_skips: tuple[jax.Array, ...]  # [coarse, coarse, channels] each


def encode(config: AgentConfig, observation: types.Observation) -> Encoding:
  """Encodes the observation of one step; call within a transform."""
  entities = entity.encode(config, observation.entities, observation.entity_count)
  maps = spatial.encode(
    config, observation.minimap, observation.camera, observation.entities, entities.embeddings)
  scalars = scalar.encode(config, observation)
  core_input = jnp.concatenate([entities.embedded, maps.embedded, scalars.embedded])
  return Encoding(core_input, scalars.context, entities.embeddings, maps.map_skips)
