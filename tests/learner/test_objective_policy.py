"""The RL objective with the `mini` policy on random trajectories."""

import jax
import numpy as np
import pytest

from starleague.agent import distributions, make_policy, mini, types, vocabulary
from starleague.learner import RLWeights, rl_loss
from tests.learner.test_update_policy import random_params

pytestmark = pytest.mark.slow  # compiles the policy's gradient

T, B = 3, 2
CONFIG = mini()


def random_batch(seed):
  """Draws observations with values in all fields, and legal actions."""
  rng = np.random.default_rng(seed)
  spec = types.trajectory_spec(CONFIG, T)

  def fill(s):
    shape = (T + 1, B, *s.shape[1:])
    if s.dtype == np.bool_:
      return rng.random(shape) < 0.5
    if np.issubdtype(s.dtype, np.floating):
      return rng.normal(size=shape).astype(s.dtype)
    return rng.integers(0, 2, shape).astype(s.dtype)

  steps = jax.tree.map(fill, spec.steps)
  shape, entities = (T + 1, B), 5
  observation = steps.observation._replace(
    entity_count=np.full(shape, entities, np.int16),
    available_actions=np.ones((*shape, vocabulary.NUM_FUNCTIONS), bool))
  observation.entities[..., types.COLUMN["alliance"]] = types.ALLIANCE_SELF
  units = np.full((*shape, CONFIG.max_selected), CONFIG.max_entities, np.int16)
  units[..., 0] = rng.integers(0, entities, shape)
  action = types.Action(
    function=rng.choice(
      [vocabulary.FUNCTION_TYPES.index(name) for name in ("raw_no_op", "raw_autocast",
                                                          "raw_move_camera")], shape)
    .astype(np.int16),
    delay=rng.integers(1, 128, shape).astype(np.int16),
    queued=np.zeros(shape, np.uint8), repeat=np.zeros(shape, np.uint8), units=units,
    target_unit=np.zeros(shape, np.int16),
    location=rng.integers(0, CONFIG.location_size**2, shape).astype(np.int32))
  steps = steps._replace(
    observation=observation, action=action, discount=np.ones(shape, np.float32),
    weight=np.ones(shape, np.float32))
  state = jax.tree.map(
    lambda s: rng.normal(size=(B, *s.shape)).astype(s.dtype), spec.initial_state)
  return types.Trajectory(steps, state)


def test_rl_loss_of_the_policy():
  policy = make_policy(CONFIG)
  params, teacher = random_params(policy, 0), random_params(policy, 1)
  batch = random_batch(0)
  rows = [types.Trajectory(
    jax.tree.map(lambda x, b=b: x[:, b], batch.steps),
    jax.tree.map(lambda x, b=b: x[b], batch.initial_state)) for b in range(B)]

  # Weights are arguments, because constants of this size slow down compilation.
  @jax.jit
  def behaviour(params, trajectory):
    logits = policy.unroll(params, trajectory).logits
    return jax.vmap(distributions.log_prob)(logits, trajectory.steps.action)

  own = jax.tree.map(lambda *x: np.stack(x, 1), *(behaviour(params, row) for row in rows))
  batch = batch._replace(steps=batch.steps._replace(log_prob=own))

  @jax.jit
  def gradient_of(params, teacher, batch):
    return jax.value_and_grad(
      lambda p: rl_loss(policy, RLWeights(), p, teacher, batch), has_aux=True)(params)

  (loss, metrics), gradient = gradient_of(params, teacher, batch)
  assert np.isfinite(loss) and all(np.isfinite(x) for x in metrics.values())
  for group in ("function", "delay", "others"):
    assert float(metrics[f"ratio/{group}"]) == pytest.approx(1.0, abs=1e-5)
  assert metrics["kl/function"] > 0.0 and metrics["entropy/units"] > 0.0
  assert all(np.isfinite(g).all() for g in jax.tree.leaves(gradient))
  reached = [bool((g != 0).any()) for g in jax.tree.leaves(gradient)]
  assert np.mean(reached) > 0.8  # others belong to arguments and units absent from the batch

  # Each row is evaluated as a batch of that row twice, to reuse the compiled program.
  parts = [gradient_of(params, teacher, types.Trajectory(
    jax.tree.map(lambda x, b=b: x[:, [b, b]], batch.steps),
    jax.tree.map(lambda x, b=b: x[[b, b]], batch.initial_state))) for b in range(B)]
  np.testing.assert_allclose(loss, np.mean([part[0][0] for part in parts]), rtol=1e-5)
  mean = jax.tree.map(lambda *x: np.mean(x, 0), *(part[1] for part in parts))
  for actual, expected in zip(jax.tree.leaves(gradient), jax.tree.leaves(mean), strict=True):
    np.testing.assert_allclose(
      actual, expected, rtol=1e-3, atol=1e-5 * max(1.0, np.abs(expected).max()))
