"""Torsos encode each kind of observation; a recurrent network starts again with each episode."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.common.errors import UserError
from starleague.companions import networks
from starleague.companions.system import Inputs
from starleague.environments.skirmish.games import exact

T, B = 5, 3


def inputs_of(observation):
  return Inputs(observation, jax.ShapeDtypeStruct((), np.int32),
                jax.ShapeDtypeStruct((), np.float32), jax.ShapeDtypeStruct((), np.bool_))


def recurrent(size=8):
  spec = inputs_of(jax.ShapeDtypeStruct((4,), np.float32))

  def forward(inputs, state):
    x = networks.observe(inputs.observation, networks.DENSE, size)
    x = jnp.concatenate([x, networks.context(inputs, 3)], axis=-1)
    return networks.lstm(x, inputs.first, state, size)

  return networks.make_network(spec, forward, lambda: networks.lstm_state(size))


def random_inputs(first):
  random = np.random.default_rng(0)
  return Inputs(random.normal(size=(T, B, 4)).astype(np.float32), random.integers(0, 3, (T, B)),
                random.normal(size=(T, B)).astype(np.float32), first)


@pytest.mark.parametrize("torso, shape, dtype, convolutions", [
  (networks.SHALLOW, (10, 10, 4), np.bool_, 2), (networks.DEEP, (10, 10, 4), np.bool_, 15),
  (networks.DENSE, (10, 10, 4), np.bool_, 0), (networks.SHALLOW, (84, 84, 4), np.uint8, 2),
  (networks.SHALLOW, (6,), np.float32, 0)])
def test_a_torso_has_the_published_convolutions(torso, shape, dtype, convolutions):
  spec = inputs_of(jax.ShapeDtypeStruct(shape, dtype))
  network = networks.make_network(
    spec, lambda inputs, state: (networks.observe(inputs.observation, torso, 16), state),
    lambda: ())
  params = network.init(jax.random.key(0))
  assert sum("conv" in name or "residual" in name for name in params) == convolutions
  outputs, _ = network.unroll(
    params, jax.tree.map(lambda x: jnp.zeros((2, *x.shape), x.dtype), spec), ())
  assert outputs.shape == (2, 16)


def test_pixels_are_scaled_and_planes_are_not():
  def encode(observation):
    spec = inputs_of(jax.ShapeDtypeStruct(observation.shape[1:], observation.dtype))
    network = networks.make_network(
      spec, lambda inputs, state: (networks.observe(inputs.observation, networks.DENSE, 4), state),
      lambda: ())
    params = jax.tree.map(jnp.ones_like, network.init(jax.random.key(0)))
    return network.unroll(params, spec._replace(observation=observation), ())[0][0, 0]

  # Two layers of ones: 1 + 4 (1 + x), x the sum of the inputs.
  assert encode(np.ones((1, 2, 2, 1), np.bool_)) == 1 + 4 * (1 + 4)
  np.testing.assert_allclose(encode(np.full((1, 2, 2, 1), 51, np.uint8)), 1 + 4 * (1 + 0.8), 1e-6)


def test_the_parts_of_a_tree_are_side_by_side():
  spec = inputs_of((jax.ShapeDtypeStruct((3,), np.float32), jax.ShapeDtypeStruct((), np.int32)))
  network = networks.make_network(
    spec, lambda inputs, state: (networks.observe(inputs.observation, networks.DENSE, 4), state),
    lambda: ())
  example = jax.tree.map(lambda x: jnp.zeros((2, *x.shape), x.dtype), spec)
  assert network.unroll(network.init(jax.random.key(0)), example, ())[0].shape == (2, 8)


def test_the_context_is_the_last_action_and_the_clipped_reward():
  inputs = Inputs((), jnp.array([2, 0]), jnp.array([5.0, -0.5]), jnp.zeros(2, bool))
  np.testing.assert_array_equal(
    networks.context(inputs, 3), [[0, 0, 1, 1], [1, 0, 0, -0.5]])
  several = inputs._replace(last_action=jnp.array([[1, 0], [0, 2]]))
  np.testing.assert_array_equal(
    networks.context(several, 3), [[0, 1, 0, 1, 0, 0, 1], [1, 0, 0, 0, 0, 1, -0.5]])


def test_steps_equal_the_unroll():
  """Both are compiled without fused multiply-adds, whose rounding depends on the CPU."""
  network = recurrent(16)
  params = network.init(jax.random.key(1))
  first = np.zeros((T, B), bool)
  first[2, 1] = True
  inputs = random_inputs(first)
  start = jax.tree.map(lambda x: jnp.broadcast_to(x, (B, *x.shape)), network.initial_state())
  outputs, states = exact.compiled(
    lambda inputs, start: networks.unroll_batch(network, params, inputs, start))(inputs, start)
  step = exact.compiled(jax.vmap(
    lambda inputs, state: networks.step(network, params, inputs, state)))
  state = start
  for t in range(T):
    found, state = step(jax.tree.map(lambda x, t=t: x[t], inputs), state)
    np.testing.assert_allclose(found, outputs[t], atol=1e-6)
    jax.tree.map(lambda x, y, t=t: np.testing.assert_allclose(x, y[t], atol=1e-6), state, states)


def test_an_episode_does_not_remember_the_one_before():
  network = recurrent()
  params = network.init(jax.random.key(1))
  first = np.zeros((T, B), bool)
  first[2] = True
  inputs = random_inputs(first)
  start = jax.tree.map(lambda x: jnp.broadcast_to(x, (B, *x.shape)), network.initial_state())
  whole, _ = networks.unroll_batch(network, params, inputs, start)
  later, _ = networks.unroll_batch(
    network, params, jax.tree.map(lambda x: x[2:], inputs), start)
  np.testing.assert_allclose(whole[2:], later, atol=1e-6)
  assert np.abs(whole[:2] - later[:2]).max() > 1e-3


def test_an_unknown_torso_is_named():
  with pytest.raises(UserError, match="torso: found 'wide', expected one of shallow, deep, dense"):
    networks.observe(jnp.zeros((1, 2)), "wide", 4)
