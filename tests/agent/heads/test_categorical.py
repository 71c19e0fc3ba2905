"""The delay, queued and repeat heads against their published formula in NumPy, and their masks."""

import dataclasses

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import distributions, heads, types
from starleague.agent.heads import categorical
from tests.agent.heads.built_heads import SETTINGS, linear, make_heads, relu

CONFIG = dataclasses.replace(SETTINGS, temperature=0.5, delay_temperature=2.0)
LOGITS = {"delay": categorical.delay_logits, "queued": categorical.queued_logits,
          "repeat": categorical.repeat_logits}


def run(params, head):
  return np.asarray(jax.jit(hk.without_apply_rng(hk.transform(head)).apply)(params))


def hidden(params, scope, x):
  for i in range(2):
    x = relu(linear(params, f"{scope}/hidden_{i}", x))
  return x


@pytest.mark.parametrize(("head", "illegal", "temperature"), [
  ("delay", [0], 2.0), ("queued", [], 0.5), ("repeat", [], 0.5)])
def test_logits_are_two_hidden_layers_on_the_autoregressive_embedding(
    built, head, illegal, temperature):
  params = built[0]
  x = np.random.default_rng(0).normal(size=CONFIG.autoregressive_size)
  expected = linear(params, f"{head}/logits", hidden(params, head, x)) / temperature
  found = run(params, lambda: LOGITS[head](CONFIG, jnp.asarray(x, jnp.float32)))
  assert found.shape == (categorical.SIZES[head],) and found.dtype == np.float32
  assert np.flatnonzero(found == distributions.NEGATIVE).tolist() == illegal
  legal = found > distributions.NEGATIVE
  np.testing.assert_allclose(found[legal], expected[legal], atol=1e-5)


@pytest.mark.parametrize("head", categorical.SIZES)
def test_embedding_is_two_hidden_layers_on_the_choice_and_zero_if_unused(built, head):
  params = built[0]
  choice = categorical.SIZES[head] - 1
  scope = f"{head}_embedding"
  expected = linear(params, f"{scope}/output", hidden(
    params, scope, np.eye(categorical.SIZES[head])[choice]))
  used, unused = (run(params, lambda used=used: categorical.embedding(
    CONFIG, head, jnp.int16(choice), jnp.bool_(used))) for used in (True, False))
  np.testing.assert_allclose(used, expected, atol=1e-5)
  assert (unused == 0.0).all()


def test_sizes_are_those_of_the_action():
  assert categorical.SIZES == {"delay": types.MAX_DELAY + 1, "queued": 2, "repeat": 3}


def test_repeat_can_be_switched_off():
  config = dataclasses.replace(SETTINGS, repeat=False)
  params, _, _ = make_heads(config)
  assert not [name for name in params if name.startswith("repeat")]
  logits = heads.categorical.repeat_logits(config, jnp.ones(config.autoregressive_size))
  np.testing.assert_array_equal(jax.nn.softmax(logits), [1.0, 0.0, 0.0])
  assert (heads.categorical.embedding(config, "repeat", jnp.int32(0), jnp.bool_(True)) == 0.0).all()
