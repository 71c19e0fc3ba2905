"""The unit pointer: its recurrence, its masks and the probabilities of its selections."""

import dataclasses
import itertools

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import config as agent_config
from starleague.agent import distributions, heads, types, vocabulary
from tests.agent.heads.built_heads import MARINE_ATTACK, SETTINGS, make_heads, make_inputs, row


def test_units_are_picked_once_and_end_for_good(batch):
  inputs, (action, _, _) = batch
  end = SETTINGS.max_entities
  lengths = []
  for units, function, count in zip(np.array(action.units), np.array(action.function),
                                    np.array(inputs.observation.entity_count), strict=True):
    if not vocabulary.ARGUMENT_TABLE[function, 4]:
      continue
    length = int(np.argmax(units == end)) if (units == end).any() else len(units)
    assert length >= 1, "the end token came first"
    assert (units[length:] == end).all()
    assert len(set(units[:length])) == length and (units[:length] < count).all()
    lengths.append(length)
  assert {1, SETTINGS.max_selected} <= set(lengths)


@pytest.fixture(scope="module")
def tiny():
  """Three entities, three picks: few enough for every selection to be listed."""
  return make_heads(dataclasses.replace(SETTINGS, max_entities=3, max_selected=3))


def test_probabilities_of_all_selections_sum_to_one(tiny):
  params, _, teacher_force = tiny
  inputs = row(make_inputs(dataclasses.replace(SETTINGS, max_entities=3), 9, 1))
  inputs = inputs._replace(
    observation=inputs.observation._replace(entity_count=jnp.int16(3)))
  selections = [
    (*picks, *[3] * (3 - length))
    for length in (1, 2, 3) for picks in itertools.permutations(range(3), length)]
  assert len(selections) == 15
  action = types.zeros(types.action_spec(3))._replace(function=np.int16(MARINE_ATTACK))

  def log_prob(units):
    chosen = action._replace(units=units)
    return distributions.log_prob(teacher_force(params, inputs, chosen), chosen).units

  found = jax.jit(jax.vmap(log_prob))(jnp.array(selections, jnp.int16))
  assert float(jnp.exp(found).sum()) == pytest.approx(1.0, abs=1e-5)
  assert float(jnp.exp(found).min()) > 0.0


@pytest.mark.parametrize("dtype", agent_config.DTYPES)
def test_products_of_the_pointer_have_full_precision(dtype):
  config = dataclasses.replace(SETTINGS, dtype=dtype)
  inputs = row(make_inputs(config, 9, 1))
  inputs = inputs._replace(entity_embeddings=inputs.entity_embeddings.astype(config.dtype))
  force = hk.without_apply_rng(hk.transform(lambda: heads.selected_units.teacher_force(
    config, inputs, jnp.ones(config.autoregressive_size, config.dtype),
    jnp.int32(MARINE_ATTACK), jnp.bool_(True), jnp.array([3, 0, 7, 10, 10, 10]))))
  params, _, _ = make_heads(config)
  text = str(jax.make_jaxpr(force.apply)(params))
  full = "precision=(Precision.HIGHEST, Precision.HIGHEST)"
  # Three constants, the picks' keys, four of the LSTM, the logits and the update.
  assert text.count("dot_general[") == text.count(full) == 10


def published_pointer(params, config, inputs, function, embedding, units):
  """The pointer as published, pick by pick, in NumPy: raw logits and the embedding after it."""
  p = {k: np.array(v, np.float64) for k, v in params["selected_units"].items()}
  linear = {name: {k: np.array(v, np.float64) for k, v in params[f"selected_units/{name}"].items()}
            for name in ("keys", "executors")}
  sigmoid = lambda x: 1.0 / (1.0 + np.exp(-x))  # noqa: E731
  keys = np.array(inputs.entity_embeddings) @ linear["keys"]["w"] + linear["keys"]["b"]
  keys = np.concatenate([keys, p["end_key"][None]])
  executors = np.maximum(
    vocabulary.CAPABLE[function] @ linear["executors"]["w"] + linear["executors"]["b"], 0)
  hidden = cell = np.zeros(config.key_size)
  divisor = {"entities": int(inputs.observation.entity_count), "512": 512, "none": 1}
  logits = []
  for unit in units:
    x = np.maximum(embedding @ p["query_hidden_w"] + p["query_hidden_b"] + executors, 0)
    x = x @ p["query_input_w"] + p["query_input_b"]
    gates = x @ p["lstm_input_w"] + p["lstm_input_b"] + hidden @ p["lstm_recurrent"]
    i, g, f, o = np.split(gates, 4)
    cell = sigmoid(f + 1) * cell + sigmoid(i) * np.tanh(g)
    hidden = sigmoid(o) * np.tanh(cell)
    logits.append(keys @ hidden / config.temperature)
    if unit < config.max_entities:
      pooled = keys[unit] / divisor[config.pick_pooling]
      embedding = embedding + pooled @ p["update_w"] + p["update_b"]
  return np.array(logits), embedding


@pytest.mark.parametrize("pooling", agent_config.PICK_POOLINGS)
def test_pointer_equals_the_published_recurrence(built, batch, pooling):
  params = built[0]
  config = dataclasses.replace(SETTINGS, pick_pooling=pooling)
  inputs = row(batch[0])
  inputs = inputs._replace(observation=inputs.observation._replace(entity_count=jnp.int16(9)))
  embedding = jax.random.normal(jax.random.key(10), (config.autoregressive_size,))
  units = jnp.array([3, 0, 7, 10, 10, 10])
  force = hk.without_apply_rng(hk.transform(lambda: heads.selected_units.teacher_force(
    config, inputs, embedding, jnp.int32(MARINE_ATTACK), jnp.bool_(True), units)))
  logits, updated = jax.jit(force.apply)(params)
  expected, after = published_pointer(
    params, config, inputs, MARINE_ATTACK, np.array(embedding, np.float64), np.array(units))
  legal = np.array(logits) > -1e8
  np.testing.assert_array_equal(legal[:4], [
    [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1],
    [0, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1], [0, 1, 1, 0, 1, 1, 1, 0, 1, 0, 1]])
  np.testing.assert_array_equal(legal[4:], np.eye(11)[[10, 10]])
  np.testing.assert_allclose(logits[:4][legal[:4]], expected[:4][legal[:4]], atol=1e-5)
  np.testing.assert_allclose(updated, after, atol=1e-5)
