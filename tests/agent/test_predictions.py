"""Predictions of a step: the likeliest choices of each head, and the win-loss value."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import starleague.agent as agent
from starleague.agent import predictions, types
from starleague.agent import vocabulary as v
from starleague.agent.policy import StepOutput
from tests.agent.encoders import observations
from tests.agent.golden import MINI, random_like, random_params

E, K, L = 12, 3, 7
B = 4
BUILD, TRAIN = v.FUNCTIONS.index("Build_Barracks_pt"), v.FUNCTIONS.index("Train_Marine_quick")
ATTACK = v.FUNCTIONS.index("Attack_unit")


def softmax(logits):
  weights = np.exp(np.float64(logits) - np.max(logits, axis=-1, keepdims=True))
  return weights / weights.sum(axis=-1, keepdims=True)


def output_of(function, seed=0, entities=E, size=L):
  """A step whose choices are the likeliest ones; the second pick is the end token."""
  random = np.random.default_rng(seed)
  logits = v.Arguments(*(random.normal(scale=2, size=shape).astype(np.float32) for shape in (
    v.NUM_FUNCTIONS, types.NUM_DELAYS, 2, 3, (K, entities + 1), entities, size * size)))
  logits.function[function] = 9.0
  logits.units[0, -1] = -1e9
  logits.units[1, -1] = 50.0
  used = v.Arguments(*v.ARGUMENT_TABLE[function])
  units = np.full(K, entities, np.int16)
  units[0] = np.argmax(logits.units[0]) if used.units else entities
  action = types.Action(
    function=np.int16(function), delay=np.int16(1), queued=np.uint8(0), repeat=np.uint8(0),
    units=units, target_unit=np.int16(np.argmax(logits.target_unit) * used.target_unit),
    location=np.int32(np.argmax(logits.location) * used.location))
  return StepOutput(action, None, logits, None)


def predicted(output, value=0.25):
  observation = types.zeros(types.observation_spec(E, 8))._replace(
    camera=np.array([0, 8, 200, 256], np.int16))
  made = predictions.predict(output, jnp.float32(value), observation)
  spec = predictions.predictions_spec()
  jax.tree.map(lambda x, s: (x.shape, x.dtype) == (s.shape, s.dtype) or pytest.fail(), made, spec)
  return jax.tree.map(np.asarray, made)


def test_the_likeliest_choices_and_their_probabilities_are_kept():
  output = output_of(BUILD)
  made = predicted(output)
  for logits, choices, shares in (
      (output.logits.function, made.functions, made.function_probs),
      (output.logits.location, made.cells, made.cell_probs),
      (output.logits.units[0, :E], made.units, made.unit_probs)):
    probabilities = softmax(logits)
    order = np.argsort(-probabilities, kind="stable")[:len(choices)]
    np.testing.assert_array_equal(choices, order)
    np.testing.assert_allclose(shares / 65535, probabilities[order], atol=0.51 / 65535)
  assert made.value == round(0.25 * 32767) and made.camera.tolist() == [0, 8, 200, 256]
  assert made.function_probs.sum() <= 65535 + 3 and made.cell_probs.sum() <= 65535 + 16


def test_the_first_choices_are_those_of_a_greedy_action():
  for seed in range(3):
    output = output_of(BUILD, seed)
    made = predicted(output)
    assert made.functions[0] == BUILD == output.action.function
    assert made.cells[0] == output.action.location and made.units[0] == output.action.units[0]
  output = output_of(ATTACK)
  assert predicted(output).targets[0] == output.action.target_unit


def test_attention_is_the_highest_probability_over_executed_picks():
  """The second pick is executed, its end token nearly certain; the third one is not."""
  output = output_of(BUILD)
  output.logits.units[1, 5] = 50.0  # as likely as the end token
  output.logits.units[2, 6] = 90.0
  made = predicted(output)
  assert made.units[0] == 5 and abs(made.unit_probs[0] / 65535 - 0.5) < 1e-3
  first = softmax(output.logits.units[0])
  assert made.unit_probs[list(made.units).index(6)] / 65535 == pytest.approx(first[6], abs=1e-4)


@pytest.mark.parametrize(("function", "unused"), [
  (TRAIN, ("targets", "cells")), (BUILD, ("targets",)), (ATTACK, ("cells",)),
  (0, ("units", "targets", "cells"))])
def test_arguments_that_the_function_does_not_take_are_zero(function, unused):
  made = predicted(output_of(function))
  for name, shares in (("units", "unit_probs"), ("targets", "target_probs"),
                       ("cells", "cell_probs")):
    assert (not getattr(made, shares).any()) == (name in unused), name
    assert name not in unused or not getattr(made, name).any()


def test_heads_with_fewer_choices_are_padded():
  made = predicted(output_of(BUILD, entities=5, size=2))
  assert np.count_nonzero(made.cell_probs) == 4 and sorted(made.cells[:4]) == [0, 1, 2, 3]
  assert not made.cells[4:].any() and not made.unit_probs[5:].any()
  assert abs(int(made.cell_probs.sum()) - 65535) <= 2


@pytest.mark.parametrize(("value", "expected"), [(-1.0, -32767), (1.0, 32767), (1.5, 32767)])
def test_values_are_bounded(value, expected):
  made = predicted(output_of(0), value)
  assert made.value == expected
  low, high = predictions.bounds(E, L).value
  assert low <= made.value <= high


def stack(trees):
  return jax.tree.map(lambda *x: np.stack(x), *trees)


def privileged_steps():
  return stack([random_like(types.privileged_spec(), seed) for seed in range(B)])


class Acted(NamedTuple):
  """A batch of steps."""

  plain: StepOutput  # of `step`
  output: StepOutput  # of `step`, in a program that computes the values too
  values: jax.Array
  made: predictions.Predictions  # in the same program
  unrolled: agent.policy.UnrollOutput
  packed: jax.Array  # their records
  spec: predictions.Record
  later: predictions.Predictions  # completed from the records


@pytest.fixture(scope="module")
def acted():
  policy = agent.make_policy(MINI)
  params = random_params(jax.eval_shape(policy.init, jax.random.key(0)))
  observation = stack([observations.observation(seed) for seed in range(B)])
  privileged = privileged_steps()
  state = jax.tree.map(lambda x: jnp.zeros((B, *x.shape)), policy.initial_state())
  keys = jax.random.split(jax.random.key(1), B)
  plain = jax.jit(jax.vmap(policy.step, (None, 0, 0, 0)))(params, keys, observation, state)

  def act(key, observation, privileged, state):
    output = policy.step(params, key, observation, state)
    values = policy.values(params, output.state, observation, privileged)
    return output, values, predictions.predict(output, values[0], observation)

  output, values, made = jax.jit(jax.vmap(act))(keys, observation, privileged, state)
  spec = predictions.record_spec(
    policy, MINI.max_entities, MINI.max_selected, MINI.location_size)
  packed = jax.jit(jax.vmap(lambda *x: predictions.pack(predictions.record(*x), spec)))(
    output, observation, privileged)
  later = jax.jit(jax.vmap(
    lambda row: predictions.complete(policy, params, predictions.unpack(row, spec))))(packed)
  step = types.zeros(types.step_spec(MINI.max_entities, MINI.map_size, MINI.max_selected))
  steps = jax.tree.map(lambda x: np.stack([np.stack([x] * B)] * 2), step)  # T = 1
  steps = steps._replace(
    observation=jax.tree.map(lambda x: np.stack([x, x]), observation),
    privileged=jax.tree.map(lambda x: np.stack([x, x]), privileged),
    action=jax.tree.map(lambda x: np.stack([x, x]), output.action),
    discount=np.ones((2, B), np.float32))
  unrolled = jax.jit(policy.unroll_batch)(params, types.Trajectory(steps, state))
  return Acted(plain, output, values, made, unrolled, packed, spec, later)


def test_values_do_not_change_the_step(acted):
  plain, output, values, unrolled = acted.plain, acted.output, acted.values, acted.unrolled
  jax.tree.map(np.testing.assert_array_equal, output.action, plain.action)
  jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-4), output, plain)
  np.testing.assert_allclose(values, unrolled.baselines[0], atol=1e-5)


def test_predictions_equal_the_policys_outputs(acted):
  output, made, unrolled = acted.output, acted.made, acted.unrolled
  np.testing.assert_allclose(made.value / 32767, unrolled.baselines[0, :, 0], atol=1e-4)
  probabilities = softmax(unrolled.logits.function[0])
  found = np.take_along_axis(probabilities, np.asarray(made.functions, np.int64), axis=1)
  np.testing.assert_allclose(made.function_probs / 65535, found, atol=1e-4)
  np.testing.assert_allclose(
    found, -np.sort(-probabilities, axis=1)[:, :predictions.FUNCTIONS], atol=1e-4)
  assert np.all(made.function_probs[:, 0] >= np.exp(output.log_prob.function) * 65535 - 1)


def test_predictions_completed_later_equal_those_of_the_step(acted):
  """Probabilities and values are rounded once: another order of sums may change the last unit."""
  for name, found, expected in zip(predictions.Predictions._fields, acted.later, acted.made,
                                   strict=True):
    assert found.dtype == expected.dtype, name
    limit = 1 if name == "value" or name.endswith("_probs") else 0
    np.testing.assert_allclose(np.int64(found), np.int64(expected), rtol=0, atol=limit)


def test_records_keep_every_bit(acted):
  unpacked = jax.vmap(lambda row: predictions.unpack(row, acted.spec))(acted.packed)
  output, logits = unpacked.output, acted.output.logits
  jax.tree.map(np.testing.assert_array_equal, output.state, acted.output.state)
  for name in ("function", "units", "target_unit", "location"):
    np.testing.assert_array_equal(getattr(output.logits, name), getattr(logits, name))
  jax.tree.map(np.testing.assert_array_equal, unpacked.privileged, privileged_steps())
  observed = stack([observations.observation(seed) for seed in range(B)])
  for name in ("camera", "player", "upgrades", "unit_counts", "statistics"):
    jax.tree.map(np.testing.assert_array_equal, getattr(unpacked.observation, name),
                 getattr(observed, name))
  assert unpacked.observation.entities is None and output.log_prob is None
  assert acted.packed.shape == (B, sum(
    x.size * x.dtype.itemsize for x in jax.tree.leaves(acted.spec)))
  repacked = jax.vmap(lambda record: predictions.pack(record, acted.spec))(unpacked)
  np.testing.assert_array_equal(repacked, acted.packed)
