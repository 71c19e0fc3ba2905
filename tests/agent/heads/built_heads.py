"""Inputs of the heads, the heads as functions of parameters, and labelled actions."""

import dataclasses
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import blocks, heads, types, vocabulary
from starleague.agent import config as agent_config
from starleague.agent.types import COLUMN

SETTINGS = dataclasses.replace(
  agent_config.mini(), max_entities=10, max_selected=6, pick_pooling="none", unit_mask="existing",
  function_mask="available")
CONTEXT = 7  # width of the scalar context
N = 128  # steps of a batch
MARINE_ATTACK = vocabulary.FUNCTIONS.index("Attack_pt")
OF_TYPE = {t: vocabulary.FUNCTION_TYPES.index(t) for t in set(vocabulary.FUNCTION_TYPES)}


def make_inputs(config: agent_config.AgentConfig, seed: int, rows: int) -> heads.HeadInputs:
  """Random inputs of `rows` steps."""
  size, coarse = config.max_entities, config.coarse_size
  generator = np.random.default_rng(seed)

  def normal(*shape):
    return generator.normal(size=(rows, *shape)).astype(np.float32)

  observation = types.zeros(types.observation_spec(size, config.map_size))
  observation = jax.tree.map(lambda x: np.repeat(x[None], rows, axis=0), observation)
  count = generator.integers(1, size + 1, rows).astype(np.int16)
  entities = np.zeros_like(observation.entities)
  entities[..., COLUMN["alliance"]] = generator.integers(1, 5, (rows, size))
  entities[..., COLUMN["unit_type"]] = generator.integers(1, 250, (rows, size))
  entities[np.arange(size) >= count[:, None]] = 0
  return heads.HeadInputs(
    core=normal(config.core_size), scalar_context=normal(CONTEXT),
    entity_embeddings=normal(size, config.entity_size),
    map_skips=tuple(normal(coarse, coarse, config.location_channels)
                    for _ in range(config.map_blocks + 1)),
    observation=observation._replace(
      entities=entities, entity_count=count,
      available_actions=generator.uniform(size=(rows, vocabulary.NUM_FUNCTIONS)) < 0.5))


def row(inputs: heads.HeadInputs, index: int = 0) -> heads.HeadInputs:
  """One step of a batch."""
  return jax.tree.map(lambda x: jnp.asarray(x[index]), inputs)


def repeated(inputs: heads.HeadInputs) -> heads.HeadInputs:
  """The first step of a batch in place of every one."""
  return jax.tree.map(lambda x: np.repeat(np.asarray(x[:1]), len(x), axis=0), inputs)


def make_heads(config: agent_config.AgentConfig):
  """Random parameters, biases too, and the two functions of one step."""
  def sample(inputs, greedy=False):
    with blocks.float32_parameters():
      return heads.sample(config, hk.next_rng_key(), inputs, greedy)

  def teacher_force(inputs, action):
    with blocks.float32_parameters():
      return heads.teacher_force(config, inputs, action)

  sample, teacher_force = hk.transform(sample), hk.without_apply_rng(hk.transform(teacher_force))
  inputs = row(make_inputs(config, 0, 1))
  shapes = jax.eval_shape(sample.init, jax.random.key(1), inputs)
  generator = np.random.default_rng(1)
  params = jax.tree.map(
    lambda x: jnp.asarray(generator.normal(size=x.shape, scale=max(x.shape[:-1] or (9,)) ** -0.5),
                          x.dtype), shapes)
  return params, sample.apply, teacher_force.apply


def labelled(inputs: heads.HeadInputs, **labels) -> types.Action:
  """A batch of actions; labels not given are legal for any function."""
  spec = types.action_spec(SETTINGS.max_selected)
  rows = inputs.core.shape[0]
  unused = {"delay": 1, "units": SETTINGS.max_entities}
  return types.Action(**{
    field: np.broadcast_to(labels.get(field, unused.get(field, 0)), (rows, *s.shape)).astype(
      s.dtype)
    for field, s in zip(types.Action._fields, spec, strict=True)})


def linear(params: Any, name: str, x: np.ndarray) -> np.ndarray:
  """A linear layer of the parameters, in float64 NumPy."""
  weights, bias = (np.asarray(params[name][key], np.float64) for key in ("w", "b"))
  return np.asarray(x, np.float64) @ weights + bias


def relu(x: np.ndarray) -> np.ndarray:
  return np.maximum(x, 0.0)
