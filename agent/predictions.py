"""Predictions of a policy at one step, in 0.3 KB of integers, for replays and their pages.

They are those that DeepMind showed of AlphaStar: the predicted outcome, and the functions, units
and locations that it considers. Each distribution keeps its likeliest choices, with probabilities
in units of 1 / PROBABILITY_SCALE.

The program that acts returns `pack(record(...))`: arrays that it computes anyway. `complete`
computes the predictions later, those of many steps at once, because values and summaries of a
single step take a third of its time:

  packed = pack(record(output, observation, privileged), spec)  # [N] uint8, where the policy acts
  made = jax.vmap(lambda row: complete(policy, params, unpack(row, spec)))(rows)
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from starleague.agent import baselines, distributions, types, vocabulary
from starleague.agent.policy import Params, Policy, StepOutput
from starleague.agent.types import POSITION_GRID, Array, Leaf, Observation, Privileged

FUNCTIONS, UNITS, CELLS = 5, 8, 32  # choices that are kept of functions, entities and locations
PROBABILITY_SCALE, VALUE_SCALE = 65535, 32767  # units in 1


class Predictions(NamedTuple):
  """Predictions at one step.

  Choices are in the order of their probability, the likeliest first. Those of an argument that the
  function does not take are 0 with probability 0.
  """

  value: Leaf  # [] int16: expected win-loss reward, in 1 / VALUE_SCALE
  functions: Leaf  # [FUNCTIONS] int16
  function_probs: Leaf  # [FUNCTIONS] uint16
  units: Leaf  # [UNITS] int16: entity rows that the pointer of selected units considers
  unit_probs: Leaf  # [UNITS] uint16: the highest probability over the executed picks
  targets: Leaf  # [UNITS] int16: entity rows that the target unit head considers
  target_probs: Leaf  # [UNITS] uint16
  cells: Leaf  # [CELLS] int32: cells of the location head, y * L + x
  cell_probs: Leaf  # [CELLS] uint16
  camera: Leaf  # [4] int16, as in the observation


class Record(NamedTuple):
  """Outputs and inputs of one step that its predictions are computed from; the others are None."""

  output: StepOutput
  observation: Observation
  privileged: Privileged


def record(output: StepOutput, observation: Observation, privileged: Privileged) -> Record:
  """Returns the record of a step of `Policy.step`; the arguments may also be specs."""
  read = output._replace(
    action=_only(output.action, {"function", "units"}),
    logits=_only(output.logits, {"function", "units", "target_unit", "location"}))
  return Record(_only(read, {"action", "logits", "state"}),
                _only(observation, {"camera", *baselines.OBSERVED}), privileged)


def _only(tree: Any, names: set[str]) -> Any:
  """Replaces the fields of a NamedTuple that are not in `names` by None."""
  return tree._replace(**dict.fromkeys({*tree._fields} - names))


def record_spec(policy: Policy, max_entities: int, max_selected: int, location_size: int) -> Record:
  """Returns the spec of a record.

  Args:
    policy: whose steps are recorded.
    max_entities: E.
    max_selected: K.
    location_size: L.
  """
  s = jax.ShapeDtypeStruct
  logits = vocabulary.Arguments(
    function=s((vocabulary.NUM_FUNCTIONS,), np.float32), delay=None, queued=None, repeat=None,
    units=s((max_selected, max_entities + 1), np.float32),
    target_unit=s((max_entities,), np.float32), location=s((location_size ** 2,), np.float32))
  action, state = types.action_spec(max_selected), jax.eval_shape(policy.initial_state)
  output = StepOutput(action, log_prob=logits, logits=logits, state=state)
  return record(output, types.observation_spec(max_entities, 1), types.privileged_spec())


def pack(made: Record, spec: Record) -> jax.Array:
  """Packs a record into bytes, [N] uint8: one array costs a step less than thirty."""
  def to_bytes(x: Array, like: jax.ShapeDtypeStruct) -> jax.Array:
    found = jnp.asarray(x, like.dtype)
    if found.dtype == bool:
      return found.astype(jnp.uint8).reshape(-1)
    return lax.bitcast_convert_type(found, jnp.uint8).reshape(-1)

  return jnp.concatenate(jax.tree.leaves(jax.tree.map(to_bytes, made, spec)))


def unpack(packed: Array, spec: Record) -> Record:
  """Unpacks a record of a spec from [N] uint8; the inverse of `pack`."""
  leaves, structure = jax.tree.flatten(spec)
  sizes = [math.prod(x.shape) * x.dtype.itemsize for x in leaves]

  def from_bytes(part: jax.Array, like: jax.ShapeDtypeStruct) -> jax.Array:
    if like.dtype.itemsize == 1:  # uint8 or bool
      return part.reshape(like.shape).astype(like.dtype)
    return lax.bitcast_convert_type(part.reshape(*like.shape, like.dtype.itemsize), like.dtype)

  parts = jnp.split(jnp.asarray(packed), np.cumsum(sizes)[:-1].tolist())
  return jax.tree.unflatten(structure, map(from_bytes, parts, leaves))


def complete(policy: Policy, params: Params, made: Record) -> Predictions:
  """Computes the predictions of a step from its record and the parameters that acted."""
  values = policy.values(params, made.output.state, made.observation, made.privileged)
  return predict(made.output, values[types.REWARDS.index("winloss")], made.observation)


def predictions_spec() -> Predictions:
  """Returns the spec of predictions."""
  s = jax.ShapeDtypeStruct
  return Predictions(
    value=s((), np.int16),
    functions=s((FUNCTIONS,), np.int16), function_probs=s((FUNCTIONS,), np.uint16),
    units=s((UNITS,), np.int16), unit_probs=s((UNITS,), np.uint16),
    targets=s((UNITS,), np.int16), target_probs=s((UNITS,), np.uint16),
    cells=s((CELLS,), np.int32), cell_probs=s((CELLS,), np.uint16),
    camera=s((4,), np.int16))


def bounds(max_entities: int, location_size: int) -> Predictions:
  """Returns the least and the greatest value of each field: a pair for each leaf."""
  probability, row = (0, PROBABILITY_SCALE), (0, max_entities - 1)
  return Predictions(
    value=(-VALUE_SCALE, VALUE_SCALE), functions=(0, vocabulary.NUM_FUNCTIONS - 1),
    function_probs=probability, units=row, unit_probs=probability, targets=row,
    target_probs=probability, cells=(0, location_size ** 2 - 1), cell_probs=probability,
    camera=(0, POSITION_GRID))


def predict(output: StepOutput, value: Array, observation: Observation) -> Predictions:
  """Computes the predictions of a step.

  Args:
    output: of `Policy.step`.
    value: [] float32, the win-loss value of the same step.
    observation: that the policy acted on; only its camera is read.

  Returns:
    Predictions in the dtypes of `predictions_spec`.
  """
  logits, action = output.logits, output.action
  entities = logits.target_unit.shape[-1]
  used = vocabulary.argument_mask(action.function)
  executed = distributions.executed_picks(action.units, entities)
  picks = jax.nn.softmax(logits.units)[:, :entities]
  functions, function_probs = _likeliest(jax.nn.softmax(logits.function), FUNCTIONS)
  units, unit_probs = _likeliest(
    jnp.max(jnp.where(executed[:, None], picks, 0.0), axis=0), UNITS, used.units)
  targets, target_probs = _likeliest(
    jax.nn.softmax(logits.target_unit), UNITS, used.target_unit)
  cells, cell_probs = _likeliest(jax.nn.softmax(logits.location), CELLS, used.location)
  made = Predictions(
    value=jnp.round(jnp.clip(value, -1.0, 1.0) * VALUE_SCALE), functions=functions,
    function_probs=function_probs, units=units, unit_probs=unit_probs, targets=targets,
    target_probs=target_probs, cells=cells, cell_probs=cell_probs, camera=observation.camera)
  return jax.tree.map(lambda x, like: jnp.asarray(x, like.dtype), made, predictions_spec())


def _likeliest(probabilities: jax.Array, count: int,
               used: Array | bool = True) -> tuple[jax.Array, jax.Array]:
  """Returns the `count` likeliest of [N] choices and their probabilities, rounded to integers.

  Both are 0 for choices whose probability rounds to 0, and all are if the argument is not `used`.
  """
  missing = max(0, count - probabilities.size)
  found, choices = lax.top_k(jnp.pad(probabilities, (0, missing)), count)
  rounded = jnp.where(used, jnp.round(found * PROBABILITY_SCALE), 0.0)
  return jnp.where(rounded > 0, choices, 0), rounded
