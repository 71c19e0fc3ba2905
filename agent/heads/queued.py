"""Whether a command waits for the units' present orders or replaces them."""

import jax.numpy as jnp

from starleague.agent import distributions
from starleague.agent.config import AgentConfig
from starleague.agent.heads import categorical
from starleague.agent.types import Array

NUM_QUEUED = 2


def logits(config: AgentConfig, autoregressive: Array) -> Array:
  """[autoregressive_size] -> [2] float32 logits."""
  raw = categorical.logits(config, autoregressive, NUM_QUEUED, "queued")
  return distributions.apply_mask(raw, jnp.ones(NUM_QUEUED, bool), config.temperature)


def embedding(config: AgentConfig, queued: Array, used: Array) -> Array:
  """[] integer -> [autoregressive_size]; zero where the function takes no `queued`."""
  return categorical.embedding(config, queued, NUM_QUEUED, "queued", used)
