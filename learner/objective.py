"""What training minimises: the weighted sum of losses over a batch, for RL and for imitation.

Letters beyond those of `agent.types`: N arguments (7), G groups of them (3), R rewards in use.

Batches are time-major: a `Trajectory` with steps [T + 1, B, ...] and initial states [B, ...]. Steps
0 to T - 1 are learnt, step T only lends its value. Every loss is

    sum over learnt steps of weight * loss / (T * B)

with the constant T * B below, not the sum of weights: then the loss and the gradient of a batch
are the means of those of its equal parts, and `pmean` over devices gives what one device would.

Source: Vinyals et al. 2019, Methods and detailed architecture, which fix the weights; its public
pseudocode's slips (signs, the student of the KL, the first four minutes, masks in the ratios) are
put right here.
"""

from collections.abc import Callable, Iterable, Sequence
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
  Step,
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
ARGUMENTS = Arguments._fields
_GROUP_OF = np.array([
  next(i for i, fields in enumerate(GROUPS.values()) if name in fields) for name in ARGUMENTS])


class Unrollable(Protocol):
  """The part of a policy that learning needs."""

  @property
  def unroll_batch(self) -> Any:
    """`unroll_batch(params, batch)` -> logits, baselines and states of a batch of trajectories."""


class Learnt(NamedTuple):
  """What the terms need of the learnt steps."""

  log_prob: Array  # [T, B, N], the learner's
  behaviour_log_prob: Array  # [T, B, N]
  used: Array  # [T, B, N] bool: the action takes the argument, and the step counts
  ratio: Array  # [T, B, G], not clipped
  baselines: Array  # [T + 1, B, 5]
  reward: Array  # [T, B, 5]
  discount: Array  # [T, B]
  active: Array  # [T, B, 5]: 1 where the game plays for the reward, else 0
  weight: Array  # [T, B]


class Term(NamedTuple):
  """A term of the loss: its costs are in it, the weights of steps are not yet."""

  values: Array  # [T, B, parts]
  parts: Sequence[str]  # what the last axis is over


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
    do not, and are means over the steps that use the argument, as are "illegal/...", the share of
    actions that the learner's masks rule out (their ratio is 0; more than none means that actor and
    learner do not mask alike). Others are means over learnt steps. "policy/..." is there twice, by
    argument and by reward.

  Raises:
    ValueError: when `weights` asks for a teacher and there is none, or T is 0.
  """
  if weights.uses_teacher and teacher_params is None:
    raise ValueError("RLWeights asks for a KL to the teacher, but teacher_params is None; give the "
                     "supervised agent's, or set teacher_kl and action_type_kl to 0.")
  _check(batch)
  logits, baselines = _unroll(policy, params, batch)
  learnt = _learnt(batch.steps, logits, baselines)
  terms, metrics = _value_term(weights, learnt)
  if streams := _nonzero(weights.policy):
    term, by_reward = _vtrace_term(weights, streams, learnt)
    terms["policy"] = term
    metrics |= by_reward
  if streams := _nonzero(weights.upgo):
    terms["upgo"] = _upgo_term(weights, streams, learnt)
  if weights.entropy > 0.0:
    entropy = _each_step(distributions.entropy, logits, batch.steps.action)
    bonus = losses.entropy_loss(entropy, learnt.used)
    terms["entropy"] = Term(weights.entropy * bonus.sum(-1, keepdims=True), ())
    metrics |= _over_used("entropy", entropy, learnt.used)
  if weights.uses_teacher:
    teacher_logits, _ = _unroll(policy, jax.lax.stop_gradient(teacher_params), batch)
    divergence = _each_step(
      distributions.kl, jax.lax.stop_gradient(teacher_logits), logits, batch.steps.action)
    terms |= _teacher_terms(weights, divergence, learnt.used, batch.steps.observation)
    metrics |= _over_used("kl", divergence, learnt.used)
  metrics |= _ratio_metrics(weights, learnt)
  metrics |= _over_used(
    "illegal", learnt.log_prob < 0.5 * distributions.NEGATIVE, learnt.used)
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

  Raises:
    ValueError: when T is 0.
  """
  weights = weights or SLWeights()
  _check(batch)
  logits, _ = _unroll(policy, params, batch)
  action, weight = batch.steps.action, batch.steps.weight[:-1]
  log_prob = _each_step(distributions.log_prob, logits, action)
  legal = _each_step(distributions.is_legal, logits, action)
  used = _used(action, weight)
  cross_entropy = losses.masked_cross_entropy(log_prob, legal, used)
  metrics = _over_used("cross_entropy", cross_entropy, used)
  metrics |= _over_used("accuracy", _each_step(_accuracy, logits, action), used)
  metrics |= _over_used("illegal", ~legal, used)
  costs = np.array(weights.arguments, np.float32)
  terms = {"cross_entropy": Term(jnp.sum(costs * cross_entropy, -1, keepdims=True), ())}
  loss, metrics = _reduce(terms, metrics, weight)
  if weights.l2 > 0.0:
    squares = sum(0.5 * jnp.sum(jnp.square(x)) for x in jax.tree.leaves(params))
    loss += weights.l2 * squares
    metrics |= jax.lax.stop_gradient({"loss/l2": weights.l2 * squares, "loss/total": loss})
  return loss, metrics


# Terms of the RL objective.


def _value_term(weights: RLWeights, learnt: Learnt) -> tuple[dict[str, Term], Metrics]:
  """TD(lambda) of every baseline that has a cost, whether or not its reward is played for."""
  streams = _nonzero(weights.baseline)
  if not streams:
    return {}, {}
  names = [REWARDS[k] for k in streams]
  values, reward = learnt.baselines[..., streams], learnt.reward[..., streams]
  returns = _over(losses.td_lambda_returns, (2, 2, None, None), (1, 1, 1, None))(
    values[1:], reward, learnt.discount, weights.td_lambda)  # [T, B, R]
  errors = 0.5 * jnp.square(returns - values[:-1])
  explained = jax.vmap(losses.explained_variance, in_axes=(2, 2, None))(
    values[:-1], returns, learnt.weight)
  weight = learnt.weight[..., None]
  metrics = _named("explained_variance", explained, names)
  metrics |= _named("mean_value", _mean(values[:-1], weight), names)
  metrics |= _named("mean_reward", _mean(reward, weight), names)
  return {"value": Term(_take(weights.baseline, streams) * errors, names)}, metrics


def _vtrace_term(weights: RLWeights, streams: list[int], learnt: Learnt) -> tuple[Term, Metrics]:
  """V-trace policy gradient, one ratio and trace a group; and how it divides among rewards."""
  values, reward = learnt.baselines[..., streams], learnt.reward[..., streams]

  def one(v_tm1, v_t, r_t, discount_t, rho_tm1):  # [T] each
    return losses.vtrace_advantages(
      v_tm1, v_t, r_t, discount_t, rho_tm1, weights.vtrace_lambda, weights.clip_rho,
      weights.clip_pg_rho)

  advantages = _over(one, (2, 2, 2, None, None), (None, None, None, None, 2), (1, 1, 1, 1, 1))(
    values[:-1], values[1:], reward, learnt.discount, learnt.ratio)  # [T, B, G, R]
  scale = _take(weights.policy, streams) * learnt.active[..., streams]
  advantages = (advantages * scale[..., None, :])[..., _GROUP_OF, :]  # [T, B, N, R]
  term = losses.policy_gradient_loss(learnt.log_prob, advantages.sum(-1), learnt.used)
  log_prob = jnp.where(learnt.used, jax.lax.stop_gradient(learnt.log_prob), 0.0)
  by_reward = -jnp.sum(advantages * log_prob[..., None], axis=2)
  by_reward = jnp.mean(learnt.weight[..., None] * by_reward, axis=(0, 1))
  return Term(term, ARGUMENTS), _named("policy", by_reward, [REWARDS[k] for k in streams])


def _upgo_term(weights: RLWeights, streams: list[int], learnt: Learnt) -> Term:
  """UPGO policy gradient, with the ratio of each group."""
  values, reward = learnt.baselines[..., streams], learnt.reward[..., streams]
  returns = _over(losses.upgo_returns, (2, 2, 2, None), (1, 1, 1, 1))(
    values[:-1], values[1:], reward, learnt.discount)  # [T, B, R]
  scale = _take(weights.upgo, streams) * learnt.active[..., streams]
  gains = jnp.sum(scale * (returns - values[:-1]), axis=-1, keepdims=True)
  advantages = (jnp.minimum(learnt.ratio, weights.clip_pg_rho) * gains)[..., _GROUP_OF]
  return Term(losses.policy_gradient_loss(learnt.log_prob, advantages, learnt.used), ARGUMENTS)


def _teacher_terms(weights: RLWeights, divergence: Array, used: Array,
                   observation: Observation) -> dict[str, Term]:
  """KL to the teacher of every argument, and once more of the function early in the game."""
  z = jax.tree.map(lambda x: x[:-1], observation.statistics)
  conditioned = z.units.any(-1) | z.effects.any(-1) | z.upgrades.any(-1)
  seconds = observation.game_loop[:-1] / GAME_LOOPS_PER_SECOND
  early = losses.early_game(seconds, conditioned, weights.action_type_kl_seconds)
  divergence = jnp.where(used, divergence, 0.0)
  function = divergence[..., ARGUMENTS.index("function")]
  return {
    "teacher_kl": Term(weights.teacher_kl * divergence.sum(-1, keepdims=True), ()),
    "action_type_kl": Term((weights.action_type_kl * early * function)[..., None], ()),
  }


def _ratio_metrics(weights: RLWeights, learnt: Learnt) -> Metrics:
  """How far the learner is from the behaviour policy."""
  clip, weight = weights.clip_pg_rho, learnt.weight[..., None]
  return (_named("clipped_fraction", _mean(learnt.ratio > clip, weight), GROUPS)
          | _named("ratio", _mean(jnp.minimum(learnt.ratio, clip), weight), GROUPS))


def _accuracy(logits: Arguments, action: Action) -> Arguments:
  """Whether the likeliest choice of each argument is the action's; of units, the share of picks."""
  correct = Arguments(*(
    (distributions.mode(x) == getattr(action, name)).astype(jnp.float32)
    for name, x in zip(ARGUMENTS, logits, strict=True)))
  executed = distributions.executed_picks(action.units, logits.units.shape[-1] - 1)
  return correct._replace(units=_mean(correct.units, executed))


# From a batch to what the terms need.


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
  output = policy.unroll_batch(params, batch)
  return output.logits, output.baselines


def _learnt(steps: Step, logits: Arguments, baselines: Array) -> Learnt:
  log_prob = _each_step(distributions.log_prob, logits, steps.action)
  behaviour = jnp.stack(steps.log_prob, axis=-1)[:-1]
  weight = steps.weight[:-1]
  used = _used(steps.action, weight)

  def group(values, fields):
    return [values[..., ARGUMENTS.index(name)] for name in fields]

  ratios = [
    losses.joint_ratio(group(log_prob, names), group(behaviour, names), group(used, names))
    for names in GROUPS.values()]
  active = jnp.concatenate(
    [jnp.ones_like(weight)[..., None], steps.pseudo_active[:-1].astype(jnp.float32)], axis=-1)
  return Learnt(
    log_prob, behaviour, used, jnp.stack(ratios, axis=-1), baselines, steps.reward[:-1],
    steps.discount[:-1], active, weight)


def _used(action: Action, weight: Array) -> Array:
  """[T, B, N] bool: whether each argument of a learnt step has a part in the loss."""
  masks = vocabulary.argument_mask(action.function[:-1].astype(jnp.int32))
  return jnp.stack(masks, axis=-1) & (weight > 0)[..., None]


def _each_step(function: Callable, *args: Any) -> Array:
  """[T, B, N]: a function of one step that gives Arguments of scalars, at every learnt step.

  It is computed at the bootstrap step too and cut there: cutting the logits, thousands of times
  larger, would copy them.
  """
  return jnp.stack(jax.vmap(jax.vmap(function))(*args), axis=-1)[:-1]


def _over(function: Callable, *in_axes: tuple) -> Callable:
  """vmaps a function of [T] arrays once for each tuple of axes, the first outermost.

  The last tuple is the batch's; results are [T, B, ...] with the first tuple's axis last.
  """
  for axes in reversed(in_axes):
    function = jax.vmap(function, in_axes=axes, out_axes=-1)
  return function


# From values to scalars.


def _nonzero(costs: Sequence[float]) -> list[int]:
  return [k for k, cost in enumerate(costs) if cost > 0.0]


def _take(costs: Sequence[float], streams: list[int]) -> np.ndarray:
  return np.array([costs[k] for k in streams], np.float32)


def _mean(values: Array, weight: Array) -> Array:
  """Weighted mean over the first two axes, or all if there are fewer; 0 where no weight is."""
  axes = tuple(range(min(2, values.ndim)))
  weight = weight.astype(jnp.float32)
  return jnp.sum(weight * values, axes) / jnp.maximum(jnp.sum(weight, axes), 1.0)


def _named(kind: str, values: Array, names: Iterable[str]) -> Metrics:
  return {f"{kind}/{name}": values[i] for i, name in enumerate(names)}


def _over_used(kind: str, values: Array, used: Array) -> Metrics:
  """Each argument's mean over the steps that use it."""
  return _named(kind, _mean(values, used), ARGUMENTS)


def _reduce(terms: dict[str, Term], metrics: Metrics, weight: Array) -> tuple[Array, Metrics]:
  """The loss, and all metrics: those given, each term as "loss/term", its parts as "term/part"."""
  loss, metrics = jnp.zeros(()), dict(metrics)
  for name, (values, parts) in terms.items():
    value = jnp.mean(weight[..., None] * values, axis=(0, 1))  # constant T * B below
    loss += value.sum()
    metrics |= {f"loss/{name}": value.sum(), **_named(name, value, parts)}
  metrics |= {"loss/total": loss, "learnt_steps": jnp.mean(weight)}
  return loss, jax.lax.stop_gradient(metrics)
