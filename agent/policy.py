"""The policy: encoders, core, heads and value functions as pure functions of one parameter tree.

Everything takes one example, but for `unroll_batch`. To act for a batch of players the caller vmaps,

  step = jax.jit(jax.vmap(policy.step, in_axes=(None, 0, 0, 0)))

so that a batch has one random key a row.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp

from starleague.agent import baselines, blocks, config, core, encoders, heads, initialisation, types
from starleague.agent.vocabulary import Arguments

Params = Any


class StepOutput(NamedTuple):
  action: types.Action
  log_prob: Arguments  # [] float32 each; 0 where the argument is unused
  logits: Arguments  # tempered and masked, float32
  state: types.CoreState  # after the step


class UnrollOutput(NamedTuple):
  logits: Arguments  # [T + 1, ...] tempered and masked, float32
  baselines: jax.Array  # [T + 1, 5] float32, in the order of types.REWARDS
  state: types.CoreState  # before the bootstrap step: the next trajectory starts from it


class Policy(NamedTuple):
  """Five pure functions.

  init(key) -> params, float32.
  initial_state() -> the state at the start of a game.
  step(params, key, observation, state) -> StepOutput; the value functions do not run.
  unroll(params, trajectory) -> UnrollOutput, forced to the trajectory's actions.
  unroll_batch(params, trajectories) -> the same of steps [T + 1, B, ...] and initial states
    [B, ...]: logits and baselines [T + 1, B, ...], state [B, ...]. What `unroll` vmapped gives,
    faster.
  """

  init: Callable[[jax.Array], Params]
  initial_state: Callable[[], types.CoreState]
  step: Callable[[Params, jax.Array, types.Observation, types.CoreState], StepOutput]
  unroll: Callable[[Params, types.Trajectory], UnrollOutput]
  unroll_batch: Callable[[Params, types.Trajectory], UnrollOutput]


class _Networks(NamedTuple):
  """The parts of the agent as functions of (params, key, ...), sharing one parameter tree."""

  encode: Callable
  core: Callable
  sample: Callable
  teacher_force: Callable
  baselines: Callable


def _head_inputs(encoding: encoders.Encoding, core_output, observation) -> heads.HeadInputs:
  return heads.HeadInputs(
    core=core_output, scalar_context=encoding.scalar_context,
    entity_embeddings=encoding.entity_embeddings, map_skips=encoding.map_skips,
    observation=observation)


def _transform(settings: config.AgentConfig) -> tuple[Callable[[jax.Array], Params], _Networks]:
  """The initialiser and the networks. Parts are separate so that each is vmapped or scanned."""

  def in_float32(function):
    def wrapped(*args):
      with blocks.float32_parameters():
        return function(settings, *args)
    return wrapped

  def networks():
    functions = _Networks(*map(in_float32, (
      encoders.encode, core.unroll, heads.sample, heads.teacher_force, baselines.values)))

    def touch_all(observation, privileged, action, state):
      encoding = functions.encode(observation)
      output, _ = functions.core(encoding.core_input[None], jnp.ones(1), state)
      functions.teacher_force(_head_inputs(encoding, output[0], observation), action)
      functions.baselines(output[0], observation, privileged)

    return touch_all, functions

  def example() -> tuple[Any, ...]:
    step = types.zeros(
      types.step_spec(settings.max_entities, settings.map_size, settings.max_selected))
    step = jax.tree.map(jnp.asarray, step)
    return step.observation, step.privileged, step.action, core.initial_state(settings)

  init = initialisation.make_init(lambda *inputs: networks()[0](*inputs), example)
  return init, _Networks(*hk.multi_transform(networks).apply)


def make_policy(settings: config.AgentConfig) -> Policy:
  """Builds the policy of a config.

  Raises:
    ValueError: where the config's sizes or options cannot work together.
  """
  config.validate(settings)
  init, networks = _transform(settings)
  remat = jax.checkpoint if settings.remat == "parts" else lambda function: function

  def initial_state() -> types.CoreState:
    return core.initial_state(settings)

  def step(params, key, observation, state) -> StepOutput:
    encoding = networks.encode(params, None, observation)
    output, states = networks.core(params, None, encoding.core_input[None], jnp.ones(1), state)
    inputs = _head_inputs(encoding, output[0], observation)
    action, log_prob, logits = networks.sample(params, None, key, inputs)
    return StepOutput(action, log_prob, logits, jax.tree.map(lambda x: x[0], states))

  def unroll_batch(params, trajectories: types.Trajectory) -> UnrollOutput:
    steps = trajectories.steps
    length, size = steps.discount.shape

    def fold(tree):
      return jax.tree.map(lambda x: x.reshape(length * size, *x.shape[2:]), tree)

    def unfold(tree):
      return jax.tree.map(lambda x: x.reshape(length, size, *x.shape[1:]), tree)

    # A new game begins where the step before was the last of its game.
    keep = jnp.concatenate(
      [jnp.ones((1, size)), (steps.discount[:-1] != 0).astype(jnp.float32)])
    # One axis of all steps, not time and batch: XLA would lay maps and entities out anew for each
    # convolution and product, a quarter of all bytes that a TPU moves.
    folded = fold(steps)
    encoding = jax.vmap(remat(lambda o: networks.encode(params, None, o)))(folded.observation)
    outputs, states = jax.vmap(lambda *x: networks.core(params, None, *x), (1, 1, 0), 1)(
      unfold(encoding.core_input), keep, trajectories.initial_state)
    logits = jax.vmap(remat(
      lambda *x: networks.teacher_force(params, None, _head_inputs(*x[:3]), x[3])))(
        encoding, fold(outputs), folded.observation, folded.action)
    values = jax.vmap(lambda *x: networks.baselines(params, None, *x))(
      fold(outputs), folded.observation, folded.privileged)
    state = jax.tree.map(lambda x: x[-2] * keep[-1, :, None, None], states)
    return UnrollOutput(unfold(logits), unfold(values), state)

  def unroll(params, trajectory: types.Trajectory) -> UnrollOutput:
    output = unroll_batch(params, types.Trajectory(
      jax.tree.map(lambda x: x[:, None], trajectory.steps),
      jax.tree.map(lambda x: x[None], trajectory.initial_state)))
    return UnrollOutput(
      jax.tree.map(lambda x: x[:, 0], output.logits), output.baselines[:, 0],
      jax.tree.map(lambda x: x[0], output.state))

  return Policy(init, initial_state, step, unroll, unroll_batch)
