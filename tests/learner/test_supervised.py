"""The supervised objective against its float64 twin; z dropout; costs of both objectives."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from starleague.agent import config, parameters, policy, types, vocabulary
from starleague.agent.vocabulary import Arguments
from starleague.data import wire
from starleague.learner import RLWeights, SLWeights, sl_loss, supervised, terms
from tests.learner.objective_twins import (
  PARAMS,
  POLICY,
  PUBLISHED,
  T,
  imitation_gradient,
  make_batch,
  means,
  twin_sl_loss,
  twin_unroll,
)

MINI = config.mini()


@pytest.mark.parametrize("seed", [0, 1])
def test_sl_twin(seed):
  batch = make_batch(seed)
  (loss, (metrics, _)), gradient = imitation_gradient(PARAMS, batch)
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
  (loss, (metrics, _)), gradient = imitation_gradient(PARAMS, batch)
  assert metrics["illegal/delay"] == pytest.approx(3 / T)
  assert metrics["illegal/function"] == 0.0
  without = make_batch(2)
  without.steps.weight[:] = 1.0
  (whole, (clean, _)), _ = imitation_gradient(PARAMS, without)
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
  (_, (metrics, _)), _ = imitation_gradient(PARAMS, batch._replace(steps=steps))
  assert metrics["accuracy/target_unit"] == 0.0 == metrics["cross_entropy/target_unit"]  # unused
  metrics = means(metrics)
  assert metrics["accuracy/delay"] == metrics["accuracy/queued"] == 1.0
  assert metrics["accuracy/units"] == 1.0
  assert metrics["accuracy/location"] == pytest.approx(2 / 5)
  assert metrics["used/target_unit"] == 0.0 and metrics["used/location"] == 1.0


def test_means_of_unused_arguments_are_left_out():
  used = np.array([[[1, 1, 0, 0, 1, 0, 0]], [[1, 0, 0, 0, 0, 0, 0]]], bool)
  metrics = terms.over_used("kl", jnp.ones((2, 1, 7)), jnp.asarray(used))
  assert [float(metrics[f"used/{name}"]) for name in Arguments._fields] == [1, .5, 0, 0, .5, 0, 0]
  found = terms.measured({**metrics, "policy/queued": 0.0})
  assert {name for name in found if not name.startswith("used/")} == {
    "kl/function", "kl/delay", "kl/units", "policy/queued"}


def test_sl_costs_multiply_their_arguments():
  batch = make_batch(4)
  batch.steps.weight[:] = 1.0
  only_delay = SLWeights(arguments=Arguments(0, 9.0, 0, 0, 0, 0, 0), l2=0.0)
  loss, (metrics, _) = jax.jit(lambda p: sl_loss(POLICY, p, batch, only_delay))(PARAMS)
  assert loss == pytest.approx(9.0 * float(metrics["cross_entropy/delay"]), rel=1e-5)
  assert "loss/l2" not in metrics


# Parameters that imitation does not train.


def test_l2_is_on_weight_matrices_of_the_policy_alone():
  """Its gradient is the weight, or exactly 0: for values, norms and biases."""
  shapes = jax.eval_shape(policy.make_policy(MINI).init, jax.random.key(0))
  rng = np.random.default_rng(0)
  params = jax.tree.map(lambda x: rng.normal(size=x.shape).astype(x.dtype), shapes)
  gradient = jax.jit(jax.grad(supervised.l2))(params)
  for (path, x), g in zip(jax.tree_util.tree_leaves_with_path(params), jax.tree.leaves(gradient),
                          strict=True):
    module, name = path[0].key, path[1].key
    trained = not module.startswith("baselines/") and x.ndim > 1
    np.testing.assert_array_equal(g, x if trained else np.zeros_like(x), f"{module} {name}")
  assert jnp.isclose(jax.jit(supervised.l2)(params), sum(
    0.5 * np.square(x).sum() for x, counts in zip(
      jax.tree.leaves(params), jax.tree.leaves(parameters.imitated_weight_mask(params)),
      strict=True) if counts), rtol=1e-5)


def test_300_updates_of_adam_leave_the_value_functions_unchanged():
  batch = make_batch(0)
  optimizer = optax.adam(1e-3)

  @jax.jit
  def update(state, _):
    params, opt_state = state
    gradient, _ = jax.grad(lambda p: sl_loss(POLICY, p, batch), has_aux=True)(params)
    updates, opt_state = optimizer.update(gradient, opt_state)
    return (optax.apply_updates(params, updates), opt_state), None

  (params, _), _ = jax.lax.scan(update, (PARAMS, optimizer.init(PARAMS)), None, 300)
  np.testing.assert_array_equal(params["baselines"], PARAMS["baselines"])
  moved = jax.tree.map(lambda x, y: float(np.abs(x - y).max()), params, PARAMS)["heads"]
  assert min(moved.values()) > 0.01


# Chunks: z dropout and the carry.

SLOTS, LENGTH = 8, 3


class Probe:
  """A policy with constant logits, whose state counts steps and shows z."""

  def unroll_batch(self, params, batch):
    z = batch.steps.observation.statistics
    length, size = batch.steps.weight.shape
    logits = Arguments(*(
      jnp.zeros((length, size, n)) for n in (vocabulary.NUM_FUNCTIONS, 128, 2, 3)),
      jnp.zeros((length, size, MINI.max_selected, MINI.max_entities + 1)),
      jnp.zeros((length, size, MINI.max_entities)), jnp.zeros((length, size, 32 * 32)))
    shown = jnp.stack([z.build_order[0].any(-1), z.build_order_xy[0].any((-1, -2)),
                       z.units[0].any(-1), z.effects[0].any(-1), z.upgrades[0].any(-1)], -1)
    hidden = batch.initial_state.hidden + (length - 1)
    hidden = hidden.at[:, 0, :5].set(shown)
    return Unrolled(logits, jnp.zeros((length, size, 5)),
                    types.CoreState(hidden, batch.initial_state.cell))


class Unrolled(NamedTuple):
  logits: Arguments
  baselines: jax.Array
  state: types.CoreState


def make_chunks(first, carry):
  zeros = types.zeros(types.trajectory_spec(MINI, LENGTH)).steps
  steps = jax.tree.map(lambda x: np.repeat(x[:, None], SLOTS, 1), zeros)
  for z in steps.observation.statistics:
    z[...] = 1
  steps.weight[...] = 1
  columns = wire.Columns(*wire.seal(wire.pack_steps(steps), None)[:-1])
  return supervised.Chunks(columns, np.asarray(first), carry)


def no_carry():
  size = wire.packed_spec(MINI, 1).state.shape[0]
  return supervised.Carry(np.zeros((SLOTS, size), np.float32), np.zeros((SLOTS, 2), bool))


@pytest.fixture(scope="module")
def step():
  def run(options):
    return jax.jit(lambda key, chunks: supervised.imitation_loss(
      Probe(), MINI, options, {}, key, chunks)[1][1])

  return run(supervised.Options()), run(supervised.Options(carry_state=False))


def test_the_state_is_carried_along_games_and_starts_at_zero(step):
  first = np.arange(SLOTS) < 3
  carry = no_carry()
  carry.state[:] = 7.0
  hidden = wire.unpack_state(step[0](jax.random.key(0), make_chunks(first, carry)).state, MINI)
  np.testing.assert_array_equal(hidden.hidden[:, 0, 5:], np.where(
    first, LENGTH, LENGTH + 7)[:, None] * np.ones(MINI.core_size - 5))
  hidden = wire.unpack_state(step[1](jax.random.key(0), make_chunks(first, carry)).state, MINI)
  np.testing.assert_array_equal(hidden.hidden[:, 0, 5:], LENGTH)


def test_a_state_that_is_not_finite_is_carried_as_zero(step):
  """Checkpoints hold the carry, and none that is not finite."""
  carry = no_carry()
  carry.state[4, -1] = np.nan
  state = step[0](jax.random.key(0), make_chunks(np.zeros(SLOTS, bool), carry)).state
  assert np.asarray(state).any(axis=1).tolist() == [i != 4 for i in range(SLOTS)]
  assert np.isfinite(state).all()


def test_a_game_shows_the_same_parts_of_z_in_all_its_chunks(step):
  carry = no_carry()
  draws = []
  for number in range(12):
    first = np.full(SLOTS, number % 4 == 0)
    carry = step[0](jax.random.key(number), make_chunks(first, carry))
    kept, state = np.asarray(carry.kept), wire.unpack_state(np.asarray(carry.state), MINI)
    shown = state.hidden[:, 0, :5]
    np.testing.assert_array_equal(shown[:, :2], np.repeat(kept[:, :1], 2, 1))  # types and places
    np.testing.assert_array_equal(shown[:, 2:], np.repeat(kept[:, 1:], 3, 1))
    draws.append(kept)
  for number in range(1, 12):
    same = (draws[number] == draws[number - 1]).all()
    assert same == (number % 4 != 0)


def test_z_dropout_has_its_frequencies():
  count = 40_000
  carry = supervised.Carry(np.zeros((count, 0)), np.zeros((count, 2), bool))
  kept = supervised.draw_kept(
    supervised.Options(), jax.random.key(3), np.ones(count, bool), carry.kept)
  order, cumulative = np.asarray(kept).T
  deviation = 0.5 / np.sqrt(count)  # at most
  for found, expected in ((order, 0.8), (cumulative, 0.5), (order & cumulative, 0.4),
                          (~order & ~cumulative, 0.1)):
    assert abs(found.mean() - expected) < 4 * deviation


def test_figures_add_up_over_batches():
  one = supervised.Totals(np.float32(4), *(np.zeros(7, np.float32) for _ in range(4)))
  one.used[:2], one.cross_entropy[:2], one.correct[:2] = (4, 2), (8.0, 1.0), (2, 1)
  two = supervised.Totals(np.float32(12), *(np.zeros(7, np.float32) for _ in range(4)))
  two.used[:2], two.cross_entropy[:2], two.illegal[1] = (12, 6), (24.0, 3.0), 2
  costs = SLWeights(arguments=Arguments(1.0, 2.0, 1, 1, 1, 1, 1))
  found = supervised.figures(jax.tree.map(np.add, one, two), costs)
  assert found == {
    "loss": (32.0 + 2 * 4.0) / 16, "cross_entropy/function": 2.0, "accuracy/function": 0.125,
    "illegal/function": 0.0, "cross_entropy/delay": 0.5, "accuracy/delay": 0.125,
    "illegal/delay": 0.25}


@pytest.mark.parametrize("bad", [-0.1, 1.5, float("nan")])
def test_impossible_options_are_rejected(bad):
  with pytest.raises(ValueError, match="keep_cumulative is"):
    supervised.Options(keep_cumulative=bad)


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
