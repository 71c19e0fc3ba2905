"""The update with the real thing: the mini policy and the RL objective."""

import jax
import numpy as np
import pytest

from starleague.agent import config, policy
from starleague.learner import objective, weights
from starleague.learner import update as update_lib
from tests.learner.random_batches import random_batch

pytestmark = pytest.mark.slow
MINI = config.mini()
T, B = 2, 8


def random_params(agent, seed):
  """Of the policy's shapes; drawn here, as compiling `init` would take most of this test's time."""
  rng = np.random.default_rng(seed)
  shapes = jax.eval_shape(agent.init, jax.random.key(0))
  return jax.tree.map(
    lambda x: (rng.normal(size=x.shape) / np.sqrt(max(1, np.prod(x.shape[:-1])))).astype(x.dtype),
    shapes)


@pytest.fixture
def hasty_compiler():
  """Compiling is nearly all of this test's time; code that is not optimized is as equal."""
  jax.config.update("jax_disable_most_optimizations", True)
  yield
  jax.config.update("jax_disable_most_optimizations", False)


@pytest.mark.usefixtures("hasty_compiler")
def test_eight_devices_and_one_agree_on_the_policy():
  agent = policy.make_policy(MINI)
  params, teacher = random_params(agent, 0), random_params(agent, 1)
  costs = weights.RLWeights()

  def loss_fn(params, key, batch, teacher):
    del key
    return objective.rl_loss(agent, costs, params, teacher, batch)

  batch = random_batch(0, MINI, T, B)
  optimizer = update_lib.make_optimizer()
  host = update_lib.initial_state(params, optimizer, jax.random.key(0))
  found = []
  for devices in (8, 1):
    update = update_lib.make_update(loss_fn, optimizer, jax.devices()[:devices])
    state, metrics = update(update.replicate(host), update.place(batch), update.replicate(teacher))
    found.append((update_lib.unreplicate(state), jax.device_get(metrics)))
  (eight, of_eight), (one, of_one) = found
  assert eight.skipped == 0 and 0.1 < of_eight["gradient_norm"] < 1e4
  change = jax.tree.map(lambda new, old: np.abs(new - old).max(), eight.params, host.params)
  assert max(jax.tree.leaves(change)) > 2e-5  # of a rate of 3e-5
  for name in ("loss", "gradient_norm"):
    np.testing.assert_allclose(of_eight[name], of_one[name], rtol=1e-5)
  for a, b in zip(jax.tree.leaves(eight.params), jax.tree.leaves(one.params), strict=True):
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)
