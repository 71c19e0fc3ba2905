"""MERLIN's memory: rows of latent states, read by content, written at each step and retroactively.

Source: Wayne et al. 2018, "Unsupervised predictive memory in a goal-directed agent", Methods.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from starleague.agent import distributions
from starleague.agent.types import Array


class Memory(NamedTuple):
  """The memory of an episode."""

  rows: Array  # [N, 2 z] float32: z at the time of the write, and what followed it
  usage: Array  # [N] float32: sum of the weights of reads; 1 more from the write; 0: empty
  retroactive: Array  # [N] float32: weights of retroactive writes, v_ret


def empty(rows: int, latent: int) -> Memory:
  """Returns a memory without content, of so many rows for latent states of a size."""
  return Memory(jnp.zeros((rows, 2 * latent)), jnp.zeros(rows), jnp.zeros(rows))


def read(memory: Memory, keys: Array, strengths: Array) -> tuple[Array, Array]:
  """Reads by content: `w_i = softmax(beta_i cos(k_i, M_j))`, `M^T w_i`; empty rows have weight 0.

  Args:
    memory: to read.
    keys: [K, 2 z].
    strengths: [K], positive.

  Returns:
    Reads [K, 2 z], zeros from an empty memory, and weights [K, N].
  """
  def normalised(x: Array) -> Array:
    return x * jax.lax.rsqrt(jnp.sum(jnp.square(x), axis=-1, keepdims=True) + 1e-6)

  similarity = normalised(keys) @ normalised(memory.rows).T
  written = memory.usage > 0.0
  logits = jnp.where(written, strengths[:, None] * similarity, distributions.NEGATIVE)
  weights = jnp.where(written, jax.nn.softmax(logits, axis=-1), 0.0)
  return weights @ memory.rows, weights


def write(memory: Memory, z: Array, weights: Array, retroaction: float) -> Memory:
  """Writes a latent state into the least used row, and retroactively into the rows before it.

  `v_ret <- gamma v_ret + (1 - gamma) v_wr`, `M <- M + v_wr [z, 0] + v_ret [0, z]`, with v_ret of
  the writes before this one. A reused row loses its old content first.

  Args:
    memory: to write.
    z: [z] float32.
    weights: [K, N] of the reads at this step, which count as usage.
    retroaction: gamma.
  """
  usage = memory.usage + weights.sum(axis=0)
  row = jax.nn.one_hot(jnp.argmin(usage), len(usage))
  kept = 1.0 - row
  retroactive = memory.retroactive * kept
  nothing = jnp.zeros_like(z)
  rows = (memory.rows * kept[:, None] + jnp.outer(row, jnp.concatenate([z, nothing]))
          + jnp.outer(retroactive, jnp.concatenate([nothing, z])))
  return Memory(rows, usage * kept + row,
                retroaction * retroactive + (1.0 - retroaction) * row)
