"""Rollouts of many players: a batch of games mixes the matches of several policies.

The weights of the loaded players are stacked on a leading axis of fixed size, the slots. A game's
opponent index, which `rollouts` draws, is the number of its match:

  m in 0..M - 1      a match of two policies; `Players.pairs[m]` are their slots
  M + p * S + s      the policy in slot p against scripted player s

All shapes are fixed: players come and go by writing other weights into a slot, without
recompilation. The rows that an iteration infers are grouped by slot into chunks, and each chunk is
one inference with the weights of its slot.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.actor import rollouts, rows
from starleague.agent import types
from starleague.agent.policy import Policy, StepOutput
from starleague.environments import base

WINLOSS = types.REWARDS.index("winloss")


class Players(NamedTuple):
  """The loaded players: `params` of the rollouts of this file."""

  weights: Any  # parameters stacked by slot, [P, ...]
  pairs: types.Array  # [M, 2] int32: slots of player 0 and player 1 of each match of two policies


class ValuedOutput(NamedTuple):
  """Output of a step with its win-loss value; the other fields are those of `StepOutput`."""

  action: types.Action
  log_prob: types.Arguments
  state: types.CoreState
  value: types.Array  # [..] float32


class Sizes(NamedTuple):
  """Fixed sizes of a program of several players."""

  slots: int  # P, loaded policies
  matches: int  # M, matches of two loaded policies
  scripts: int  # S, scripted players
  chunk: int  # rows inferred at once with the weights of one slot

  @property
  def opponents(self) -> int:
    """Number of opponent indices: matches of two policies, then those with scripted players."""
    return self.matches + self.slots * self.scripts

  def scripted_match(self, slot: int, script: int) -> int:
    """Returns the opponent index of a policy's match against a scripted player."""
    return self.matches + slot * self.scripts + script


def stack(weights: list[Any], pairs: np.ndarray) -> Players:
  """Returns players with the given parameters, in the order of their slots.

  Args:
    weights: P trees of arrays.
    pairs: [M, 2], slots of the players of each match of two policies.
  """
  stacked = jax.tree.map(lambda *x: np.stack([np.asarray(y) for y in x]), *weights)
  return Players(stacked, np.asarray(pairs, np.int32))


def slots_of(sizes: Sizes, pairs: types.Array, opponents: types.Array) -> jax.Array:
  """Returns the slots of both players of games; a scripted player has its opponent's.

  Args:
    sizes: of the program.
    pairs: [M, 2] int32.
    opponents: [games] int32, numbers of matches.

  Returns:
    [games, 2] int32.
  """
  scripted = jnp.maximum(opponents - sizes.matches, 0) // max(1, sizes.scripts)
  of_pair = jnp.asarray(pairs)[jnp.clip(opponents, 0, sizes.matches - 1)]
  return jnp.where((opponents < sizes.matches)[:, None], of_pair, scripted[:, None])


def make_rollouts(environment: base.Environment, policy: Policy, config: rollouts.RolloutConfig,
                  sizes: Sizes, scripted_player: rollouts.ScriptedPlayer | None,
                  pack_step: Callable[[types.Step], Any] = lambda step: step, *,
                  batched: bool = False, valued: bool = False) -> rollouts.Rollouts:
  """Makes the compiled program that plays batches of games of several players.

  Args:
    environment: pure functions of a game's state.
    policy: of all players; each has its own parameters.
    config: sizes of the batch. `inference_batch` is a multiple of `sizes.chunk`.
    sizes: of the loaded players.
    scripted_player: plays player 1 of matches against scripted players; None: there are none.
    pack_step: applied on the device to the steps [inference_batch, ...] of an iteration.
    batched: infer all chunks in one batched product, for accelerators, instead of one after the
      other.
    valued: compute the win-loss value of each decision, which `Conditioning.minimax` needs.

  Returns:
    Rollouts whose `params` are Players. `probabilities` [sizes.opponents] are those of a new game's
    match. Conditioning may differ by match: see `Conditioning.active`.

  Raises:
    ValueError: a size is not positive, or `chunk` does not divide `inference_batch`.
  """
  _check(config, sizes, scripted_player is not None)
  step = functools.partial(_valued_step if valued else _step, policy)

  def plays(opponent: jax.Array) -> jax.Array:
    return jnp.stack([jnp.ones_like(opponent, bool), opponent < sizes.matches], axis=1)

  def script(opponent: jax.Array) -> jax.Array:
    return jnp.maximum(opponent - sizes.matches, 0) % max(1, sizes.scripts)

  def choose_rows(players: Players, priority: jax.Array, opponents: jax.Array,
                  size: int) -> tuple[jax.Array, jax.Array]:
    slots = slots_of(sizes, players.pairs, opponents).reshape(-1)
    return rows.grouped(priority, slots, sizes.slots, sizes.chunk, size)

  def decide(players: Players, keys, game, player, opponent, observation, privileged, core,
             plan) -> StepOutput | ValuedOutput:
    del game, plan
    slots = slots_of(sizes, players.pairs, opponent)
    slot = jnp.take_along_axis(slots, player[:, None], axis=1).reshape(-1, sizes.chunk)[:, 0]

    def infer(chunk):
      slot, *inputs = chunk
      params = jax.tree.map(lambda x: x[slot], players.weights)
      return jax.vmap(step, in_axes=(None, 0, 0, 0, 0))(params, *inputs)

    chunks = jax.tree.map(
      lambda x: x.reshape(-1, sizes.chunk, *x.shape[1:]), (keys, observation, privileged, core))
    output = jax.vmap(infer)((slot, *chunks)) if batched else jax.lax.map(infer, (slot, *chunks))
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), output)

  decider = rollouts.Decider(
    decide, policy.initial_state, plays, rollouts.agents_strength, choose_rows, script,
    value=(lambda output: output.value) if valued else None)
  return rollouts.make_program(environment, decider, config, scripted_player, pack_step)


def _step(policy: Policy, params: Any, key: jax.Array, observation: types.Observation,
          privileged: types.Privileged, core: types.CoreState) -> StepOutput:
  del privileged
  return policy.step(params, key, observation, core)


def _valued_step(policy: Policy, params: Any, key: jax.Array, observation: types.Observation,
                 privileged: types.Privileged, core: types.CoreState) -> ValuedOutput:
  output = policy.step(params, key, observation, core)
  values = policy.values(params, output.state, observation, privileged)
  return ValuedOutput(output.action, output.log_prob, output.state, values[WINLOSS])


def _check(config: rollouts.RolloutConfig, sizes: Sizes, scripted: bool) -> None:
  for name, value in sizes._asdict().items():
    least = 0 if name == "scripts" else 1
    if value < least:
      raise ValueError(f"sizes.{name} must be at least {least}, found {value}.")
  if config.inference_batch % sizes.chunk:
    raise ValueError(f"sizes.chunk must divide inference_batch {config.inference_batch}, found "
                     f"{sizes.chunk}.")
  if scripted != (sizes.scripts > 0):
    raise ValueError(f"sizes.scripts is {sizes.scripts}: give a scripted player if it is above 0, "
                     "and none otherwise.")
