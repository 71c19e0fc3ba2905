"""Self-imitation: returns of finished episodes, losses and priorities by hand, masks, learning."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.companions import impala, self_imitation
from starleague.companions.system import Fixed, inputs_spec
from starleague.learner import terms
from tests.companions import learning
from tests.companions.catch import make_catch

T, COPIES = 6, 4
CONFIG = self_imitation.Config(size=16, discount=0.9)


@pytest.fixture(scope="module")
def made():
  """System, network, parameters and a batch of unrolls."""
  task = make_catch(COPIES)
  spec = inputs_spec(task)
  system = self_imitation.make(CONFIG, task, spec)
  params = system.init(jax.random.key(0))
  return (system, impala.make_network(CONFIG, task, spec), params,
          learning.played(system, task, params, T))


def test_returns_are_known_where_the_episode_ends_within():
  returns, finished = self_imitation.finished_returns(
    jnp.array([1.0, 2.0, 4.0, 8.0]), 0.5 * jnp.array([1.0, 0.0, 1.0, 1.0]))
  np.testing.assert_array_equal(finished, [True, True, False, False])
  np.testing.assert_array_equal(returns[:2], [1 + 0.5 * 2, 2])


def test_loss_and_priorities_by_hand(made):
  unroll = made[3]
  random = np.random.default_rng(0)
  outputs = impala.Outputs(jnp.asarray(random.normal(size=(T + 1, COPIES, 3)), jnp.float32),
                           jnp.asarray(random.normal(size=(T + 1, COPIES)), jnp.float32))
  loss, priorities = self_imitation.imitation_loss(CONFIG, outputs, unroll)
  reward, ends = np.asarray(unroll.steps.reward), np.asarray(unroll.steps.discount) == 0
  log_pi = np.asarray(jax.nn.log_softmax(outputs.logits))
  for b in range(COPIES):
    last = np.flatnonzero(ends[:T, b]).max(initial=-1)
    gains = []
    for t in range(T):
      expected = 0.0
      gain = 0.0
      if t <= last:
        end = next(k for k in range(t, T) if ends[k, b])
        value = sum(0.9 ** (k - t) * reward[k, b] for k in range(t, end + 1))
        gain = max(value - float(outputs.value[t, b]), 0.0)
        chosen = log_pi[t, b, unroll.steps.action[t, b]]
        expected = -chosen * gain + 0.01 * 0.5 * gain ** 2
      np.testing.assert_allclose(loss[t, b], expected, atol=1e-5)
      gains.append(gain)
    np.testing.assert_allclose(priorities[b], np.mean(gains), atol=1e-5)


def test_clipped_returns_are_imitated_where_the_value_learns_them(made):
  unroll = made[3]
  large = unroll._replace(steps=unroll.steps._replace(reward=10.0 * unroll.steps.reward))
  outputs = impala.Outputs(jnp.zeros((T + 1, COPIES, 3)), jnp.full((T + 1, COPIES), -0.5))
  clip = dataclasses.replace(CONFIG, clip_reward=True)
  expected = self_imitation.imitation_loss(CONFIG, outputs, unroll)  # rewards of -1 and 1
  for found, value in zip(self_imitation.imitation_loss(clip, outputs, large), expected,
                          strict=True):
    np.testing.assert_array_equal(found, value)
    assert value.max() > 0.0
  unclipped, _ = self_imitation.imitation_loss(CONFIG, outputs, large)
  assert unclipped.max() > 5 * expected[0].max()


def gradients(system, params, unroll):
  return jax.grad(lambda p: system.loss(p, jax.random.key(0), unroll, Fixed({}, ())).loss)(params)


def test_replayed_unrolls_are_imitated_and_fresh_ones_are_not(made):
  system, network, params, unroll = made
  fresh = system.loss(params, jax.random.key(0), unroll, Fixed({}, ()))
  assert fresh.metrics["loss/imitation"] == 0.0
  plain, _ = impala.actor_critic_loss(
    CONFIG, jax.vmap(network.unroll, (None, 1, 0), 1)(
      params, unroll.steps.inputs, unroll.initial_state)[0], unroll, Fixed({}, ()))
  np.testing.assert_allclose(fresh.loss, plain.loss, rtol=1e-5)
  replayed = system.loss(params, jax.random.key(0),
                         unroll._replace(replayed=jnp.ones(COPIES, bool)), Fixed({}, ()))
  logged = terms.measured(replayed.metrics)
  assert not {"loss/policy", "loss/value", "entropy/action"} & {*logged}  # means of no unroll
  np.testing.assert_allclose(replayed.loss, replayed.metrics["loss/imitation"], rtol=1e-6)
  assert replayed.loss > 0.0


@pytest.mark.parametrize("imitate", [True, False])
def test_logged_means_are_those_of_the_fresh_unrolls(made, imitate):
  _, network, params, unroll = made
  config = dataclasses.replace(CONFIG, imitate=imitate)
  task = make_catch(COPIES)
  system = self_imitation.make(config, task, inputs_spec(task))
  outputs = jax.vmap(network.unroll, (None, 1, 0), 1)(
    params, unroll.steps.inputs, unroll.initial_state)[0]
  odds = np.asarray(outputs.logits[:-1], np.float64)
  pi = np.exp(odds) / np.exp(odds).sum(-1, keepdims=True)
  entropy = -(pi * np.log(pi)).sum(-1) / np.log(3)
  alone, _ = impala.actor_critic_loss(
    CONFIG, *jax.tree.map(lambda x: x[:, :1], (outputs, unroll._replace(
      initial_state=(), replayed=unroll.replayed[None]))), Fixed({}, ()))
  mixed = system.loss(params, jax.random.key(0), unroll._replace(
    replayed=jnp.arange(COPIES) > 0), Fixed({}, ()))
  logged = terms.measured({name: float(value) for name, value in mixed.metrics.items()})
  assert logged["fresh_unrolls"] == 1 / COPIES
  assert logged["entropy/action"] == pytest.approx(entropy[:, 0].mean(), rel=1e-5)
  for name in ("loss/policy", "loss/value"):
    assert logged[name] == pytest.approx(float(alone.metrics[name]), rel=1e-5)
  # The loss keeps its weights: the fresh quarter of the batch, and the imitation of the rest.
  expected = float(alone.loss) / COPIES + logged.get("loss/imitation", 0.0)
  assert float(mixed.loss) == pytest.approx(expected, rel=1e-5)


def test_a2c_alone_ignores_the_replay(made):
  task = make_catch(COPIES)
  config = self_imitation.Config(size=16, discount=0.9, imitate=False)
  system = self_imitation.make(config, task, inputs_spec(task))
  _, _, params, unroll = made
  gradient = gradients(system, params, unroll._replace(replayed=jnp.ones(COPIES, bool)))
  assert all(not leaf.any() for leaf in jax.tree.leaves(gradient))


@pytest.mark.slow
def test_it_learns_catch_from_prioritised_replay(tmp_path):
  score = learning.learn(
    "self_imitation", tmp_path, self_imitation.Config(size=32, entropy_cost=0.02), copies=32,
    steps=32 * 8 * 100, unroll_length=16, period=8, batch_size=64, replay_share=0.75,
    replay_table="prioritised", replay_size=1000, min_replay=64, learning_rate=5e-3)
  assert score[""] > 0.8
