"""IMPALA: corrections against numpy; acting and learning agree on the ratio; Catch is learnt."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.common.errors import UserError
from starleague.companions import impala, networks
from starleague.companions.system import Fixed, Inputs, Step, Unroll, inputs_spec
from tests.companions import learning
from tests.companions.catch import make_catch

# Three steps and the bootstrap step of two copies; an episode of the first ends at its second.
ACTION = np.array([[0, 1], [1, 1], [0, 0], [1, 0]])
REWARD = np.array([[1.0, -0.5], [3.0, 0.25], [-2.0, 0.5], [9.0, 9.0]])
DISCOUNT = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
# Log-odds of the actions: pi(1) = 1 / (1 + exp(-x)).
ODDS = np.array([[0.0, 1.0], [-1.0, 0.5], [2.0, -0.5], [0.0, 0.0]])
VALUE = np.array([[0.5, -1.0], [0.25, 2.0], [-0.75, 1.0], [1.5, -0.25]])
MU = np.array([[0.8, 0.5], [0.1, 0.9], [0.5, 0.25], [0.5, 0.5]])  # of the actions
GAMMA, ENTROPY, BASELINE = 0.9, 0.02, 0.3


def config(correction, **changes):
  return impala.Config(correction=correction, discount=GAMMA, entropy_cost=ENTROPY,
                       baseline_cost=BASELINE, **changes)


def unroll(mu):
  inputs = Inputs((), ACTION, REWARD, DISCOUNT == 0)
  return Unroll(Step(inputs, jnp.array(ACTION), impala.Behaviour(jnp.log(jnp.array(mu))),
                     jnp.array(REWARD), jnp.array(DISCOUNT)), (), jnp.zeros(2, bool))


def outputs(odds=ODDS):
  return impala.Outputs(jnp.stack([jnp.zeros_like(jnp.array(odds)), jnp.array(odds)], -1),
                        jnp.array(VALUE))


def probability(odds):
  """pi(a) of the actions, and the entropy over log 2, [T, B]."""
  one = 1 / (1 + np.exp(-odds[:3]))
  entropy = -(one * np.log(one) + (1 - one) * np.log(1 - one)) / np.log(2)
  return np.where(ACTION[:3] == 1, one, 1 - one), entropy


def expected(correction, odds, mu, clip_reward=True):
  """Losses of policy and value, and normalised entropy, by the sums of the paper's section 4."""
  pi, entropy = probability(odds)
  ratio = pi / mu[:3]
  rho = np.minimum(1.0, ratio) if correction == "vtrace" else np.ones_like(ratio)
  reward = np.clip(REWARD, -1, 1) if clip_reward else REWARD
  gamma = GAMMA * DISCOUNT
  delta = rho * (reward[:3] + gamma[:3] * VALUE[1:] - VALUE[:3])
  target = VALUE.copy()
  for s in range(3):
    for t in range(s, 3):  # c is rho: both are clipped at 1
      target[s] += np.prod(gamma[s:t] * rho[s:t], axis=0) * delta[t]
  advantage = reward[:3] + gamma[:3] * target[1:] - VALUE[:3]
  if correction == "vtrace":
    advantage = advantage * rho
  if correction == "one_step":
    advantage = advantage * np.minimum(1.0, ratio)
  log_prob = np.log(pi + (1e-6 if correction == "epsilon" else 0.0))
  return (-(advantage * log_prob).mean(), 0.5 * ((target[:3] - VALUE[:3]) ** 2).mean(),
          entropy.mean(), ratio.mean())


@pytest.mark.parametrize("clip_reward", [True, False])
@pytest.mark.parametrize("correction", impala.CORRECTIONS)
def test_losses_equal_the_papers_sums(correction, clip_reward):
  chosen = config(correction, clip_reward=clip_reward)
  found, _ = impala.actor_critic_loss(chosen, outputs(), unroll(MU), Fixed({}, ()))
  policy, value, entropy, ratio = expected(correction, ODDS, MU, clip_reward)
  assert found.metrics["loss/policy"] == pytest.approx(policy, rel=1e-5)
  assert found.metrics["loss/value"] == pytest.approx(value, rel=1e-5)
  assert found.metrics["entropy/action"] == pytest.approx(entropy, rel=1e-5)
  assert found.metrics["update/ratio"] == pytest.approx(ratio, rel=1e-5)
  assert found.loss == pytest.approx(policy + BASELINE * value - ENTROPY * entropy, rel=1e-5)
  np.testing.assert_array_equal(found.priorities, [1, 1])


def test_a_target_by_hand():
  """The first copy: the episode ends at the second step, whose ratio is 0.7311 / 0.1, clipped."""
  pi, _ = probability(ODDS)
  rho = pi[0, 0] / MU[0, 0]
  assert (rho, ACTION[1, 0]) == (pytest.approx(0.625), 1)
  rho_1 = min(1.0, 1 / (1 + np.exp(1.0)) / 0.1)
  second = 0.25 + rho_1 * (1.0 - 0.25)
  first = 0.5 + rho * (1.0 + 0.9 * 0.25 - 0.5) + 0.9 * rho * (second - 0.25)
  _, targets = impala.actor_critic_loss(
    config("vtrace"), outputs(), unroll(MU), Fixed({}, ()))
  np.testing.assert_allclose(targets[:2, 0], [first, second], rtol=1e-6)


def test_on_policy_all_corrections_agree():
  mu = np.concatenate([probability(ODDS)[0], MU[3:]])
  found = {correction: impala.actor_critic_loss(
    config(correction), outputs(), unroll(mu), Fixed({}, ()))[0].metrics
    for correction in impala.CORRECTIONS}
  for metrics in found.values():
    assert metrics["update/ratio"] == pytest.approx(1.0, abs=1e-6)
    assert metrics["loss/value"] == pytest.approx(float(found["none"]["loss/value"]), rel=1e-6)
  policy = {correction: float(metrics["loss/policy"]) for correction, metrics in found.items()}
  assert policy["vtrace"] == pytest.approx(policy["none"], rel=1e-6)
  assert policy["one_step"] == pytest.approx(policy["none"], rel=1e-6)
  # log(pi + epsilon) is log(pi) + epsilon / pi, to first order.
  assert policy["epsilon"] == pytest.approx(policy["none"], rel=1e-5)


def test_epsilon_bounds_the_gradient_of_improbable_actions():
  """The gradient of log(pi + epsilon) vanishes with pi; that of log(pi) does not."""
  def gradient(correction):
    odds = jnp.array(ODDS).at[0, 0].set(25.0)  # pi of action 0: 1.4e-11
    chosen = dataclasses.replace(config(correction), entropy_cost=0.0)
    return jax.grad(lambda odds: impala.actor_critic_loss(
      chosen, outputs(odds), unroll(MU), Fixed({}, ()))[0].loss)(odds)[0, 0]

  assert abs(gradient("none")) > 0.1
  assert abs(gradient("epsilon")) < 1e-4 * abs(gradient("none"))


def test_a_hyperparameter_precedes_the_entropy_cost():
  totals = [float(impala.actor_critic_loss(
    config("vtrace"), outputs(), unroll(MU), Fixed(hyperparameters, ()))[0].loss)
    for hyperparameters in ({}, {"entropy_cost": jnp.array(1.02)})]
  assert totals[0] - totals[1] == pytest.approx(probability(ODDS)[1].mean(), rel=1e-4)


@pytest.mark.parametrize("lstm", [0, 12])
def test_the_learner_finds_the_ratio_that_acting_recorded(lstm):
  """Unrolls of 10 steps cross two ends of episodes: the LSTM starts again at the same places."""
  task = make_catch(5)
  chosen = impala.Config(torso=networks.DENSE, size=16, lstm=lstm)
  system = impala.make(chosen, task, inputs_spec(task))
  params = jax.tree.map(lambda x: 3.0 * x, system.init(jax.random.key(0)))  # a decided policy
  batch = learning.played(system, task, params, 10, iterations=31)
  assert np.asarray(batch.steps.inputs.first)[1:-1].sum() >= 2 * task.copies
  network = impala.make_network(chosen, task, inputs_spec(task))
  found, _ = networks.unroll_batch(network, params, batch.steps.inputs, batch.initial_state)
  log_prob = jnp.take_along_axis(
    jax.nn.log_softmax(found.logits), batch.steps.action[..., None], -1)[..., 0]
  ratio = np.exp(log_prob - batch.steps.behaviour.log_prob)
  np.testing.assert_allclose(ratio, 1.0, atol=1e-5)
  assert np.ptp(log_prob) > 0.3
  losses = system.loss(params, jax.random.key(0), batch, Fixed({}, ()))
  assert losses.metrics["update/ratio"] == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("torso, convolutions", [(networks.SHALLOW, 2), (networks.DEEP, 15)])
def test_networks_have_the_papers_convolutions(torso, convolutions):
  task = make_catch(1)
  system = impala.make(impala.Config(torso=torso, size=8), task, inputs_spec(task))
  kernels = [leaf for leaf in jax.tree.leaves(system.init(jax.random.key(0))) if leaf.ndim == 4]
  assert len(kernels) == convolutions


def test_an_unknown_correction_is_named():
  with pytest.raises(UserError, match="impala.correction: found 'retrace', expected one of vtrace"):
    impala.Config(correction="retrace")


def test_it_learns_to_catch(tmp_path):
  found = learning.learn(
    "impala", tmp_path, impala.Config(torso=networks.DENSE, size=32, entropy_cost=0.02),
    steps=64 * 16 * 40, copies=64, unroll_length=16, batch_size=32, learning_rate=5e-3)
  assert found[""] > 0.8
