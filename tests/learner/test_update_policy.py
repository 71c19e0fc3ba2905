"""The update with the `mini` policy and the RL objective."""

import jax
import numpy as np
import pytest

from starleague.agent import config, policy
from starleague.data import checkpoints
from starleague.learner import objective, train_state, weights
from starleague.learner import update as update_lib
from tests.learner.random_batches import random_batch

pytestmark = pytest.mark.slow
MINI = config.mini()
T, B = 2, 8
OPTIMIZER = train_state.make_optimizer()


def random_params(agent, seed):
  """Draws parameters of the policy's shapes; compiling `init` would dominate the test's time."""
  rng = np.random.default_rng(seed)
  shapes = jax.eval_shape(agent.init, jax.random.key(0))
  return jax.tree.map(
    lambda x: (rng.normal(size=x.shape) / np.sqrt(max(1, np.prod(x.shape[:-1])))).astype(x.dtype),
    shapes)


def rl_update(devices=8):
  """Returns the update of `mini` with the whole objective on the first devices."""
  agent, costs = policy.make_policy(MINI), weights.RLWeights()

  def loss_fn(params, key, batch, teacher):
    del key
    return objective.rl_loss(agent, costs, params, teacher, batch)

  return update_lib.make_update(loss_fn, OPTIMIZER, jax.devices()[:devices])


@pytest.fixture(scope="module")
def on_eight():
  """The update on eight devices, traced and compiled once for all tests."""
  return rl_update()


def test_eight_devices_and_one_agree_on_the_policy(on_eight):
  agent = policy.make_policy(MINI)
  params, teacher = random_params(agent, 0), random_params(agent, 1)
  batch = random_batch(0, MINI, T, B)
  host = train_state.initial_state(params, OPTIMIZER, jax.random.key(0))
  found = []
  for update in (on_eight, rl_update(devices=1)):
    state, metrics = update(update.replicate(host), update.place(batch), update.replicate(teacher))
    found.append((update_lib.unreplicate(state), jax.device_get(metrics)))
  (eight, of_eight), (one, of_one) = found
  assert eight.skipped == 0 and 0.1 < of_eight["gradient_norm"] < 1e4
  change = jax.tree.map(lambda new, old: np.abs(new - old).max(), eight.params, host.params)
  assert max(jax.tree.leaves(change)) > 2e-5  # with a learning rate of 3e-5
  for name in ("loss", "gradient_norm"):
    np.testing.assert_allclose(of_eight[name], of_one[name], rtol=1e-5)
  for a, b in zip(jax.tree.leaves(eight.params), jax.tree.leaves(one.params), strict=True):
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


def test_a_resumed_run_equals_an_uninterrupted_one_bit_for_bit(on_eight, tmp_path):
  """Trains the agent with the whole objective on a fixed dataset."""
  agent = policy.make_policy(MINI)
  params, teacher = random_params(agent, 0), random_params(agent, 1)
  begin = train_state.initial_state(params, OPTIMIZER, jax.random.key(0))

  def train(update, host, steps):
    state, fixed = update.replicate(host), update.replicate(teacher)
    for step in steps:
      state, _ = update(state, update.place(random_batch(step, MINI, T, B)), fixed)
      if step == 1:
        checkpoints.Checkpoints(tmp_path, MINI).save(2, update_lib.unreplicate(state))
    return update_lib.unreplicate(state)

  uninterrupted = train(on_eight, begin, range(4))
  restored = checkpoints.Checkpoints(tmp_path, MINI).restore(begin)
  assert restored.step == 2
  resumed = train(rl_update(), restored.state, range(2, 4))  # built again, as after a restart
  assert resumed.step == 4 and resumed.skipped == 0
  for a, b in zip(jax.tree.leaves(resumed._replace(key=())),
                  jax.tree.leaves(uninterrupted._replace(key=())), strict=True):
    np.testing.assert_array_equal(a, b)
