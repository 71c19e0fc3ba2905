"""The categorical heads: delay, queued and repeat.

They share one architecture and differ in size, mask and temperature only (Vinyals et al. 2019,
detailed architecture). The published table of actions has the argument `repeat`, but the published
architecture has no head for it; here it has the architecture of the queued head.
"""

import haiku as hk
import jax
import jax.numpy as jnp

from starleague.agent import blocks, distributions, linear
from starleague.agent.config import AgentConfig
from starleague.agent.types import NUM_DELAYS, Array

SIZES = {"delay": NUM_DELAYS, "queued": 2, "repeat": 3}  # choices of each head


def delay_logits(config: AgentConfig, autoregressive: Array) -> Array:
  """Computes [128] masked float32 logits of the game loops until the next observation.

  Delays are at most `types.MAX_DELAY`; a delay of 0 is illegal.
  """
  return distributions.apply_mask(
    _raw_logits(config, "delay", autoregressive), distributions.legal_delays(),
    config.delay_temperature)


def queued_logits(config: AgentConfig, autoregressive: Array) -> Array:
  """Computes [2] float32 logits: whether the command waits behind the units' current orders."""
  raw = _raw_logits(config, "queued", autoregressive)
  return distributions.apply_mask(raw, jnp.ones(raw.shape, bool), config.temperature)


def repeat_logits(config: AgentConfig, autoregressive: Array) -> Array:
  """Computes [3] masked float32 logits: whether a command is issued once, twice or three times.

  Without `config.repeat` there is no head, and only 0 is legal.
  """
  if not config.repeat:
    choices = jnp.arange(SIZES["repeat"])
    return distributions.apply_mask(jnp.zeros(choices.shape), choices == 0)
  raw = _raw_logits(config, "repeat", autoregressive)
  return distributions.apply_mask(raw, jnp.ones(raw.shape, bool), config.temperature)


def embedding(config: AgentConfig, head: str, choice: Array, used: Array | bool = True) -> Array:
  """Computes a choice's contribution to the autoregressive embedding.

  Args:
    config: sizes.
    head: name of the head, a key of SIZES.
    choice: [] integer.
    used: [] bool, whether the function takes the argument; every function has a delay.

  Returns:
    [autoregressive_size] of config.dtype; zero for an unused argument.
  """
  if head == "repeat" and not config.repeat:
    return jnp.zeros(config.autoregressive_size, config.dtype)
  with hk.name_scope(f"{head}_embedding"):
    x = jax.nn.one_hot(choice.astype(jnp.int32), SIZES[head], dtype=config.dtype)
    x = blocks.relu(linear.Linear(config.head_size, name="hidden_0")(x))
    x = blocks.relu(linear.Linear(config.head_size, name="hidden_1")(x))
    return jnp.where(used, linear.Linear(config.autoregressive_size, name="output")(x), 0)


def _raw_logits(config: AgentConfig, head: str, autoregressive: Array) -> Array:
  """Computes logits by two hidden layers: [autoregressive_size] -> [SIZES[head]] float32."""
  with hk.name_scope(head):
    x = blocks.relu(linear.Linear(config.head_size, name="hidden_0")(autoregressive))
    x = blocks.relu(linear.Linear(config.head_size, name="hidden_1")(x))
    return linear.Linear(SIZES[head], name="logits", dtype=jnp.float32)(x)
