"""When to act again: game loops until the next observation."""

from starleague.agent import distributions
from starleague.agent.config import AgentConfig
from starleague.agent.heads import categorical
from starleague.agent.types import NUM_DELAYS, Array


def logits(config: AgentConfig, autoregressive: Array) -> Array:
  """[autoregressive_size] -> [128] masked float32 logits; a delay of 0 is illegal."""
  raw = categorical.logits(config, autoregressive, NUM_DELAYS, "delay")
  return distributions.apply_mask(raw, distributions.legal_delays(), config.delay_temperature)


def embedding(config: AgentConfig, delay: Array) -> Array:
  """[] integer -> [autoregressive_size]; every action has a delay, so it is always added."""
  return categorical.embedding(config, delay, NUM_DELAYS, "delay")
