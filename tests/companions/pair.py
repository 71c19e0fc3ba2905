"""A task of two agents: each sees a bit and earns, with the other, by naming it."""

import jax
import jax.numpy as jnp
import numpy as np

from starleague.companions.tasks.task import Task, TimeStep

AGENTS = 2


def make_pair(copies):
  """Returns the task: episodes of one step, reward 1 if both agents name their bits, else 0."""
  def draw(key):
    return jax.random.bernoulli(key, 0.5, (AGENTS,))

  def observe(bits):
    return jnp.stack([bits, ~bits], axis=-1).astype(jnp.float32)

  def reset(keys):
    bits = jax.vmap(draw)(keys)
    return bits, TimeStep(observe(bits), jnp.zeros(copies), jnp.ones(copies),
                          jnp.ones(copies, bool))

  def step(bits, keys, actions):
    reward = (actions == bits).all(axis=-1).astype(jnp.float32)
    bits = jax.vmap(draw)(keys)
    return bits, TimeStep(observe(bits), reward, jnp.zeros(copies), jnp.ones(copies, bool))

  return Task("pair", copies, jax.ShapeDtypeStruct((AGENTS, 2), np.float32), 2, (AGENTS,), reset,
              step)
