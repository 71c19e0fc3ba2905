"""The policy: encoders, core, heads and value functions as pure functions of one parameter tree.

Every function takes one example, except `unroll_batch`. To act for a batch of players, vmap `step`:

  step = jax.jit(jax.vmap(policy.step, in_axes=(None, 0, 0, 0)))

so that each row has its own random key.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import haiku as hk
import jax
import jax.numpy as jnp

from starleague.agent import baselines, blocks, core, encoders, heads, initialisation, types
from starleague.agent.config import AgentConfig, validate
from starleague.agent.vocabulary import Arguments

Params = initialisation.Params
_Tree = TypeVar("_Tree")


class StepOutput(NamedTuple):
  """Result of acting for one step."""

  action: types.Action
  log_prob: Arguments  # [] float32 each; 0 where the argument is unused
  logits: Arguments  # tempered and masked, float32
  state: types.CoreState  # after the step


class UnrollOutput(NamedTuple):
  """Result of evaluating a trajectory."""

  logits: Arguments  # [T + 1, ...] tempered and masked, float32
  baselines: jax.Array  # [T + 1, 5] float32, in the order of types.REWARDS
  state: types.CoreState  # before the bootstrap step: the next trajectory starts from it


class Policy(NamedTuple):
  """Six pure functions.

  init(key) -> params, float32.
  initial_state() -> the core state at the start of a game.
  step(params, key, observation, state) -> StepOutput. Does not evaluate the value functions.
  unroll(params, trajectory) -> UnrollOutput, conditioned on the trajectory's actions.
  unroll_batch(params, trajectories) -> UnrollOutput of steps [T + 1, B, ...] and initial states
    [B, ...]: logits and baselines [T + 1, B, ...], state [B, ...]. Equals `unroll` vmapped, and is
    faster.
  values(params, state, observation, privileged) -> the five values [5] float32 of a step, in the
    order of types.REWARDS, from the core state after it. They may thus be computed later, and for
    many steps at once. Of the observation, reads `baselines.OBSERVED` only.
  """

  init: Callable[[jax.Array], Params]
  initial_state: Callable[[], types.CoreState]
  step: Callable[[Params, jax.Array, types.Observation, types.CoreState], StepOutput]
  unroll: Callable[[Params, types.Trajectory], UnrollOutput]
  unroll_batch: Callable[[Params, types.Trajectory], UnrollOutput]
  values: Callable[
    [Params, types.CoreState, types.Observation, types.Privileged], jax.Array]


class _Networks(NamedTuple):
  """The parts of the agent as functions of (params, key, ...) that share one parameter tree."""

  encode: Callable
  core: Callable
  sample: Callable
  teacher_force: Callable
  baselines: Callable


def make_policy(config: AgentConfig) -> Policy:
  """Returns the policy of a config.

  Raises:
    ValueError: the config's sizes or options contradict each other.
  """
  validate(config)
  init, networks = _transform(config)
  unroll_batch = functools.partial(_unroll_batch, config, networks)
  return Policy(
    init=init,
    initial_state=functools.partial(core.initial_state, config),
    step=functools.partial(_step, networks),
    unroll=functools.partial(_unroll, unroll_batch),
    unroll_batch=unroll_batch,
    values=functools.partial(_values, config, networks))


def _transform(config: AgentConfig) -> tuple[Callable[[jax.Array], Params], _Networks]:
  """Returns the initialiser and the networks, each of which callers vmap or scan on its own."""
  def in_float32(function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*args: Any) -> Any:
      with blocks.float32_parameters():
        return function(config, *args)
    return wrapped

  def networks() -> tuple[Callable[..., None], _Networks]:
    parts: tuple[Callable[..., Any], ...] = (
      encoders.encode, core.unroll, heads.sample, heads.teacher_force, baselines.values)
    functions = _Networks(*map(in_float32, parts))

    def touch_all(observation: types.Observation, privileged: types.Privileged,
                  action: types.Action, state: types.CoreState) -> None:
      encoding = functions.encode(observation)
      output, _ = functions.core(encoding.core_input[None], jnp.ones(1), state)
      functions.teacher_force(_head_inputs(encoding, output[0], observation), action)
      functions.baselines(output[0], observation, privileged)

    return touch_all, functions

  def make_inputs() -> tuple[Any, ...]:
    step = types.zeros(
      types.step_spec(config.max_entities, config.map_size, config.max_selected))
    step = jax.tree.map(jnp.asarray, step)
    return step.observation, step.privileged, step.action, core.initial_state(config)

  init = initialisation.make_init(lambda *inputs: networks()[0](*inputs), make_inputs)
  return init, _Networks(*hk.multi_transform(networks).apply)


def _head_inputs(encoding: encoders.Encoding, core_output: jax.Array,
                 observation: types.Observation) -> heads.HeadInputs:
  return heads.HeadInputs(
    core=core_output, scalar_context=encoding.scalar_context,
    entity_embeddings=encoding.entity_embeddings, map_skips=encoding.map_skips,
    observation=observation)


def _step(networks: _Networks, params: Params, key: jax.Array, observation: types.Observation,
          state: types.CoreState) -> StepOutput:
  encoding = networks.encode(params, None, observation)
  output, states = networks.core(params, None, encoding.core_input[None], jnp.ones(1), state)
  inputs = _head_inputs(encoding, output[0], observation)
  action, log_prob, logits = networks.sample(params, None, key, inputs)
  return StepOutput(action, log_prob, logits, jax.tree.map(lambda x: x[0], states))


def _values(config: AgentConfig, networks: _Networks, params: Params, state: types.CoreState,
            observation: types.Observation, privileged: types.Privileged) -> jax.Array:
  core_output = core.output(config, state)
  return networks.baselines(params, None, core_output, observation, privileged)


def _unroll_batch(config: AgentConfig, networks: _Networks, params: Params,
                  trajectories: types.Trajectory) -> UnrollOutput:
  remat = jax.checkpoint if config.remat == "parts" else lambda function: function
  steps = trajectories.steps
  length, size = steps.discount.shape

  def fold(tree: _Tree) -> _Tree:
    return jax.tree.map(lambda x: x.reshape(length * size, *x.shape[2:]), tree)

  def unfold(tree: _Tree) -> _Tree:
    return jax.tree.map(lambda x: x.reshape(length, size, *x.shape[1:]), tree)

  # A step starts a new game if the step before it was the last of its game.
  keep = jnp.concatenate(
    [jnp.ones((1, size)), (steps.discount[:-1] != 0).astype(jnp.float32)])
  # One axis of all steps instead of time and batch: with two, XLA transposes maps and entities for
  # each convolution and matrix product, which is a quarter of all bytes that a TPU moves.
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


def _unroll(unroll_batch: Callable[[Params, types.Trajectory], UnrollOutput], params: Params,
            trajectory: types.Trajectory) -> UnrollOutput:
  output = unroll_batch(params, types.Trajectory(
    jax.tree.map(lambda x: x[:, None], trajectory.steps),
    jax.tree.map(lambda x: x[None], trajectory.initial_state)))
  return UnrollOutput(
    jax.tree.map(lambda x: x[:, 0], output.logits), output.baselines[:, 0],
    jax.tree.map(lambda x: x[0], output.state))
