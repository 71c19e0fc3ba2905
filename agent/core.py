"""The recurrent core: a deep LSTM with layer norm.

Vinyals et al. 2019, detailed architecture ("core"): three layers of 384 units. The state is zero at
the start of a game, and is carried from step to step and from trajectory to trajectory.
"""

import haiku as hk
import jax
import jax.numpy as jnp

from starleague.agent import blocks
from starleague.agent.config import AgentConfig
from starleague.agent.types import CoreState


def initial_state(config: AgentConfig) -> CoreState:
  """Returns the state at the start of a game: zeros, float32."""
  shape = (config.core_layers, config.core_size)
  return CoreState(hidden=jnp.zeros(shape), cell=jnp.zeros(shape))


def output(config: AgentConfig, state: CoreState) -> jax.Array:
  """Returns the core's output [size] at the step after which its state is `state`."""
  return state.hidden[-1].astype(jnp.dtype(config.dtype))


def unroll(config: AgentConfig, inputs: jax.Array, keep: jax.Array,
           state: CoreState) -> tuple[jax.Array, CoreState]:
  """Applies the core to T consecutive steps; call within a transform.

  Args:
    config: sizes.
    inputs: [T, C] encoded observations.
    keep: [T] float32: 0 to reset the state before this step (a new game starts), else 1.
    state: [layers, size] before the first step.

  Returns:
    [T, size] outputs of the last layer, of inputs' dtype, and the states after each step,
    [T, layers, size].
  """
  after = []
  x = inputs
  with hk.name_scope("core"):
    for layer in range(config.core_layers):
      before = blocks.LSTMState(state.hidden[layer], state.cell[layer])
      x, states = blocks.LayerNormLSTM(config.core_size, name=f"lstm_{layer}")(x, keep, before)
      after.append(states)
  return x, CoreState(*(jnp.stack(parts, axis=1) for parts in zip(*after, strict=True)))
