"""The recurrent core carries its state, and resets it at a new game."""

import dataclasses

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import config, core, types

MINI = config.mini()
T = 6


@pytest.fixture(scope="module")
def run():
  network = hk.without_apply_rng(hk.transform(lambda *x: core.unroll(MINI, *x)))
  inputs = jax.random.normal(jax.random.key(0), (T, 12))
  params = jax.jit(network.init)(jax.random.key(1), inputs, jnp.ones(T), core.initial_state(MINI))
  apply = jax.jit(network.apply)
  return (lambda *x: jax.tree.map(np.asarray, apply(params, *x))), inputs


def _state(states, t):
  return jax.tree.map(lambda x: jnp.asarray(x[t]), states)


def test_initial_state_is_zero_and_fits_its_spec():
  state, spec = core.initial_state(MINI), types.core_state_spec(MINI)
  assert jax.tree.map(lambda x: (x.shape, x.dtype), state) == jax.tree.map(
    lambda x: (x.shape, x.dtype), spec)
  assert all((np.asarray(x) == 0).all() for x in state)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_output_of_a_step_follows_from_the_state_after_it(dtype):
  """To the last bit: values may be computed from the state later."""
  sizes = dataclasses.replace(MINI, dtype=dtype, core_layers=2)
  network = hk.without_apply_rng(hk.transform(lambda *x: core.unroll(sizes, *x)))
  inputs = jax.random.normal(jax.random.key(0), (1, 12))
  before = jax.tree.map(lambda x: x + 0.25, core.initial_state(sizes))
  params = network.init(jax.random.key(1), inputs, jnp.ones(1), before)
  inputs, params = jax.tree.map(lambda x: x.astype(dtype) if x.ndim == 2 else x, (inputs, params))
  outputs, states = network.apply(params, inputs, jnp.ones(1), before)
  found = core.output(sizes, _state(states, 0))
  assert found.dtype == outputs.dtype == dtype
  np.testing.assert_array_equal(np.float32(found), np.float32(outputs[0]))


def test_state_carried_across_pieces_equals_one_long_unroll(run):
  apply, inputs = run
  outputs, states = apply(inputs, jnp.ones(T), core.initial_state(MINI))
  first, after = apply(inputs[:4], jnp.ones(4), core.initial_state(MINI))
  second, end = apply(inputs[4:], jnp.ones(2), _state(after, -1))
  np.testing.assert_allclose(np.concatenate([first, second]), outputs, atol=1e-6)
  np.testing.assert_allclose(end.cell[-1], states.cell[-1], atol=1e-6)
  one_by_one = core.initial_state(MINI)
  for t in range(T):
    output, state = apply(inputs[t:t + 1], jnp.ones(1), one_by_one)
    np.testing.assert_allclose(output[0], outputs[t], atol=1e-6)
    one_by_one = _state(state, 0)


def test_a_new_game_starts_from_the_zero_state(run):
  apply, inputs = run
  outputs, _ = apply(inputs, jnp.ones(T).at[4].set(0.0), core.initial_state(MINI))
  fresh, _ = apply(inputs[4:], jnp.ones(2), core.initial_state(MINI))
  remembered, _ = apply(inputs, jnp.ones(T), core.initial_state(MINI))
  np.testing.assert_allclose(outputs[4:], fresh, atol=1e-6)
  np.testing.assert_allclose(outputs[:4], remembered[:4], atol=1e-6)
  assert np.abs(outputs[4:] - remembered[4:]).max() > 1e-3
