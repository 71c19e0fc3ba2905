"""Policy distillation: one small student of several teachers' action values or logits.

Source: Rusu et al. 2016, "Policy distillation".
"""

import dataclasses
import json
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from starleague.agent import distributions, linear
from starleague.agent.types import Array
from starleague.common import run_files
from starleague.common.errors import UserError
from starleague.companions import impala, networks, r2d2
from starleague.companions.options import check_numbers
from starleague.companions.popart import num_tasks, observed
from starleague.companions.system import (
  GREEDY,
  Acted,
  Fixed,
  Inputs,
  Losses,
  System,
  Unroll,
  inputs_spec,
  require_one_agent,
)
from starleague.companions.tasks import registry as tasks
from starleague.companions.tasks.task import Task
from starleague.data import checkpoints
from starleague.data.trees import Tree
from starleague.learner import losses

KINDS = ("nll", "mse", "kl")
STUDENT, TEACHER = PLAYERS = ("student", "teacher")
OPTIONS = {
  "task": "minatar-breakout", "steps": 1_000_000, "copies": 48, "table": "uniform",
  "replay_size": 5_000, "min_replay": 100, "samples_per_item": 2.0}


@dataclasses.dataclass(frozen=True)
class Config:
  """The choices of policy distillation.

  Attributes:
    teachers: runs of r2d2 or impala, their directories with commas between them: one for each
      joined task. Logits of impala take the place of action values.
    kind: of the loss: "nll", "mse" or "kl".
    temperature: of the teacher's action values, of the loss "kl"; 1 keeps the policy of impala.
    player: who plays the evaluation, without exploration: "student" or "teacher".
    torso: "shallow", "deep" or "dense"; see `networks.observe`.
    size: units of the student's last layer.
    lstm: units of the student's LSTM.
    epsilon: probability of a random action while a teacher plays.
  """

  teachers: str = ""
  kind: str = "kl"
  temperature: float = 0.01
  player: str = STUDENT
  torso: str = networks.SHALLOW
  size: int = 32
  lstm: int = 32
  epsilon: float = 0.05

  def __post_init__(self) -> None:
    check_numbers(self)
    for name, known in (("kind", KINDS), ("player", PLAYERS)):
      if getattr(self, name) not in known:
        raise UserError(f"policy_distillation.{name}: found {getattr(self, name)!r}, expected one "
                        f"of {', '.join(known)}")


class Teacher(NamedTuple):
  """A trained agent."""

  network: networks.Network  # its outputs: action values or logits, [T, num_actions]
  params: Tree
  task: Task


class Behaviour(NamedTuple):
  """Record of a teacher."""

  values: Array  # [num_actions] float32, of its actions; NEGATIVE beyond those of its task


def _logits(config: impala.Config, task: Task, inputs: Inputs) -> networks.Network:
  """Makes IMPALA's network without its values."""
  network = impala.make_network(config, task, inputs)

  def unroll(params: Tree, inputs: Inputs, state: Any) -> tuple[Array, Any]:
    outputs, states = network.unroll(params, inputs, state)
    return outputs.logits, states

  return network._replace(unroll=unroll)


# Systems that may teach: their choices, and the network of action values or logits.
_TEACHERS: dict[str, tuple[type, Callable[[Any, Task, Inputs], networks.Network]]] = {
  "r2d2": (r2d2.Config, r2d2.make_network), "impala": (impala.Config, _logits)}


def load_teacher(folder: str) -> Teacher:
  """Loads the newest checkpoint of a run of a system that may teach.

  Raises:
    UserError: there is no such run, or it is one of another system.
    CheckpointDamagedError: its checkpoints are damaged.
  """
  path = pathlib.Path(folder)
  try:
    found = json.loads((path / run_files.CONFIG).read_text(encoding="utf-8"))
    system, name, choices = found["system"], found["task"], found.get(found["system"])
  except (OSError, ValueError, KeyError, TypeError) as error:
    raise UserError(f"policy_distillation.teachers: {folder!r} is no run of a companion system: "
                    f"expected its {run_files.CONFIG}; {type(error).__name__}") from None
  if system not in _TEACHERS:
    raise UserError(f"policy_distillation.teachers: {folder!r} is a run of {system}, expected "
                    f"{' or '.join(_TEACHERS)}")
  config, make_network = _TEACHERS[system]
  try:
    made = config(**choices)
  except TypeError as error:
    raise UserError(f"policy_distillation.teachers: {folder!r} has another version's choices of "
                    f"{system}: {error}; train the teacher again") from None
  task = tasks.make_task(name, 1)
  network = make_network(made, task, inputs_spec(task))
  return Teacher(network, checkpoints.load_params(path / run_files.CHECKPOINTS), task)


def load_teachers(config: Config, task: Task) -> list[Teacher]:
  """Loads the teachers of a task.

  Raises:
    UserError: there is not one for each joined task, or one learnt another task, or the task with
      other observations or actions.
  """
  folders = [folder for folder in config.teachers.split(",") if folder]
  names = [name for name, _ in task.parts] or [task.name]
  if len(folders) != len(names):
    raise UserError(f"policy_distillation.teachers: found {len(folders)} runs, expected "
                    f"{len(names)}, one for each of {', '.join(names)}")
  teachers = [load_teacher(folder) for folder in folders]
  for folder, teacher, name in zip(folders, teachers, names, strict=True):
    if teacher.task.name.partition(":")[0] != name.partition(":")[0]:
      raise UserError(f"policy_distillation.teachers: {folder!r} learnt {teacher.task.name!r}, "
                      f"expected a teacher of {name!r}")
    own = tasks.make_task(name, 1) if task.parts else task
    for what, found, expected in (
        ("observation", teacher.task.observation, own.observation),
        ("actions", teacher.task.num_actions, own.num_actions)):
      if found != expected:
        raise UserError(f"policy_distillation.teachers: {folder!r} learnt {teacher.task.name!r} "
                        f"with the {what} {found}, expected {expected}, as {name!r}")
  return teachers


def make_student(config: Config, task: Task, inputs: Inputs) -> networks.Network:
  """Makes the student: a head for each task on shared layers, [T, N, num_actions]."""
  def forward(inputs: Inputs, state: Any) -> tuple[jax.Array, Any]:
    x = networks.observe(inputs.observation, config.torso, config.size, task.symbols)
    x = jnp.concatenate([x, networks.context(inputs, task.num_actions)], axis=-1)
    x, states = networks.lstm(x, inputs.first, state, config.lstm)
    heads = linear.Linear(num_tasks(task) * task.num_actions, name="heads")(x)
    return heads.reshape(len(x), num_tasks(task), task.num_actions), states

  seen = inputs._replace(observation=observed(inputs.observation)[0])
  return networks.make_network(seen, forward, lambda: networks.lstm_state(config.lstm))


def as_seen_by(teacher: Teacher, observation: Any) -> Any:
  """Returns an observation, padded if the task is joined, in the form of a teacher's task."""
  specs, form = jax.tree.flatten(teacher.task.observation)
  return jax.tree.unflatten(form, [
    leaf[tuple(map(slice, spec.shape))]
    for leaf, spec in zip(jax.tree.leaves(observation), specs, strict=True)])


def teach(teachers: list[Teacher], params: Tree, inputs: Inputs, number: Array, states: Any,
          num_actions: int) -> tuple[jax.Array, Any]:
  """Returns the action values of a copy's teacher, [num_actions], and the states of all teachers.

  Every teacher computes; under vmap a choice would compute all of them too.
  """
  found, after = [], []
  for index, (teacher, state) in enumerate(zip(teachers, states, strict=True)):
    seen = inputs._replace(observation=as_seen_by(teacher, inputs.observation))
    seen = seen._replace(last_action=jnp.minimum(seen.last_action, teacher.task.num_actions - 1))
    q, state = networks.step(teacher.network, params[f"teacher_{index}"], seen, state)
    found.append(jnp.pad(q, (0, num_actions - len(q)), constant_values=distributions.NEGATIVE))
    after.append(state)
  return jnp.stack(found)[number], tuple(after)


def make(config: Config, task: Task, inputs: Inputs) -> System:
  """Makes the system: teachers play, the student learns their values of the recorded steps.

  The teachers' parameters are part of the system's, without gradient.

  Raises:
    UserError: the teachers do not fit the task.
  """
  require_one_agent(task, "policy_distillation")
  teachers, student = load_teachers(config, task), make_student(config, task, inputs)

  def init(key: Array) -> Tree:
    return {"student": student.init(key)} | {
      f"teacher_{index}": teacher.params for index, teacher in enumerate(teachers)}

  def initial_state() -> Any:
    return student.initial_state(), tuple(t.network.initial_state() for t in teachers)

  def act(params: Tree, key: Array, inputs: Inputs, state: Any, copy: Array) -> Acted:
    observation, number = observed_one(inputs.observation)
    seen = inputs._replace(observation=observation)
    heads, own = networks.step(student, params["student"], seen, state[0])
    values, others = teach(teachers, params, seen, number, state[1], task.num_actions)
    explore_key, action_key = jax.random.split(key)
    limits = jnp.array([teacher.task.num_actions for teacher in teachers])
    explores = jax.random.bernoulli(explore_key, config.epsilon)
    random = jax.random.randint(action_key, (), 0, limits[number])
    taught = jnp.where(explores, random, jnp.argmax(values))
    legal = jnp.arange(task.num_actions) < limits[number]
    learnt = jnp.argmax(jnp.where(legal, heads[number], distributions.NEGATIVE))
    played = learnt if config.player == STUDENT else jnp.argmax(values)
    action = jnp.where(copy == GREEDY, played, taught).astype(jnp.int32)
    return Acted(action, Behaviour(values), (own, others))

  def loss(params: Tree, key: Array, unroll: Unroll, fixed: Fixed) -> Losses:
    del key, fixed
    observation, number = observed(unroll.steps.inputs.observation)
    heads, _ = networks.unroll_batch(
      student, params["student"], unroll.steps.inputs._replace(observation=observation),
      unroll.initial_state[0])
    return distillation_losses(config, heads, unroll.steps.behaviour.values, number)

  return System("policy_distillation", init, initial_state, act, loss,
                learnt=lambda params: params["student"])


def observed_one(observation: Any) -> tuple[Any, Array]:
  """Returns what the networks observe of an unbatched observation, and the index of the task."""
  batched = jax.tree.map(lambda x: x[None, None], observation)
  return jax.tree.map(lambda x: x[0, 0], observed(batched))


def distillation_losses(config: Config, heads: Array, values: Array, number: Array) -> Losses:
  """Computes the distillation loss of a batch.

  Args:
    config: choices.
    heads: [T + 1, B, N, num_actions], of the student.
    values: [T + 1, B, num_actions], of the teachers, NEGATIVE beyond a task's actions.
    number: [T + 1, B] int32, index of the task.
  """
  legal = jnp.asarray(values) > distributions.NEGATIVE / 2
  padded = jnp.where(legal[:, :, None, :], heads, distributions.NEGATIVE)
  loss = losses.multi_task_distillation_loss(
    values, padded, number, config.kind, config.temperature).mean()
  chosen = jnp.take_along_axis(padded, number[..., None, None], axis=2)[:, :, 0]
  agreement = (chosen.argmax(-1) == jnp.asarray(values).argmax(-1)).mean()
  return Losses(loss, {"loss/distillation": loss, "update/agreement": agreement},
                jnp.ones(number.shape[1]))
