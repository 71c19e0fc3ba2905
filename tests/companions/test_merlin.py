"""MERLIN: its memory in an episode, gradients of predictor and policy, replayed noise, learning."""

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.common.errors import UserError
from starleague.companions import memory, merlin
from starleague.companions.system import Fixed, Inputs, Step, Unroll, inputs_spec
from tests.companions import learning
from tests.companions.catch import make_catch

CONFIG = merlin.Config(size=16, lstm=8, latent=3, rows=4, reads=2)
T, COPIES = 5, 2


@pytest.fixture(scope="module")
def made():
  """System, parameters and a batch of unrolls."""
  task = make_catch(COPIES)
  system = merlin.make(CONFIG, task, inputs_spec(task))
  params = system.init(jax.random.key(0))
  return system, params, learning.played(system, task, params, T)


def test_the_learner_sees_the_policy_that_acted(made):
  system, params, unroll = made
  found = system.loss(params, jax.random.key(5), unroll, Fixed({}, ()))
  np.testing.assert_allclose(found.metrics["update/ratio"], 1.0, atol=1e-5)
  assert unroll.steps.behaviour.noise.std() > 0.5


def test_an_episode_starts_with_an_empty_memory(made):
  system, params, unroll = made
  first = np.asarray(unroll.steps.inputs.first)
  assert first[4].all()  # the second episode of Catch
  full = unroll.initial_state._replace(memory=memory.Memory(
    jnp.ones((4, 6)), jnp.ones(4), jnp.zeros(4)))
  act = jax.jit(system.act)

  def state_after(state, is_first):
    inputs = jax.tree.map(lambda x: x[4, 0], unroll.steps.inputs)._replace(
      first=jnp.array(is_first))
    return act(params, jax.random.key(0), inputs, state, jnp.array(0)).state

  one = jax.tree.map(lambda x: x[0], unroll.initial_state)._replace(memory=full.memory)
  assert float((state_after(one, True).memory.usage > 0).sum()) == 1
  assert float((state_after(one, False).memory.usage > 0).sum()) == 4


def test_the_policy_gradient_does_not_reach_the_predictor(made):
  system, params, unroll = made
  config = merlin.Config(size=16, lstm=8, latent=3, rows=4, reads=2, reconstruction_cost=0.0,
                         kl_cost=0.0, return_cost=0.0)
  task = make_catch(COPIES)
  alone = merlin.make(config, task, inputs_spec(task))
  gradient = jax.grad(
    lambda p: alone.loss(p, jax.random.key(0), unroll, Fixed({}, ())).loss)(params)
  touched = {name.split("/")[0] for name, module in gradient.items()
             if any(np.abs(leaf).max() > 0 for leaf in module.values())}
  assert touched == {"policy_lstm", "policy_keys", "policy_hidden", "policy"}
  gradient = jax.grad(
    lambda p: system.loss(p, jax.random.key(0), unroll, Fixed({}, ())).loss)(params)
  for name in ("prior", "posterior", "keys", "decoder", "value"):
    assert np.abs(gradient[name]["w"]).max() > 0


def test_the_divergence_is_that_of_the_posterior_from_the_prior(made):
  """Biases alone: the posterior has thrice the noise of the prior, and equal means.

  KL(posterior || prior) is (9 - 1) / 2 - ln 3 = 2.90 an entry; the reverse would be 0.65.
  """
  system, params, unroll = made
  changed = dict(params)
  for name, factor in (("prior", 2.0), ("posterior", 3.0)):
    bias = jnp.concatenate([jnp.zeros(3), jnp.full(3, jnp.log(factor))])
    changed[name] = {"w": 0.0 * changed[name]["w"], "b": bias}
  found = system.loss(changed, jax.random.key(0), unroll, Fixed({}, ()))
  np.testing.assert_allclose(found.metrics["loss/kl"], 3 * (4.0 - np.log(3.0)), rtol=1e-5)


@pytest.mark.parametrize("bias, binary", [(0.0, 5 * np.log(2)), (10.0, 5 * np.log1p(np.exp(-10)))])
def test_a_reconstruction_sums_nats_and_half_squared_errors(bias, binary):
  """Biases alone: three equally probable actions, a reward of 2, and the numbers 1 and -1."""
  targets = merlin._Targets(jnp.ones(5), jnp.array([1.0, -1.0]), jax.nn.one_hot(1, 3),
                            jnp.array([2.0]))
  network = hk.without_apply_rng(hk.transform(
    lambda z: merlin._reconstruction(CONFIG, z, targets)))
  params = jax.tree.map(jnp.zeros_like, network.init(jax.random.key(0), jnp.ones(3)))
  params["decode_binary"]["b"] += bias
  found = network.apply(params, jnp.ones(3))
  np.testing.assert_allclose(found, np.log(3) + 0.5 * 4 + 0.5 * 2 + binary, rtol=1e-5)


@pytest.mark.parametrize("lambda_, targets, advantage", [
  (0.0, [0.5, 0.25], [0.5, -0.25]), (1.0, [0.25, 0.25], [0.25, -0.25])])
def test_lambda_mixes_the_returns_of_targets_and_advantages(lambda_, targets, advantage):
  """On-policy, without rewards: a return is the next value, or the bootstrap value 0.25."""
  column = jnp.zeros((3, 1))
  log_prob = column - np.log(3)  # of three equally probable actions
  outputs = merlin.Outputs(jnp.zeros((3, 1, 3)), jnp.array([[0.0], [0.5], [0.25]]), column, column)
  inputs = Inputs((), column.astype(int), column, column > 0)
  unroll = Unroll(Step(inputs, column.astype(int), merlin.Behaviour(log_prob, ()), column,
                       jnp.ones((3, 1))), (), jnp.zeros(1, bool))
  config = merlin.Config(discount=1.0, lambda_=lambda_)
  found = merlin.merlin_loss(config, outputs, unroll, Fixed({}, ())).metrics
  errors = np.array(targets) - [0.0, 0.5]
  np.testing.assert_allclose(found["loss/value"], 0.5 * np.square(errors).mean(), rtol=1e-5)
  np.testing.assert_allclose(found["loss/policy"], np.log(3) * np.mean(advantage), atol=1e-6)


@pytest.mark.parametrize("tuned, metric, change", [
  ({"entropy_cost": 0.51}, "entropy/action", -0.5), ({"kl_cost": 2.1}, "loss/kl", 2.0)])
def test_tuned_costs_precede_those_of_the_config(made, tuned, metric, change):
  system, params, unroll = made
  own, found = (system.loss(params, jax.random.key(0), unroll, Fixed(costs, ()))
                for costs in ({}, tuned))
  assert own.metrics[metric] > 0.01
  np.testing.assert_allclose(found.loss - own.loss, change * own.metrics[metric], rtol=1e-4)


@pytest.mark.slow
def test_it_learns_catch(tmp_path):
  score = learning.learn(
    "merlin", tmp_path, merlin.Config(size=32, lstm=16, latent=8, rows=8, entropy_cost=0.02),
    copies=32, steps=32 * 16 * 120, unroll_length=16, batch_size=32, learning_rate=5e-3)
  assert score[""] > 0.8


def test_impossible_sizes_are_refused():
  with pytest.raises(UserError, match="merlin.rows: found 0, expected a number in "):
    merlin.Config(rows=0)
