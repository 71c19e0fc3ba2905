"""The published pseudocode's slips: each check holds for the loss here and fails for the slip.

The forms of the pseudocode (Vinyals et al. 2019, Supplementary Data) are written out, so that a
check which could not tell them apart would fail. Those of the actor and the league are held by
tests beside them: `docs/losses.md` lists all.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.learner import losses
from tests.learner import numpy_twins as twins

LOGITS = jnp.array([1., 0., -1.])
LOG_PI = jax.nn.log_softmax(LOGITS)


def descend(loss, rate=0.1):
  return LOGITS - rate * jax.grad(loss)(LOGITS)


# 1. Signs: minimised as it stands, the published loss unlearns.


def published_policy_gradient(log_prob, advantage, mask):
  return mask * advantage * log_prob


def good_actions_become_likelier(policy_gradient):
  after = descend(lambda x: policy_gradient(jax.nn.log_softmax(x)[1], jnp.float32(2.0), 1.0))
  return jax.nn.log_softmax(after)[1] > LOG_PI[1]


def published_entropy_loss(entropy, mask):
  return mask * entropy


def entropy_grows(entropy_loss):
  after = descend(lambda x: entropy_loss(losses.action_entropy(x), 1.0))
  return losses.action_entropy(after) > losses.action_entropy(LOGITS)


# 2. The student of the KL and of the entropy: stored logits, which no parameter reaches.


def published_student(loss):
  def of_behaviour(params, behaviour):
    del params
    return loss(behaviour)

  return of_behaviour


def with_target_logits(loss):
  def of_target(params, behaviour):
    del behaviour
    return loss(params)

  return of_target


def kl_to_teacher(student):
  return losses.distillation_loss(jnp.array([0., 2., 1.]), student)


def teaches_the_parameters(loss):
  return bool(jnp.any(jax.grad(loss)(LOGITS, jnp.array([.3, .1, 0.])) != 0))


# 3. The first four minutes, not those after.


def published_early_game(seconds, conditioned):
  return (conditioned & (seconds > 240)).astype(jnp.float32)


def holds_openings(early_game):
  found = early_game(jnp.array([0., 239., 240., 500.]), jnp.ones(4, bool))
  return found.tolist() == [1, 1, 0, 0]


# 4. The divergence is a sum over choices.


def published_kl(teacher, student):
  return jax.nn.softmax(teacher) * (jax.nn.log_softmax(teacher) - jax.nn.log_softmax(student))


def is_one_number_a_step(kl):
  found = kl(LOGITS, jnp.zeros(3))
  return found.shape == () and abs(float(found) - .266217) < 1e-6


# 5. Arguments that the action does not use have no part in the ratio.


def published_ratio(log_prob, behaviour, mask):
  del mask
  return jnp.exp(sum(log_prob) - sum(behaviour))


def ignores_what_is_unused(ratio):
  log_prob, behaviour = [jnp.array(-.3), jnp.array(-5.)], [jnp.array(0.), jnp.array(-1.)]
  return abs(float(ratio(log_prob, behaviour, [jnp.array(1), jnp.array(0)])) - np.exp(-.3)) < 1e-6


# 6. T rewards for T discounts: with the reward of the bootstrap step, every reward is a step late.


def published_td_returns(values, rewards, discounts):
  """rewards [T + 1] met discounts [T] at their ends."""
  return losses.td_lambda_returns(values[1:], rewards[1:], discounts)


def trimmed(values, rewards, discounts):
  return losses.td_lambda_returns(values[1:], rewards[:-1], discounts)


def earns_what_it_did(td_returns):
  values, rewards = jnp.zeros(4), jnp.array([0., 0., 1., 7.])  # won at step 2; 7 is of another game
  expected = twins.lambda_returns(np.zeros(3), [0, 0, 1], [1, 1, 0], 0.8)
  return np.allclose(td_returns(values, rewards, jnp.array([1., 1., 0.])), expected)


@pytest.mark.parametrize("check, ours, published", [
  (good_actions_become_likelier, losses.policy_gradient_loss, published_policy_gradient),
  (entropy_grows, losses.entropy_loss, published_entropy_loss),
  (teaches_the_parameters, with_target_logits(kl_to_teacher), published_student(kl_to_teacher)),
  (teaches_the_parameters, with_target_logits(losses.action_entropy),
   published_student(losses.action_entropy)),
  (holds_openings, losses.early_game, published_early_game),
  (is_one_number_a_step, losses.distillation_loss, published_kl),
  (ignores_what_is_unused, losses.joint_ratio, published_ratio),
  (earns_what_it_did, trimmed, published_td_returns),
], ids=["sign of the policy gradient", "sign of the entropy", "student of the KL",
        "student of the entropy", "four minutes", "sum over choices", "unused arguments",
        "rewards a step late"])
def test_the_slip_is_told_from_what_is_meant(check, ours, published):
  assert check(ours)
  assert not check(published)


def test_td_lambda_refuses_a_reward_too_many():
  v = jnp.zeros(3)
  with pytest.raises(AssertionError):
    losses.td_lambda_loss(v, v, jnp.zeros(4), v)
