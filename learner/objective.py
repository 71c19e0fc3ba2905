"""What training minimises: the weighted sum of losses over a batch, for RL and for imitation.

Batches are time-major: a `Trajectory` with steps [T + 1, B, ...] and initial states [B, ...]. Steps
0 to T - 1 are learnt, step T only lends its value. Every loss is

    sum over learnt steps of weight * loss / (T * B)

with the constant T * B below, not the sum of weights: then the loss and the gradient of a batch
are the means of those of its equal parts, and `pmean` over devices gives what one device would.

Source: Vinyals et al. 2019, Methods and detailed architecture, which fix the weights; its public
pseudocode's slips (signs, the student of the KL, the first four minutes, masks in the ratios) are
put right here.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import chex
import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import distributions, vocabulary
from starleague.agent.types import (
  GAME_LOOPS_PER_SECOND,
  PSEUDO_REWARDS,
  REWARDS,
  Action,
  Array,
  Observation,
  Trajectory,
)
from starleague.agent.vocabulary import Arguments
from starleague.learner import losses
from starleague.learner.weights import RLWeights, SLWeights

Metrics = dict[str, Array]

# Arguments that share one importance ratio and one trace.
GROUPS = {
  "function": ("function",),
  "delay": ("delay",),
  "others": ("queued", "repeat", "units", "target_unit", "location"),
}
_FIELDS = Arguments._fields
_GROUP_OF = np.array([
  next(i for i, fields in enumerate(GROUPS.values()) if field in fields) for field in _FIELDS])


class Unrollable(Protocol):
  """The part of a policy that learning needs."""

  @property
  def unroll(self) -> Any:
    """`unroll(params, trajectory)` -> logits, baselines and state of one trajectory."""


class Learnt(NamedTuple):
  """What the terms need of the learnt steps, [T, B, ...] each; the fields are `types.Step`'s."""

  action: Action
  log_prob: Arguments
  reward: Array
  discount: Array
  pseudo_active: Array
  weight: Array


def rl_loss(policy: Unrollable, weights: RLWeights, params: Any, teacher_params: Any,
            batch: Trajectory) -> tuple[Array, Metrics]:
  """The RL objective: V-trace and UPGO policy gradients, TD(lambda), entropy, KL to the teacher.

  Args:
    policy: whose `unroll` gives logits [T + 1, ...] and baselines [T + 1, 5] of one trajectory.
    weights: the terms' costs, static under jit.
    params: what learns.
    teacher_params: the frozen teacher's, of the same policy; None where `weights` asks for none.
    batch: steps [T + 1, B, ...], initial states [B, ...].

  Returns:
    (loss [], metrics). Metrics are scalars. Terms of the loss ("loss/...", "policy/...",
    "upgo/...", "value/...") are averaged as it is and hold their costs; "entropy/..." and "kl/..."
    do not, and are means over the steps that use the argument; others are means over learnt steps.

  Raises:
    ValueError: when `weights` asks for a teacher and there is none.
  """
  if weights.uses_teacher and teacher_params is None:
    raise ValueError("RLWeights asks for a KL to the teacher, but teacher_params is None; give the "
                     "supervised agent's, or set teacher_kl and action_type_kl to 0.")
  _check(batch)
  steps = batch.steps
  logits, baselines = _unroll(policy, params, batch)
  # Log-probs and the like are computed for all T + 1 steps and then cut: cutting the logits, which
  # are thousands of times larger, would copy them.
  log_prob = _cut(_each_step(distributions.log_prob)(logits, steps.action))
  learnt = _cut(Learnt(*(getattr(steps, field) for field in Learnt._fields)))
  used = jax.tree.map(lambda use: use & (learnt.weight > 0), _used(learnt.action))
  ratios = _group_ratios(log_prob, learnt.log_prob, used)

  terms, metrics = _value_terms(weights, baselines, learnt)
  advantages = _vtrace_advantages(weights, baselines, learnt, ratios)
  terms |= _gradient_terms("policy", advantages, log_prob, used)
  terms |= _gradient_terms("upgo", _upgo_advantages(weights, baselines, learnt, ratios), log_prob,
                           used)
  if weights.entropy > 0.0:
    entropy = _cut(_each_step(distributions.entropy)(logits, steps.action))
    terms["entropy"] = weights.entropy * sum(
      losses.entropy_loss(*pair) for pair in zip(entropy, used, strict=True))
    metrics |= _over_used("entropy", entropy, used)
  if weights.uses_teacher:
    teacher_logits, _ = _unroll(policy, jax.lax.stop_gradient(teacher_params), batch)
    teacher_logits = jax.lax.stop_gradient(teacher_logits)
    divergence = _cut(_each_step(distributions.kl)(teacher_logits, logits, steps.action))
    early = _cut(_early_game(steps.observation, weights.action_type_kl_seconds))
    terms |= _teacher_terms(weights, divergence, used, early)
    metrics |= _over_used("kl", divergence, used)
  metrics |= _by_reward(advantages, log_prob, used, learnt.weight)
  metrics |= _ratio_metrics(weights, ratios, learnt.weight)
  return _reduce(terms, metrics, learnt.weight)


def sl_loss(policy: Unrollable, params: Any, batch: Trajectory,
            weights: SLWeights | None = None) -> tuple[Array, Metrics]:
  """The imitation objective: cross-entropy of every argument that was used, and L2.

  Args:
    policy: as for `rl_loss`; its baselines do not learn.
    params: what learns.
    batch: steps [T + 1, B, ...], initial states [B, ...]; rewards and log-probs are not read.
    weights: the terms' costs, static under jit; the published ones where None.

  Returns:
    (loss [], metrics). "cross_entropy/..." and "accuracy/..." are means over the steps that use the
    argument, and do not hold its cost; accuracy of units is over picks. "illegal/..." is the share
    of labels that masks rule out, which add nothing to the loss.
  """
  weights = weights or SLWeights()
  _check(batch)
  steps = batch.steps
  logits, _ = _unroll(policy, params, batch)
  log_prob, legal, correct = (
    _cut(_each_step(f)(logits, steps.action))
    for f in (distributions.log_prob, distributions.is_legal, _accuracy))
  weight = steps.weight[:-1]
  used = jax.tree.map(lambda use: use & (weight > 0), _cut(_used(steps.action)))
  cross_entropy = jax.tree.map(losses.masked_cross_entropy, log_prob, legal, used)
  terms = {"cross_entropy": sum(
    cost * value for cost, value in zip(weights.arguments, cross_entropy, strict=True))}
  metrics = _over_used("cross_entropy", cross_entropy, used)
  metrics |= _over_used("accuracy", correct, used)
  metrics |= _over_used("illegal", jax.tree.map(jnp.logical_not, legal), used)
  loss, metrics = _reduce(terms, metrics, weight)
  if weights.l2 > 0.0:
    squares = sum(0.5 * jnp.sum(jnp.square(x)) for x in jax.tree.leaves(params))
    loss += weights.l2 * squares
    metrics["loss/l2"] = jax.lax.stop_gradient(weights.l2 * squares)
    metrics["loss/total"] = jax.lax.stop_gradient(loss)
  return loss, metrics


# Terms of the RL objective: [T, B] values by name, costs included, before weights of steps.


def _value_terms(weights: RLWeights, baselines: Array, learnt: Learnt) -> tuple[Metrics, Metrics]:
  """TD(lambda) of every baseline that has a cost, whether or not its reward is played for."""
  streams = _nonzero(weights.baseline)
  if not streams:
    return {}, {}
  values = baselines[..., streams]  # [T + 1, B, S]
  rewards = learnt.reward[..., streams]
  returns = _over(losses.td_lambda_returns, (2, 2, None, None), (1, 1, 1, None))(
    values[1:], rewards, learnt.discount, weights.td_lambda)
  terms, metrics = {}, {}
  for i, k in enumerate(streams):
    v_tm1, target = values[:-1, :, i], returns[..., i]
    terms[f"value/{REWARDS[k]}"] = weights.baseline[k] * 0.5 * jnp.square(target - v_tm1)
    metrics[f"explained_variance/{REWARDS[k]}"] = losses.explained_variance(
      v_tm1, target, learnt.weight)
    metrics[f"mean_value/{REWARDS[k]}"] = _mean(v_tm1, learnt.weight)
    metrics[f"mean_reward/{REWARDS[k]}"] = _mean(rewards[..., i], learnt.weight)
  return terms, metrics


def _vtrace_advantages(weights: RLWeights, baselines: Array, learnt: Learnt,
                       ratios: Array) -> dict[str, Array]:
  """[T, B, G] advantages of each reward that has a cost; a pseudo-reward's only where it is on."""
  streams = _nonzero(weights.policy)
  if not streams:
    return {}
  values, rewards = baselines[..., streams], learnt.reward[..., streams]
  clips = (weights.vtrace_lambda, weights.clip_rho, weights.clip_pg_rho)

  def one(v_tm1, v_t, r_t, discount_t, rho):  # each [T]
    return losses.vtrace_advantages(v_tm1, v_t, r_t, discount_t, rho, *clips)

  advantages = _over(
    one, (2, 2, 2, None, None), (None, None, None, None, 2), (1, 1, 1, 1, 1))(
    values[:-1], values[1:], rewards, learnt.discount, ratios)  # [T, B, G, S]
  active = learnt.pseudo_active.astype(jnp.float32)
  scaled = {}
  for i, k in enumerate(streams):
    scale = weights.policy[k] * (active[..., k - 1, None] if k > 0 else 1.0)
    scaled[REWARDS[k]] = scale * advantages[..., i]
  return scaled


def _upgo_advantages(weights: RLWeights, baselines: Array, learnt: Learnt,
                     ratios: Array) -> dict[str, Array]:
  """[T, B, G] advantages of each reward that has a cost."""
  streams = _nonzero(weights.upgo)
  if not streams:
    return {}
  values, rewards = baselines[..., streams], learnt.reward[..., streams]
  returns = _over(losses.upgo_returns, (2, 2, 2, None), (1, 1, 1, 1))(
    values[:-1], values[1:], rewards, learnt.discount)  # [T, B, S]
  gains = jax.lax.stop_gradient(returns - values[:-1])
  active = learnt.pseudo_active.astype(jnp.float32)
  scaled = {}
  for i, k in enumerate(streams):
    scale = weights.upgo[k] * (active[..., k - 1] if k > 0 else 1.0)
    clipped = jnp.minimum(ratios, weights.clip_pg_rho)
    scaled[REWARDS[k]] = clipped * (scale * gains[..., i])[..., None]
  return scaled


def _gradient_terms(name: str, advantages: dict[str, Array], log_prob: Arguments,
                    used: Arguments) -> Metrics:
  """Policy gradient losses, one an argument, of the sum of all rewards' advantages."""
  if not advantages:
    return {}
  total: Array = sum(advantages.values())
  return {
    f"{name}/{field}": losses.policy_gradient_loss(
      getattr(log_prob, field), total[..., _GROUP_OF[i]], getattr(used, field))
    for i, field in enumerate(_FIELDS)}


def _teacher_terms(weights: RLWeights, divergence: Arguments, used: Arguments,
                   early: Array) -> Metrics:
  """KL to the teacher of every argument, and once more of the function early in the game."""
  masked = jax.tree.map(lambda kl, use: jnp.where(use, kl, 0.0), divergence, used)
  return {
    "teacher_kl": weights.teacher_kl * sum(masked),
    "action_type_kl": weights.action_type_kl * early * masked.function,
  }


# Measures that are no part of the loss.


def _by_reward(advantages: dict[str, Array], log_prob: Arguments, used: Arguments,
               weight: Array) -> Metrics:
  """How the V-trace loss divides among rewards; arguments divide the same sum."""
  metrics = {}
  for name, advantage in advantages.items():
    parts = _gradient_terms("", {name: advantage}, log_prob, used).values()
    metrics[f"policy/{name}"] = jnp.mean(weight * sum(parts))
  return metrics


def _ratio_metrics(weights: RLWeights, ratios: Array, weight: Array) -> Metrics:
  """How far the learner is from the behaviour policy."""
  metrics = {}
  for i, name in enumerate(GROUPS):
    ratio = ratios[..., i]
    clip = weights.clip_pg_rho
    metrics[f"clipped_fraction/{name}"] = _mean(ratio > clip, weight)
    metrics[f"ratio/{name}"] = _mean(jnp.minimum(ratio, clip), weight)
  return metrics


def _accuracy(logits: Arguments, action: Action) -> Arguments:
  """Whether the likeliest choice of each argument is the action's; of units, the share of picks."""
  correct = jax.tree.map(
    lambda x, label: (distributions.mode(x) == label).astype(jnp.float32),
    logits, Arguments(*action))
  executed = distributions.executed_picks(action.units, logits.units.shape[-1] - 1)
  return correct._replace(units=_mean(correct.units, executed))


# Plumbing.


def _check(batch: Trajectory) -> None:
  steps = batch.steps
  length, size = steps.weight.shape
  if length < 2:
    raise ValueError(f"Trajectories hold {length} step; expected T + 1 of them, T at least 1, the "
                     "last to bootstrap from.")
  chex.assert_shape(steps.discount, (length, size))
  chex.assert_shape(steps.reward, (length, size, len(REWARDS)))
  chex.assert_shape(steps.pseudo_active, (length, size, len(PSEUDO_REWARDS)))
  chex.assert_tree_shape_prefix((steps.log_prob, steps.action), (length, size))


def _unroll(policy: Unrollable, params: Any, batch: Trajectory) -> tuple[Arguments, Array]:
  """Logits [T + 1, B, ...] and baselines [T + 1, B, 5] of a batch."""
  def one(trajectory):
    output = policy.unroll(params, trajectory)
    return output.logits, output.baselines

  axes: Any = Trajectory(steps=1, initial_state=0)  # type: ignore[arg-type]
  return jax.vmap(one, in_axes=(axes,), out_axes=1)(batch)


def _each_step(function: Callable) -> Callable:
  return jax.vmap(jax.vmap(function))


def _over(function: Callable, *in_axes: tuple) -> Callable:
  """vmaps once for each tuple of axes, the first outermost; what is added comes out behind."""
  for axes in reversed(in_axes):
    function = jax.vmap(function, in_axes=axes, out_axes=-1)
  return function


def _cut(tree: Any) -> Any:
  """All but the bootstrap step."""
  return jax.tree.map(lambda x: x[:-1], tree)


def _used(action: Action) -> Arguments:
  return vocabulary.argument_mask(action.function.astype(jnp.int32))


def _nonzero(costs: tuple[float, ...]) -> list[int]:
  return [k for k, cost in enumerate(costs) if cost > 0.0]


def _group_ratios(log_prob: Arguments, behaviour: Arguments, used: Arguments) -> Array:
  """[T, B, G]: each group's importance ratio."""
  def group(tree, fields):
    return [getattr(tree, field) for field in fields]

  return jnp.stack([
    losses.joint_ratio(group(log_prob, fields), group(behaviour, fields), group(used, fields))
    for fields in GROUPS.values()], axis=-1)


def _early_game(observation: Observation, seconds: float) -> Array:
  """[...] 1 early in games whose cumulative statistics the policy is asked to follow."""
  z = observation.statistics
  conditioned = z.units.any(-1) | z.effects.any(-1) | z.upgrades.any(-1)
  return losses.early_game(observation.game_loop / GAME_LOOPS_PER_SECOND, conditioned, seconds)


def _mean(values: Array, weight: Array) -> Array:
  """Weighted mean; 0 where no weight is."""
  weight = weight.astype(jnp.float32)
  return jnp.sum(weight * values) / jnp.maximum(jnp.sum(weight), 1.0)


def _over_used(name: str, values: Arguments, used: Arguments) -> Metrics:
  """Each argument's mean over the steps that use it."""
  return {f"{name}/{field}": _mean(getattr(values, field), getattr(used, field))
          for field in _FIELDS}


def _reduce(terms: Metrics, metrics: Metrics, weight: Array) -> tuple[Array, Metrics]:
  """The loss, and all metrics: a term named "a/b" is shown by itself and within "loss/a"."""
  loss, metrics = jnp.zeros(()), dict(metrics)
  for name, values in terms.items():
    value = jnp.mean(weight * values)
    loss += value
    kind, _, part = name.partition("/")
    metrics[f"loss/{kind}"] = metrics.get(f"loss/{kind}", 0.0) + value
    if part:
      metrics[name] = value
  metrics |= {"loss/total": loss, "learnt_steps": jnp.mean(weight)}
  return loss, jax.lax.stop_gradient(metrics)
