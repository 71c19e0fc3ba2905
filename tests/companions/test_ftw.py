"""FTW: the slow core's pace, gradients between the cores, the losses of the latents, learning."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.common.errors import UserError
from starleague.companions import ftw, impala, networks
from starleague.companions.system import Fixed, inputs_spec
from tests.companions import learning
from tests.companions.catch import make_catch

CONFIG = ftw.Config(torso="dense", size=16, lstm=8, latent=4, tau=3)
T, COPIES = 6, 2


@pytest.fixture(scope="module")
def made():
  """System, its network, parameters and a batch of unrolls."""
  task = make_catch(COPIES)
  spec = inputs_spec(task)
  system = ftw.make(CONFIG, task, spec)
  params = system.init(jax.random.key(0))
  return (system, ftw.make_network(CONFIG, task, spec), params,
          learning.played(system, task, params, T))


def seen(unroll):
  behaviour = unroll.steps.behaviour
  return ftw.FtwInputs(unroll.steps.inputs, behaviour.noise, behaviour.tau)


def weights(params):
  return {name: value for name, value in params.items() if name != "schedule"}


def test_the_slow_core_changes_every_tau_steps_of_an_episode(made):
  _, network, params, unroll = made
  _, states = networks.unroll_batch(network, weights(params), seen(unroll), unroll.initial_state)
  slow = np.asarray(states.slow.hidden)
  changed = np.abs(np.diff(slow, axis=0)).max(axis=(1, 2)) > 0
  # Episodes have four steps: the slow core ticks at 0 and 3, and at the start of the next, 4.
  np.testing.assert_array_equal(changed, [False, False, True, True, False, False])
  np.testing.assert_array_equal(states.age[:, 0], [1, 2, 3, 4, 1, 2, 3])


def test_the_recorded_tau_is_that_of_the_parameters(made):
  system, _, params, unroll = made
  assert (unroll.steps.behaviour.tau == 3.0).all()
  faster = {**params, "schedule": {"tau": jnp.float32(1.2)}}
  task = make_catch(COPIES)
  found = learning.played(system, task, faster, T)
  np.testing.assert_allclose(found.steps.behaviour.tau, 1.2, rtol=1e-6)


def test_the_learner_sees_the_policy_that_acted(made):
  system, _, params, unroll = made
  found = system.loss(params, jax.random.key(0), unroll, Fixed({}, ()))
  np.testing.assert_allclose(found.metrics["update/ratio"], 1.0, atol=1e-5)


def test_costs_weigh_the_divergences(made):
  system, network, params, unroll = made
  outputs, _ = networks.unroll_batch(
    network, weights(params), seen(unroll), unroll.initial_state)
  plain, _ = impala.actor_critic_loss(CONFIG, outputs.policy, unroll, Fixed({}, ()))
  found = system.loss(params, jax.random.key(0), unroll, Fixed({}, ()))
  expected = plain.loss + 1e-3 * outputs.kl.mean() + 1e-4 * outputs.prior_kl.mean()
  np.testing.assert_allclose(found.loss, expected, rtol=1e-5)
  tuned = system.loss(params, jax.random.key(0), unroll,
                      Fixed({"kl_cost": jnp.float32(2.0), "prior_cost": jnp.float32(0.0)}, ()))
  np.testing.assert_allclose(tuned.loss, plain.loss + 2.0 * outputs.kl.mean(), rtol=1e-5)


def test_divergences_are_those_of_the_posterior_and_of_the_prior(made):
  """Biases alone: the prior has twice the noise of the normal, the posterior thrice the prior's.

  KL(q || p) of equal means is (r^2 - 1) / 2 - ln r an entry, with r the noise of q over that of p.
  KL(p || q) would be 0.65 instead of 2.90, and 0.32 instead of 0.81.
  """
  _, network, params, unroll = made
  changed = dict(weights(params))
  for name, factor in (("prior", 2.0), ("posterior", 3.0)):
    bias = jnp.concatenate([jnp.zeros(4), jnp.full(4, jnp.log(factor))])
    changed[name] = {"w": 0.0 * changed[name]["w"], "b": bias}
  outputs, _ = networks.unroll_batch(network, changed, seen(unroll), unroll.initial_state)
  np.testing.assert_allclose(outputs.kl, 4 * (4.0 - np.log(3.0)), rtol=1e-5)
  np.testing.assert_allclose(outputs.prior_kl, 4 * (1.5 - np.log(2.0)), rtol=1e-5)


def test_a_scaled_gradient():
  value, gradient = jax.value_and_grad(lambda x: ftw.scale_gradient(x, 0.25) ** 2)(3.0)
  assert value == 9.0 and gradient == pytest.approx(0.25 * 6.0)


def test_without_hierarchy_the_prior_is_the_normal(made):
  _, _, _, unroll = made
  task = make_catch(COPIES)
  config = dataclasses.replace(CONFIG, hierarchy=False)
  network = ftw.make_network(config, task, inputs_spec(task))
  params = network.init(jax.random.key(1))
  outputs, states = networks.unroll_batch(network, params, seen(unroll), unroll.initial_state)
  assert not outputs.prior_kl.any() and not states.slow.hidden.any()


def test_tau_has_no_gradient(made):
  system, _, params, unroll = made
  gradient = jax.grad(
    lambda p: system.loss(p, jax.random.key(0), unroll, Fixed({}, ())).loss)(params)
  assert gradient["schedule"]["tau"] == 0.0
  assert gradient["slow/linear" if "slow/linear" in gradient else "prior"]["w"].any()


@pytest.mark.slow
def test_it_learns_catch(tmp_path):
  score = learning.learn(
    "ftw", tmp_path, dataclasses.replace(CONFIG, size=32, lstm=16, entropy_cost=0.02),
    copies=64, steps=64 * 16 * 80, unroll_length=16, batch_size=32, learning_rate=5e-3)
  assert score[""] > 0.8


def test_impossible_choices_are_refused():
  with pytest.raises(UserError, match="ftw.tau: found 0, expected a number in "):
    ftw.Config(tau=0)
  with pytest.raises(UserError, match="ftw.sigma: found 0.0, expected a number above 0"):
    ftw.Config(sigma=0.0)
