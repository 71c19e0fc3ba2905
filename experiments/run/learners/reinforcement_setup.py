"""The learner's parts: objective, optimizer, and the training state, new or resumed."""

import functools
import pathlib
from typing import Any, NamedTuple

import jax
import ml_collections
import numpy as np
import optax
from absl import logging

from starleague.actor.parts import Parts
from starleague.agent import parameters, pretrained, types
from starleague.common import files, run_files
from starleague.data import checkpoints, wire
from starleague.experiments.run.config import settings
from starleague.experiments.run.parts import saved_agents
from starleague.learner import guard, objective, train_state, update, warm_up, weights


class Learner(NamedTuple):
  """The compiled update and the state that it starts from."""

  update: update.Update
  state: train_state.TrainState  # replicated
  teacher: Any  # replicated parameters, () where the objective needs none
  trained_seconds: float  # by earlier processes of the run


def make_weights(config: ml_collections.ConfigDict) -> weights.RLWeights:
  """Returns the weights of the objective. Unused reward streams have zero weight."""
  learner = config.learner
  published = weights.RLWeights()
  pseudo = config.actor.pseudo_probability > 0
  played_for = config.actor.pseudo_rewards.split(",") if pseudo else []
  earned = [name in played_for for name in types.PSEUDO_REWARDS]

  def costs(winloss: float, others: tuple[float, ...]) -> tuple[float, ...]:
    return winloss, *(cost * use for cost, use in zip(others[1:], earned, strict=True))

  return weights.RLWeights(
    policy=costs(learner.policy_cost, published.policy),
    baseline=costs(learner.baseline_cost, published.baseline),
    upgo=costs(learner.upgo_cost, published.upgo), entropy=learner.entropy,
    teacher_kl=learner.teacher_kl, function_kl=learner.function_kl if pseudo else 0.0,
    td_lambda=learner.td_lambda)


def hide_opponent(trajectories: types.Trajectory) -> types.Trajectory:
  """Returns trajectories of which the value functions see the player's own side only."""
  steps = trajectories.steps
  hidden = {name: jax.tree.map(jax.numpy.zeros_like, value)
            for name, value in steps.privileged._asdict().items() if name.startswith("opponent_")}
  return trajectories._replace(
    steps=steps._replace(privileged=steps.privileged._replace(**hidden)))


def make_loss(parts: Parts, config: ml_collections.ConfigDict) -> update.LossFn:
  """Returns the RL objective of a wire batch, which is unpacked on the device."""
  costs = make_weights(config)

  def loss(params, key, batch, teacher):
    del key  # the objective is deterministic
    trajectories = wire.unpack(batch, parts.config)
    if not config.learner.opponent_values:
      trajectories = hide_opponent(trajectories)
    return objective.rl_loss(parts.policy, costs, params, teacher or None, trajectories)

  return loss


def make_optimizer(params: Any,
                   config: ml_collections.ConfigDict) -> optax.GradientTransformation:
  """Returns Adam with the config's values and an adjustable learning rate.

  The value functions learn alone in the first `value_warm_up` updates.

  Args:
    params: the policy's parameters, or their shapes.
    config: the run's config.
  """
  learner = config.learner
  adam = functools.partial(
    train_state.make_optimizer, b1=learner.b1, b2=learner.b2, eps=learner.eps,
    max_norm=learner.max_norm or None)
  if not learner.value_warm_up:
    return adam(learner.learning_rate, adjustable=True)
  values = warm_up.flat(parameters.value_function_mask(params), params)

  def warmed_up(learning_rate: float) -> optax.GradientTransformation:
    return optax.chain(
      adam(learning_rate), warm_up.learn_alone(values, learner.value_warm_up))

  return optax.inject_hyperparams(warmed_up)(learning_rate=learner.learning_rate)


def learning_rate(config: ml_collections.ConfigDict, done: float) -> float:
  """Returns the learning rate, which falls linearly as in IMPALA (Espeholt et al. 2018, Table G.1).

  Args:
    config: the run's config.
    done: the share of the training that is over, 0 to 1.
  """
  learner = config.learner
  return learner.learning_rate * (1.0 - (1.0 - learner.final_rate) * done)


def initial_snapshot(parts: Parts, config: ml_collections.ConfigDict,
                     run_dir: pathlib.Path) -> Any:
  """Returns the run's initial parameters: its teacher, and the baseline of its evaluation."""
  path = run_dir / run_files.INITIAL
  with files.locked(run_dir / f".{run_files.INITIAL}.lock"):  # learners of a league start together
    if not path.exists():
      if config.init == settings.IMITATION:
        params = checkpoints.load_params(run_dir / run_files.IMITATED, parts.config)
      elif config.init == settings.PRETRAINED:
        params = pretrained.load_pretrained(config.preset).params
      else:
        params = saved_agents.initial_params(parts, config)
      checkpoints.save_params(path, params, parts.config)
  return checkpoints.load_params(path, parts.config)


def make_learner(parts: Parts, config: ml_collections.ConfigDict, run_dir: pathlib.Path,
                 saved: checkpoints.Checkpoints | None, other: Learner | None = None) -> Learner:
  """Builds the learner, resumed from the newest checkpoint where there is one.

  Args:
    parts: the agent and its environment.
    config: the run's config.
    run_dir: the run's directory.
    saved: the player's checkpoints; None on hosts other than the first, which receive its state.
    other: the learner of another player, which shares its compiled update and its teacher.
  """
  trained = 0.0
  if saved is None:
    shapes = jax.eval_shape(parts.policy.init, jax.random.key(0))
    params = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), shapes)
  else:
    params = initial_snapshot(parts, config, run_dir)
  optimizer = make_optimizer(params, config)
  state = train_state.initial_state(params, optimizer, jax.random.key(config.seed))
  restored = None if saved is None else saved.restore(state)
  if restored is not None:
    state, trained = restored.state, float(restored.extra["trained_seconds"])
    logging.info("restored update=%d trained_seconds=%.0f", restored.step, trained)
  if other is not None:
    return other._replace(state=other.update.replicate(state), trained_seconds=trained)
  run = update.make_update(
    make_loss(parts, config), optimizer, accumulate=config.learner.accumulate,
    batch_axes=wire.BATCH_AXES)
  teacher = params if make_weights(config).uses_teacher else ()
  several = jax.process_count() > 1  # the broadcast between hosts takes six seconds to compile
  return Learner(run, run.replicate(state, from_first=several),
                 run.replicate(teacher, from_first=several), trained)


def reset(learner: Learner, parts: Parts, config: ml_collections.ConfigDict,
          run_dir: pathlib.Path) -> Learner:
  """Returns a learner of the run's initial parameters, with a new optimizer state.

  The number of updates goes on: it orders the checkpoints.
  """
  step = update.unreplicate(learner.state.step)
  key = update.unreplicate(learner.state.key)
  params = initial_snapshot(parts, config, run_dir)
  fresh = train_state.initial_state(params, make_optimizer(params, config), key)
  return learner._replace(state=learner.update.replicate(fresh._replace(step=step)))


def make_guard(parts: Parts, config: ml_collections.ConfigDict,
               folder: pathlib.Path) -> guard.Guard:
  """Returns the guard against skipped updates, which writes into the folder of a learner."""
  return guard.Guard(
    folder / "diagnosis", config.learner.max_skipped,
    readable=jax.vmap(functools.partial(wire.unpack, config=parts.config)))  # over devices


def empty_batch(parts: Parts, config: ml_collections.ConfigDict) -> wire.Packed:
  """Returns this host's share of a batch, all zeros: it has no effect on the parameters."""
  size = config.learner.batch_size // jax.process_count()
  return wire.empty_batch(parts.config, config.unroll_length, size)


def compile_ahead(learner: Learner, parts: Parts, config: ml_collections.ConfigDict) -> None:
  """Compiles the update while actors compile and play."""
  # The update donates its state, so it gets a copy.
  copy = learner.update.replicate(update.unreplicate(learner.state))
  batch = learner.update.place(empty_batch(parts, config))
  jax.block_until_ready(learner.update(copy, batch, learner.teacher)[1])
