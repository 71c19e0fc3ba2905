"""Errors of the published pseudocode: each check passes for the loss and fails for the error.

The pseudocode's forms (Vinyals et al. 2019, Supplementary Data) are implemented here, so that a
check that cannot distinguish them fails. Tests of actor and league cover the rest; `docs/losses.md`
lists all.
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


# 1. Signs: minimising the published loss unlearns.


def published_policy_gradient(log_prob, advantage, mask):
  return mask * advantage * log_prob


def good_actions_become_more_likely(policy_gradient):
  after = descend(lambda x: policy_gradient(jax.nn.log_softmax(x)[1], jnp.float32(2.0), 1.0))
  return jax.nn.log_softmax(after)[1] > LOG_PI[1]


def published_entropy_loss(entropy, mask):
  return mask * entropy


def entropy_grows(entropy_loss):
  after = descend(lambda x: entropy_loss(losses.action_entropy(x), 1.0))
  return losses.action_entropy(after) > losses.action_entropy(LOGITS)


# 2. The student of KL and entropy: stored logits do not depend on the parameters.


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


# 3. The first four minutes, not the time after them.


def published_early_game(seconds, conditioned):
  return (conditioned & (seconds > 240)).astype(jnp.float32)


def covers_openings(early_game):
  found = early_game(jnp.array([0., 239., 240., 500.]), jnp.ones(4, bool))
  return found.tolist() == [1, 1, 0, 0]


# 4. The KL is a sum over choices.


def published_kl(teacher, student):
  return jax.nn.softmax(teacher) * (jax.nn.log_softmax(teacher) - jax.nn.log_softmax(student))


def is_a_scalar_per_step(kl):
  found = kl(LOGITS, jnp.zeros(3))
  return found.shape == () and abs(float(found) - .266217) < 1e-6


# 5. The importance ratio excludes arguments that the action does not use.


def published_ratio(log_prob, behaviour, mask):
  del mask
  return jnp.exp(sum(log_prob) - sum(behaviour))


def ignores_unused_arguments(ratio):
  log_prob, behaviour = [jnp.array(-.3), jnp.array(-5.)], [jnp.array(0.), jnp.array(-1.)]
  return abs(float(ratio(log_prob, behaviour, [jnp.array(1), jnp.array(0)])) - np.exp(-.3)) < 1e-6


# 6. T rewards for T discounts: with the bootstrap step's reward, every reward is a step late.


def published_td_returns(values, rewards, discounts):
  """Aligns rewards [T + 1] and discounts [T] at their ends."""
  return losses.td_lambda_returns(values[1:], rewards[1:], discounts)


def trimmed(values, rewards, discounts):
  return losses.td_lambda_returns(values[1:], rewards[:-1], discounts)


def credits_the_rewarded_step(td_returns):
  # Won at step 2; 7 belongs to another game.
  values, rewards = jnp.zeros(4), jnp.array([0., 0., 1., 7.])
  expected = twins.lambda_returns(np.zeros(3), [0, 0, 1], [1, 1, 0], 0.8)
  return np.allclose(td_returns(values, rewards, jnp.array([1., 1., 0.])), expected)


@pytest.mark.parametrize("check, ours, published", [
  (good_actions_become_more_likely, losses.policy_gradient_loss, published_policy_gradient),
  (entropy_grows, losses.entropy_loss, published_entropy_loss),
  (teaches_the_parameters, with_target_logits(kl_to_teacher), published_student(kl_to_teacher)),
  (teaches_the_parameters, with_target_logits(losses.action_entropy),
   published_student(losses.action_entropy)),
  (covers_openings, losses.early_game, published_early_game),
  (is_a_scalar_per_step, losses.distillation_loss, published_kl),
  (ignores_unused_arguments, losses.joint_ratio, published_ratio),
  (credits_the_rewarded_step, trimmed, published_td_returns),
], ids=["sign of the policy gradient", "sign of the entropy", "student of the KL",
        "student of the entropy", "four minutes", "sum over choices", "unused arguments",
        "rewards a step late"])
def test_check_distinguishes_the_loss_from_the_published_error(check, ours, published):
  assert check(ours)
  assert not check(published)


def test_td_lambda_rejects_an_additional_reward():
  v = jnp.zeros(3)
  with pytest.raises(AssertionError):
    losses.td_lambda_loss(v, v, jnp.zeros(4), v)
