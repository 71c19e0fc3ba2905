"""Networks of the simple categorical heads: delay, queued and repeat.

They differ in size, mask and temperature only (Vinyals et al. 2019, detailed architecture).
"""

import haiku as hk
import jax
import jax.numpy as jnp

from starleague.agent import linear
from starleague.agent.config import AgentConfig
from starleague.agent.types import Array


def logits(config: AgentConfig, autoregressive: Array, size: int, name: str) -> Array:
  """Computes raw logits by two hidden layers: [autoregressive_size] -> [size]."""
  with hk.name_scope(name):
    x = jax.nn.relu(linear.Linear(config.head_size, name="hidden_0")(autoregressive))
    x = jax.nn.relu(linear.Linear(config.head_size, name="hidden_1")(x))
    return linear.Linear(size, name="logits")(x)


def embedding(config: AgentConfig, choice: Array, size: int, name: str,
              used: Array | bool = True) -> Array:
  """Computes a choice's contribution to the autoregressive embedding.

  Args:
    config: sizes.
    choice: [] integer.
    size: number of choices.
    name: name of the head.
    used: [] bool, whether the function takes the argument.

  Returns:
    [autoregressive_size] of config.dtype; zero for an unused argument.
  """
  with hk.name_scope(f"{name}_embedding"):
    x = jax.nn.one_hot(choice.astype(jnp.int32), size, dtype=config.dtype)
    x = jax.nn.relu(linear.Linear(config.head_size, name="hidden_0")(x))
    x = jax.nn.relu(linear.Linear(config.head_size, name="hidden_1")(x))
    return jnp.where(used, linear.Linear(config.autoregressive_size, name="output")(x), 0)
