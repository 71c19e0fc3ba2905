"""The offline objective: its terms against twins, the direction of its gradient, its carry."""

import dataclasses
import functools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import config, distributions, policy, vocabulary
from starleague.data import wire
from starleague.learner import RLWeights, losses, objective, offline, rl_loss, supervised
from starleague.learner.terms import ARGUMENTS, reduce_terms
from tests.learner import numpy_twins as twins
from tests.learner.objective_twins import (
  PARAMS,
  POLICY,
  TEACHER,
  B,
  LinearPolicy,
  T,
  imitation_gradient,
  make_batch,
  one_step,
  twin_log_prob,
  twin_unroll,
)
from tests.learner.random_batches import random_batch
from tests.learner.test_update_policy import random_params

NONE = (0.0,) * 5
COSTS = RLWeights(policy=(2.0, 0, 0, 0, 0), baseline=(0.5, 0, 0, 0, 0), upgo=NONE, entropy=0.0,
                  teacher_kl=0.3, function_kl=0.0)
CRITIC = offline.Options(rl=COSTS, cloning=0.0)
EMPHATIC = dataclasses.replace(CRITIC, emphatic_steps=2)
CLONING = offline.Options(rl=dataclasses.replace(COSTS, policy=NONE, teacher_kl=0.0))
FIRST = np.ones(B, bool)


@functools.partial(jax.jit, static_argnums=0, static_argnames="policy")
def loss_of(options, params, behaviour, batch, first=FIRST, emphasis=None, policy=POLICY):
  """Returns (loss, (values of the terms, metrics, emphatic traces)) of a linear policy."""
  if emphasis is None:
    emphasis = jax.tree.map(lambda x: jnp.tile(x, (B, 1)),
                            losses.emphatic_init(max(options.emphatic_steps, 1)))
  mu = policy.unroll_batch(behaviour, batch) if options.improves else None
  terms, metrics, emphasis = offline.offline_terms(
    options, policy.unroll_batch(params, batch), mu, batch, first, emphasis)
  loss, metrics = reduce_terms(terms, metrics, batch.steps.weight[:-1])
  return loss, ({name: term.values for name, term in terms.items()}, metrics, emphasis)


def twin_log_probs(params, batch):
  """Returns the log-probs of the arguments [T, B, N], 0 where unused, and the mask [T, B, N]."""
  logits, _ = twin_unroll(params, batch)
  steps = batch.steps
  used = vocabulary.ARGUMENT_TABLE[steps.action.function[:-1]] & (
    steps.weight[:-1] > 0)[..., None]
  found = np.zeros(used.shape)
  for t, b, i in zip(*np.nonzero(used), strict=True):
    name = ARGUMENTS[i]
    found[t, b, i] = one_step(
      name, getattr(steps.action, name)[t, b], twin_log_prob, logits[name][t, b])
  return found, used


@pytest.mark.parametrize("seed", [0, 1])
def test_the_actor_critic_is_the_rl_objective_with_the_clone_as_actor_and_teacher(seed):
  """One loss on two ways: log-probs of the clone's own logits, or recorded by a twin."""
  batch = make_batch(seed)
  log_prob, _ = twin_log_probs(TEACHER, batch)
  last = np.zeros((1, B))
  recorded = type(batch.steps.log_prob)(*(
    np.float32(np.concatenate([log_prob[..., i], last])) for i in range(len(ARGUMENTS))))
  with_recorded = batch._replace(steps=batch.steps._replace(log_prob=recorded))
  expected, metrics = jax.jit(functools.partial(rl_loss, POLICY, COSTS))(
    PARAMS, TEACHER, with_recorded)
  loss, (_, found, _) = loss_of(CRITIC, PARAMS, TEACHER, batch)
  np.testing.assert_allclose(loss, expected, rtol=1e-5)
  for name in ("value/winloss", "policy/function", "policy/location", "kl/function",
               "ratio/others", "explained_variance/winloss"):
    np.testing.assert_allclose(found[name], metrics[name], rtol=1e-4, atol=1e-6, err_msg=name)
  np.testing.assert_allclose(found["loss/kl"], metrics["loss/teacher_kl"], rtol=1e-5)
  of_recorded = dataclasses.replace(CRITIC, recorded_ratios=True)
  again, _ = loss_of(of_recorded, PARAMS, TEACHER, with_recorded)
  np.testing.assert_allclose(again, loss, rtol=1e-4)
  other, _ = loss_of(of_recorded, PARAMS, TEACHER, batch)  # other log-probs, other ratios
  assert abs(other - loss) > 1e-3


def test_cloning_is_the_supervised_objective_beside_the_value():
  batch = make_batch(2)
  (expected, _), gradient = imitation_gradient(PARAMS, batch)
  (_, (_, metrics, _)), found = jax.value_and_grad(
    lambda p: loss_of(CLONING, p, (), batch), has_aux=True)(PARAMS)
  penalty = 1e-5 * supervised.l2(PARAMS)
  np.testing.assert_allclose(metrics["loss/cross_entropy"], expected - penalty, rtol=1e-5)
  _, values = twin_unroll(PARAMS, batch)
  for name, head in found["heads"].items():  # the value is linear: no gradient of it is here
    np.testing.assert_allclose(
      head, gradient["heads"][name] - 1e-5 * PARAMS["heads"][name], rtol=1e-4, atol=1e-6)
  assert np.abs(found["baselines"][:, 0]).max() > 0 and not found["baselines"][:, 1:].any()
  total = 0.0
  for b in range(B):
    v, g = values[:, b, 0], np.float64(batch.steps.discount[:-1, b])
    target = twins.lambda_returns(v[1:], np.float64(batch.steps.reward[:-1, b, 0]), g, 0.8)
    total += 0.5 * 0.5 * batch.steps.weight[:-1, b] @ (target - v[:-1]) ** 2
  np.testing.assert_allclose(metrics["value/winloss"], total / (T * B), rtol=1e-5)


def test_emphatic_weights_multiply_the_policy_gradient_of_each_step():
  batch = make_batch(3)
  batch.steps.discount[:] = 1.0
  batch.steps.weight[:] = 1.0
  mu = jax.tree.map(lambda x, y: x + 0.2 * y, PARAMS, TEACHER)
  plain, weighted = (loss_of(options, PARAMS, mu, batch)[1] for options in (CRITIC, EMPHATIC))
  ratio = np.exp((twin_log_probs(PARAMS, batch)[0] - twin_log_probs(mu, batch)[0]).sum(-1))
  expected = np.stack([twins.emphatic(np.ones(T), ratio[:, b], 2) for b in range(B)], 1)
  assert expected[2:].max() > 1.1 and ratio.min() < 0.9 < 1.0 < ratio.max()
  np.testing.assert_allclose(weighted[0]["policy"], expected[..., None] * plain[0]["policy"],
                             rtol=1e-4, atol=1e-6)
  np.testing.assert_allclose(weighted[1]["emphasis/mean"], expected.mean(), rtol=1e-5)
  for name in ("kl", "value"):  # only the policy gradient is weighted
    np.testing.assert_array_equal(weighted[0][name], plain[0][name])
  # The next chunk goes on, except in slots that start a game.
  _, (_, metrics, _) = loss_of(
    EMPHATIC, PARAMS, mu, batch, np.array([False, True]), weighted[2])
  twice = np.concatenate([ratio[:, 0]] * 2)
  goes_on = twins.emphatic(np.ones(2 * T), twice, 2)[T:]
  np.testing.assert_allclose(
    metrics["emphasis/mean"], np.stack([goes_on, expected[:, 1]]).mean(), rtol=1e-5)


@pytest.mark.parametrize("result", [1.0, -1.0])
def test_actions_of_won_games_get_likelier_and_those_of_lost_games_less_likely(result):
  """From pi = mu, with a value of 0: the first order of the change of log pi."""
  batch = make_batch(4)
  batch.steps.weight[:] = 1.0
  batch.steps.discount[:-1], batch.steps.discount[-2:] = 1.0, 0.0
  batch.steps.reward[:] = 0.0
  batch.steps.reward[-2, :, 0] = result
  batch.initial_state.hidden[:] = 0.0
  even = {"heads": PARAMS["heads"], "baselines": np.zeros_like(PARAMS["baselines"])}

  def log_likelihood(params):
    return -loss_of(CLONING, params, (), batch)[1][1]["loss/cross_entropy"]

  gradient = jax.grad(lambda p: loss_of(CRITIC, p, even, batch)[0])(even)
  # reduce_terms stops gradients of metrics: the cross-entropy's is the loss's without a value.
  uphill = jax.grad(lambda p: -loss_of(
    dataclasses.replace(CLONING, rl=dataclasses.replace(COSTS, baseline=NONE, policy=NONE,
                                                        teacher_kl=0.0)), p, (), batch)[0])(even)
  for name, head in gradient["heads"].items():
    # Every advantage is the result, every ratio 1: the gradient is that of the likelihood.
    np.testing.assert_allclose(head, -2.0 * result * uphill["heads"][name], rtol=1e-3, atol=1e-6)
  stepped = {**even, "heads": jax.tree.map(lambda x, g: x - 0.05 * g, even["heads"],
                                           gradient["heads"])}
  assert result * (log_likelihood(stepped) - log_likelihood(even)) > 1e-3


def test_the_kl_holds_the_policy_at_the_clone():
  batch = make_batch(5)
  alone = dataclasses.replace(CRITIC, rl=dataclasses.replace(COSTS, policy=NONE, baseline=NONE))
  loss, _ = loss_of(alone, PARAMS, PARAMS, batch)
  assert abs(float(loss)) < 1e-6
  away, gradient = jax.value_and_grad(lambda p: loss_of(alone, p, TEACHER, batch)[0])(PARAMS)
  assert away > 0.1
  nearer = jax.tree.map(lambda x, g: x - 0.1 * g, PARAMS, gradient)
  assert loss_of(alone, nearer, TEACHER, batch)[0] < away


class Masked(LinearPolicy):
  """Masks one location."""

  def unroll_batch(self, params, batch):
    output = super().unroll_batch(params, batch)
    location = jnp.asarray(output.logits.location).at[..., ILLEGAL].set(distributions.NEGATIVE)
    return output._replace(logits=output.logits._replace(location=location))


MASKED = Masked()
ILLEGAL = 1
OTHERS = [ARGUMENTS.index(name) for name in objective.GROUPS["others"]]


def with_illegal_labels(seed):
  """Returns a batch of actions with locations, of which the first two steps' are masked."""
  batch = make_batch(seed)
  batch.steps.weight[:] = 1.0
  batch.steps.action.function[:] = vocabulary.FUNCTION_TYPES.index("raw_cmd_pt")
  batch.steps.action.location[:] = 0
  batch.steps.action.location[:2] = ILLEGAL
  return batch


@pytest.mark.parametrize("cloning", [0.0, 1.0])
def test_ratios_and_policy_gradient_ignore_illegal_labels_which_are_counted(cloning):
  batch = with_illegal_labels(6)
  options = dataclasses.replace(CRITIC, cloning=cloning)
  mu = jax.tree.map(lambda x, y: x + 0.2 * y, PARAMS, TEACHER)
  (loss, (terms, metrics, _)), gradient = jax.value_and_grad(
    lambda p: loss_of(options, p, mu, batch, policy=MASKED), has_aux=True)(PARAMS)
  difference = np.subtract(*(
    objective.learnt_inputs(batch.steps, *MASKED.unroll_batch(params, batch)[:2]).log_prob
    for params in (PARAMS, mu)))
  difference[:2, :, ARGUMENTS.index("location")] = 0.0
  ratio = np.exp(difference[..., OTHERS].sum(-1))
  np.testing.assert_allclose(metrics["ratio/others"], np.minimum(1.0, ratio).mean(), rtol=1e-4)
  location = np.asarray(terms["policy"])[..., ARGUMENTS.index("location")]
  assert not location[:2].any() and location[2:].all()
  assert np.abs(loss) < 50.0
  assert max(np.abs(x).max() for x in jax.tree.leaves(gradient)) < 50.0
  assert metrics["illegal/location"] == pytest.approx(2 / T) and metrics["illegal/delay"] == 0.0
  # The KL divergence includes these steps: the policies' locations differ there as well.
  assert metrics["used/location"] == 1.0
  assert np.asarray(terms["kl"]).min() > 0.0 and metrics["kl/location"] > 0.0


def test_with_recorded_log_probs_an_illegal_label_has_a_ratio_of_0():
  options = dataclasses.replace(CRITIC, recorded_ratios=True)
  loss, (terms, metrics, _) = loss_of(
    options, PARAMS, TEACHER, with_illegal_labels(7), policy=MASKED)
  assert not np.asarray(terms["policy"])[:2][..., OTHERS].any()
  assert np.asarray(terms["policy"])[2:].any() and np.abs(loss) < 50.0
  assert metrics["illegal/location"] == pytest.approx(2 / T)


@pytest.mark.parametrize("step", [1, T - 1])
def test_emphatic_traces_are_finite_after_a_skipped_update_and_at_extreme_ratios(step):
  """An infinite ratio of one group beside a 0 of another; a slot with a discount that is NaN."""
  state = losses.EmphaticState(np.full((B, 2), 3.0, np.float32), np.ones((B, 2), np.float32))
  discount = np.ones((T, B), np.float32)
  discount[step, 0] = np.nan  # leaves a trace, or a decay, that is NaN
  ratio = np.ones((T, 3, B), np.float32)
  ratio[0, 0], ratio[0, 1] = np.inf, 0.0
  ratio[1] = np.inf
  learnt = SimpleNamespace(discount=jnp.asarray(discount), ratio=jnp.asarray(ratio))
  weights, after = offline.emphatic(EMPHATIC, learnt, np.zeros(B, bool), state)
  # F = 1 + d d F two steps before; d is 0 at the first step. The damaged slot starts again.
  np.testing.assert_allclose(weights[:, 1], [4, 1, 1, 2, 2])
  assert [np.asarray(x)[:2].tolist() for x in after] == [[[0, 0], [2, 2]], [[1, 1], [1, 1]]]


MINI = dataclasses.replace(config.mini(), temperature=1.0)


class Unroll(LinearPolicy):
  """Fails where it is unrolled."""

  def unroll_batch(self, params, batch):
    assert params != (), "the policy's own parameters come first"
    return None


def chunks_of(options, steps=None, carry=None, first=True, size=2, length=4):
  columns = (wire.Columns(*wire.empty_batch(MINI, length, size)[:-1]) if steps is None
             else wire.Columns(*wire.seal(wire.pack_steps(steps), None)[:-1]))
  carry = offline.empty_carry(MINI, options, size) if carry is None else carry
  return offline.Chunks(columns, np.full(size, first), carry)


def test_a_method_that_improves_needs_a_clone():
  with pytest.raises(ValueError, match="pass the clone's parameters"):
    offline.offline_loss(Unroll(), MINI, CRITIC, PARAMS, jax.random.key(0), chunks_of(CRITIC), ())


@pytest.mark.parametrize("opponent_values, counts", [(True, 3), (False, 0)])
def test_the_objective_hides_the_opponent_by_option(opponent_values, counts):
  steps = random_batch(0, MINI, 4, 2).steps
  steps.privileged.opponent_unit_counts[:] = 3
  steps.privileged.cumulative_score[:] = 500
  options, seen = dataclasses.replace(CRITIC, opponent_values=opponent_values), []
  stub = SimpleNamespace(
    unroll_batch=lambda params, batch: seen.append(batch.steps.privileged))
  with pytest.raises(ValueError, match="pass the clone's parameters"):  # after the first unroll
    offline.offline_loss(
      stub, MINI, options, PARAMS, jax.random.key(0), chunks_of(options, steps), ())
  np.testing.assert_array_equal(seen[0].opponent_unit_counts, counts)
  np.testing.assert_array_equal(seen[0].cumulative_score, 500)


@pytest.mark.parametrize("values", [{"cloning": -1.0}, {"emphatic_steps": -1},
                                    {"cloning": float("nan")}])
def test_negative_options_are_refused(values):
  with pytest.raises(ValueError, match=rf"Options\.{next(iter(values))} is .*; expected at least"):
    offline.Options(**values)


@pytest.mark.slow
@pytest.mark.parametrize("carry_state", [True, False])
def test_a_clone_at_the_policys_weights_has_ratios_of_one_in_all_chunks(carry_state):
  """Both core states go from chunk to chunk, or both start each chunk from zero.

  A second player's end is not the next one's start.
  """
  agent = policy.make_policy(MINI)
  params = random_params(agent, 0)
  steps = random_batch(0, MINI, 12, 2).steps
  steps.weight[...] = steps.discount[...] = 1.0
  options = dataclasses.replace(
    EMPHATIC, emphatic_steps=4, opponent_values=False,
    imitation=supervised.Options(keep_build_order=1.0, keep_cumulative=1.0,
                                 carry_state=carry_state))
  step = jax.jit(functools.partial(offline.offline_loss, agent, MINI, options))
  carry = None
  for number in range(3):
    part = jax.tree.map(lambda x, at=4 * number: x[at:at + 5], steps)
    _, (metrics, carry) = step(
      params, jax.random.key(0), chunks_of(options, part, carry, number == 0), params)
    for group in objective.GROUPS:
      np.testing.assert_allclose(metrics[f"ratio/{group}"], 1.0, atol=1e-5)
    np.testing.assert_allclose(metrics["emphasis/mean"], 1.0 + number, atol=1e-4)
    assert abs(float(metrics["loss/kl"])) < 1e-5
    np.testing.assert_array_equal(carry.behaviour, carry.policy.state)
    assert np.abs(carry.behaviour).max() > 0
