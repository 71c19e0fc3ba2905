"""V-trace, importance ratios and the policy gradient: worked vectors, gradients, invariants."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.learner import losses
from tests.learner import numpy_twins as twins
from tests.learner.losses.worked import A, C, arrays, close


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


def test_vtrace_with_higher_thresholds():
  inputs = *arrays(*C), np.array([.8, 1.5, .25, 1], np.float32)
  close(losses.vtrace_advantages(*inputs, clip_rho=2.0, clip_pg_rho=2.0),
        [-.392234, .104513, .01075, .27])
  close(losses.vtrace_targets(*inputs, clip_rho=2.0), [.107766, -.100325, .41075, .27])


def test_vtrace_on_policy_is_the_return_minus_the_value():
  v, r = np.array([.3, -.2, .5, .1], np.float32), np.array([1, 2, 4], np.float32)
  ones = np.ones(3, np.float32)
  close(losses.vtrace_advantages(v[:-1], v[1:], r, ones, ones),
        np.array([7.1, 6.1, 4.1]) - v[:-1])


def test_vtrace_clips_an_infinite_ratio():
  inputs = arrays(*A)
  infinite = np.full(3, np.inf, np.float32)
  close(losses.vtrace_advantages(*inputs, infinite), [.9, .8, .7])


def test_vtrace_passes_no_gradient():
  inputs = *map(jnp.asarray, arrays(*C)), jnp.array([.8, 1.5, .25, 1])
  gradients = jax.grad(lambda *x: losses.vtrace_advantages(*x).sum(), argnums=(0, 1, 2, 3, 4))(
    *inputs)
  assert all((g == 0).all() for g in gradients)


@pytest.mark.parametrize("log_ratios, clipped", [([-.3, .1, -.5], .496585), ([.4, -.1], 1.0)])
def test_joint_ratio_worked(log_ratios, clipped):
  log_prob = [jnp.asarray(x) for x in log_ratios]
  zeros, ones = [jnp.zeros(())] * len(log_prob), [jnp.ones(())] * len(log_prob)
  ratio = losses.joint_ratio(log_prob, zeros, ones)
  close(jnp.minimum(ratio, 1.0), clipped)
  close(ratio, np.exp(np.sum(log_ratios)))


def test_joint_ratio_ignores_unused_arguments():
  """The published pseudocode includes the log-ratios of unused arguments."""
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
  """The published pseudocode lacks the minus sign: minimising it makes good actions less likely."""
  logits = jnp.array([.3, -.1, .2])

  def loss(logits, advantage):
    return losses.policy_gradient_loss(jax.nn.log_softmax(logits)[1], jnp.asarray(advantage))

  close(loss(logits, 2.0), -2.0 * twins.log_softmax(logits)[1])
  gradient = jax.grad(loss)(logits, 2.0)
  assert gradient[1] < 0 < gradient[0]  # a descent step raises the chosen logit
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
def test_clipping_threshold_determines_the_evaluated_policy(ceiling, policy):
  """In a bandit V-trace is at rest at the value of the policy ~ min(ceiling mu, pi)."""
  behaviour, target = np.array([.8, .2]), np.array([.3, .7])
  rewards, discount = np.array([[1.], [0.]], np.float32), np.zeros((2, 1), np.float32)
  ratios = (target / behaviour).astype(np.float32)[:, None]
  value = np.full((2, 1), policy[0], np.float32)  # since the first action alone is rewarded

  targets = jax.vmap(lambda *x: losses.vtrace_targets(*x, clip_rho=ceiling))(
    value, np.zeros_like(value), rewards, discount, ratios)
  assert behaviour @ (targets - value)[:, 0] == pytest.approx(0.0, abs=1e-6)
  assert (targets[0] > value[0]) and (targets[1] < value[1])
