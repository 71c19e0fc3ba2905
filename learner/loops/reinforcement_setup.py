"""The learner's parts: objective, optimizer, and the training state, new or resumed."""

import functools
import pathlib
import shutil
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import numpy as np
import optax
from absl import logging

from starleague.agent import parameters
from starleague.agent.config import AgentConfig
from starleague.common import errors, files, run_files
from starleague.data import checkpoints, wire
from starleague.learner import flat, guard, objective, train_state, update, warm_up
from starleague.learner.loops.options import LearningAgent, ReinforcementOptions
from starleague.learner.weights import Factors

NO_CHANGE = Factors(*[np.ones((), np.float32)] * len(Factors._fields))


class Learner(NamedTuple):
  """The compiled update and the state that it starts from."""

  update: update.Update
  state: train_state.TrainState  # replicated
  teacher: Any  # replicated parameters, () where the objective needs none
  trained_seconds: float  # by earlier processes of the run
  stage: int = 0  # its number; see `begin_stage`
  factors: Any = ()  # replicated `weights.Factors`; () without a population
  extra: Mapping[str, Any] = MappingProxyType({})  # of the checkpoint it was restored from


def make_loss(agent: LearningAgent, options: ReinforcementOptions) -> update.LossFn:
  """Returns the RL objective of a wire batch, which is unpacked on the device."""
  def loss(params, key, batch, teacher, factors=()):
    del key  # the objective is deterministic
    trajectories = wire.unpack(batch, agent.config)
    if not options.opponent_values:
      trajectories = objective.hide_opponent(trajectories)
    return objective.rl_loss(agent.policy, options.weights, params, teacher or None, trajectories,
                             factors or None)

  return loss


def make_optimizer(params: Any,
                   options: ReinforcementOptions) -> optax.GradientTransformation:
  """Returns Adam with the config's values and an adjustable learning rate.

  The value functions learn alone in the first `value_warm_up` updates.

  Args:
    params: the policy's parameters, or their shapes.
    options: of the learner.
  """
  adam = functools.partial(
    train_state.make_optimizer, b1=options.b1, b2=options.b2, eps=options.eps,
    max_norm=options.max_norm or None)
  if not options.value_warm_up:
    return adam(options.learning_rate, adjustable=True)
  values = flat.repeat(parameters.value_function_mask(params), params)

  def warmed_up(learning_rate: float) -> optax.GradientTransformation:
    return optax.chain(
      adam(learning_rate), warm_up.learn_alone(values, options.value_warm_up))

  return optax.inject_hyperparams(warmed_up)(learning_rate=options.learning_rate)


def stage_at(options: ReinforcementOptions, done: float) -> int:
  """Returns the number of the stage at a share of the training, 0 to 1."""
  return min(int(done * options.stages), options.stages - 1)


def learning_rate(options: ReinforcementOptions, done: float) -> float:
  """Returns the learning rate, which falls linearly as in IMPALA (Espeholt et al. 2018, Table G.1).

  It falls again in each stage.

  Args:
    options: of the learner.
    done: the share of the training that is over, 0 to 1.
  """
  of_stage = done * options.stages - stage_at(options, done)
  return options.learning_rate * (1.0 - (1.0 - options.final_rate) * of_stage)


def initial_snapshot(agent: LearningAgent, run_dir: pathlib.Path) -> Any:
  """Returns the run's initial parameters: its teacher, and the baseline of its evaluation.

  Raises FinalError if they are damaged, or of another agent.
  """
  path = run_dir / run_files.INITIAL
  with files.locked(run_dir / f".{run_files.INITIAL}.lock"):  # learners of a league start together
    if not path.exists():
      checkpoints.save_params(path, agent.initial_params(), agent.config)
  with errors.final(*checkpoints.UNUSABLE):
    return checkpoints.load_params(path, agent.config)


def make_learner(agent: LearningAgent, options: ReinforcementOptions, run_dir: pathlib.Path,
                 saved: checkpoints.Checkpoints | None, other: Learner | None = None) -> Learner:
  """Builds the learner, resumed from the newest checkpoint where there is one.

  Args:
    agent: that learns.
    options: of the learner.
    run_dir: the run's directory.
    saved: the player's checkpoints; None on hosts other than the first, which receive its state.
    other: the learner of another player, which shares its compiled update and its teacher.
  """
  trained, extra = 0.0, {}
  if saved is None:
    shapes = jax.eval_shape(agent.policy.init, jax.random.key(0))
    params = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), shapes)
  else:
    params = initial_snapshot(agent, run_dir)
  optimizer = make_optimizer(params, options)
  state = train_state.initial_state(params, optimizer, jax.random.key(options.seed))
  with errors.final(*checkpoints.UNUSABLE):
    restored = None if saved is None else saved.restore(state)
  if restored is not None:
    state, extra = restored.state, restored.extra
    trained = float(extra["trained_seconds"])
    logging.info("restored update=%d trained_seconds=%.0f", restored.step, trained)
  if other is not None:
    return other._replace(state=other.update.replicate(state), trained_seconds=trained, extra=extra)
  run = update.make_update(
    make_loss(agent, options), optimizer, accumulate=options.accumulate,
    batch_axes=wire.BATCH_AXES)
  several = jax.process_count() > 1  # the broadcast between hosts takes six seconds to compile
  stage = run.replicate(np.int32(extra.get("stage", 0)), from_first=several)
  teacher = _teacher(params, agent, options, run_dir, extra.get("stage", 0))
  return Learner(run, run.replicate(state, from_first=several),
                 run.replicate(teacher, from_first=several), trained,
                 int(update.unreplicate(stage)),
                 run.replicate(NO_CHANGE) if options.population else (), extra)


def _teacher(initial: Any, agent: LearningAgent, options: ReinforcementOptions,
             run_dir: pathlib.Path, stage: int) -> Any:
  """Returns the teacher of a stage: the initial parameters in the first one; () if none is used."""
  if not options.weights.uses_teacher:
    return ()
  if not stage:
    return initial
  with errors.final(*checkpoints.UNUSABLE, FileNotFoundError):
    return checkpoints.load_params(_stage_path(run_dir, stage), agent.config)


def _stage_path(run_dir: pathlib.Path, stage: int) -> pathlib.Path:
  """Returns the snapshot of the weights that a stage began from."""
  return run_dir / run_files.STAGES / str(stage)


def begin_stage(learner: Learner, state: train_state.TrainState, stage: int, agent: LearningAgent,
                run_dir: pathlib.Path) -> Learner:
  """Returns the learner in another stage: the agent itself becomes its teacher.

  The first host saves these weights. If it is killed before the next checkpoint, the stage begins
  again.

  Args:
    learner: of the stage before.
    state: its newest state.
    stage: the number of the new stage.
    agent: that learns.
    run_dir: the run's directory.
  """
  params, path = update.unreplicate(state.params), _stage_path(run_dir, stage)
  if jax.process_index() == 0:
    if path.exists():
      shutil.rmtree(path)
    checkpoints.save_params(path, params, agent.config, int(update.unreplicate(state.step)))
  # A copy: the update donates its state.
  teacher = learner.update.replicate(params) if learner.teacher != () else ()
  logging.info("stage=%d", stage)
  return learner._replace(teacher=teacher, stage=stage)


def reset(learner: Learner, agent: LearningAgent, options: ReinforcementOptions,
          run_dir: pathlib.Path) -> Learner:
  """Returns a learner of the run's initial policy, with a new optimizer state.

  The value functions stay: imitation trains none, and a second warm-up could take all updates to
  the next snapshot. The number of updates goes on: it orders the checkpoints.
  """
  old = update.unreplicate(learner.state)
  initial = initial_snapshot(agent, run_dir)
  params = jax.tree.map(lambda of_values, own, first: own if of_values else first,
                        parameters.value_function_mask(initial), old.params, initial)
  fresh = train_state.initial_state(params, make_optimizer(params, options), old.key)
  return learner._replace(state=learner.update.replicate(fresh._replace(
    step=old.step, opt_state=warm_up.resumed(fresh.opt_state, old.opt_state))))


def make_guard(agent: LearningAgent, options: ReinforcementOptions,
               folder: pathlib.Path) -> guard.Guard:
  """Returns the guard against skipped updates, which writes into the folder of a learner."""
  return guard.Guard(
    folder / "diagnosis", options.max_skipped,
    readable=jax.vmap(functools.partial(wire.unpack, form=agent.config)))  # over devices


def empty_batch(config: AgentConfig, options: ReinforcementOptions) -> wire.Packed:
  """Returns this host's share of a batch, all zeros: it has no effect on the parameters."""
  size = options.batch_size // jax.process_count()
  return wire.empty_batch(config, options.unroll_length, size)


def compile_ahead(learner: Learner, agent: LearningAgent, options: ReinforcementOptions) -> None:
  """Compiles the update while actors compile and play."""
  # The update donates its state, so it gets a copy.
  copy = learner.update.replicate(update.unreplicate(learner.state))
  batch = learner.update.place(empty_batch(agent.config, options))
  jax.block_until_ready(learner.update(copy, batch, learner.teacher, learner.factors)[1])
