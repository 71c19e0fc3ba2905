"""The target unit head against its published formula in NumPy, and its masks."""

import dataclasses

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import distributions, vocabulary
from starleague.agent.heads import target_unit
from starleague.agent.types import ALLIANCE_ENEMY, ALLIANCE_SELF, COLUMN
from tests.agent.heads.built_heads import MARINE_ATTACK, SETTINGS, linear, relu, row

CONFIG = dataclasses.replace(SETTINGS, target_mask="on_screen")
COUNT = 6  # entities that exist


@pytest.fixture(scope="module")
def inputs(batch):
  """One step: own entities in rows 0 and 1, enemies in 2 to 5, of which 3 is on the screen."""
  inputs = row(batch[0])
  entities = np.zeros_like(inputs.observation.entities)
  entities[:COUNT, COLUMN["alliance"]] = [ALLIANCE_SELF] * 2 + [ALLIANCE_ENEMY] * 4
  entities[3, COLUMN["is_on_screen"]] = 1
  return inputs._replace(observation=inputs.observation._replace(
    entities=jnp.asarray(entities), entity_count=jnp.int16(COUNT)))


def found(params, config, inputs, autoregressive, function):
  run = hk.without_apply_rng(hk.transform(lambda: target_unit.logits(
    config, inputs, autoregressive, jnp.int32(function))))
  return np.asarray(jax.jit(run.apply)(params))


@pytest.mark.parametrize("temperature", [1.0, 0.8])
def test_logits_are_products_of_a_query_and_the_entities_keys(built, inputs, temperature):
  params = built[0]
  config = dataclasses.replace(CONFIG, target_mask="existing", temperature=temperature)
  autoregressive = np.random.default_rng(0).normal(size=config.autoregressive_size)
  x = linear(params, "target_unit/query_hidden", autoregressive)
  x = relu(x + relu(linear(params, "target_unit/executors", vocabulary.CAPABLE[MARINE_ATTACK])))
  query = linear(params, "target_unit/query", x)
  keys = linear(params, "target_unit/keys", np.asarray(inputs.entity_embeddings))
  logits = found(params, config, inputs, np.float32(autoregressive), MARINE_ATTACK)
  assert logits.shape == (config.max_entities,) and logits.dtype == np.float32
  np.testing.assert_allclose(logits[:COUNT], (keys @ query)[:COUNT] / temperature, atol=1e-4)
  assert (logits[COUNT:] == distributions.NEGATIVE).all()


@pytest.mark.parametrize(("mask", "aimed", "legal"), [
  ("existing", True, [1, 1, 1, 1, 1, 1, 0, 0, 0, 0]),
  ("on_screen", False, [1, 1, 1, 1, 1, 1, 0, 0, 0, 0]),
  ("on_screen", True, [1, 1, 0, 1, 0, 0, 0, 0, 0, 0])])
def test_functions_aimed_on_the_screen_reach_own_and_visible_entities(
    built, inputs, mask, aimed, legal):
  function = int(np.flatnonzero(vocabulary.ON_SCREEN == aimed)[1])
  logits = found(built[0], dataclasses.replace(CONFIG, target_mask=mask), inputs,
                 jnp.zeros(CONFIG.autoregressive_size), function)
  np.testing.assert_array_equal(logits > distributions.NEGATIVE, np.array(legal, bool))
