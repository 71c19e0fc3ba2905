"""Heads with random parameters, and a batch of sampled actions."""

import jax
import pytest

from tests.agent.heads.built_heads import SETTINGS, N, make_heads, make_inputs


@pytest.fixture(scope="session")
def built():
  return make_heads(SETTINGS)


@pytest.fixture(scope="session")
def forced(built):
  """(inputs, actions) of a batch -> teacher-forced logits."""
  params, _, teacher_force = built
  return jax.jit(lambda i, a: jax.vmap(lambda x, y: teacher_force(params, x, y))(i, a))


@pytest.fixture(scope="session")
def sampler(built):
  """(keys, inputs) of a batch -> actions, log-probs, logits."""
  params, sample, _ = built
  return jax.jit(lambda k, i: jax.vmap(lambda x, y: sample(params, x, y))(k, i))


@pytest.fixture(scope="session")
def batch(sampler):
  """Inputs of N steps and what was sampled on them."""
  inputs = make_inputs(SETTINGS, 3, N)
  return inputs, sampler(jax.random.split(jax.random.key(4), N), inputs)
