"""The supervised objective: imitation of recorded players, chunk by chunk of their games.

A slot of the batch plays one game after another: its next chunk continues the game of the last one.
The core's state and the draw of z dropout go from chunk to chunk as a `Carry`, on the device.

Source: Vinyals et al. 2019, Methods and detailed architecture ("supervised learning").
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import distributions, parameters
from starleague.agent.config import AgentConfig
from starleague.agent.policy import UnrollOutput
from starleague.agent.types import Action, Array, CoreState, Statistics, Trajectory
from starleague.agent.vocabulary import Arguments
from starleague.data import wire
from starleague.learner import losses
from starleague.learner.terms import (
  ARGUMENTS,
  Metrics,
  Term,
  Unrollable,
  check_batch,
  each_step,
  over_used,
  reduce_terms,
  used_arguments,
  weighted_mean,
)
from starleague.learner.weights import SLWeights


class Comparison(NamedTuple):
  """The policy compared with the recorded actions at the learnt steps."""

  cross_entropy: Array  # [T, B, N] nats; 0 where the label is illegal or the argument unused
  correct: Array  # [T, B, N] float32: 1 where the mode is the label; of units, the share of picks
  legal: Array  # [T, B, N] bool: the masks allow the label
  used: Array  # [T, B, N] bool: the action uses the argument, and the step has weight
  weight: Array  # [T, B]
  state: CoreState  # [B, layers, size], before the bootstrap step


class Totals(NamedTuple):
  """Sums over learnt steps; sums of several batches add up."""

  steps: Array  # []
  used: Array  # [N], steps that use the argument
  cross_entropy: Array  # [N] nats
  correct: Array  # [N]
  illegal: Array  # [N], labels that the masks forbid


class Carry(NamedTuple):
  """State of the slots of a batch between two chunks of their games."""

  state: Array  # [B, n] float32: the core's state, packed as on the wire
  kept: Array  # [B, 2] bool: whether the game shows its build order and its cumulative statistics


class Chunks(NamedTuple):
  """A batch of consecutive steps, one chunk of a game per slot; see `BATCH_AXES`."""

  columns: wire.Columns  # [T + 1, B, width], integers as differences in time
  first: Array  # [B] bool: the slot starts a new game
  carry: Carry  # of the previous chunk; not read where `first`


BATCH_AXES = {"columns": 1, "first": 0, "carry": 0}  # of the fields of Chunks


@dataclasses.dataclass(frozen=True)
class Options:
  """Options of imitation, static under jit; the published ones by default.

  Raises:
    ValueError: a probability is outside 0 to 1.
  """

  weights: SLWeights = SLWeights()
  keep_build_order: float = 0.8  # probability that a game shows its build order
  keep_cumulative: float = 0.5  # the same of its units, effects and upgrades, independently
  carry_state: bool = True  # False: the core starts every chunk from zero

  def __post_init__(self) -> None:
    for name in ("keep_build_order", "keep_cumulative"):
      if not 0.0 <= getattr(self, name) <= 1.0:
        raise ValueError(f"Options.{name} is {getattr(self, name)}; expected a probability")


def sl_loss(policy: Unrollable, params: Any, batch: Trajectory, weights: SLWeights | None = None
            ) -> tuple[jax.Array, tuple[Metrics, CoreState]]:
  """Computes the supervised objective: cross-entropy of all used arguments, and L2.

  Args:
    policy: the policy that learns; its value functions do not.
    params: the policy's parameters.
    batch: steps [T + 1, B, ...], initial states [B, ...]; rewards and log-probs are not read.
    weights: costs of the terms, static under jit; None: the published ones.

  Returns:
    (loss [], (metrics {name: []}, states [B, ...] before the bootstrap step)).

    * "cross_entropy/...", "accuracy/...": means over the steps that use the argument, without
      costs; the accuracy of units is over picks.
    * "used/...": the fraction of steps that use the argument and are learnt.
    * "illegal/...": the fraction of labels that the masks forbid, which add nothing to the loss.

    Means over some steps are numerators, which `terms.measured` divides.

  Raises:
    ValueError: T is 0.
  """
  weights = weights or SLWeights()
  found = compare(policy, params, batch)
  term, metrics = cross_entropy_term(weights, found)
  loss, metrics = reduce_terms({"cross_entropy": term}, metrics, found.weight)
  if weights.l2 > 0.0:
    penalty = weights.l2 * l2(params)
    loss += penalty
    metrics |= jax.lax.stop_gradient({"loss/l2": penalty, "loss/total": loss})
  return loss, (metrics, found.state)


def cross_entropy_term(weights: SLWeights, found: Comparison) -> tuple[Term, Metrics]:
  """Computes the cross-entropy of all used arguments, with costs, and the means without them."""
  metrics = over_used("cross_entropy", found.cross_entropy, found.used)
  metrics |= over_used("accuracy", found.correct, found.used)
  metrics |= over_used("illegal", ~found.legal, found.used)
  costs = np.array(weights.arguments, np.float32)
  return Term(jnp.sum(costs * found.cross_entropy, -1, keepdims=True), ()), metrics


def l2(params: Any) -> jax.Array:
  """Computes half the sum of squares of the weights that imitation trains: [].

  On any other parameter it would be the only gradient, and Adam would follow it with steps of the
  full learning rate; see `agent.parameters.imitated_weight_mask`.
  """
  squares = jax.tree.map(lambda x, counts: 0.5 * jnp.sum(jnp.square(x)) if counts else 0.0,
                         params, parameters.imitated_weight_mask(params))
  return jnp.asarray(sum(jax.tree.leaves(squares)))


def compare(policy: Unrollable, params: Any, batch: Trajectory) -> Comparison:
  """Unrolls the policy over recorded actions and compares its logits with them.

  Args:
    policy: the policy.
    params: its parameters.
    batch: steps [T + 1, B, ...], initial states [B, ...].

  Raises:
    ValueError: T is 0.
  """
  check_batch(batch)
  return comparison(policy.unroll_batch(params, batch), batch)


def comparison(output: UnrollOutput, batch: Trajectory) -> Comparison:
  """Compares an unrolled policy's logits with the recorded actions; see `compare`."""
  action, weight = batch.steps.action, batch.steps.weight[:-1]
  log_prob = each_step(distributions.log_prob, output.logits, action)
  legal = each_step(distributions.is_legal, output.logits, action)
  used = used_arguments(action, weight)
  return Comparison(
    cross_entropy=losses.masked_cross_entropy(log_prob, legal, used),
    correct=each_step(_correct, output.logits, action), legal=legal, used=used, weight=weight,
    state=output.state)


def imitation_loss(policy: Unrollable, config: AgentConfig, options: Options, params: Any,
                   key: jax.Array, chunks: Chunks) -> tuple[jax.Array, tuple[Metrics, Carry]]:
  """Computes the supervised objective of chunks, with z dropout.

  Args:
    policy: the policy that learns, with temperature 1.
    config: the AgentConfig of the chunks.
    options: see `Options`.
    params: the policy's parameters.
    key: a random key for the z dropout of the games that start.
    chunks: a batch.

  Returns:
    (loss [], (metrics {name: []} as in `sl_loss`, the carry for the next chunks)).
  """
  trajectories, kept = begin(config, options, key, chunks)
  loss, (metrics, state) = sl_loss(policy, params, trajectories, options.weights)
  return loss, (metrics, Carry(carried_state(state), kept))


def imitation_totals(policy: Unrollable, config: AgentConfig, options: Options, params: Any,
                     key: jax.Array, chunks: Chunks) -> tuple[Totals, Carry]:
  """Computes the sums behind loss, accuracy and illegal labels of chunks; see `imitation_loss`."""
  trajectories, kept = begin(config, options, key, chunks)
  found = compare(policy, params, trajectories)

  def total(values: Array) -> Array:
    return jnp.sum(jnp.where(found.used, values, 0.0), axis=(0, 1))

  totals = Totals(jnp.sum(found.weight), total(jnp.ones_like(found.correct)),
                  total(found.cross_entropy), total(found.correct), total(~found.legal))
  return totals, Carry(carried_state(found.state), kept)


def no_totals() -> Totals:
  """Returns the sums over no step."""
  return Totals(np.zeros((), np.float32), *(np.zeros(len(ARGUMENTS), np.float32)
                                            for _ in Totals._fields[1:]))


def figures(totals: Totals, weights: SLWeights) -> dict[str, float]:
  """Returns the loss per step without L2, and each used argument's means, from sums.

  Args:
    totals: sums of numpy arrays.
    weights: costs of the arguments.

  Returns:
    {"loss", "cross_entropy/ARGUMENT", "accuracy/ARGUMENT", "illegal/ARGUMENT": value}.
  """
  costs = np.array(weights.arguments, np.float64)
  found = {"loss": float(costs @ totals.cross_entropy / max(totals.steps, 1.0))}
  for i, name in enumerate(ARGUMENTS):
    if totals.used[i]:
      found |= {f"{kind}/{name}": float(values[i] / totals.used[i]) for kind, values in (
        ("cross_entropy", totals.cross_entropy), ("accuracy", totals.correct),
        ("illegal", totals.illegal))}
  return found


def begin(config: AgentConfig, options: Options, key: jax.Array,
           chunks: Chunks) -> tuple[Trajectory, Array]:
  """Unpacks chunks, and draws the z dropout of the games that start.

  Args:
    config: the AgentConfig of the chunks.
    options: see `Options`.
    key: a random key.
    chunks: a batch.

  Returns:
    Trajectories [T + 1, B, ...] without the hidden parts of z, and the new `Carry.kept`.
  """
  kept = draw_kept(options, key, chunks.first, chunks.carry.kept)
  state = starting_state(options, chunks.first, chunks.carry.state)
  batch = wire.unpack(wire.Packed(*chunks.columns, state), config)
  observation = batch.steps.observation
  observation = observation._replace(
    statistics=hide_z(observation.statistics, kept))
  return batch._replace(steps=batch.steps._replace(observation=observation)), kept


def starting_state(options: Options, first: Array, state: Array) -> jax.Array:
  """Returns the core's states at the start of chunks: the carried ones, or zero.

  Args:
    options: whether states are carried.
    first: [B] bool, the slots that start a game.
    state: [B, n], the states after the previous chunk, packed as on the wire.

  Returns:
    [B, n].
  """
  if not options.carry_state:
    return jnp.zeros_like(state)
  return jnp.where(first[:, None], 0.0, state)


def carried_state(state: CoreState) -> jax.Array:
  """Returns the core's states after chunks, to carry and to save.

  Args:
    state: [B, ...]. A skipped update may leave one that is not finite: it counts as zero.

  Returns:
    [B, n], packed as on the wire, all finite.
  """
  packed = wire.pack_state(state, 1)
  return jnp.where(jnp.isfinite(packed).all(axis=1, keepdims=True), packed, 0.0)


def draw_kept(options: Options, key: jax.Array, first: Array, kept: Array) -> jax.Array:
  """Draws the parts of z that games show: the build order, and the cumulative statistics.

  Args:
    options: the probabilities.
    key: a random key.
    first: [B] bool, the games that start. The others keep their draw.
    kept: [B, 2] bool, the draws so far.

  Returns:
    [B, 2] bool.
  """
  probabilities = jnp.array([options.keep_build_order, options.keep_cumulative])
  drawn = jax.random.uniform(key, kept.shape) < probabilities
  return jnp.where(first[:, None], drawn, kept)


def hide_z(z: Statistics, kept: Array) -> Statistics:
  """Zeroes the parts of z that a game does not show.

  Args:
    z: leaves [T + 1, B, ...].
    kept: [B, 2] bool: build order, cumulative statistics.
  """
  def part(x: Array, keep: Array) -> Array:
    return jnp.where(keep.reshape(1, -1, *[1] * (x.ndim - 2)), x, jnp.zeros_like(x))

  build_order, cumulative = kept[:, 0], kept[:, 1]
  return Statistics(
    build_order=part(z.build_order, build_order),
    build_order_xy=part(z.build_order_xy, build_order),
    units=part(z.units, cumulative), effects=part(z.effects, cumulative),
    upgrades=part(z.upgrades, cumulative))


def _correct(logits: Arguments, action: Action) -> Arguments:
  """Compares the mode of each argument with the action: 0 or 1; of units, the fraction of picks."""
  correct = Arguments(*(
    (distributions.mode(x) == getattr(action, name)).astype(jnp.float32)
    for name, x in zip(ARGUMENTS, logits, strict=True)))
  executed = distributions.executed_picks(action.units, logits.units.shape[-1] - 1)
  return correct._replace(units=weighted_mean(correct.units, executed, (0,)))
