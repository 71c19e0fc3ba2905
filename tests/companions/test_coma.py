"""COMA: what each critic sees, losses by hand, agents that share parameters, learning."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.common.errors import UserError
from starleague.companions import coma, networks
from starleague.companions.options import RunOptions, make_optimizer
from starleague.companions.system import Fixed, Inputs, Unroll, inputs_spec
from starleague.companions.tasks.registry import make_task
from starleague.learner import flat
from tests.companions import learning
from tests.companions.catch import make_catch
from tests.companions.pair import AGENTS, make_pair

T, COPIES = 4, 3
CONFIG = coma.Config(size=8, lstm=8, discount=0.9, lambda_=0.5)


@pytest.fixture(scope="module")
def made():
  """Task, system, parameters and a batch of unrolls, played for T + 1 steps."""
  task = make_pair(COPIES)
  system = coma.make(CONFIG, task, inputs_spec(task))
  params = system.init(jax.random.key(0))
  return task, system, params, learning.played(system, task, params, T)


@pytest.mark.parametrize("critic, width", [
  (coma.COMA, AGENTS * 2 + AGENTS * 2 + AGENTS), (coma.CENTRAL, AGENTS * 2),
  (coma.INDEPENDENT, 2 + AGENTS)])
def test_a_critic_sees_what_it_should(made, critic, width):
  task, _, _, unroll = made
  seen = coma.critic_inputs(coma.Config(critic=critic), task, unroll)
  assert seen.shape == (AGENTS, T + 1, COPIES, width)


def test_the_critic_sees_the_actions_of_the_others_only(made):
  task, _, _, unroll = made
  seen = coma.critic_inputs(CONFIG, task, unroll)
  action = np.asarray(unroll.steps.action)
  for agent in range(AGENTS):
    actions = np.asarray(seen[agent])[..., 4:8].reshape(T + 1, COPIES, AGENTS, 2)
    assert not actions[:, :, agent].any()
    np.testing.assert_array_equal(actions[:, :, 1 - agent].argmax(-1), action[..., 1 - agent])
    np.testing.assert_array_equal(seen[agent, 0, 0, 8:], np.eye(AGENTS)[agent])


def test_actor_and_critic_see_the_counts_of_overcooked_at_one_scale(monkeypatch):
  task = make_task("jaxmarl-overcooked-cramped_room", copies=1)
  observation = task.reset(jax.random.split(jax.random.key(0), 1))[1].observation
  inputs = Inputs(observation[None], jnp.zeros((1, 1, AGENTS), jnp.int32), jnp.zeros((1, 1)),
                  jnp.ones((1, 1), bool))
  critic = coma.critic_inputs(
    coma.Config(critic=coma.INDEPENDENT), task, Unroll(coma._Steps(inputs, None), (), ()))
  seen = []

  def encode(x, size):
    seen.append(np.asarray(x).reshape(len(x), -1))
    return jnp.zeros((len(x), size))

  monkeypatch.setattr(networks, "_dense", encode)
  actor = coma.make_actor(CONFIG, task, inputs_spec(task))
  params = actor.init(jax.random.key(0))
  one = jax.tree.map(lambda x: x[0, :, 0], coma.of_agents(inputs, AGENTS))
  actor.unroll(params, one, actor.initial_state())
  np.testing.assert_array_equal(critic[0, 0, 0, :-AGENTS], seen[-1][0])
  assert seen[-1].max() == 1.0


def test_policies_keep_a_share_of_the_uniform_one():
  logits = jnp.log(jnp.array([[0.2, 0.5, 0.3], [1.0, 1e-30, 1e-30]]))
  found = jnp.exp(coma.explore(logits, 0.3))
  np.testing.assert_allclose(found, [[0.24, 0.45, 0.31], [0.8, 0.1, 0.1]], rtol=1e-5)
  np.testing.assert_allclose(coma.explore(logits, 0.0), jax.nn.log_softmax(logits), rtol=1e-6)


def test_the_policys_rate_is_a_factor_of_the_critics(made):
  task, _, params, unroll = made
  moved = {}
  for rate in (1.0, 0.25):
    system = coma.make(dataclasses.replace(CONFIG, policy_rate=rate), task, inputs_spec(task))
    assert jax.tree.structure(system.rates(params)) == jax.tree.structure(params)
    gradient = jax.grad(
      lambda p, system=system: system.loss(p, jax.random.key(0), unroll, Fixed({}, p)).loss)(params)
    gradient = flat.flatten(gradient)
    optimizer = make_optimizer(RunOptions("task"), flat.repeat(system.rates(params), params))
    moved[rate] = flat.unflatten(
      optimizer.update(gradient, optimizer.init(gradient))[0], params)
  for module, leaves in moved[1.0].items():
    factor = 1.0 if module.startswith("critic_") else 0.25
    for name, leaf in leaves.items():
      np.testing.assert_allclose(moved[0.25][module][name], factor * leaf, rtol=1e-6)
  assert {module.startswith("critic_") for module in moved[1.0]} == {True, False}


@pytest.mark.parametrize("critic", coma.CRITICS)
def test_losses_by_hand(made, critic):
  unroll = made[3]
  config = coma.Config(critic=critic, discount=0.9, lambda_=0.5)
  outputs = 2 if critic == coma.COMA else 1
  random = np.random.default_rng(0)
  logits = random.normal(size=(AGENTS, T + 1, COPIES, 2)).astype(np.float32)
  values, targets = random.normal(size=(2, AGENTS, T + 1, COPIES, outputs)).astype(np.float32)
  found = coma.coma_losses(config, jnp.asarray(logits), values, targets, unroll, Fixed({}, ()))
  action, reward = np.asarray(unroll.steps.action), np.asarray(unroll.steps.reward)
  discount = 0.9 * np.asarray(unroll.steps.discount)
  critic_loss, policy_loss = [], []
  for agent in range(AGENTS):
    for b in range(COPIES):
      own = [action[t, b, agent] if critic == coma.COMA else 0 for t in range(T + 1)]
      target = [targets[agent, t, b, own[t]] for t in range(T + 1)]
      value = [values[agent, t, b, own[t]] for t in range(T + 1)]
      g = target[T]
      for t in reversed(range(T)):
        g = reward[t, b] + discount[t, b] * (0.5 * target[t + 1] + 0.5 * g)
        critic_loss.append(0.5 * (g - value[t]) ** 2)
        p = np.exp(logits[agent, t, b]) / np.exp(logits[agent, t, b]).sum()
        if critic == coma.COMA:
          advantage = value[t] - (p * values[agent, t, b]).sum()
        else:
          advantage = reward[t, b] + discount[t, b] * value[t + 1] - value[t]
        policy_loss.append(-advantage * np.log(p[action[t, b, agent]]))
  np.testing.assert_allclose(found.metrics["loss/value"], np.mean(critic_loss), rtol=1e-4)
  np.testing.assert_allclose(found.metrics["loss/policy"], np.mean(policy_loss), rtol=1e-4)


def test_a_tuned_entropy_cost_precedes_the_configs(made):
  _, system, params, unroll = made
  losses = [system.loss(params, jax.random.key(0), unroll, Fixed(tuned, params))
            for tuned in ({}, {"entropy_cost": jnp.float32(0.5)})]
  np.testing.assert_allclose(losses[0].loss - losses[1].loss,
                             (0.5 - 0.01) * losses[0].metrics["entropy/action"], rtol=1e-5)


def test_recorded_log_probs_are_the_learners(made):
  task, _, params, unroll = made
  actor = coma.make_actor(CONFIG, task, inputs_spec(task))
  inputs = coma.of_agents(unroll.steps.inputs, AGENTS)
  for agent in range(AGENTS):
    for b in range(COPIES):
      one = jax.tree.map(lambda x, agent=agent, b=b: x[agent, :, b], inputs)
      state = jax.tree.map(lambda x, agent=agent, b=b: x[b, agent], unroll.initial_state)
      logits, _ = actor.unroll(params, one, state)
      own = unroll.steps.action[:, b, agent]
      log_prob = jnp.take_along_axis(jax.nn.log_softmax(logits), own[:, None], 1)[:, 0]
      np.testing.assert_allclose(
        unroll.steps.behaviour.log_prob[:, b, agent], log_prob, atol=1e-5)


def test_the_gradient_reaches_actor_and_critic(made):
  _, system, params, unroll = made
  gradient = jax.grad(
    lambda p: system.loss(p, jax.random.key(0), unroll, Fixed({}, params)).loss)(params)
  for name in ("policy", "critic_values", "critic_0"):
    assert gradient[name]["w"].any()


@pytest.mark.slow
@pytest.mark.parametrize("critic", coma.CRITICS)
def test_it_learns_to_name_the_bits(tmp_path, critic):
  score = learning.learn(
    "coma", tmp_path, coma.Config(critic=critic, size=16, lstm=8, entropy_cost=0.003),
    make_pair(32), copies=32, steps=32 * 8 * 150, unroll_length=8, batch_size=32,
    target_period=10, learning_rate=1e-2)
  assert score[""] > 0.9  # at random: 0.25


def test_a_task_of_one_agent_is_refused():
  task = make_catch(2)
  with pytest.raises(UserError, match="task 'catch': one agent acts in it, coma is several"):
    coma.make(CONFIG, task, inputs_spec(task))


@pytest.mark.parametrize("changes, message", [
  ({"critic": "qmix"}, "coma.critic: found 'qmix', expected one of coma, central"),
  ({"epsilon": 1.0}, r"coma.epsilon: found 1.0, expected a number in \[0, 1\)"),
  ({"policy_rate": 0.0}, "coma.policy_rate: found 0.0, expected a number above 0")])
def test_impossible_choices_are_refused(changes, message):
  with pytest.raises(UserError, match=message):
    coma.Config(**changes)
