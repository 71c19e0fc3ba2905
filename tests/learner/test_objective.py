"""The RL objective against its float64 twin, and invariants for any policy."""

import dataclasses

import jax
import numpy as np
import pytest

from starleague.agent import distributions, types, vocabulary
from starleague.agent.config import mini
from starleague.agent.vocabulary import Arguments
from starleague.learner import RLWeights, objective, rl_loss, sl_loss
from starleague.learner.weights import Factors
from tests.learner.objective_twins import (
  PARAMS,
  POLICY,
  PUBLISHED,
  TEACHER,
  WINLOSS_ALONE,
  B,
  LinearPolicy,
  T,
  assert_same,
  imitation_gradient,
  make_batch,
  means,
  one_step,
  published,
  replace_steps,
  twin_log_prob,
  twin_rl_terms,
  twin_unroll,
)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rl_twin(seed):
  batch = make_batch(seed)
  (loss, metrics), _ = published(PARAMS, batch)
  terms = twin_rl_terms(PUBLISHED, PARAMS, PARAMS, TEACHER, batch)
  for name, expected in terms.items():
    np.testing.assert_allclose(metrics[name], expected, rtol=1e-5, atol=1e-5, err_msg=name)
  np.testing.assert_allclose(loss, sum(terms.values()), rtol=1e-5)
  assert metrics["loss/total"] == loss
  for kind in ("value", "policy", "upgo"):
    expected = sum(value for name, value in terms.items() if name.startswith(f"{kind}/"))
    np.testing.assert_allclose(metrics[f"loss/{kind}"], expected, rtol=1e-5, atol=1e-5)
  by_reward = sum(metrics[f"policy/{name}"] for name in types.REWARDS)
  np.testing.assert_allclose(by_reward, metrics["loss/policy"], rtol=1e-4)
  assert all(np.shape(x) == () and np.isfinite(x) for x in metrics.values())


def test_rl_twin_with_other_lambdas_clips_and_seconds_and_a_z_of_effects_alone():
  weights = RLWeights(td_lambda=0.3, vtrace_lambda=0.6, clip_rho=1.5, clip_pg_rho=0.7,
                      function_kl_seconds=120.0)
  batch = make_batch(4)
  observation = batch.steps.observation
  none = jax.tree.map(np.zeros_like, observation.statistics)
  batch = batch._replace(steps=batch.steps._replace(observation=observation._replace(
    statistics=none._replace(effects=np.ones_like(none.effects)))))
  _, metrics = jax.jit(lambda p, batch: rl_loss(POLICY, weights, p, TEACHER, batch))(PARAMS, batch)
  terms = twin_rl_terms(weights, PARAMS, PARAMS, TEACHER, batch)
  for name, expected in terms.items():
    np.testing.assert_allclose(metrics[name], expected, rtol=1e-5, atol=1e-5, err_msg=name)
  assert terms["loss/function_kl"] > 1e-3


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rl_gradient_twin(seed):
  """Compares a directional derivative; targets, advantages, ratios and teacher are constants."""
  batch = make_batch(seed)
  rng = np.random.default_rng(seed)
  direction = jax.tree.map(lambda x: rng.normal(size=x.shape), PARAMS)

  def along(step):
    params = jax.tree.map(lambda x, d: np.float64(x) + step * d, PARAMS, direction)
    return sum(twin_rl_terms(PUBLISHED, params, PARAMS, TEACHER, batch).values())

  expected = (along(1e-5) - along(-1e-5)) / 2e-5
  _, gradient = published(PARAMS, batch)
  actual = sum(jax.tree.leaves(jax.tree.map(
    lambda g, d: (np.float64(g) * d).sum(), gradient, direction)))
  np.testing.assert_allclose(actual, expected, rtol=1e-4)


def test_parts_of_a_batch_average_to_the_whole():
  """`pmean` over devices thus gives one device's result; padding steps are uneven here."""
  batch = make_batch(3)
  batch.steps.weight[2:, 1] = 0.0
  for function in (published, imitation_gradient):
    (loss, _), gradient = function(PARAMS, batch)
    parts = [
      function(PARAMS, types.Trajectory(
        jax.tree.map(lambda x, b=b: x[:, b:b + 1], batch.steps),
        jax.tree.map(lambda x, b=b: x[b:b + 1], batch.initial_state))) for b in range(B)]
    assert_same(loss, np.mean([part[0][0] for part in parts]))
    assert_same(gradient, jax.tree.map(lambda *x: np.mean(x, 0), *(part[1] for part in parts)),
                rtol=1e-4)


def test_means_of_parts_of_a_batch_are_those_of_the_whole():
  """One trajectory has 5 learnt steps, the other 2: a mean of their means would differ."""
  batch = make_batch(3)
  batch.steps.weight[:] = 1.0
  batch.steps.weight[2:, 1] = 0.0
  for function in (published, imitation_gradient):
    found = [function(PARAMS, types.Trajectory(
      jax.tree.map(lambda x, b=b: x[:, b], batch.steps),
      jax.tree.map(lambda x, b=b: x[b], batch.initial_state)))[0][1]
      for b in (slice(0, 2), slice(0, 1), slice(1, 2))]
    whole, *parts = (x[0] if isinstance(x, tuple) else x for x in found)
    whole, averaged = means(whole), means(jax.tree.map(lambda *x: np.mean(x), *parts))
    assert {"cross_entropy/delay", "accuracy/delay"} <= whole.keys() or {
      "entropy/delay", "kl/delay", "ratio/others", "clipped_fraction/delay", "mean_value/winloss",
      "mean_reward/effects"} <= whole.keys()
    for name, value in whole.items():
      if not name.startswith("explained_variance/"):
        np.testing.assert_allclose(averaged[name], value, rtol=1e-4, atol=1e-5, err_msg=name)


def test_padding_steps_have_no_effect():
  batch = make_batch(4)
  batch.steps.weight[:] = 1.0
  batch.steps.weight[3:] = 0.0
  batch.steps.discount[2] = 0.0
  scrambled = make_batch(5)
  scrambled.steps.weight[:] = 0.0
  other = replace_steps(batch, slice(3, None), scrambled)
  for function in (published, imitation_gradient):
    assert_same(function(PARAMS, batch), function(PARAMS, other))
  (_, metrics), _ = published(PARAMS, batch)
  assert metrics["learnt_steps"] == pytest.approx(3 / T)

  scrambled.steps.weight[:] = 0.0
  (loss, metrics), gradient = published(PARAMS, scrambled)
  assert loss == 0.0 and all(np.isfinite(x) for x in metrics.values())
  assert all((g == 0.0).all() for g in jax.tree.leaves(gradient))


def test_last_step_provides_only_the_bootstrap_value():
  """Its reward is not learnt, unlike in the published pseudocode."""
  batch, scrambled = make_batch(6), make_batch(7)
  same_view = scrambled._replace(steps=scrambled.steps._replace(
    observation=batch.steps.observation))
  expected = published(PARAMS, batch)
  assert_same(published(PARAMS, replace_steps(batch, -1, same_view)), expected)

  batch.steps.discount[-2] = 1.0  # the episode continues into the last step
  (before, _), _ = published(PARAMS, batch)
  (after, _), _ = published(PARAMS, replace_steps(batch, -1, scrambled))
  assert abs(after - before) > 1e-3


def test_ratio_is_one_on_policy():
  batch = make_batch(8)
  logits, _ = twin_unroll(PARAMS, batch)
  own = Arguments(*(
    np.array([[one_step(name, label[t, b], twin_log_prob, logits[name][t, b]) for b in range(B)]
              for t in range(T + 1)], np.float32)
    for name in Arguments._fields for label in [getattr(batch.steps.action, name)]))
  (_, metrics), _ = published(
    PARAMS, batch._replace(steps=batch.steps._replace(log_prob=own)))
  shifted = Arguments(*(x - 1.0 for x in own))  # more likely now: all ratios are clipped
  (_, clipped), _ = published(
    PARAMS, batch._replace(steps=batch.steps._replace(log_prob=shifted)))
  metrics, clipped = means(metrics), means(clipped)
  for group in ("function", "delay"):
    assert metrics[f"ratio/{group}"] == pytest.approx(1.0, abs=1e-5)
    assert clipped[f"ratio/{group}"] == 1.0 and clipped[f"clipped_fraction/{group}"] == 1.0
  assert metrics["ratio/others"] == pytest.approx(1.0, abs=1e-5)


def test_ratios_ignore_unused_arguments():
  """Those of the published pseudocode include them."""
  batch = make_batch(9)
  used = vocabulary.ARGUMENT_TABLE[batch.steps.action.function]  # [T + 1, B, 7]
  assert not used.all()
  log_prob = Arguments(*(
    np.where(used[..., i], x, -30.0).astype(np.float32)
    for i, x in enumerate(batch.steps.log_prob)))
  other = batch._replace(steps=batch.steps._replace(log_prob=log_prob))
  assert_same(published(PARAMS, batch), published(PARAMS, other), rtol=1e-6)


def test_inactive_pseudo_rewards_train_only_their_baseline():
  batch = make_batch(10)

  def terms(active):
    # A new array for each call: JAX may still read the previous one.
    active_everywhere = np.full_like(batch.steps.pseudo_active, active)
    (_, metrics), _ = published(
      PARAMS, batch._replace(steps=batch.steps._replace(pseudo_active=active_everywhere)))
    return metrics

  on, off = terms(True), terms(False)
  for name in types.PSEUDO_REWARDS:
    assert off[f"policy/{name}"] == 0.0 != on[f"policy/{name}"]
    assert off[f"value/{name}"] == on[f"value/{name}"] > 0.0
  assert off["policy/winloss"] == on["policy/winloss"] != 0.0


def test_function_kl_is_early_and_conditioned():
  """Before four minutes; the published pseudocode masks the time before them."""
  batch = make_batch(11)
  batch.steps.weight[:] = 1.0

  def kl(game_loop, conditioned):
    batch.steps.observation.game_loop[:] = game_loop
    statistics = batch.steps.observation.statistics
    z = statistics._replace(
      units=np.zeros_like(statistics.units), upgrades=np.zeros_like(statistics.upgrades))
    z.upgrades[..., 3] = conditioned
    steps = batch.steps._replace(observation=batch.steps.observation._replace(statistics=z))
    (_, metrics), _ = published(PARAMS, batch._replace(steps=steps))
    return float(metrics["loss/function_kl"]), float(metrics["kl/function"])

  early, function = kl(5375, True)  # 239.96 s
  assert early == pytest.approx(0.1 * function, rel=1e-5) and early > 0.01
  assert kl(5376, True)[0] == 0.0  # 240 s
  assert kl(0, False)[0] == 0.0


class CountingPolicy(LinearPolicy):
  """Counts unrolls during tracing."""

  def __init__(self):
    self.unrolls = 0

  def unroll_batch(self, params, batch):
    self.unrolls += 1
    return super().unroll_batch(params, batch)


def test_terms_without_cost_are_not_compiled():
  batch = make_batch(12)
  policy = CountingPolicy()
  loss, metrics = jax.jit(lambda p: rl_loss(policy, WINLOSS_ALONE, p, None, batch))(PARAMS)
  assert policy.unrolls == 1  # the teacher is not unrolled
  terms = twin_rl_terms(WINLOSS_ALONE, PARAMS, PARAMS, TEACHER, batch)
  np.testing.assert_allclose(loss, sum(terms.values()), rtol=1e-5)
  assert {"value/winloss", "policy/winloss", "upgo/function"} <= metrics.keys()
  left_out = {"kl/", "build_order", "effects", "upgrades", "built_units"}
  assert not [name for name in metrics for part in left_out if part in name]

  nothing = RLWeights(policy=(0.0,) * 5, baseline=(0.0,) * 5, upgo=(0.0,) * 5, entropy=0.0,
                      teacher_kl=0.0, function_kl=0.0)
  assert rl_loss(policy, nothing, PARAMS, None, batch)[0] == 0.0


class MaskingPolicy(LinearPolicy):
  """Forbids a delay of five game loops."""

  def unroll_batch(self, params, batch):
    output = super().unroll_batch(params, batch)
    delay = output.logits.delay.at[..., 5].set(distributions.NEGATIVE)
    return output._replace(logits=output.logits._replace(delay=delay))


def test_illegal_actions_are_counted_and_have_ratio_zero():
  batch = make_batch(13)
  batch.steps.weight[:] = 1.0
  batch.steps.action.delay[:] = 7
  batch.steps.action.delay[1:3] = 5

  @jax.jit
  def gradient_of(params, batch):
    return jax.value_and_grad(
      lambda p: rl_loss(MaskingPolicy(), WINLOSS_ALONE, p, None, batch), has_aux=True)(params)

  (_, metrics), gradient = gradient_of(PARAMS, batch)
  assert metrics["illegal/delay"] == pytest.approx(2 / T)
  assert all(metrics[f"illegal/{name}"] == 0.0 for name in Arguments._fields if name != "delay")
  assert all(np.isfinite(x) for x in metrics.values())
  assert all(np.isfinite(g).all() for g in jax.tree.leaves(gradient))
  assert 0.0 < metrics["ratio/delay"] <= 3 / T  # 0 for illegal actions, at most 1 for others


def test_missing_teacher_is_rejected():
  with pytest.raises(ValueError, match="teacher_params is None"):
    rl_loss(POLICY, PUBLISHED, PARAMS, None, make_batch(0))


def test_batch_needs_two_steps_and_all_rewards():
  batch = make_batch(0)
  short = batch._replace(steps=jax.tree.map(lambda x: x[:1], batch.steps))
  with pytest.raises(ValueError, match="T at least 1"):
    sl_loss(POLICY, PARAMS, short)
  cut = batch._replace(steps=batch.steps._replace(reward=batch.steps.reward[..., :4]))
  with pytest.raises(AssertionError):
    rl_loss(POLICY, PUBLISHED, PARAMS, TEACHER, cut)


def test_values_without_the_opponent_see_their_own_side_only():
  trajectories = jax.tree.map(
    lambda x: np.ones(x.shape, x.dtype), types.trajectory_spec(mini(), 2))
  step, hidden = trajectories.steps, objective.hide_opponent(trajectories).steps
  own = {"cumulative_score", "executed"}
  for name, value in hidden.privileged._asdict().items():
    for leaf, before in zip(jax.tree.leaves(value), jax.tree.leaves(
        getattr(step.privileged, name)), strict=True):
      np.testing.assert_array_equal(leaf, before if name in own else before * 0)
      assert leaf.dtype == before.dtype
  for kept, before in zip(jax.tree.leaves(hidden._replace(privileged=())), jax.tree.leaves(
      step._replace(privileged=())), strict=True):
    assert kept is before


def test_factors_scale_costs_without_another_program():
  """Entropy three times as expensive, pseudo-rewards half as much for the policy alone."""
  batch = make_batch(14)
  scaled = dataclasses.replace(
    PUBLISHED, entropy=3 * PUBLISHED.entropy,
    policy=(PUBLISHED.policy[0], *(0.5 * cost for cost in PUBLISHED.policy[1:])))

  traces = []

  @jax.jit
  def loss(params, factors):
    traces.append(factors)
    return jax.value_and_grad(
      lambda p: rl_loss(POLICY, PUBLISHED, p, TEACHER, batch, factors)[0])(params)

  expected = [
    jax.jit(jax.value_and_grad(lambda p, costs=costs: rl_loss(
      POLICY, costs, p, TEACHER, batch)[0]))(PARAMS) for costs in (scaled, PUBLISHED)]
  for factors, wanted in zip((Factors(3.0, 0.5), Factors(1.0, 1.0)), expected, strict=True):
    found = loss(PARAMS, jax.tree.map(np.float32, factors))
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
      np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-7)
  assert len(traces) == 1
  assert abs(expected[0][0] - expected[1][0]) > 1e-3
