"""Distillation: AlphaStar's KL to the supervised teacher, and policy distillation.

Sources: Vinyals et al. 2019, Methods and detailed architecture; Rusu et al. 2016, "Policy
distillation".
"""

import chex
import jax
import jax.numpy as jnp

from starleague.agent import distributions
from starleague.agent.types import Array


def distillation_loss(teacher_logits: Array, student_logits: Array,
                      mask: Array | None = None) -> Array:
  """Computes KL(teacher || student) of one argument, in nats.

  `mask sum_a p_teacher(a) (log p_teacher(a) - log p_student(a))`.

  Args:
    teacher_logits: [..., n] float, conditioned on the preceding arguments of the student's action.
    student_logits: [..., n] float, of the learner; logits stored with the action would pass no
      gradient to its parameters.
    mask: [...] bool or 0 and 1, whether the argument is used; None: all are.

  Returns:
    [...] float32; its gradient reaches the student alone.
  """
  chex.assert_equal_shape([teacher_logits, student_logits])
  divergence = distributions.categorical_kl(
    jax.lax.stop_gradient(teacher_logits), student_logits)
  return divergence if mask is None else jnp.where(mask, divergence, 0.0)


def early_game(game_seconds: Array, conditioned: Array, until: float = 240.0) -> Array:
  """Marks the steps where the function has an additional KL: early in games conditioned on z.

  Args:
    game_seconds: [...] float, game time.
    conditioned: [...] bool, whether the policy observes cumulative statistics z.
    until: seconds of game time; the first four minutes as published.

  Returns:
    [...] float32, 1 at those steps and 0 at all others.
  """
  chex.assert_equal_shape([game_seconds, conditioned])
  return (conditioned & (game_seconds < until)).astype(jnp.float32)


def policy_distillation_loss(teacher: Array, student: Array, kind: str = "kl",
                             temperature: float = 0.01) -> Array:
  """Computes the loss of a student policy that is distilled from a teacher's action values.

  * "nll": `-log softmax(student)[argmax teacher]`
  * "mse": `sum_a (teacher_a - student_a)^2`
  * "kl": `sum_a p_a (log p_a - log softmax(student)_a)`, `p = softmax(teacher / temperature)`

  Args:
    teacher: [..., n] float, the teacher's action values.
    student: [..., n] float, the student's outputs.
    kind: "nll", "mse" or "kl".
    temperature: above 0, read by "kl" alone; below 1 it sharpens the teacher's policy.

  Returns:
    [...] float; its gradient reaches the student alone.

  Raises:
    ValueError: `kind` is not one of these, or `temperature` is not above 0.
  """
  chex.assert_equal_shape([teacher, student])
  if temperature <= 0.0:
    raise ValueError(f"distillation temperature: found {temperature}, expected a number above 0")
  teacher = jax.lax.stop_gradient(teacher)
  if kind == "mse":
    return jnp.sum(jnp.square(teacher - student), axis=-1)
  log_student = jax.nn.log_softmax(student, axis=-1)
  if kind == "nll":
    best = jnp.argmax(teacher, axis=-1, keepdims=True)
    return -jnp.take_along_axis(log_student, best, axis=-1)[..., 0]
  if kind == "kl":
    log_teacher = jax.nn.log_softmax(teacher / temperature, axis=-1)
    return jnp.sum(jnp.exp(log_teacher) * (log_teacher - log_student), axis=-1)
  raise ValueError(f'kind of policy distillation: found {kind!r}, expected "nll", "mse" or "kl"')


def multi_task_distillation_loss(teacher: Array, heads: Array, task: Array, kind: str = "kl",
                                 temperature: float = 0.01) -> Array:
  """Computes the policy-distillation loss of a student with one output head per task.

  `policy_distillation_loss(teacher, heads[task], kind, temperature)`: each example trains its
  task's head and the layers that all heads share.

  Args:
    teacher: [..., n] float, action values of the task's teacher. For tasks with fewer
      than n choices, teacher and head are both padded with `distributions.NEGATIVE`.
    heads: [..., N, n] float, the student's outputs for N tasks.
    task: [...] integer below N, the task of each example.
    kind, temperature: as for `policy_distillation_loss`.

  Returns:
    [...] float; its gradient reaches the head of the task alone.

  Raises:
    ValueError: as for `policy_distillation_loss`.
  """
  chex.assert_rank(heads, teacher.ndim + 1)
  chex.assert_shape(teacher, (*heads.shape[:-2], heads.shape[-1]))
  chex.assert_shape(task, heads.shape[:-2])
  index = task.astype(jnp.int32)[..., None, None]
  student = jnp.take_along_axis(heads, index, axis=-2)[..., 0, :]
  return policy_distillation_loss(teacher, student, kind, temperature)
