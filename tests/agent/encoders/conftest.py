"""The encoder of mini with random parameters."""

import jax
import pytest

from starleague.agent import encoders
from starleague.agent.encoders import entity
from tests.agent.encoders.observations import MINI, observation, transformed


@pytest.fixture(scope="session")
def encode():
  network = transformed(lambda o: (
    encoders.encode(MINI, o), entity.encode(MINI, o.entities, o.entity_count).embedded))
  params = jax.jit(network.init)(jax.random.key(0), observation())
  return jax.jit(lambda o: network.apply(params, o))
