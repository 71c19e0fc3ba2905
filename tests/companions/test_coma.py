"""COMA: what each critic sees, losses by hand, agents that share parameters, learning."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.common.errors import UserError
from starleague.companions import coma
from starleague.companions.system import Fixed, inputs_spec
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


@pytest.mark.parametrize("critic", coma.CRITICS)
def test_losses_by_hand(made, critic):
  unroll = made[3]
  config = coma.Config(critic=critic, discount=0.9, lambda_=0.5)
  outputs = 2 if critic == coma.COMA else 1
  random = np.random.default_rng(0)
  logits = random.normal(size=(AGENTS, T + 1, COPIES, 2)).astype(np.float32)
  values, targets = random.normal(size=(2, AGENTS, T + 1, COPIES, outputs)).astype(np.float32)
  found = coma.coma_losses(config, jnp.asarray(logits), values, targets, unroll)
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


def test_an_unknown_critic_is_refused():
  with pytest.raises(UserError, match="coma.critic: found 'qmix', expected one of coma, central"):
    coma.Config(critic="qmix")
