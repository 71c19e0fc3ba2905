"""The function head, and the initial autoregressive embedding.

The paper calls the function the action type.
"""

import haiku as hk
import jax
import jax.numpy as jnp

from starleague.agent import distributions, linear, vocabulary
from starleague.agent.blocks import GLU, ResidualBlock, recompute, relu
from starleague.agent.config import AgentConfig
from starleague.agent.heads.inputs import HeadInputs
from starleague.agent.types import Array


def logits(config: AgentConfig, inputs: HeadInputs) -> Array:
  """Computes [A] masked float32 logits: residual blocks on the core, gated by the context."""
  with hk.name_scope("function"):
    x = relu(linear.Linear(config.head_size, name="input")(inputs.core))
    for i in range(config.action_blocks):
      x = recompute(ResidualBlock(config.head_size, name=f"block_{i}"), config.remat)(x)
    output = GLU(vocabulary.NUM_FUNCTIONS, name="logits", dtype=jnp.float32)
    raw = output(relu(x), inputs.scalar_context)
  legal = distributions.legal_functions(
    inputs.observation.available_actions, config.function_mask == "available")
  return distributions.apply_mask(raw, legal, config.temperature)


def embedding(config: AgentConfig, inputs: HeadInputs, function: Array) -> Array:
  """Embeds the function and the core's output, each gated: [] -> [autoregressive_size]."""
  with hk.name_scope("function_embedding"):
    x = jax.nn.one_hot(
      function.astype(jnp.int32), vocabulary.NUM_FUNCTIONS, dtype=config.dtype)
    x = relu(linear.Linear(config.head_size, name="input")(x))
    size, context = config.autoregressive_size, inputs.scalar_context
    return GLU(size, name="choice")(x, context) + GLU(size, name="core")(inputs.core, context)


def executor_embedding(config: AgentConfig, function: Array) -> Array:
  """Embeds the unit types that can execute the function: [] -> [function_embedding]."""
  function = jnp.clip(function.astype(jnp.int32), 0, vocabulary.NUM_FUNCTIONS - 1)
  types = jnp.asarray(vocabulary.CAPABLE)[function].astype(config.dtype)
  return relu(linear.Linear(config.function_embedding, name="executors")(types))
