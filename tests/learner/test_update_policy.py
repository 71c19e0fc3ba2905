"""The update with the real thing: the mini policy and the RL objective."""

import jax
import numpy as np
import pytest

from starleague.agent import config, policy, types, vocabulary
from starleague.learner import objective, weights
from starleague.learner import update as update_lib

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


def fill_observation(rng, observation):
  """Own units of any type somewhere on the map; every function is available."""
  entities = observation.entities
  count = rng.integers(5, MINI.max_entities, entities.shape[:2])
  entities[..., types.COLUMN["unit_type"]] = rng.integers(1, 255, entities.shape[:3])
  entities[..., types.COLUMN["alliance"]] = types.ALLIANCE_SELF
  for name in ("x", "y", "health_ratio"):
    entities[..., types.COLUMN[name]] = rng.integers(0, 255, entities.shape[:3])
  entities *= (np.arange(MINI.max_entities) < count[..., None])[..., None].astype(np.int16)
  observation.entity_count[...] = count
  observation.available_actions[...] = True
  observation.minimap[...] = rng.integers(0, 2, observation.minimap.shape)
  observation.player[...] = rng.integers(0, 500, observation.player.shape)
  observation.game_loop[...] = rng.integers(0, 9000, observation.game_loop.shape)


def fill_action(rng, action, observation):
  """Any function, with arguments that its masks allow."""
  for row in np.ndindex(T + 1, B):
    function = rng.integers(vocabulary.NUM_FUNCTIONS)
    takes = dict(zip(vocabulary.Arguments._fields, vocabulary.ARGUMENT_TABLE[function],
                     strict=True))
    count = int(observation.entity_count[row])
    unit_types = observation.entities[row][:count, types.COLUMN["unit_type"]]
    capable = np.flatnonzero(vocabulary.CAPABLE[function, unit_types])
    rows = rng.permutation(capable if len(capable) else np.arange(count))[:MINI.max_selected - 1]
    action.function[row], action.delay[row] = function, rng.integers(1, 128)
    action.queued[row], action.repeat[row] = takes["queued"], takes["repeat"]
    action.units[row] = MINI.max_entities
    action.units[row][:len(rows) * takes["units"]] = rows[:len(rows) * takes["units"]]
    action.target_unit[row] = rng.integers(count) * takes["target_unit"]
    action.location[row] = rng.integers(MINI.location_size ** 2) * takes["location"]


def random_batch(seed):
  """Steps that learn and steps that only fill, games that end and that do not."""
  rng = np.random.default_rng(seed)
  zeros = types.zeros(types.trajectory_spec(MINI, T))
  batch = types.Trajectory(
    steps=jax.tree.map(lambda x: np.repeat(x[:, None], B, 1), zeros.steps),
    initial_state=jax.tree.map(
      lambda x: rng.normal(size=(B, *x.shape), scale=0.1).astype(x.dtype), zeros.initial_state))
  step = batch.steps
  fill_observation(rng, step.observation)
  fill_action(rng, step.action, step.observation)
  used = vocabulary.ARGUMENT_TABLE[step.action.function]
  for i, log_prob in enumerate(step.log_prob):
    log_prob[...] = -rng.uniform(1, 5, log_prob.shape) * used[..., i]
  step.reward[...] = rng.normal(size=step.reward.shape)
  step.discount[...] = rng.random(step.discount.shape) < 0.8
  step.pseudo_active[...] = rng.random(step.pseudo_active.shape) < 0.5
  step.weight[...] = rng.random(step.weight.shape) < 0.8
  return batch


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

  batch = random_batch(0)
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
