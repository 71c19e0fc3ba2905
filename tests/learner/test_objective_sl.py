"""The supervised objective against its float64 twin; costs of both objectives."""

import jax
import numpy as np
import pytest

from starleague.agent import types, vocabulary
from starleague.agent.vocabulary import Arguments
from starleague.learner import RLWeights, SLWeights, sl_loss
from tests.learner.objective_twins import (
  PARAMS,
  POLICY,
  PUBLISHED,
  T,
  imitation,
  make_batch,
  twin_sl_loss,
  twin_unroll,
)


@pytest.mark.parametrize("seed", [0, 1])
def test_sl_twin(seed):
  batch = make_batch(seed)
  (loss, metrics), gradient = imitation(PARAMS, batch)
  np.testing.assert_allclose(loss, twin_sl_loss(PARAMS, batch), rtol=1e-5)
  assert metrics["loss/total"] == loss
  assert all(metrics[f"illegal/{name}"] == 0.0 for name in Arguments._fields)
  rng = np.random.default_rng(seed)
  direction = jax.tree.map(lambda x: rng.normal(size=x.shape), PARAMS)
  ahead, behind = (
    twin_sl_loss(jax.tree.map(lambda x, d, s=s: np.float64(x) + s * d, PARAMS, direction), batch)
    for s in (1e-5, -1e-5))
  actual = sum(jax.tree.leaves(jax.tree.map(
    lambda g, d: (np.float64(g) * d).sum(), gradient, direction)))
  np.testing.assert_allclose(actual, (ahead - behind) / 2e-5, rtol=1e-4)


def test_sl_ignores_and_counts_illegal_labels():
  batch = make_batch(2)
  batch.steps.weight[:] = 1.0
  batch.steps.action.delay[:3] = types.NUM_DELAYS  # one past the end
  (loss, metrics), gradient = imitation(PARAMS, batch)
  assert metrics["illegal/delay"] == pytest.approx(3 / T)
  assert metrics["illegal/function"] == 0.0
  without = make_batch(2)
  without.steps.weight[:] = 1.0
  (whole, clean), _ = imitation(PARAMS, without)
  delays = float(clean["cross_entropy/delay"] - metrics["cross_entropy/delay"])
  assert whole - loss == pytest.approx(delays, rel=1e-4) and delays > 0.0
  assert all(np.isfinite(g).all() for g in jax.tree.leaves(gradient))


def test_sl_accuracy():
  batch = make_batch(3)
  batch.steps.weight[:] = 1.0
  logits, _ = twin_unroll(PARAMS, batch)
  likeliest = {name: x.argmax(-1) for name, x in logits.items()}
  actions = {
    name: likeliest[name].astype(getattr(batch.steps.action, name).dtype)
    for name in ("delay", "queued", "units", "location")}
  actions["location"][::2] ^= 1  # wrong at every other step
  actions["function"] = np.full_like(
    batch.steps.action.function, vocabulary.FUNCTION_TYPES.index("raw_cmd_pt"))
  steps = batch.steps._replace(action=batch.steps.action._replace(**actions))
  (_, metrics), _ = imitation(PARAMS, batch._replace(steps=steps))
  assert metrics["accuracy/delay"] == metrics["accuracy/queued"] == 1.0
  assert metrics["accuracy/units"] == 1.0
  assert metrics["accuracy/location"] == pytest.approx(2 / 5)
  assert metrics["accuracy/target_unit"] == 0.0 == metrics["cross_entropy/target_unit"]  # unused


def test_sl_costs_multiply_their_arguments():
  batch = make_batch(4)
  batch.steps.weight[:] = 1.0
  only_delay = SLWeights(arguments=Arguments(0, 9.0, 0, 0, 0, 0, 0), l2=0.0)
  loss, metrics = jax.jit(lambda p: sl_loss(POLICY, p, batch, only_delay))(PARAMS)
  assert loss == pytest.approx(9.0 * float(metrics["cross_entropy/delay"]), rel=1e-5)
  assert "loss/l2" not in metrics


# Costs.


def test_published_weights():
  assert PUBLISHED.policy == (1.0, 4.0, 6.0, 6.0, 6.0)
  assert PUBLISHED.baseline == (10.0, 1.0, 1.0, 1.0, 1.0)
  assert PUBLISHED.upgo == (1.0, 0.0, 0.0, 0.0, 0.0)
  assert (PUBLISHED.entropy, PUBLISHED.teacher_kl, PUBLISHED.function_kl) == (1e-4, 2e-3, 1e-1)
  assert (PUBLISHED.td_lambda, PUBLISHED.vtrace_lambda) == (0.8, 1.0)
  assert (PUBLISHED.clip_rho, PUBLISHED.clip_pg_rho) == (1.0, 1.0)
  assert hash(PUBLISHED) == hash(RLWeights()) and hash(SLWeights()) is not None  # static in jit


@pytest.mark.parametrize("bad, message", [
  ({"policy": (1.0, 2.0)}, "RLWeights.policy has 2 entries"),
  ({"entropy": -1.0}, "RLWeights.entropy is -1.0"),
  ({"upgo": (1.0, 0, 0, 0, float("nan"))}, "RLWeights.upgo is"),
  ({"td_lambda": 1.5}, "RLWeights.td_lambda is 1.5"),
])
def test_impossible_rl_weights_are_rejected(bad, message):
  with pytest.raises(ValueError, match=message):
    RLWeights(**bad)


def test_impossible_sl_weights_are_rejected():
  with pytest.raises(ValueError, match="l2 is -1"):
    SLWeights(l2=-1.0)
  with pytest.raises(ValueError, match="repeat is -2"):
    SLWeights(arguments=Arguments(1, 1, 1, -2, 1, 1, 1))
