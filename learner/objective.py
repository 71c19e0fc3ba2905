"""The RL objective: a weighted sum of losses over a batch.

Letters beyond those of `agent.types`: N arguments (7), G argument groups (3), R rewards in use.

Batches are time-major: a `Trajectory` with steps [T + 1, B, ...] and initial states [B, ...]. Steps
0 to T - 1 are learnt; step T only provides the bootstrap value. Every loss is

    sum over learnt steps of weight * loss / (T * B)

The denominator is the constant T * B, not the sum of weights. The loss and gradient of a batch are
then the means of those of its equal parts, and `pmean` over devices gives one device's result.

Returns and advantages are computed as [T, R, B] and [T, G, R, B]: scans over time then use their
inputs as they lie in memory, and vectorise over B.

Source: Vinyals et al. 2019, Methods and detailed architecture, for the weights. Errors of its
public pseudocode (signs, the student of the KL, the first four minutes, masks of the ratios) are
corrected here; `docs/losses.md` lists them.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import baselines, distributions
from starleague.agent.types import (
  GAME_LOOPS_PER_SECOND,
  REWARDS,
  Array,
  Observation,
  Step,
  Trajectory,
)
from starleague.agent.vocabulary import Arguments
from starleague.learner import losses
from starleague.learner.terms import (
  ARGUMENTS,
  Metrics,
  Term,
  Unrollable,
  check_batch,
  each_step,
  named,
  over_learnt,
  over_used,
  reduce_terms,
  used_arguments,
)
from starleague.learner.weights import Factors, RLWeights

# Arguments that share an importance ratio and a trace.
GROUPS = {
  "function": ("function",),
  "delay": ("delay",),
  "others": ("queued", "repeat", "units", "target_unit", "location"),
}
_GROUP_OF = np.array([
  next(i for i, fields in enumerate(GROUPS.values()) if name in fields) for name in ARGUMENTS])


class Learnt(NamedTuple):
  """Inputs of the terms at the learnt steps."""

  log_prob: Array  # [T, B, N], the learner's
  used: Array  # [T, B, N] bool: ratios and policy losses include the argument
  ratio: Array  # [T, G, B], importance ratios pi/mu, unclipped
  baselines: Array  # [T + 1, 5, B]
  reward: Array  # [T, 5, B]
  discount: Array  # [T, B]
  active: Array  # [T, 5, B], 0 or 1: a_k of `learner.weights`
  weight: Array  # [T, B]


def rl_loss(policy: Unrollable, weights: RLWeights, params: Any, teacher_params: Any,
            batch: Trajectory, factors: Factors | None = None) -> tuple[Array, Metrics]:
  """Computes the RL objective: V-trace, UPGO, TD(lambda), entropy, and KL to the teacher.

  Args:
    policy: the policy that learns.
    weights: costs of the terms, static under jit.
    params: the policy's parameters.
    teacher_params: parameters of the frozen teacher, of the same policy; None if no term with a
      cost in `weights` needs a teacher.
    batch: steps [T + 1, B, ...], initial states [B, ...].
    factors: of costs in `weights`; None: 1 each.

  Returns:
    (loss [], metrics {name: []}).

    * "loss/...", "policy/...", "upgo/...", "value/...": terms of the loss, averaged like it, with
      their costs. "policy/..." is given both by argument and by reward.
    * "entropy/...", "kl/...": means over the steps that use the argument, without costs.
    * "used/...": the fraction of steps that use the argument and are learnt.
    * "illegal/...": the fraction of actions that the learner's masks forbid, of the steps that use
      the argument. Their importance ratio is 0. Anything above 0 means that the masks of actor and
      learner differ.
    * all others: means over learnt steps. "explained_variance/..." is computed in each part of a
      batch, by device or accumulated, because a variance is no mean over steps.

    Means over some steps are numerators, which `terms.measured` divides.

  Raises:
    ValueError: `weights` needs a teacher and `teacher_params` is None, or T is 0.
  """
  if weights.uses_teacher and teacher_params is None:
    raise ValueError("teacher_params is None, but RLWeights has a KL to the teacher: pass the "
                     "supervised agent's parameters, or set teacher_kl and function_kl to 0")
  check_batch(batch)
  logits, baselines = _unroll(policy, params, batch)
  learnt = learnt_inputs(batch.steps, logits, baselines)
  terms, metrics = value_term(weights, learnt)
  if streams := _nonzero(weights.policy):
    term, by_reward = vtrace_term(weights, streams, learnt, factors)
    terms["policy"] = term
    metrics |= by_reward
  if streams := _nonzero(weights.upgo):
    terms["upgo"] = _upgo_term(weights, streams, learnt, factors)
  if weights.entropy > 0.0:
    entropy = each_step(distributions.entropy, logits, batch.steps.action)
    bonus = losses.entropy_loss(entropy, learnt.used)
    cost = weights.entropy if factors is None else weights.entropy * factors.entropy
    terms["entropy"] = Term(cost * bonus.sum(-1, keepdims=True), ())
    metrics |= over_used("entropy", entropy, learnt.used)
  if weights.uses_teacher:
    teacher_logits, _ = _unroll(policy, jax.lax.stop_gradient(teacher_params), batch)
    divergence = each_step(
      distributions.kl, jax.lax.stop_gradient(teacher_logits), logits, batch.steps.action)
    terms |= _teacher_terms(weights, divergence, learnt.used, batch.steps.observation)
    metrics |= over_used("kl", divergence, learnt.used)
  metrics |= ratio_metrics(weights, learnt)
  metrics |= over_used(
    "illegal", learnt.log_prob < 0.5 * distributions.NEGATIVE, learnt.used)
  return reduce_terms(terms, metrics, learnt.weight)


# Terms of the RL objective.


def value_term(weights: RLWeights, learnt: Learnt) -> tuple[dict[str, Term], Metrics]:
  """Computes TD(lambda) of every baseline with a cost, whether or not its reward is active."""
  streams = _nonzero(weights.baseline)
  if not streams:
    return {}, {}
  names = [REWARDS[k] for k in streams]
  values, reward = learnt.baselines[:, streams], learnt.reward[:, streams]
  returns = _time_major(losses.td_lambda_returns, (1, 1, None, None), (1, 1, 1, None))(
    values[1:], reward, learnt.discount, weights.td_lambda)  # [T, R, B]
  errors = 0.5 * jnp.square(returns - values[:-1])
  explained = jax.vmap(losses.explained_variance, in_axes=(1, 1, None))(
    values[:-1], returns, learnt.weight)
  metrics = over_learnt("explained_variance", explained[:, None], learnt.weight, names)
  metrics |= over_learnt("mean_value", values[:-1], learnt.weight, names)
  metrics |= over_learnt("mean_reward", reward, learnt.weight, names)
  errors = jnp.moveaxis(_take(weights.baseline, streams) * errors, 1, -1)
  return {"value": Term(errors, names)}, metrics


def vtrace_term(weights: RLWeights, streams: list[int], learnt: Learnt,
                factors: Factors | None = None) -> tuple[Term, Metrics]:
  """Computes the V-trace policy gradient, with one ratio per group, and its parts by reward."""
  values, reward = learnt.baselines[:, streams], learnt.reward[:, streams]

  def one(v_tm1: Array, v_t: Array, r_t: Array, discount_t: Array, rho_tm1: Array) -> Array:
    return losses.vtrace_advantages(
      v_tm1, v_t, r_t, discount_t, rho_tm1, weights.vtrace_lambda, weights.clip_rho,
      weights.clip_pg_rho)

  advantages = _time_major(
    one, (None, None, None, None, 1), (1, 1, 1, None, None), (1, 1, 1, 1, 1))(
      values[:-1], values[1:], reward, learnt.discount, learnt.ratio)  # [T, G, R, B]
  scale = _scaled(weights.policy, streams, factors) * learnt.active[:, streams]
  advantages *= scale[:, None]
  term = losses.policy_gradient_loss(
    learnt.log_prob, _by_argument(advantages.sum(2)), learnt.used)
  log_prob = jnp.where(learnt.used, jax.lax.stop_gradient(learnt.log_prob), 0.0)
  of_group = jnp.stack([
    jnp.sum(log_prob[..., _GROUP_OF == i], axis=-1) for i in range(len(GROUPS))], axis=1)
  by_reward = -jnp.mean(learnt.weight[:, None] * jnp.sum(advantages * of_group[:, :, None], axis=1),
                        axis=(0, 2))
  return Term(term, ARGUMENTS), named("policy", by_reward, [REWARDS[k] for k in streams])


def _upgo_term(weights: RLWeights, streams: list[int], learnt: Learnt,
               factors: Factors | None) -> Term:
  """Computes the UPGO policy gradient, with the importance ratio of each group."""
  values, reward = learnt.baselines[:, streams], learnt.reward[:, streams]
  returns = _time_major(losses.upgo_returns, (1, 1, 1, None), (1, 1, 1, 1))(
    values[:-1], values[1:], reward, learnt.discount)  # [T, R, B]
  scale = _scaled(weights.upgo, streams, factors) * learnt.active[:, streams]
  gains = jnp.sum(scale * (returns - values[:-1]), axis=1, keepdims=True)  # [T, 1, B]
  advantages = _by_argument(jnp.minimum(learnt.ratio, weights.clip_pg_rho) * gains)
  return Term(losses.policy_gradient_loss(learnt.log_prob, advantages, learnt.used), ARGUMENTS)


def _teacher_terms(weights: RLWeights, divergence: Array, used: Array,
                   observation: Observation) -> dict[str, Term]:
  """Computes the KL to the teacher: of all arguments, and again of the function early in games."""
  z = jax.tree.map(lambda x: x[:-1], observation.statistics)
  conditioned = z.units.any(-1) | z.effects.any(-1) | z.upgrades.any(-1)
  seconds = observation.game_loop[:-1] / GAME_LOOPS_PER_SECOND
  early = losses.early_game(seconds, conditioned, weights.function_kl_seconds)
  divergence = jnp.where(used, divergence, 0.0)
  function = divergence[..., ARGUMENTS.index("function")]
  return {
    "teacher_kl": Term(weights.teacher_kl * divergence.sum(-1, keepdims=True), ()),
    "function_kl": Term((weights.function_kl * early * function)[..., None], ()),
  }


def ratio_metrics(weights: RLWeights, learnt: Learnt) -> Metrics:
  """Computes means of the clipped importance ratios, and the fraction that is clipped."""
  clip = weights.clip_pg_rho
  return (over_learnt("clipped_fraction", learnt.ratio > clip, learnt.weight, GROUPS)
          | over_learnt("ratio", jnp.minimum(learnt.ratio, clip), learnt.weight, GROUPS))


# Inputs of the terms.


def hide_opponent(trajectories: Trajectory) -> Trajectory:
  """Returns trajectories of which the value functions see the player's own side only."""
  steps = trajectories.steps
  return trajectories._replace(
    steps=steps._replace(privileged=baselines.hide_opponent(steps.privileged)))


def _unroll(policy: Unrollable, params: Any, batch: Trajectory) -> tuple[Arguments, Array]:
  """Returns logits [T + 1, B, ...] and baselines [T + 1, B, 5] of a batch."""
  output = policy.unroll_batch(params, batch)
  return output.logits, output.baselines


def learnt_inputs(steps: Step, logits: Arguments, baselines: Array,
                  legal: Array | None = None) -> Learnt:
  """Returns the inputs of the terms, from steps [T + 1, B, ...] and the learner's outputs.

  Args:
    steps: of the batch.
    logits: the learner's, [T + 1, B, ...].
    baselines: the learner's, [T + 1, B, 5].
    legal: [T, B, N] bool, the arguments that ratios and policy losses may include; None: all.
  """
  log_prob = each_step(distributions.log_prob, logits, steps.action)
  behaviour = jnp.stack(steps.log_prob, axis=-1)[:-1]
  weight = steps.weight[:-1]
  used = used_arguments(steps.action, weight)
  used = used if legal is None else used & legal

  def group(values, fields):
    return [values[..., ARGUMENTS.index(name)] for name in fields]

  ratios = [
    losses.joint_ratio(group(log_prob, names), group(behaviour, names), group(used, names))
    for names in GROUPS.values()]
  active = jnp.concatenate(
    [jnp.ones_like(weight)[..., None], steps.pseudo_active[:-1].astype(jnp.float32)], axis=-1)
  baselines, reward, active = (
    jnp.swapaxes(x, 1, 2) for x in (baselines, steps.reward[:-1], active))
  return Learnt(log_prob, used, jnp.stack(ratios, axis=1), baselines, reward,
                steps.discount[:-1], active, weight)


def _time_major(function: Callable, *in_axes: tuple) -> Callable:
  """vmaps a function of [T] arrays once per tuple of axes, the first outermost.

  Results are [T, ...] with one axis per tuple, in that order: no array is transposed on the way to
  the function's scan if the batch is the last tuple and the last axis of all inputs.
  """
  for axes in reversed(in_axes):
    function = jax.vmap(function, in_axes=axes, out_axes=1)
  return function


def _by_argument(of_groups: Array) -> Array:
  """Spreads values [T, G, B] of groups to their arguments: [T, B, N]."""
  return jnp.moveaxis(of_groups[:, _GROUP_OF], 1, -1)


# Reductions.


def _nonzero(costs: Sequence[float]) -> list[int]:
  return [k for k, cost in enumerate(costs) if cost > 0.0]


def _scaled(costs: Sequence[float], streams: list[int], factors: Factors | None) -> Array:
  """Returns the policy's costs of some rewards with their factors, [R, 1]."""
  found = _take(costs, streams)
  if factors is None:
    return found
  return found * jnp.where(np.array(streams)[:, None] == 0, 1.0, factors.pseudo)


def _take(costs: Sequence[float], streams: list[int]) -> np.ndarray:
  """Returns the costs of some rewards, [R, 1], to multiply [T, R, B]."""
  return np.array([costs[k] for k in streams], np.float32)[:, None]
