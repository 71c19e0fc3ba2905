"""The selected units head: a recurrent pointer that picks up to K entities, then an end token.

A linear layer adds the key of each pick to the autoregressive embedding, which gives the next query
(Vinyals et al. 2019, detailed architecture). The path from a pick to the next query's first
non-linearity is linear. The picks so far therefore enter as the sum of their keys times one small
matrix, [key_size, function_embedding]. In learning, where the picks are known, one cumulative sum
gives the sums of all K steps, and only a small LSTM stays in the loop.

The pointer is float32 for every activation dtype, and its matrix products use full precision, not
the lower default of accelerators. Acting and learning add the same keys in different orders, and
their log-probs must agree.
"""

import functools
from typing import NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp

from starleague.agent import blocks, distributions, linear
from starleague.agent.config import AgentConfig
from starleague.agent.heads.function import executor_embedding
from starleague.agent.heads.inputs import HeadInputs
from starleague.agent.types import Array

_product = functools.partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST)


class _Pointer(NamedTuple):
  """Constants of the K steps, float32."""

  keys: Array  # [E + 1, key_size]; the last is the end token's
  share: Array  # []: factor of each picked key in the embedding
  legal: Array  # [E] bool
  base: Array  # [hidden]: query input before the non-linearity, without picks
  key_weights: Array  # [key_size, hidden]: contribution of a picked key
  pick_bias: Array  # [hidden]: contribution of any pick
  function: Array  # [hidden]
  input_weights: Array  # [hidden, key_size]
  input_bias: Array  # [key_size]
  gate_weights: Array  # [key_size, 4 * key_size]
  gate_bias: Array  # [4 * key_size]
  recurrent_weights: Array  # [key_size, 4 * key_size]
  update_weights: Array  # [key_size, autoregressive_size]
  update_bias: Array  # [autoregressive_size]
  temperature: float


class _Memory(NamedTuple):
  """State of the pointer's LSTM, float32."""

  hidden: Array  # [key_size]
  cell: Array  # [key_size]


# Carried from pick to pick: memory, sum of keys, number of picks, picked entities, whether ended.
_Carry = tuple[_Memory, jax.Array, jax.Array, jax.Array, Array]


def _linear_parameters(inputs: int, outputs: int, name: str) -> tuple[Array, Array]:
  initial = hk.initializers.TruncatedNormal(1.0 / inputs**0.5)
  weights = hk.get_parameter(f"{name}_w", (inputs, outputs), jnp.float32, initial)
  return weights, hk.get_parameter(f"{name}_b", (outputs,), jnp.float32, jnp.zeros)


def _pointer(config: AgentConfig, inputs: HeadInputs, autoregressive: Array,
             function: Array) -> _Pointer:
  size, hidden = config.key_size, config.function_embedding
  observation = inputs.observation
  with hk.name_scope("selected_units"):
    keys = linear.Linear(size, name="keys")(inputs.entity_embeddings).astype(jnp.float32)
    end = hk.get_parameter("end_key", (size,), jnp.float32, hk.initializers.TruncatedNormal(1.0))
    embedded = executor_embedding(config, function).astype(jnp.float32)
    hidden_w, hidden_b = _linear_parameters(config.autoregressive_size, hidden, "query_hidden")
    input_w, input_b = _linear_parameters(hidden, size, "query_input")
    gates_w, gates_b = _linear_parameters(size, 4 * size, "lstm_input")
    update_w, update_b = _linear_parameters(size, config.autoregressive_size, "update")
    recurrent_w = hk.get_parameter(
      "lstm_recurrent", (size, 4 * size), jnp.float32, hk.initializers.Orthogonal())
  count = jnp.maximum(observation.entity_count.astype(jnp.float32), 1.0)
  divisor = {"entities": count, "512": 512.0, "none": 1.0}[config.pick_pooling]
  return _Pointer(
    keys=jnp.concatenate([keys, end[None]]),
    share=1.0 / jnp.asarray(divisor, jnp.float32),
    legal=distributions.legal_units(
      observation.entities, observation.entity_count, function, config.unit_mask),
    base=_product(autoregressive.astype(jnp.float32), hidden_w) + hidden_b,
    key_weights=_product(update_w, hidden_w),
    pick_bias=_product(update_b, hidden_w),
    function=embedded,
    input_weights=input_w,
    input_bias=input_b,
    gate_weights=gates_w,
    gate_bias=gates_b,
    recurrent_weights=recurrent_w,
    update_weights=update_w,
    update_bias=update_b,
    temperature=config.temperature)


def _gate_inputs(pointer: _Pointer, key_sum: Array, picks: Array) -> jax.Array:
  """[..., key_size] sums of picked keys, [...] numbers of picks -> [..., 4 * key_size]."""
  x = pointer.base + _product(key_sum * pointer.share, pointer.key_weights)
  x = blocks.relu(x + picks[..., None] * pointer.pick_bias + pointer.function)
  x = _product(x, pointer.input_weights) + pointer.input_bias
  return _product(x, pointer.gate_weights) + pointer.gate_bias


def _lstm(pointer: _Pointer, memory: _Memory, gate_inputs: Array) -> _Memory:
  gates = gate_inputs + _product(memory.hidden, pointer.recurrent_weights)
  input_gate, candidate, forget_gate, output_gate = jnp.split(gates, 4)
  cell = (jax.nn.sigmoid(forget_gate + 1.0) * memory.cell
          + jax.nn.sigmoid(input_gate) * jnp.tanh(candidate))
  return _Memory(jax.nn.sigmoid(output_gate) * jnp.tanh(cell), cell)


def _start(pointer: _Pointer) -> _Memory:
  zero = jnp.zeros(pointer.keys.shape[-1], jnp.float32)
  return _Memory(zero, zero)


def _updated(pointer: _Pointer, autoregressive: Array, key_sum: Array, picks: Array,
             used: Array) -> Array:
  """Adds all picks to the autoregressive embedding if the function takes units."""
  added = _product(key_sum * pointer.share, pointer.update_weights) + picks * pointer.update_bias
  return autoregressive + jnp.where(used, added, 0.0).astype(autoregressive.dtype)


def sample(config: AgentConfig, key: Array, inputs: HeadInputs, autoregressive: Array,
           function: Array, used: Array, greedy: bool) -> tuple[Array, Array, Array]:
  """Samples picks one after another.

  Args:
    config: sizes and options.
    key: a random key; every pick uses its own split.
    inputs: inputs of the heads.
    autoregressive: [autoregressive_size], conditioned on the earlier arguments.
    function: [] integer.
    used: [] bool, whether the function takes units.
    greedy: whether to take the most likely choice instead of sampling.

  Returns:
    [K] int32 picks, padded with E from the end token on, and all E if the function takes no units;
    their masked logits [K, E + 1]; the updated autoregressive embedding.
  """
  pointer = _pointer(config, inputs, autoregressive, function)
  entities = pointer.legal.shape[0]

  def step(carry: _Carry, x: tuple[jax.Array, jax.Array]) -> tuple[_Carry, tuple[Array, Array]]:
    memory, key_sum, picks, picked, ended = carry
    step_key, first = x
    memory = _lstm(pointer, memory, _gate_inputs(pointer, key_sum, picks))
    legal = distributions.legal_picks(pointer.legal, picked, first, ended)
    logits = distributions.apply_mask(
      _product(pointer.keys, memory.hidden), legal, pointer.temperature)
    unit = distributions.mode(logits) if greedy else distributions.sample(step_key, logits)
    real = unit < entities
    key_sum = key_sum + jnp.where(real, pointer.keys[unit], 0.0)
    picked = picked | (jnp.arange(entities) == unit)
    return (memory, key_sum, picks + real, picked, ~real), (unit, logits)

  carry = (_start(pointer), jnp.zeros(config.key_size), jnp.float32(0.0),
           jnp.zeros(entities, bool), jnp.bool_(False))
  firsts = jnp.arange(config.max_selected) == 0
  (_, key_sum, picks, _, _), (units, logits) = jax.lax.scan(
    step, carry, (jax.random.split(key, config.max_selected), firsts))
  updated = _updated(pointer, autoregressive, key_sum, picks, used)
  return jnp.where(used, units, entities), logits, updated


def teacher_force(config: AgentConfig, inputs: HeadInputs, autoregressive: Array, function: Array,
                  used: Array, units: Array) -> tuple[Array, Array]:
  """Computes the logits of given picks, each conditioned on the earlier ones.

  Args:
    config: sizes and options.
    inputs: inputs of the heads.
    autoregressive: [autoregressive_size], conditioned on the earlier arguments.
    function: [] integer.
    used: [] bool, whether the function takes units.
    units: [K] integer picks, clipped to 0 to E.

  Returns:
    Masked logits [K, E + 1] and the updated autoregressive embedding.
  """
  pointer = _pointer(config, inputs, autoregressive, function)
  entities = pointer.legal.shape[0]
  units = jnp.clip(units.astype(jnp.int32), 0, entities)
  executed = distributions.executed_picks(units, entities)
  real = executed & (units < entities)
  rows = (units[:, None] == jnp.arange(entities)) & real[:, None]
  # A matrix product, because accelerators execute the gradient of a gather serially.
  keys = _product(rows.astype(jnp.float32), pointer.keys[:-1])
  key_sums, picks = jnp.cumsum(keys, axis=0), jnp.cumsum(real.astype(jnp.float32))
  before = jnp.cumsum(rows, axis=0) - rows > 0
  firsts = jnp.arange(units.shape[0]) == 0

  def step(memory: _Memory, gate_inputs: jax.Array) -> tuple[_Memory, Array]:
    memory = _lstm(pointer, memory, gate_inputs)
    return memory, memory.hidden

  gate_inputs = _gate_inputs(pointer, key_sums - keys, picks - real)
  _, queries = jax.lax.scan(step, _start(pointer), gate_inputs)
  legal = jax.vmap(distributions.legal_picks, in_axes=(None, 0, 0, 0))(
    pointer.legal, before, firsts, ~executed)
  logits = distributions.apply_mask(
    _product(queries, pointer.keys.T), legal, pointer.temperature)
  return logits, _updated(pointer, autoregressive, key_sums[-1], picks[-1], used)
