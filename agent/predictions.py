"""Predictions of a policy at one step, in 0.3 KB of integers, for replays and their pages.

They are those that DeepMind showed of AlphaStar: the predicted outcome, and the functions, units
and locations that it considers. Each distribution keeps its likeliest choices, with probabilities
in units of 1 / PROBABILITY_SCALE. All of it is computed from the outputs of one step, inside the
program that acts.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from starleague.agent import distributions, vocabulary
from starleague.agent.policy import StepOutput
from starleague.agent.types import POSITION_GRID, Array, Leaf, Observation

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
    output: of `Policy.step_with_values`.
    value: [] float32, the win-loss value of the same step.
    observation: that the policy acted on.

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
