"""The delay head: game loops until the next observation."""

from starleague.agent import distributions
from starleague.agent.config import AgentConfig
from starleague.agent.heads import categorical
from starleague.agent.types import NUM_DELAYS, Array


def logits(config: AgentConfig, autoregressive: Array) -> Array:
  """Computes [128] masked float32 logits; a delay of 0 is illegal."""
  raw = categorical.logits(config, autoregressive, NUM_DELAYS, "delay")
  return distributions.apply_mask(raw, distributions.legal_delays(), config.delay_temperature)


def embedding(config: AgentConfig, delay: Array) -> Array:
  """Embeds the delay, which every action has: [] -> [autoregressive_size]."""
  return categorical.embedding(config, delay, NUM_DELAYS, "delay")
