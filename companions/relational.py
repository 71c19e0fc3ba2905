"""Relational: attention between the cells of a map, as the torso of IMPALA's agent.

Source: Zambaldi et al. 2018, "Relational deep reinforcement learning".
"""

import dataclasses
import math
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp

from starleague.agent import blocks, linear
from starleague.common.errors import UserError
from starleague.companions import impala, networks
from starleague.companions.system import Inputs, System, require_one_agent
from starleague.companions.tasks.task import Task

ATTENTION, CONVOLUTION = RELATIONS = ("attention", "convolution")
OPTIONS = {
  "task": "boxworld:length=2", "steps": 3_000_000, "unroll_length": 20, "batch_size": 16,
  # Policies that had learnt collapsed at a constant rate with larger gradients.
  "learning_rate": 2e-3, "final_rate": 0.0, "max_norm": 2.0}


@dataclasses.dataclass(frozen=True)
class Config(impala.Config):
  """The choices of the relational agent, beside those of IMPALA.

  Attributes:
    relations: "attention" between all cells, or "convolution": residual blocks of 3x3 convolutions
      in its place, the baseline.
    blocks: of attention or convolution, with weights of their own.
    heads: of attention.
    channels: of a cell.
  """

  relations: str = ATTENTION
  blocks: int = 2
  heads: int = 2
  channels: int = 32
  clip_reward: bool = False

  def __post_init__(self) -> None:
    super().__post_init__()
    if self.relations not in RELATIONS:
      raise UserError(f"relational.relations: found {self.relations!r}, expected one of "
                      f"{', '.join(RELATIONS)}")
    if self.channels % self.heads:
      raise UserError(f"relational.channels: found {self.channels}, expected a multiple of the "
                      f"heads, {self.heads}")


def cells(x: jax.Array) -> jax.Array:
  """Appends the coordinates of each cell, in [-1, 1]: [T, H, W, C] -> [T, H, W, C + 2]."""
  steps, height, width, _ = x.shape
  rows, columns = jnp.meshgrid(jnp.linspace(-1.0, 1.0, height), jnp.linspace(-1.0, 1.0, width),
                               indexing="ij")
  where = jnp.broadcast_to(jnp.stack([rows, columns], axis=-1), (steps, height, width, 2))
  return jnp.concatenate([x, where], axis=-1)


def relate(config: Config, x: jax.Array) -> jax.Array:
  """Applies the relational part to maps: [T, H, W, C] -> [T, channels].

  Each cell is an entity. After the blocks, the largest value of each channel over all cells leaves.
  """
  x = linear.Linear(config.channels, name="entity")(cells(x))
  if config.relations == CONVOLUTION:
    for block in range(config.blocks):
      x = hk.vmap(blocks.ConvResidualBlock(config.channels, name=f"block_{block}"),
                  split_rng=False)(x)
    return x.max(axis=(1, 2))
  entities = x.reshape(len(x), math.prod(x.shape[1:3]), config.channels)
  attend = blocks.Transformer(config.blocks, config.heads, config.channels // config.heads,
                              config.channels, name="attention")
  exists = jnp.ones(entities.shape[1], bool)
  return hk.vmap(lambda row: attend(row, exists), split_rng=False)(entities).max(axis=1)


def features(config: Config, task: Task, inputs: Inputs, state: Any) -> tuple[jax.Array, Any]:
  """Applies convolutions, the relational part and optional LSTM."""
  x, = jax.tree.leaves(inputs.observation)
  if task.symbols:
    x = networks.one_hot(x, task.symbols)
  x = x.astype(jnp.float32) / (255.0 if x.dtype == jnp.uint8 else 1.0)
  for layer, channels in enumerate((12, 24)):
    x = jax.nn.relu(hk.Conv2D(channels, 2, padding="VALID", name=f"conv_{layer}")(x))
  x = relate(config, x)
  for layer in range(2):
    x = jax.nn.relu(linear.Linear(config.size, name=f"dense_{layer}")(x))
  return impala.remember(config, task, inputs, x, state)


def make(config: Config, task: Task, inputs: Inputs) -> System:
  """Makes the system for a task of one agent that observes a map.

  Raises:
    UserError: several agents act in the task, or it has no map.
  """
  require_one_agent(task, "relational")
  leaves = jax.tree.leaves(task.observation)
  if len(leaves) != 1 or leaves[0].ndim != (2 if len(task.symbols) == 1 else 3):
    raise UserError(f"task {task.name!r}: found observations of shapes "
                    f"{[list(leaf.shape) for leaf in leaves]}; relational expects one map")
  return impala.make_system("relational", config, task, inputs, features)
