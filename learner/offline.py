"""The objective of offline reinforcement learning: a policy from recorded games, without a game.

The terms, each with a cost:

* cross-entropy of the recorded actions, as in `supervised`: behaviour cloning;
* TD(lambda) of the win-loss value along the recorded games: the value of the behaviour policy mu;
* V-trace policy gradient of the win-loss reward, with importance ratios pi/mu, and, optionally,
  emphatic weights;
* KL(mu || pi).

Recorded games need not hold mu. It is then estimated: a frozen clone, unrolled beside the policy
over the same steps, with a core state of its own. The core states, the draw of z dropout and the
emphatic traces go from chunk to chunk as a `Carry`, on the device.

Sources: Mathieu et al. 2023, "AlphaStar Unplugged" (offline actor-critic with the value of the
behaviour policy, emphatic traces); Jiang et al. 2021, "Emphatic Algorithms for Deep Reinforcement
Learning"; Espeholt et al. 2018, "IMPALA" (V-trace).
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.agent import distributions
from starleague.agent.config import AgentConfig
from starleague.agent.policy import UnrollOutput
from starleague.agent.types import Array, Step, Trajectory
from starleague.agent.vocabulary import Arguments
from starleague.data import wire
from starleague.learner import losses, objective, supervised
from starleague.learner.terms import (
  Metrics,
  Term,
  Unrollable,
  check_batch,
  each_step,
  over_learnt,
  over_used,
  reduce_terms,
  used_arguments,
)
from starleague.learner.weights import RLWeights

WINLOSS = [0]  # the reward stream of recorded games
MAX_RATIO = 1e12  # of a group of arguments: the product over all groups is a finite float32


class Carry(NamedTuple):
  """State of the slots of a batch between two chunks of their games."""

  policy: supervised.Carry  # of the policy that learns; the draw of z dropout
  behaviour: Array  # [B, n] float32: the core's state of mu, packed as on the wire
  emphasis: losses.EmphaticState  # [B, steps]


class Chunks(NamedTuple):
  """A batch of consecutive steps, one chunk of a game per slot; see `supervised.BATCH_AXES`."""

  columns: wire.Columns  # [T + 1, B, width], integers as differences in time
  first: Array  # [B] bool: the slot starts a new game
  carry: Carry  # of the previous chunk; not read where `first`


@dataclasses.dataclass(frozen=True)
class Options:
  """Options of the objective, static under jit.

  Attributes:
    imitation: z dropout, and the costs of the cross-entropy and of L2.
    rl: costs of the value, the policy gradient and the KL, of which the win-loss reward counts.
    cloning: cost of the cross-entropy.
    emphatic_steps: n of the emphatic weights; 0: every step counts alike.
    recorded_ratios: the ratios use the recorded log-probs of mu, not the clone's.
    opponent_values: whether the value function observes the opponent.

  Raises:
    ValueError: a number is negative.
  """

  imitation: supervised.Options = supervised.Options()
  rl: RLWeights = RLWeights()
  cloning: float = 1.0
  emphatic_steps: int = 0
  recorded_ratios: bool = False
  opponent_values: bool = True

  def __post_init__(self) -> None:
    for name in ("cloning", "emphatic_steps"):
      if not getattr(self, name) >= 0:
        raise ValueError(f"Options.{name} is {getattr(self, name)}; expected at least 0")

  @property
  def improves(self) -> bool:
    """Whether a term compares the policy with mu."""
    return self.rl.policy[0] > 0.0 or self.rl.teacher_kl > 0.0


def empty_carry(config: AgentConfig, options: Options, size: int) -> Carry:
  """Returns the carry of B slots that have not begun."""
  state = np.zeros((size, *wire.packed_spec(config, 1).state.shape), np.float32)
  emphasis = losses.emphatic_init(max(options.emphatic_steps, 1))
  return Carry(supervised.Carry(state, np.zeros((size, 2), bool)), state.copy(),
               jax.tree.map(lambda x: np.tile(x, (size, 1)), emphasis))


def offline_loss(policy: Unrollable, config: AgentConfig, options: Options, params: Any,
                 key: jax.Array, chunks: Chunks, behaviour: Any
                 ) -> tuple[jax.Array, tuple[Metrics, Carry]]:
  """Computes the offline objective of chunks, with z dropout.

  Args:
    policy: the policy that learns, with temperature 1.
    config: the AgentConfig of the chunks.
    options: see `Options`.
    params: the policy's parameters.
    key: a random key for the z dropout of the games that start.
    chunks: a batch.
    behaviour: parameters of the estimated mu, of the same policy; () where no term needs it.

  Returns:
    (loss [], (metrics {name: []}, the carry for the next chunks)).

    * "loss/...", "value/winloss", "policy/ARGUMENT": terms of the loss with their costs.
    * "kl/...", "cross_entropy/...", "accuracy/...": means over the steps that use the argument.
    * "illegal/...": the fraction of labels that the masks forbid. They add nothing to the
      cross-entropy and the policy gradient. With the clone's log-probs no ratio includes them;
      with recorded ones the ratio of their group is 0.
    * "emphasis/mean": the mean emphatic weight.

    Means over some steps are numerators, which `terms.measured` divides.

  Raises:
    ValueError: a term needs mu and `behaviour` is (), or T is 0.
  """
  batch, kept = supervised.begin(
    config, options.imitation, key, supervised.Chunks(*chunks[:2], chunks.carry.policy))
  check_batch(batch)
  if not options.opponent_values:
    batch = objective.hide_opponent(batch)
  output = policy.unroll_batch(params, batch)
  mu, carry = None, chunks.carry
  if options.improves:
    if behaviour == ():
      raise ValueError("behaviour is (), but the objective compares the policy with mu: pass the "
                       "clone's parameters, or set the costs of the policy and of the KL to 0")
    state = supervised.starting_state(options.imitation, chunks.first, carry.behaviour)
    mu = policy.unroll_batch(jax.lax.stop_gradient(behaviour), batch._replace(
      initial_state=wire.unpack_state(state, config)))
    carry = carry._replace(behaviour=supervised.carried_state(mu.state))
  terms, metrics, emphasis = offline_terms(options, output, mu, batch, chunks.first, carry.emphasis)
  loss, metrics = reduce_terms(terms, metrics, batch.steps.weight[:-1])
  if options.cloning > 0.0 and options.imitation.weights.l2 > 0.0:
    penalty = options.imitation.weights.l2 * supervised.l2(params)
    loss += penalty
    metrics |= jax.lax.stop_gradient({"loss/l2": penalty, "loss/total": loss})
  policy_carry = supervised.Carry(supervised.carried_state(output.state), kept)
  return loss, (metrics, carry._replace(policy=policy_carry, emphasis=emphasis))


def offline_terms(options: Options, output: UnrollOutput, mu: UnrollOutput | None,
                  batch: Trajectory, first: Array, emphasis: losses.EmphaticState
                  ) -> tuple[dict[str, Term], Metrics, losses.EmphaticState]:
  """Computes the terms of the objective.

  Args:
    options: see `Options`.
    output: of the policy that learns.
    mu: of the estimated behaviour policy; None where no term needs it.
    batch: steps [T + 1, B, ...].
    first: [B] bool, the slots that start a game.
    emphasis: [B, n], the emphatic traces before the chunk.

  Returns:
    (terms by name, metrics {name: []}, the emphatic traces after the chunk).
  """
  steps = batch.steps
  legal = each_step(distributions.is_legal, output.logits, steps.action)
  used = used_arguments(steps.action, steps.weight[:-1])
  # Both policies give an illegal label a log-prob of about -1e9, of which the ratio is rounding.
  # A recorded log-prob of mu is finite: the ratio is 0, as in reinforcement learning.
  learnt = objective.learnt_inputs(
    with_ratios(options, steps, mu), output.logits, output.baselines,
    None if options.recorded_ratios else legal)
  terms, metrics = objective.value_term(options.rl, learnt)
  if options.cloning > 0.0:
    term, found = supervised.cross_entropy_term(
      options.imitation.weights, supervised.comparison(output, batch))
    terms["cross_entropy"] = term._replace(values=options.cloning * term.values)
    metrics |= found
  if mu is None:
    return terms, metrics, emphasis
  if options.rl.policy[0] > 0.0:
    term, _ = objective.vtrace_term(options.rl, WINLOSS, learnt)
    if options.emphatic_steps:
      weights, emphasis = emphatic(options, learnt, first, emphasis)
      term = term._replace(values=weights[..., None] * term.values)
      metrics |= over_learnt("emphasis", weights[:, None], learnt.weight, ["mean"])
    terms["policy"] = term
  divergence = each_step(distributions.kl, mu.logits, output.logits, steps.action)
  # The KL divergence compares whole distributions: illegal labels count.
  metrics |= over_used("kl", divergence, used) | over_used("illegal", ~legal, used)
  if options.rl.teacher_kl > 0.0:
    total = jnp.where(used, divergence, 0.0).sum(-1, keepdims=True)
    terms["kl"] = Term(options.rl.teacher_kl * total, ())
  return terms, metrics | objective.ratio_metrics(options.rl, learnt), emphasis


def emphatic(options: Options, learnt: objective.Learnt, first: Array,
             state: losses.EmphaticState) -> tuple[jax.Array, losses.EmphaticState]:
  """Computes the emphatic weights of a chunk: of the ratio of the whole action.

  Args:
    options: see `Options`.
    learnt: of the chunk.
    first: [B] bool, the slots that start a game.
    state: [B, n], the traces before the chunk.

  Returns:
    ([T, B], the traces after the chunk, all finite).
  """
  started = losses.emphatic_init(options.emphatic_steps)

  def start(where: Array, state: losses.EmphaticState) -> losses.EmphaticState:
    return jax.tree.map(lambda new, old: jnp.where(where[:, None], new, old), started, state)

  # The product of an infinite ratio and a ratio of 0 would be NaN.
  ratio = jnp.prod(jnp.minimum(learnt.ratio, MAX_RATIO), axis=1)
  weights, state = jax.vmap(losses.emphatic_weights, (1, 1, 0, None), (1, 0))(
    learnt.discount, ratio, start(first, state), options.rl.clip_rho)
  # A skipped update may leave traces that are not finite, which no discount of 0 removes.
  finite = jnp.isfinite(state.trace).all(axis=1) & jnp.isfinite(state.decay).all(axis=1)
  return weights, start(~finite, state)


def with_ratios(options: Options, steps: Step, mu: UnrollOutput | None) -> Step:
  """Returns steps with the log-probs of mu that the importance ratios use."""
  if mu is None or options.recorded_ratios:
    return steps
  log_prob = jax.vmap(jax.vmap(distributions.log_prob))(mu.logits, steps.action)
  return steps._replace(log_prob=Arguments(*log_prob))
