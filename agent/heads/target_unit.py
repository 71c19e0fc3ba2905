"""The target unit head: a pointer over the entities."""

import haiku as hk
import jax.numpy as jnp

from starleague.agent import blocks, distributions, linear
from starleague.agent.config import AgentConfig
from starleague.agent.heads.function import executor_embedding
from starleague.agent.heads.inputs import HeadInputs
from starleague.agent.types import Array


def logits(config: AgentConfig, inputs: HeadInputs, autoregressive: Array,
           function: Array) -> Array:
  """Computes [E] masked float32 logits."""
  with hk.name_scope("target_unit"):
    x = linear.Linear(config.function_embedding, name="query_hidden")(autoregressive)
    x = blocks.relu(x + executor_embedding(config, function))
    query = linear.Linear(config.key_size, name="query")(x)
    keys = linear.Linear(config.key_size, name="keys")(inputs.entity_embeddings)
  raw = jnp.einsum("ek,k->e", keys, query, preferred_element_type=jnp.float32)
  observation = inputs.observation
  legal = distributions.legal_targets(
    observation.entities, observation.entity_count, function, config.target_mask == "on_screen")
  return distributions.apply_mask(raw, legal, config.temperature)
