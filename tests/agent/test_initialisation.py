"""Initial parameters equal Haiku's, and creating them does not compile the network."""

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague import agent
from starleague.agent import blocks, initialisation, linear
from tests import compiling


def _network(x):
  """Layers of each kind of initialiser, one with rows that end in a partial vector."""
  x = linear.Linear(16, name="first")(x)
  x = hk.Conv2D(8, 3, name="map")(x.reshape(2, 2, 4)).reshape(-1)
  x = blocks.LayerNorm(name="norm")(linear.Linear(37, name="partial_vector")(x))
  recurrent = hk.get_parameter("recurrent", (37, 74), x.dtype, hk.initializers.Orthogonal())
  shifted = hk.initializers.TruncatedNormal(0.5, 2.0, -1.0, 3.0)
  uniform = hk.initializers.RandomUniform(-1.0, 1.0)
  x = x @ recurrent + hk.get_parameter("shift", (74,), x.dtype, shifted)
  return x * hk.get_parameter("factor", (74,), x.dtype, uniform)


def _inputs():
  return (jnp.ones(8),)


def _assert_same(ours, theirs):
  assert jax.tree.structure(ours) == jax.tree.structure(theirs)
  for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("make_key", [
  jax.random.key, jax.random.PRNGKey, lambda seed: jax.random.key(seed, impl="rbg")],
  ids=["typed", "raw", "rbg"])
def test_parameters_equal_haikus_bit_for_bit(make_key):
  init = initialisation.make_init(_network, _inputs)
  _assert_same(init(make_key(3)), hk.transform(_network).init(make_key(3), *_inputs()))


@pytest.mark.parametrize("partitionable", [True, False])
def test_parameters_equal_haikus_with_either_generator_setting(partitionable):
  with jax.threefry_partitionable(partitionable):
    test_parameters_equal_haikus_bit_for_bit(jax.random.key)


@pytest.mark.slow
def test_minis_parameters_equal_haikus_bit_for_bit(monkeypatch):
  fast = agent.make_policy(agent.mini()).init(jax.random.key(7))
  monkeypatch.setattr(initialisation, "make_init", lambda network, make_inputs: (
    lambda key: hk.transform(network).init(key, *make_inputs())))
  _assert_same(fast, agent.make_policy(agent.mini()).init(jax.random.key(7)))


def test_init_of_mini_compiles_initialisers_only():
  """303 parameters, fewer than 15 programs: key splits, draws and orthogonal matrices."""
  policy, key = agent.make_policy(agent.mini()), jax.random.key(0)
  with compiling.events() as events:
    params = policy.init(key)
  assert len(jax.tree.leaves(params)) == 303
  assert 0 < events.count(compiling.COMPILED) < 15


def test_init_can_be_traced():
  policy = agent.make_policy(agent.mini())
  shapes = jax.eval_shape(policy.init, jax.random.key(0))
  params = policy.init(jax.random.key(0))
  assert jax.tree.map(lambda x: (x.shape, x.dtype), shapes) == jax.tree.map(
    lambda x: (x.shape, x.dtype), params)
