"""The entity encoder: a transformer over the visible entities.

Vinyals et al. 2019, detailed architecture ("entity encoder").
"""

from typing import NamedTuple, cast

import haiku as hk
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from starleague.agent import blocks, distributions, linear
from starleague.agent.config import AgentConfig
from starleague.agent.encoders import fields
from starleague.agent.types import Array


class EntityEncoding(NamedTuple):
  """Encoded entities, of config.dtype."""

  embeddings: jax.Array  # [E, entity_size]: the heads point at these
  embedded: jax.Array  # [entity_size]: of all entities together


class FieldEmbedding(hk.Module):
  """A linear layer on an entity's fields: one-hots, attributes of its type, numbers.

  "gather" looks up the rows that the one-hots would select: the same function of the same
  parameters, and ten times as fast on a CPU, forward and backward. Matrix units prefer "one_hot".
  """

  def __init__(self, size: int, method: str, name: str):
    super().__init__(name=name)
    self._size = size
    self._method = method

  def __call__(self, entities: Array, dtype: DTypeLike) -> jax.Array:
    """[E, F] int16 -> [E, size] of dtype."""
    # The fan-in: about 50 of 1,200 inputs are not zero.
    init = hk.initializers.TruncatedNormal(50 ** -0.5)
    table = hk.get_parameter("classes", (fields.NUM_CLASSES, self._size), dtype, init)
    attributes = hk.get_parameter("attributes", (fields.NUM_ATTRIBUTES, self._size), dtype, init)
    by_number = hk.get_parameter("numbers", (fields.NUM_NUMBERS, self._size), dtype, init)
    bias = hk.get_parameter("bias", (self._size,), dtype, jnp.zeros)
    # Attributes depend on the type only: added to its rows, they cost nothing per entity.
    start = fields.OFFSETS["unit_type"]
    of_type = jnp.asarray(fields.ATTRIBUTES, dtype) @ attributes
    table = table.at[start:start + len(of_type)].add(of_type)
    indices = fields.indices(entities)
    numbers = fields.numbers(entities).astype(dtype)
    if self._method == "one_hot":
      inputs = jnp.concatenate([_one_hots(indices, dtype), numbers], axis=-1)
      return inputs @ jnp.concatenate([table, by_number]) + bias
    # The sum of the rows passes through the numbers' matrix product by an identity matrix. Without
    # a product, XLA fuses the look-ups into each consumer, and their gradient into each of 36
    # scatters, and recomputes them each time.
    inputs = jnp.concatenate([_gather(table, indices), numbers], axis=-1)
    weights = jnp.concatenate([jnp.eye(self._size, dtype=dtype), by_number])
    product = linear.product(inputs, weights, jax.lax.Precision.HIGHEST)
    return linear.add_bias(product, bias)


def _gather(table: jax.Array, indices: jax.Array) -> jax.Array:
  total = cast(jax.Array, 0)  # an array after the first field
  # One look-up per field: XLA fuses them into one loop. One look-up of all fields takes 30 times
  # as long.
  for i, field in enumerate(fields.FIELDS):
    start = fields.OFFSETS[field.name]
    total += table[start:start + field.classes][indices[:, i]]
  return total


def _one_hots(indices: jax.Array, dtype: DTypeLike) -> jax.Array:
  """[E, fields] -> [E, NUM_CLASSES]; fields that share an embedding are summed."""
  columns: dict[str, jax.Array] = {}
  for i, field in enumerate(fields.FIELDS):
    key = field.shares or field.name
    one_hot = jax.nn.one_hot(indices[:, i], field.classes, dtype=dtype)
    columns[key] = columns[key] + one_hot if key in columns else one_hot
  return jnp.concatenate(list(columns.values()), axis=-1)


def encode(config: AgentConfig, entities: Array, entity_count: Array) -> EntityEncoding:
  """Encodes the entities; call within a transform.

  Args:
    config: sizes.
    entities: [E, F] int16.
    entity_count: [] integer; rows past it have no effect and get zero embeddings.

  Returns:
    EntityEncoding of config.dtype.
  """
  dtype = jnp.dtype(config.dtype)
  mask = distributions.existing_entities(entity_count, config.max_entities)
  with hk.name_scope("entity_encoder"):
    x = FieldEmbedding(config.entity_size, config.entity_embedding, name="fields")(entities, dtype)
    x = blocks.Transformer(
      config.entity_layers, config.entity_attention_heads, config.entity_key_size,
      config.entity_hidden, name="transformer", remat=config.remat,
      attention_method=config.entity_attention, mlp_method=config.entity_mlp)(x, mask)
    embeddings = blocks.relu(linear.Linear(config.entity_size, name="embeddings")(blocks.relu(x)))
    rows = jnp.maximum(entity_count, 1).astype(jnp.float32)
    mean = (x.astype(jnp.float32).sum(0) / rows).astype(dtype)  # missing rows are zero
    embedded = blocks.relu(linear.Linear(config.entity_size, name="embedded")(mean))
  return EntityEncoding(embeddings * mask[:, None].astype(dtype), embedded)
