"""Distillation: worked values, gradients, the first four minutes, several tasks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.learner import losses
from tests.learner import numpy_twins as twins
from tests.learner.losses.worked import ILLEGAL, close


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
