"""V-trace, TD(lambda) and UPGO: worked vectors, twins, rlax, gradients, the published slips."""

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies

from starleague.learner import losses
from starleague.learner.losses._rlax import rlax
from tests.learner import numpy_twins as twins

LENGTH = 7  # one length, so that each function compiles once

# v, bootstrap, rewards, discounts
A = ([.1, .2, .3], .9, [0, 0, 1], [1, 1, 0])
B = ([0, .5, -.5], .25, [0, 0, 0], [1, 1, 1])
C = ([.5, -.2, .4, 0], .3, [.1, -.5, .2, 0], [.9, .9, .9, .9])


def arrays(v, bootstrap, r, g):
  """v_tm1, v_t, r_t, discount_t"""
  v = np.array([*v, bootstrap], np.float32)
  return v[:-1], v[1:], np.array(r, np.float32), np.array(g, np.float32)


def close(actual, expected, atol=2e-6):
  np.testing.assert_allclose(actual, np.array(expected, np.float64), rtol=0, atol=atol)


@strategies.composite
def trajectories(draw):
  """Values, bootstrap, rewards, discounts and ratios of a random trajectory."""
  rng = np.random.default_rng(draw(strategies.integers(0, 2**32 - 1)))
  scale = draw(strategies.sampled_from([0.1, 1.0, 3.0]))
  v = rng.normal(size=LENGTH + 1).astype(np.float32)
  r = (scale * rng.normal(size=LENGTH) * (rng.random(LENGTH) < 0.5)).astype(np.float32)
  g = draw(strategies.sampled_from([1.0, 0.9])) * (rng.random(LENGTH) < 0.8)
  rho = np.exp(scale * rng.normal(size=LENGTH)).astype(np.float32)
  return v, r, g.astype(np.float32), rho


twin_test = hypothesis.settings(max_examples=30, deadline=None)
vtrace_jit = jax.jit(losses.vtrace_advantages)
targets_jit = jax.jit(losses.vtrace_targets)
td_jit = jax.jit(losses.td_lambda_loss)
td_returns_jit = jax.jit(losses.td_lambda_returns)
upgo_jit = jax.jit(losses.upgo_returns)


# V-trace.


@pytest.mark.parametrize("case, rho, targets, advantages", [
  (A, [1, 1, 1], [1, 1, 1], [.9, .8, .7]),
  (A, [.5, 2, 1], [.55, 1, 1], [.45, .8, .7]),
  (C, [.8, 1.5, .25, 1], [.086166, -.130325, .41075, .27], [-.413834, .069675, .01075, .27]),
])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_vtrace_worked(wrap, case, rho, targets, advantages):
  inputs = *arrays(*case), np.array(rho, np.float32)
  close(wrap(losses.vtrace_advantages)(*inputs), advantages)
  close(wrap(losses.vtrace_targets)(*inputs), targets)


def test_vtrace_with_higher_ceilings():
  inputs = *arrays(*C), np.array([.8, 1.5, .25, 1], np.float32)
  close(losses.vtrace_advantages(*inputs, clip_rho=2.0, clip_pg_rho=2.0),
        [-.392234, .104513, .01075, .27])
  close(losses.vtrace_targets(*inputs, clip_rho=2.0), [.107766, -.100325, .41075, .27])


@twin_test
@hypothesis.given(trajectories())
def test_vtrace_twin(case):
  v, r, g, rho = case
  targets, advantages = twins.vtrace(v[:-1], v[-1], r, g, rho)
  close(vtrace_jit(v[:-1], v[1:], r, g, rho), advantages, 1e-5)
  close(targets_jit(v[:-1], v[1:], r, g, rho), targets, 1e-5)


@twin_test
@hypothesis.given(trajectories(), strategies.floats(0, 1), strategies.floats(0.5, 3),
                  strategies.floats(0.5, 3))
def test_vtrace_twin_with_options(case, lambda_, clip_rho, clip_pg_rho):
  v, r, g, rho = case
  _, advantages = twins.vtrace(v[:-1], v[-1], r, g, rho, clip_rho, 1.0, clip_pg_rho, lambda_)
  close(vtrace_jit(v[:-1], v[1:], r, g, rho, lambda_, clip_rho, clip_pg_rho), advantages, 1e-5)


@twin_test
@hypothesis.given(trajectories())
def test_vtrace_is_rlax(case):
  v, r, g, rho = case
  output = rlax.vtrace_td_error_and_advantage(v[:-1], v[1:], r, g, rho)
  close(vtrace_jit(v[:-1], v[1:], r, g, rho), output.pg_advantage, 1e-6)
  close(targets_jit(v[:-1], v[1:], r, g, rho), output.errors + v[:-1], 1e-6)


def test_vtrace_on_policy_is_the_return_less_the_value():
  v, r = np.array([.3, -.2, .5, .1], np.float32), np.array([1, 2, 4], np.float32)
  ones = np.ones(3, np.float32)
  close(losses.vtrace_advantages(v[:-1], v[1:], r, ones, ones),
        np.array([7.1, 6.1, 4.1]) - v[:-1])


def test_vtrace_survives_an_infinite_ratio():
  inputs = arrays(*A)
  infinite = np.full(3, np.inf, np.float32)
  close(losses.vtrace_advantages(*inputs, infinite), [.9, .8, .7])


def test_vtrace_passes_no_gradient():
  inputs = *map(jnp.asarray, arrays(*C)), jnp.array([.8, 1.5, .25, 1])
  gradients = jax.grad(lambda *x: losses.vtrace_advantages(*x).sum(), argnums=(0, 1, 2, 3, 4))(
    *inputs)
  assert all((g == 0).all() for g in gradients)


def test_shapes_are_asserted():
  v = jnp.zeros(3)
  for function, count in ((losses.vtrace_advantages, 5), (losses.upgo_returns, 4),
                          (losses.td_lambda_loss, 4), (losses.vtrace_targets, 5)):
    with pytest.raises(AssertionError):
      function(*[v] * (count - 1), jnp.zeros(4))
    with pytest.raises(AssertionError):
      function(*[jnp.zeros((3, 2))] * count)


def test_vmap_is_one_at_a_time():
  rng = np.random.default_rng(0)
  batch = [rng.normal(size=(LENGTH, 4)).astype(np.float32) for _ in range(5)]
  for function, count in ((losses.vtrace_advantages, 5), (losses.upgo_returns, 4),
                          (losses.td_lambda_loss, 4)):
    together = jax.vmap(function, in_axes=1, out_axes=1)(*batch[:count])
    for b in range(4):
      close(together[:, b], function(*(x[:, b] for x in batch[:count])), 1e-6)


# Ratios and the policy gradient.


@pytest.mark.parametrize("log_ratios, clipped", [([-.3, .1, -.5], .496585), ([.4, -.1], 1.0)])
def test_joint_ratio_worked(log_ratios, clipped):
  log_prob = [jnp.asarray(x) for x in log_ratios]
  zeros, ones = [jnp.zeros(())] * len(log_prob), [jnp.ones(())] * len(log_prob)
  ratio = losses.joint_ratio(log_prob, zeros, ones)
  close(jnp.minimum(ratio, 1.0), clipped)
  close(ratio, np.exp(np.sum(log_ratios)))


def test_joint_ratio_ignores_unused_arguments():
  """The published pseudocode adds up the log-ratios of unused arguments too."""
  log_prob = {"queued": jnp.array([-.3, -.3]), "units": jnp.array([-2., -jnp.inf])}
  behaviour = {"queued": jnp.zeros(2), "units": jnp.zeros(2)}
  mask = {"queued": jnp.array([True, True]), "units": jnp.array([True, False])}
  close(losses.joint_ratio(log_prob, behaviour, mask), np.exp([-2.3, -.3]))


def test_joint_ratio_is_one_on_policy_and_passes_no_gradient():
  log_prob, mask = [jnp.array([-1.3, -70.])], [jnp.ones(2, bool)]
  assert (losses.joint_ratio(log_prob, log_prob, mask) == 1.0).all()
  gradient = jax.grad(lambda x: losses.joint_ratio(x, [jnp.zeros(2)], mask).sum())(log_prob)
  assert (gradient[0] == 0).all()


def test_policy_gradient_descends_towards_good_actions():
  """The published pseudocode lacks the minus: minimised, it would make good actions rarer."""
  logits = jnp.array([.3, -.1, .2])

  def loss(logits, advantage):
    return losses.policy_gradient_loss(jax.nn.log_softmax(logits)[1], jnp.asarray(advantage))

  close(loss(logits, 2.0), -2.0 * twins.log_softmax(logits)[1])
  gradient = jax.grad(loss)(logits, 2.0)
  assert gradient[1] < 0 < gradient[0]  # a step against it raises the chosen logit
  close(gradient, -2.0 * (np.eye(3)[1] - np.exp(twins.log_softmax(logits))))
  close(jax.grad(loss)(logits, -2.0), -gradient)


def test_policy_gradient_mask_and_stopped_advantage():
  log_prob, advantage = jnp.array([-1., -2.]), jnp.array([.5, 3.])
  mask = jnp.array([True, False])
  close(losses.policy_gradient_loss(log_prob, advantage, mask), [.5, 0])
  by_log_prob, by_advantage = jax.grad(
    lambda *x: losses.policy_gradient_loss(*x, mask).sum(), argnums=(0, 1))(log_prob, advantage)
  close(by_log_prob, [-.5, 0])
  close(by_advantage, [0, 0])


@pytest.mark.parametrize("ceiling, policy", [
  (.5, (.75, .25)), (1.0, (.6, .4)), (100.0, (.3, .7)), (.01, (.8, .2))])
def test_ceiling_decides_which_policy_is_evaluated(ceiling, policy):
  """In a bandit V-trace is at rest at the value of the policy ~ min(ceiling mu, pi)."""
  behaviour, target = np.array([.8, .2]), np.array([.3, .7])
  rewards, discount = np.array([[1.], [0.]], np.float32), np.zeros((2, 1), np.float32)
  ratios = (target / behaviour).astype(np.float32)[:, None]
  value = np.full((2, 1), policy[0], np.float32)  # since the first action alone is rewarded

  targets = jax.vmap(lambda *x: losses.vtrace_targets(*x, clip_rho=ceiling))(
    value, np.zeros_like(value), rewards, discount, ratios)
  assert behaviour @ (targets - value)[:, 0] == pytest.approx(0.0, abs=1e-6)
  assert (targets[0] > value[0]) and (targets[1] < value[1])


# TD(lambda).


@pytest.mark.parametrize("case, returns, mean_loss", [
  (A, [.728, .86, 1], .219997), (B, [.18, .1, .25], .125817),
  (C, [-.039703, -.144032, .3944, .27], .045918)])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_td_lambda_worked(wrap, case, returns, mean_loss):
  v_tm1, v_t, r_t, discount_t = arrays(*case)
  close(wrap(losses.td_lambda_returns)(v_t, r_t, discount_t), returns)
  close(wrap(losses.td_lambda_loss)(v_tm1, v_t, r_t, discount_t).mean(), mean_loss)


@twin_test
@hypothesis.given(trajectories(), strategies.floats(0, 1))
def test_td_lambda_twin(case, lambda_):
  v, r, g, _ = case
  returns = twins.lambda_returns(v[1:], r, g, lambda_)
  close(td_returns_jit(v[1:], r, g, lambda_), returns, 1e-5)
  actual = td_jit(v[:-1], v[1:], r, g, lambda_)
  expected = 0.5 * (returns - v[:-1].astype(np.float64)) ** 2
  np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
  close(np.square(rlax.td_lambda(v[:-1], r, g, v[1:], np.float32(lambda_))) / 2, actual, 1e-5)


def test_td_lambda_gradient_pulls_values_to_returns_and_reaches_nothing_else():
  v_tm1, v_t, r_t, discount_t = map(jnp.asarray, arrays(*A))
  by_v_tm1, *others = jax.grad(
    lambda *x: losses.td_lambda_loss(*x).sum(), argnums=(0, 1, 2, 3))(v_tm1, v_t, r_t, discount_t)
  close(by_v_tm1, v_tm1 - np.array([.728, .86, 1]))
  assert all((g == 0).all() for g in others)


def test_td_lambda_wants_as_many_rewards_as_discounts():
  """The published pseudocode gives it one reward more."""
  v = jnp.zeros(3)
  with pytest.raises(AssertionError):
    losses.td_lambda_loss(v, v, jnp.zeros(4), v)


def test_explained_variance():
  returns = jnp.array([1., -1., 3., 5.])
  ones = jnp.ones(4)
  assert losses.explained_variance(returns, returns, ones) == 1.0
  assert losses.explained_variance(returns - 2.0, returns, ones) == pytest.approx(1.0)
  assert losses.explained_variance(jnp.zeros(4), returns, ones) == 0.0
  assert losses.explained_variance(-returns, returns, ones) == pytest.approx(-3.0)
  assert losses.explained_variance(returns, ones, ones) == 0.0
  weight = jnp.array([1., 1., 0., 1.])
  spoilt = returns.at[2].set(100.0)
  assert losses.explained_variance(returns, spoilt, weight) == 1.0
  assert losses.explained_variance(returns, spoilt, jnp.zeros(4)) == 0.0


# UPGO.


@pytest.mark.parametrize("case, returns, advantages", [
  (A, [1, 1, 1], [.9, .8, .7]),
  (([0, .5, -.5, .2], .1, [0] * 4, [1] * 4), [.5, .2, .2, .1], [.5, -.3, .7, -.1]),
  (([.2, .6, .1, .4], 123., [0, 0, 0, -1], [1, 1, 1, 0]), [.6, .4, .4, -1], [.4, -.2, .3, -1.4]),
  (([.3] * 3, .3, [0] * 3, [1] * 3), [.3] * 3, [0] * 3),
], ids="ABCD")
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_upgo_worked(wrap, case, returns, advantages):
  inputs = arrays(*case)
  actual = wrap(losses.upgo_returns)(*inputs)
  close(actual, returns)
  close(actual - inputs[0], advantages)


@twin_test
@hypothesis.given(trajectories())
def test_upgo_twin(case):
  v, r, g, _ = case
  close(upgo_jit(v[:-1], v[1:], r, g), twins.upgo(v[:-1], v[-1], r, g), 1e-5)


def test_upgo_follows_on_a_tie():
  """At least as good counts as upgoing: step 1 earns exactly its value and is followed."""
  v_tm1, v_t, r_t, discount_t = arrays([0., .5, .25], 4., [0, .25, 0], [1, 1, 1])
  close(losses.upgo_returns(v_tm1, v_t, r_t, discount_t), [4.25, 4.25, 4.])


def test_upgo_passes_no_gradient():
  inputs = [jnp.asarray(x) for x in arrays(*C)]
  gradients = jax.grad(lambda *x: losses.upgo_returns(*x).sum(), argnums=(0, 1, 2, 3))(*inputs)
  assert all((g == 0).all() for g in gradients)
