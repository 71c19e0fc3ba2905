"""The queued head: whether a command is queued behind the units' current orders."""

import jax.numpy as jnp

from starleague.agent import distributions
from starleague.agent.config import AgentConfig
from starleague.agent.heads import categorical
from starleague.agent.types import Array

NUM_QUEUED = 2


def logits(config: AgentConfig, autoregressive: Array) -> Array:
  """Computes [2] float32 logits."""
  raw = categorical.logits(config, autoregressive, NUM_QUEUED, "queued")
  return distributions.apply_mask(raw, jnp.ones(NUM_QUEUED, bool), config.temperature)


def embedding(config: AgentConfig, queued: Array, used: Array) -> Array:
  """Embeds the choice: [] -> [autoregressive_size]; zero if the function takes no `queued`."""
  return categorical.embedding(config, queued, NUM_QUEUED, "queued", used)
