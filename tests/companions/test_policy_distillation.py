"""Policy distillation: teachers play, losses by hand, students agree with their teachers."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from starleague.agent import distributions
from starleague.common import results, run_files
from starleague.common.errors import UserError
from starleague.companions import impala, networks, policy_distillation, r2d2, training
from starleague.companions.system import GREEDY, Fixed, Inputs, inputs_spec
from starleague.companions.tasks import registry as tasks
from starleague.data.checkpoints import save_params
from tests.companions import learning

NAMES = ("minatar-breakout", "minatar-asterix")
TEACHER = r2d2.Config(size=16, lstm=8)
T, COPIES = 3, 4


def save_teacher(folder, seed, name, system, module, config):
  """Writes a run with random parameters."""
  task = tasks.make_task(name, 1)
  params = module.make(config, task, inputs_spec(task)).init(jax.random.key(seed))
  identity = training.Identity(system, name, dataclasses.asdict(config))
  save_params(folder / run_files.CHECKPOINTS / "000000000001", params, identity, step=1)
  (folder / run_files.CONFIG).write_text(json.dumps(
    {"system": system, "task": name, system: dataclasses.asdict(config)}))
  return params


@pytest.fixture(scope="module")
def teachers(tmp_path_factory):
  """Directories of two runs of r2d2 with random parameters."""
  folders = []
  for seed, name in enumerate(NAMES):
    folder = tmp_path_factory.mktemp("teacher")
    save_teacher(folder, seed, name, "r2d2", r2d2, TEACHER)
    folders.append(str(folder))
  return folders


@pytest.fixture(scope="module")
def made(teachers):
  """Task, config, system, parameters and a batch of unrolls."""
  task = tasks.make_task("+".join(NAMES), COPIES)
  config = policy_distillation.Config(
    teachers=",".join(teachers), size=8, lstm=8, epsilon=0.0, temperature=0.1)
  system = policy_distillation.make(config, task, inputs_spec(task))
  params = system.init(jax.random.key(9))
  return task, config, system, params, learning.played(system, task, params, T)


def test_each_copy_is_played_by_its_teacher(made):
  task, config, _, params, unroll = made
  for index, teacher in enumerate(policy_distillation.load_teachers(config, task)):
    rows = slice(2 * index, 2 * index + 2)
    inputs = jax.tree.map(lambda x, rows=rows: x[:, rows], unroll.steps.inputs)
    inputs = inputs._replace(observation=policy_distillation.as_seen_by(
      teacher, jnp.moveaxis(inputs.observation.observation, (0, 1), (-2, -1))))
    inputs = inputs._replace(observation=jnp.moveaxis(inputs.observation, (-2, -1), (0, 1)))
    state = jax.tree.map(lambda x, rows=rows: x[rows], unroll.initial_state[1][index])
    q, _ = networks.unroll_batch(teacher.network, teacher.params, inputs, state)
    actions = teacher.task.num_actions
    np.testing.assert_allclose(
      unroll.steps.behaviour.values[:, rows, :actions], q, atol=1e-5)
    assert (unroll.steps.behaviour.values[:, rows, actions:] == distributions.NEGATIVE).all()
    np.testing.assert_array_equal(unroll.steps.action[:, rows], q.argmax(-1))


@pytest.mark.parametrize("name", [NAMES[0], "popgym-AutoencodeEasy"])  # observes a tuple
def test_the_logits_of_impala_teach_as_action_values_do(tmp_path, name):
  task, config = tasks.make_task(name, COPIES), impala.Config(size=16)
  taught = save_teacher(tmp_path, 3, name, "impala", impala, config)
  system = policy_distillation.make(
    policy_distillation.Config(teachers=str(tmp_path), size=8, lstm=8, epsilon=0.0), task,
    inputs_spec(task))
  unroll = learning.played(system, task, system.init(jax.random.key(9)), T)
  outputs, _ = networks.unroll_batch(
    impala.make_network(config, task, inputs_spec(task)), taught, unroll.steps.inputs,
    impala.initial_state(config)()[0][None].repeat(COPIES, 0))
  np.testing.assert_allclose(unroll.steps.behaviour.values, outputs.logits, atol=1e-5)
  np.testing.assert_array_equal(unroll.steps.action, outputs.logits.argmax(-1))


def test_the_chosen_player_plays_the_evaluation(teachers):
  task = tasks.make_task(NAMES[0], 1)
  _, step = task.reset(jax.random.key(0)[None])
  inputs = Inputs(step.observation[0], jnp.int32(0), jnp.float32(0), jnp.array(True))
  played = {}
  for player in policy_distillation.PLAYERS:
    config = policy_distillation.Config(
      teachers=teachers[0], size=8, lstm=8, epsilon=1.0, player=player)
    system = policy_distillation.make(config, task, inputs_spec(task))
    params = system.init(jax.random.key(1))
    teacher = policy_distillation.load_teacher(teachers[0])
    q, _ = networks.step(
      teacher.network, teacher.params, inputs, teacher.network.initial_state())
    best = int(q.argmax())
    # The student prefers the next action, whatever it observes.
    params["student"]["heads"]["w"] *= 0.0
    params["student"]["heads"]["b"] = jax.nn.one_hot((best + 1) % 3, 3)
    acted = system.act(params, jax.random.key(2), inputs, system.initial_state(), GREEDY)
    played[player] = (int(acted.action) - best) % 3
  assert played == {"student": 1, "teacher": 0}


@pytest.mark.parametrize("kind", policy_distillation.KINDS)
def test_losses_by_hand(kind):
  config = policy_distillation.Config(kind=kind, temperature=0.5)
  random = np.random.default_rng(0)
  heads = random.normal(size=(2, 2, 2, 3)).astype(np.float32)
  values = random.normal(size=(2, 2, 3)).astype(np.float32)
  values[0, 0, 2] = distributions.NEGATIVE  # the task has two actions
  number = np.array([[1, 0], [0, 1]])
  found = policy_distillation.distillation_losses(
    config, jnp.asarray(heads), jnp.asarray(values), jnp.asarray(number))
  expected = []
  for t in range(2):
    for b in range(2):
      actions = 2 if (t, b) == (0, 0) else 3
      q = values[t, b, :actions].astype(float)
      s = heads[t, b, number[t, b], :actions].astype(float)
      log_s = s - np.log(np.exp(s).sum())
      p = np.exp(q / 0.5) / np.exp(q / 0.5).sum()
      expected.append({"nll": -log_s[q.argmax()], "mse": ((q - s) ** 2).sum(),
                       "kl": (p * (np.log(p) - log_s)).sum()}[kind])
  np.testing.assert_allclose(found.loss, np.mean(expected), rtol=1e-5)


def test_only_the_student_learns(made):
  _, _, system, params, unroll = made
  gradient = jax.grad(
    lambda p: system.loss(p, jax.random.key(0), unroll, Fixed({}, ())).loss)(params)
  for name, part in gradient.items():
    assert any(leaf.any() for leaf in jax.tree.leaves(part)) == (name == "student")


@pytest.mark.slow
def test_a_student_agrees_with_its_teacher(teachers, tmp_path):
  task = tasks.make_task(NAMES[0], 16)
  config = policy_distillation.Config(teachers=teachers[0], kind="nll", size=16, lstm=8)
  learning.learn(
    "policy_distillation", tmp_path, config, task, copies=16, steps=16 * 10 * 80,
    unroll_length=10, batch_size=16, table="uniform", replay_size=500, min_replay=16,
    samples_per_item=4.0, learning_rate=3e-3, evaluation_episodes=1)
  rows = results.by_tag(results.read(tmp_path / results.FILE_NAME))["update/agreement"]
  assert rows[-1].value > rows[0].value + 0.2 and rows[-1].value > 0.7


def test_teachers_that_do_not_fit_are_refused(teachers, tmp_path):
  def make(names, task="minatar-breakout"):
    made = tasks.make_task(task, 2)
    policy_distillation.make(
      policy_distillation.Config(teachers=names), made, inputs_spec(made))

  for names, task, message in (
      ("", "minatar-breakout", "found 0 runs, expected 1, one for each of minatar-breakout"),
      (teachers[0], "+".join(NAMES), "found 1 runs, expected 2"),
      (teachers[1], "minatar-breakout", "learnt 'minatar-asterix', expected a teacher of"),
      (str(tmp_path), "minatar-breakout", "is no run of a companion system: expected its config")):
    with pytest.raises(UserError) as error:
      make(names, task)
    assert message in str(error.value)
  (tmp_path / run_files.CONFIG).write_text('{"system": "coma", "task": "minatar-breakout"}')
  with pytest.raises(UserError, match="is a run of coma, expected r2d2 or impala"):
    make(str(tmp_path))
  (tmp_path / run_files.CONFIG).write_text(
    '{"system": "r2d2", "task": "minatar-breakout", "r2d2": {"gru": 8}}')
  with pytest.raises(UserError, match="another version's choices of r2d2: .*'gru'; train the"):
    make(str(tmp_path))


@pytest.mark.parametrize("learnt, task, message", [
  ("bsuite-deep_sea:size=6", "bsuite-deep_sea:size=10",
   "learnt 'bsuite-deep_sea:size=6' with the observation ShapeDtypeStruct(shape=(6, 6), "
   "dtype=float32), expected ShapeDtypeStruct(shape=(10, 10), dtype=float32), as "
   "'bsuite-deep_sea:size=10'"),
  ("bsuite-deep_sea:size=10", "bsuite-deep_sea:size=6", "(10, 10), dtype=float32), expected "),
  ("minatar-breakout:minimal=false", "minatar-breakout",
   "learnt 'minatar-breakout:minimal=false' with the actions 6, expected 3, as 'minatar-breakout'"),
  ("bsuite-deep_sea:size=4", "bsuite-catch+bsuite-deep_sea:size=5",
   "(4, 4), dtype=float32), expected ShapeDtypeStruct(shape=(5, 5), dtype=float32), as 'bsuite-")])
def test_a_teacher_with_other_observations_or_actions_is_refused(tmp_path, learnt, task, message):
  """Before, the teacher saw a part of the student's observation."""
  made, names = tasks.make_task(task, 2), task.split("+")
  for name in (*names[:-1], learnt):
    (tmp_path / name).mkdir()
    save_teacher(tmp_path / name, 0, name, "impala", impala, impala.Config(torso="dense", size=4))
  config = policy_distillation.Config(teachers=",".join(
    str(tmp_path / name) for name in (*names[:-1], learnt)))
  with pytest.raises(UserError) as error:
    policy_distillation.load_teachers(config, made)
  assert message in str(error.value) and str(tmp_path / learnt) in str(error.value)
  assert "\n" not in str(error.value)


def test_a_teacher_may_have_learnt_other_rewards(tmp_path):
  save_teacher(tmp_path, 0, "bsuite-catch:scale=2", "impala", impala,
               impala.Config(torso="dense", size=4))
  teacher, = policy_distillation.load_teachers(
    policy_distillation.Config(teachers=str(tmp_path)), tasks.make_task("bsuite-catch", 2))
  assert teacher.task.name == "bsuite-catch:scale=2"


@pytest.mark.parametrize("changes, message", [
  ({"kind": "js"}, "policy_distillation.kind: found 'js', expected one of nll, mse, kl"),
  ({"player": "both"}, "policy_distillation.player: found 'both', expected one of student, teach"),
  ({"temperature": 0.0}, "policy_distillation.temperature: found 0.0, expected a number above 0")])
def test_impossible_choices_are_refused(changes, message):
  with pytest.raises(UserError, match=message):
    policy_distillation.Config(**changes)
