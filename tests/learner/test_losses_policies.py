"""Entropy, distillation, supervised learning, self-imitation and COMA: worked values, gradients."""

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies

from starleague.learner import losses
from tests.learner import numpy_twins as twins

ILLEGAL = -1e9


def close(actual, expected, atol=2e-6):
  np.testing.assert_allclose(actual, np.array(expected, np.float64), rtol=0, atol=atol)


@strategies.composite
def two_logits(draw):
  rng = np.random.default_rng(draw(strategies.integers(0, 2**32 - 1)))
  scale = draw(strategies.sampled_from([0.1, 1.0, 3.0]))
  return (scale * rng.normal(size=(2, 3, 6))).astype(np.float32)


twin_test = hypothesis.settings(max_examples=30, deadline=None)


# Entropy.


@pytest.mark.parametrize("logits, expected", [
  ([2., 2., 2., 2.], 1.0), ([1., 0., -1.], .757679), ([0., 0.], 1.0), ([7.], 0.0)])
def test_entropy_worked(logits, expected):
  close(losses.action_entropy(jnp.array(logits)), expected)


def test_entropy_of_a_nearly_deterministic_policy():
  # H = .000499 nats, divided by log 2
  close(losses.action_entropy(jnp.array([10., 0.])), .000720, 1e-6)


def test_entropy_ignores_illegal_choices():
  close(losses.action_entropy(jnp.array([1., 0., -1., 50.]), jnp.array([1, 1, 1, 0], bool)),
        .757679)
  close(losses.action_entropy(jnp.array([1., 0., -1., ILLEGAL])), .757679)
  none = jnp.zeros(4, bool)
  value, gradient = jax.value_and_grad(losses.action_entropy)(jnp.arange(4.), none)
  assert value == 0.0 and (gradient == 0.0).all()


def test_minimising_the_entropy_loss_raises_entropy():
  """The published pseudocode lacks the minus sign: minimising it would reduce entropy."""
  logits = jnp.array([1., 0., -1.])

  def loss(logits):
    return losses.entropy_loss(losses.action_entropy(logits))

  close(loss(logits), -.757679)
  after = logits - 0.5 * jax.grad(loss)(logits)
  assert losses.action_entropy(after) > losses.action_entropy(logits) + 1e-3


def test_entropy_mask():
  close(losses.entropy_loss(jnp.array([.5, .7]), jnp.array([0, 1])), [0, -.7])


# Distillation.


def test_distillation_worked_and_its_direction():
  peaked, uniform = jnp.array([1., 0., -1.]), jnp.zeros(3)
  close(losses.distillation_loss(peaked, uniform), .266217)
  close(losses.distillation_loss(uniform, peaked), .308994)


def test_distillation_gradient_reaches_the_student_alone():
  """With stored logits as the student, as published, no gradient would pass."""
  teacher, student = jnp.array([1., 0., -1.]), jnp.array([0., .5, .2])
  by_teacher, by_student = jax.grad(losses.distillation_loss, argnums=(0, 1))(teacher, student)
  assert (by_teacher == 0).all()
  close(by_student, np.exp(twins.log_softmax(student)) - np.exp(twins.log_softmax(teacher)))


def test_distillation_mask_and_illegal_choices():
  teacher = jnp.array([[1., 0., ILLEGAL], [1., 0., ILLEGAL]])
  student = jnp.array([[0., 0., ILLEGAL], [0., 0., ILLEGAL]])
  expected = twins.kl([1., 0.], [0., 0.])
  close(losses.distillation_loss(teacher, student, jnp.array([1, 0])), [expected, 0])
  gradient = jax.grad(lambda s: losses.distillation_loss(teacher, s).sum())(student)
  assert np.isfinite(gradient).all() and (gradient[:, 2] == 0).all()


def test_early_game_is_the_first_four_minutes_of_conditioned_games():
  """The published pseudocode compares the other way: after four minutes."""
  seconds = jnp.array([0., 239.9, 240., 1000., 0.])
  conditioned = jnp.array([True, True, True, True, False])
  close(losses.early_game(seconds, conditioned), [1, 1, 0, 0, 0])
  close(losses.early_game(seconds, conditioned, until=100.0), [1, 0, 0, 0, 0])


@pytest.mark.parametrize("kind, temperature, expected", [
  ("nll", 1.0, .680270), ("mse", 1.0, 1.5), ("kl", 1.0, .030167), ("kl", .1, .679788),
  ("kl", .01, .680270)])
@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: jax.jit(f, static_argnums=(2, 3))],
                         ids=["plain", "jit"])
def test_policy_distillation_worked(wrap, kind, temperature, expected):
  teacher, student = jnp.array([1., 2., .5]), jnp.array([.5, 1., 0.])
  close(wrap(losses.policy_distillation_loss)(teacher, student, kind, temperature), expected)
  by_teacher, by_student = jax.grad(losses.policy_distillation_loss, argnums=(0, 1))(
    teacher, student, kind, temperature)
  assert (by_teacher == 0).all()
  assert by_student[1] < 0  # descent raises the teacher's best choice


def test_policy_distillation_rejects_unknown_kinds_and_zero_temperature():
  with pytest.raises(ValueError, match="'cosine'"):
    losses.policy_distillation_loss(jnp.zeros(2), jnp.zeros(2), "cosine")
  with pytest.raises(ValueError, match="above 0"):
    losses.policy_distillation_loss(jnp.zeros(2), jnp.zeros(2), "kl", 0.0)


def test_each_task_trains_its_own_head():
  """Also for a task with fewer choices, whose teacher and head are padded."""
  teacher = jnp.array([[1., 2., .5], [3., 1., ILLEGAL]])
  heads = jnp.array([[[.5, 1., 0.], [9., 9., 9.]], [[8., 8., 8.], [1., 2., ILLEGAL]]])
  task = jnp.array([0, 1])
  for kind, expected in (("nll", [.680270, 1.313262]), ("mse", [1.5, 5.0]),
                         ("kl", [.030167, .828725])):
    def loss(heads, kind=kind):
      return losses.multi_task_distillation_loss(teacher, heads, task, kind, 1.0)

    close(loss(heads), expected)
    gradient = jax.grad(lambda x, loss=loss: loss(x).sum())(heads)
    assert (gradient[0, 1] == 0).all() and (gradient[1, 0] == 0).all()
    assert (gradient[0, 0] != 0).all() and gradient[1, 1, 2] == 0 and gradient[1, 1, 0] < 0
  with pytest.raises(AssertionError):
    losses.multi_task_distillation_loss(teacher, heads, task[:1])


# Supervised.


def test_supervised_loss_ignores_illegal_and_unused_labels():
  logits = jnp.array([[1., 0., ILLEGAL]] * 5)
  labels = jnp.array([0, 2, 1, 3, -1])
  mask = jnp.array([1, 1, 0, 1, 1])
  close(losses.supervised_loss(logits, labels, mask), [np.log1p(np.exp(-1.)), 0, 0, 0, 0])
  assert losses.illegal_labels(logits, labels).tolist() == [False, True, False, True, True]
  gradient = jax.grad(lambda x: losses.supervised_loss(x, labels, mask).sum())(logits)
  close(gradient[0], [1 / (1 + np.exp(-1.)) - 1, 1 / (1 + np.e), 0])
  assert (gradient[1:] == 0).all()


def test_supervised_shapes_are_asserted():
  with pytest.raises(AssertionError):
    losses.supervised_loss(jnp.zeros((4, 3)), jnp.zeros((3,), int))


# Self-imitation.


def test_self_imitation_worked():
  log_prob, v = jnp.log(jnp.array([.25, .25])), jnp.array([.4, .4])
  returns = jnp.array([1., .1])
  close(losses.self_imitation_loss(log_prob, v, returns, value_cost=0.0), [.831777, 0])
  both = losses.self_imitation_loss(log_prob, v, returns, value_cost=1.0)
  close(both, [.831777 + .18, 0])
  close(losses.self_imitation_priority(v, returns), [.6, 0])


def test_self_imitation_gradients():
  inputs = jnp.array([-1., -1.]), jnp.array([.4, .4]), jnp.array([1., .1])
  by_log_prob, by_v, by_returns = jax.grad(
    lambda *x: losses.self_imitation_loss(*x, value_cost=.5).sum(), argnums=(0, 1, 2))(*inputs)
  close(by_log_prob, [-.6, 0])  # only the action with a positive gain becomes more likely
  close(by_v, [-.5 * .6, 0])  # values only increase
  close(by_returns, [0, 0])


def test_discounted_returns():
  """The sum starts at the step itself: R_t includes r_t."""
  returns = losses.discounted_returns(jnp.array([1., 0., 2., 5.]), jnp.array([.5, .5, 0., .5]))
  close(returns, [1.5, 1., 2., 5.])


# COMA.


def test_coma_worked():
  advantages = losses.coma_advantages(jnp.array([1., 2., 4.]), jnp.array([.2, .5, .3]))
  close(advantages, [-1.4, -.4, 1.6])


@twin_test
@hypothesis.given(two_logits())
def test_coma_advantages_have_mean_zero(logits):
  probabilities = np.exp(twins.log_softmax(logits[1])).astype(np.float32)
  advantages = losses.coma_advantages(logits[0], probabilities)
  close((probabilities * advantages).sum(-1), np.zeros(3), 1e-5)
  close(advantages - advantages[:, :1], logits[0] - logits[0][:, :1], 1e-5)


def test_coma_loss_gradient():
  q, logits = jnp.array([1., 2., 4.]), jnp.log(jnp.array([.2, .5, .3]))
  for action, advantage in enumerate([-1.4, -.4, 1.6]):
    by_q, by_logits = jax.grad(losses.coma_loss, argnums=(0, 1))(q, logits, jnp.array(action))
    assert (by_q == 0).all()
    close(by_logits, -advantage * (np.eye(3)[action] - np.array([.2, .5, .3])))
