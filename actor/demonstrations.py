"""Demonstrations: games between scripted players in which both players' decisions are recorded.

The program is that of `rollouts`, with scripted players in the place of the policy: only the
players that are due decide, in batches. The opponent index of a game is the number of its pairing.
Each player's observations show its own MMR, as a replay's data do (Vinyals et al. 2019, Methods).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.actor import rollouts
from starleague.agent import types
from starleague.agent.policy import StepOutput
from starleague.agent.vocabulary import Arguments
from starleague.data import conditioning
from starleague.environments import base


class Player(NamedTuple):
  """A scripted player that demonstrates."""

  script: int  # index that the scripted players' function takes
  mmr: int
  income: int = 100  # percent of its workers' loads that it is paid; above 100 cheats


def pairings(count: int) -> np.ndarray:
  """Returns all pairs of players, each with itself too: [count * (count + 1) / 2, 2] int32."""
  return np.array([(i, j) for i in range(count) for j in range(i, count)], np.int32).reshape(-1, 2)


def make_demonstrations(environment: base.Environment, players: Sequence[Player],
                        pairs: np.ndarray, config: rollouts.RolloutConfig,
                        scripted_player: rollouts.ScriptedPlayer,
                        pack_step: Callable[[types.Step], Any] = lambda step: step,
                        ) -> rollouts.Rollouts:
  """Makes the compiled program that plays batches of games between scripted players.

  Args:
    environment: pure functions of a game's state.
    players: the scripted players.
    pairs: [P, 2] int32, indices of `players`: player 0 and player 1 of each pairing.
    config: sizes.
    scripted_player: (script, key, state, player) -> action, unbatched.
    pack_step: applied on the device to the steps [inference_batch, ...] of an iteration.

  Returns:
    Rollouts whose `params` are unused. `probabilities` [P] are those of a new game's pairing.
    Records have log-probabilities and core states of zero.
  """
  script, mmr, income = (np.array(values)[pairs] for values in zip(*players, strict=True))

  def decide(params, keys, game, player, pairing, observation, core) -> StepOutput:
    del params, observation
    scripts = jnp.asarray(script, jnp.int32)[pairing, player]
    action = jax.vmap(scripted_player)(scripts, keys, game, player)
    zeros = Arguments(*[jnp.zeros(len(player))] * len(Arguments._fields))
    return StepOutput(action=action, log_prob=zeros, logits=zeros, state=core)

  def initial_state() -> types.CoreState:
    return types.CoreState(jnp.zeros((1, 1)), jnp.zeros((1, 1)))

  def plays(pairing: jax.Array) -> jax.Array:
    return jnp.ones((*pairing.shape, 2), bool)

  def strength(pairing: jax.Array,
               conditions: conditioning.Conditioning) -> tuple[jax.Array, jax.Array]:
    del conditions
    return jnp.asarray(mmr, jnp.int16)[pairing], jnp.asarray(income, jnp.int32)[pairing]

  decider = rollouts.Decider(decide, initial_state, plays, strength)
  return rollouts.make_program(environment, decider, config, None, pack_step)
