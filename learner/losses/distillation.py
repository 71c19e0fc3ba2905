"""Staying near a teacher: AlphaStar's KL to the supervised agent, and policy distillation.

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
  """KL(teacher || student) of one argument, in nats.

  `mask sum_a p_teacher(a) (log p_teacher(a) - log p_student(a))`.

  Args:
    teacher_logits: [..., n] float, conditioned on the student's choices of the arguments before.
    student_logits: [..., n] float: the learner's, not those stored with the action, which nothing
      can teach.
    mask: [...] bool or 0 and 1, whether the argument was used; all where None.

  Returns:
    [...] float32; its gradient reaches the student alone.
  """
  chex.assert_equal_shape([teacher_logits, student_logits])
  divergence = distributions.categorical_kl(
    jax.lax.stop_gradient(teacher_logits), student_logits)
  return divergence if mask is None else jnp.where(mask, divergence, 0.0)


def early_game(game_seconds: Array, conditioned: Array, until: float = 240.0) -> Array:
  """Where the teacher holds the choice of function with more weight: an opening that z asks for.

  Args:
    game_seconds: [...] float, game time.
    conditioned: [...] bool, whether the policy saw the cumulative statistics of z.
    until: seconds; the first four minutes as published.

  Returns:
    [...] float, 1 there and 0 elsewhere.
  """
  chex.assert_equal_shape([game_seconds, conditioned])
  return (conditioned & (game_seconds < until)).astype(jnp.float32)


def policy_distillation_loss(teacher: Array, student: Array, kind: str = "kl",
                             temperature: float = 0.01) -> Array:
  """A student that learns one policy from a teacher's action values.

  * "nll": `-log softmax(student)[argmax teacher]`
  * "mse": `sum_a (teacher_a - student_a)^2`
  * "kl": `sum_a p_a (log p_a - log softmax(student)_a)`, `p = softmax(teacher / temperature)`

  Args:
    teacher: [..., n] float, the teacher's action values.
    student: [..., n] float, the student's outputs.
    kind: "nll", "mse" or "kl".
    temperature: above 0, of "kl" only; under 1 sharpens the teacher's values into a policy.

  Returns:
    [...] float; its gradient reaches the student alone.

  Raises:
    ValueError: for another kind, or a temperature that is not above 0.
  """
  chex.assert_equal_shape([teacher, student])
  if temperature <= 0.0:
    raise ValueError(f"The distillation temperature is {temperature}; expected one above 0.")
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
  raise ValueError(f'The kind of policy distillation is {kind!r}; expected "nll", "mse" or "kl".')


def multi_task_distillation_loss(teacher: Array, heads: Array, task: Array, kind: str = "kl",
                                 temperature: float = 0.01) -> Array:
  """One student of several teachers, with an output head for each task.

  `policy_distillation_loss(teacher, heads[task], kind, temperature)`: each example trains the head
  of the task it came from, and through it what all heads share.

  Args:
    teacher: [..., n] float, action values of the teacher of the example's task. Where tasks have
      fewer choices than n, `distributions.NEGATIVE` fills teacher and head alike.
    heads: [..., N, n] float, the student's outputs for N tasks.
    task: [...] integer below N, whose example it is.
    kind, temperature: as for `policy_distillation_loss`.

  Returns:
    [...] float; its gradient reaches the head of the task alone.

  Raises:
    ValueError: as `policy_distillation_loss` does.
  """
  chex.assert_rank(heads, teacher.ndim + 1)
  chex.assert_shape(teacher, (*heads.shape[:-2], heads.shape[-1]))
  chex.assert_shape(task, heads.shape[:-2])
  index = task.astype(jnp.int32)[..., None, None]
  student = jnp.take_along_axis(heads, index, axis=-2)[..., 0, :]
  return policy_distillation_loss(teacher, student, kind, temperature)
