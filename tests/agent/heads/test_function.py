"""The function head against its published formula in NumPy, and its mask."""

import dataclasses

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import distributions, vocabulary
from starleague.agent.heads import function
from tests.agent.heads.built_heads import MARINE_ATTACK, SETTINGS, linear, relu, row


def run(params, head):
  return np.asarray(jax.jit(hk.without_apply_rng(hk.transform(head)).apply)(params))


def glu(params, name, inputs, context):
  gate = 1.0 / (1.0 + np.exp(-linear(params, f"{name}/gate", context)))
  return linear(params, f"{name}/output", gate * inputs)


def layer_norm(params, name, x):
  scale, offset = (np.asarray(params[name][key], np.float64) for key in ("scale", "offset"))
  return (x - x.mean()) / np.sqrt(x.var() + 1e-5) * scale + offset


@pytest.mark.parametrize("rule", ["available", "none"])
def test_logits_are_residual_blocks_on_the_core_gated_by_the_context(built, batch, rule):
  params, inputs = built[0], row(batch[0])
  config = dataclasses.replace(SETTINGS, function_mask=rule, temperature=0.5)
  x = relu(linear(params, "function/input", np.asarray(inputs.core)))
  for i in range(config.action_blocks):
    block = f"function/block_{i}"
    y = linear(params, f"{block}/linear_0", relu(layer_norm(params, f"{block}/norm_0", x)))
    x = x + linear(params, f"{block}/linear_1", relu(layer_norm(params, f"{block}/norm_1", y)))
  expected = glu(params, "function/logits", relu(x), np.asarray(inputs.scalar_context)) / 0.5
  found = run(params, lambda: function.logits(config, inputs))
  legal = np.asarray(inputs.observation.available_actions).copy()
  assert 0 < legal.sum() < len(legal) - 1
  legal[0] = True  # no_op
  legal |= rule == "none"
  np.testing.assert_allclose(found[legal], expected[legal], atol=1e-4)
  assert (found[~legal] == distributions.NEGATIVE).all()


def test_no_op_is_legal_when_no_function_is_available(built, batch):
  inputs = row(batch[0])
  inputs = inputs._replace(observation=inputs.observation._replace(
    available_actions=jnp.zeros(vocabulary.NUM_FUNCTIONS, bool)))
  found = run(built[0], lambda: function.logits(SETTINGS, inputs))
  assert np.flatnonzero(found > distributions.NEGATIVE).tolist() == [0]


def test_embedding_adds_the_gated_choice_and_the_gated_core(built, batch):
  params, inputs = built[0], row(batch[0])
  context = np.asarray(inputs.scalar_context)
  choice = relu(linear(
    params, "function_embedding/input", np.eye(vocabulary.NUM_FUNCTIONS)[MARINE_ATTACK]))
  expected = (glu(params, "function_embedding/choice", choice, context)
              + glu(params, "function_embedding/core", np.asarray(inputs.core), context))
  found = run(params, lambda: function.embedding(SETTINGS, inputs, jnp.int16(MARINE_ATTACK)))
  np.testing.assert_allclose(found, expected, atol=1e-4)


def executors(params, index, dtype=jnp.int32):
  return run({"executors": params["target_unit/executors"]},
             lambda: function.executor_embedding(SETTINGS, dtype(index)))


@pytest.mark.parametrize("name", ["Attack_pt", "Move_pt", "Train_Marine_quick"])
def test_executor_embedding_is_a_layer_on_the_capable_types(built, name):
  index = vocabulary.FUNCTIONS.index(name)
  expected = relu(linear(built[0], "target_unit/executors", vocabulary.CAPABLE[index]))
  np.testing.assert_allclose(executors(built[0], index), expected, atol=1e-5)


def test_functions_of_the_same_executors_share_an_embedding(built):
  barracks = vocabulary.CAPABLE[vocabulary.FUNCTIONS.index("Train_Marine_quick")]
  same = np.flatnonzero((vocabulary.CAPABLE == barracks).all(1))
  assert len(same) > 1
  for index in same:
    np.testing.assert_array_equal(
      executors(built[0], index), executors(built[0], same[0]))


@pytest.mark.parametrize(("label", "nearest"), [(-7, 0), (30_000, vocabulary.NUM_FUNCTIONS - 1)])
def test_labels_past_the_ends_get_the_nearest_executors(built, label, nearest):
  np.testing.assert_array_equal(executors(built[0], label, jnp.int16),
                                executors(built[0], nearest, jnp.int16))
