"""The repeat head: whether a command is issued once, twice or three times.

The published table of actions has the argument, but the published architecture has no head for it.
This head has the architecture of the queued head.
"""

import jax.numpy as jnp

from starleague.agent import distributions
from starleague.agent.config import AgentConfig
from starleague.agent.heads import categorical
from starleague.agent.types import Array

NUM_REPEATS = 3


def logits(config: AgentConfig, autoregressive: Array) -> Array:
  """Computes [3] masked float32 logits; without `config.repeat`, only 0 is legal."""
  if not config.repeat:
    return distributions.apply_mask(jnp.zeros(NUM_REPEATS), jnp.arange(NUM_REPEATS) == 0)
  raw = categorical.logits(config, autoregressive, NUM_REPEATS, "repeat")
  return distributions.apply_mask(raw, jnp.ones(NUM_REPEATS, bool), config.temperature)


def embedding(config: AgentConfig, repeat: Array, used: Array) -> Array:
  """Embeds the choice: [] -> [autoregressive_size]; zero if the function takes no `repeat`."""
  if not config.repeat:
    return jnp.zeros(config.autoregressive_size, config.dtype)
  return categorical.embedding(config, repeat, NUM_REPEATS, "repeat", used)
