"""Parts that the objectives share: inputs at the learnt steps, terms, reductions.

Letters beyond those of `agent.types`: N arguments (7). `objective` describes batches and losses.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import chex
import jax
import jax.numpy as jnp

from starleague.agent import vocabulary
from starleague.agent.policy import UnrollOutput
from starleague.agent.types import PSEUDO_REWARDS, REWARDS, Action, Array, Trajectory
from starleague.agent.vocabulary import Arguments

Metrics = dict[str, Array]
ARGUMENTS = Arguments._fields
# Kinds of metrics that are means over the steps that use the argument, and over learnt steps. The
# losses return their numerators: see `measured`.
OVER_USED = ("cross_entropy", "accuracy", "illegal", "entropy", "kl")
OVER_LEARNT = (
  "ratio", "clipped_fraction", "mean_value", "mean_reward", "explained_variance", "emphasis")
# Losses that are shown per learnt step, as that of held-out games is. The loss that is minimised is
# a mean over all T * B steps.
LOSS_OVER_LEARNT = ("loss/cross_entropy",)
# Metrics of companion systems that are means over fresh unrolls, in batches with replayed ones.
OVER_FRESH = ("loss/policy", "loss/value", "entropy/action")


class Unrollable(Protocol):
  """The interface that the objectives need of a policy."""

  @property
  def unroll_batch(self) -> Callable[[Any, Trajectory], UnrollOutput]:
    """`unroll_batch(params, batch)` -> logits [T + 1, B, ...] and baselines [T + 1, B, 5]."""


class Term(NamedTuple):
  """A term of the loss, multiplied by its costs but not by the weights of steps."""

  values: Array  # [T, B, parts]
  parts: Sequence[str]  # names along the last axis


def check_batch(batch: Trajectory) -> None:
  """Checks the shapes of a batch's steps.

  Raises:
    ValueError: T is 0.
  """
  steps = batch.steps
  length, size = steps.weight.shape
  if length < 2:
    raise ValueError(f"trajectories: found {length} step, expected T + 1 with T at least 1: the "
                     "last step is the bootstrap step")
  chex.assert_shape(steps.discount, (length, size))
  chex.assert_shape(steps.reward, (length, size, len(REWARDS)))
  chex.assert_shape(steps.pseudo_active, (length, size, len(PSEUDO_REWARDS)))
  chex.assert_tree_shape_prefix((steps.log_prob, steps.action), (length, size))


def used_arguments(action: Action, weight: Array) -> Array:
  """Returns the mask [T, B, N] of the arguments that the losses of learnt steps include."""
  masks = vocabulary.argument_mask(action.function[:-1].astype(jnp.int32))
  return jnp.stack(masks, axis=-1) & (weight > 0)[..., None]


def each_step(function: Callable, *args: Any) -> Array:
  """Applies a function of one step, which returns Arguments of scalars, to every learnt step.

  The bootstrap step is computed as well and trimmed from the result: trimming the logits, thousands
  of times larger, would copy them.

  Returns:
    [T, B, N].
  """
  return jnp.stack(jax.vmap(jax.vmap(function))(*args), axis=-1)[:-1]


def weighted_mean(values: Array, weight: Array, axes: tuple[int, ...] = (0, 1)) -> Array:
  """Computes the weighted mean over some axes; 0 where the sum of weights is 0."""
  weight = weight.astype(jnp.float32)
  return jnp.sum(weight * values, axes) / jnp.maximum(jnp.sum(weight, axes), 1.0)


def named(kind: str, values: Array, names: Iterable[str]) -> Metrics:
  """Names values [n, ...] as metrics "kind/name"."""
  return {f"{kind}/{name}": values[i] for i, name in enumerate(names)}


def over_used(kind: str, values: Array, used: Array) -> Metrics:
  """Names each argument's mean over the steps that use it, and the fraction of such steps.

  Args:
    kind: one of OVER_USED.
    values: [T, B, N].
    used: [T, B, N] bool.

  Returns:
    {"kind/ARGUMENT": numerator of the mean, see `measured`; "used/ARGUMENT": fraction}.
  """
  assert kind in OVER_USED, kind
  return (named(kind, jnp.mean(jnp.where(used, values, 0.0), axis=(0, 1)), ARGUMENTS)
          | named("used", jnp.mean(used, axis=(0, 1)), ARGUMENTS))


def over_learnt(kind: str, values: Array, weight: Array, names: Iterable[str]) -> Metrics:
  """Names means over learnt steps, as `over_used` names those over the steps of an argument.

  Args:
    kind: one of OVER_LEARNT.
    values: [T, n, B], or [n, 1] of a statistic of all steps.
    weight: [T, B], weights of the steps.
    names: of the n values.

  Returns:
    {"kind/name": numerator of the mean, see `measured`}.
  """
  assert kind in OVER_LEARNT, kind
  return named(kind, jnp.mean(weight[:, None] * values, axis=(0, 2)), names)


def measured(metrics: Mapping[str, float]) -> dict[str, float]:
  """Divides the numerators of means by the fraction of their steps; leaves out means of no step.

  Numerator and fraction are both averages over all T * B steps. Averages of equal parts of a batch,
  over devices or accumulated, are thus those of the whole; a quotient of each part would not be.

  Args:
    metrics: of an objective, averaged over the parts of a batch. Others are returned unchanged.
  """
  found = {}
  for name, value in metrics.items():
    kind, _, argument = name.partition("/")
    fraction = None
    if kind in OVER_USED:
      fraction = metrics.get(f"used/{argument}")
    elif kind in OVER_LEARNT or name in LOSS_OVER_LEARNT:
      fraction = metrics.get("learnt_steps")
    if name in OVER_FRESH:
      fraction = metrics.get("fresh_unrolls")
    if fraction is None:
      found[name] = value
    elif fraction != 0:
      found[name] = value / fraction
  return found


def reduce_terms(terms: dict[str, Term], metrics: Metrics,
                 weight: Array) -> tuple[jax.Array, Metrics]:
  """Sums the terms; adds each term to the metrics as "loss/term" and its parts as "term/part"."""
  loss, metrics = jnp.zeros(()), dict(metrics)
  for name, (values, parts) in terms.items():
    value = jnp.mean(weight[..., None] * values, axis=(0, 1))  # constant denominator T * B
    loss += value.sum()
    metrics |= {f"loss/{name}": value.sum(), **named(name, value, parts)}
  metrics |= {"loss/total": loss, "learnt_steps": jnp.mean(weight)}
  return loss, jax.lax.stop_gradient(metrics)
