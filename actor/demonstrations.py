"""Demonstrations: games between scripted players in which both players' decisions are recorded.

The program is that of `rollouts`, with scripted players in the place of the policy. The opponent
index of a game is the number of its pairing. Each player's observations show its own MMR, as a
replay's data do (Vinyals et al. 2019, Methods).

A scripted player that finds nothing to do gives `no_op`, and looks again after its usual delay: 78%
of the decisions at `mini`. A replay of a human player has no such decisions, the delay of an action
lasts until the next one. Here a player therefore decides before it is observed. It waits where it
gives `no_op`; only other decisions, the first of a game, and those that end the longest delay reach
the game and are recorded.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from starleague.actor import rollouts, rows
from starleague.agent import types
from starleague.agent.policy import StepOutput
from starleague.agent.vocabulary import Arguments
from starleague.data.games import waits as waiting
from starleague.data.z.conditioning import Conditioning
from starleague.environments import base, chunks


class Player(NamedTuple):
  """A scripted player that demonstrates."""

  script: int  # index that the scripted players' function takes
  mmr: int
  income: int = 100  # percent of its workers' loads that it is paid; above 100 cheats


def pairings(count: int) -> np.ndarray:
  """Returns all pairs of players, each with itself too: [count * (count + 1) / 2, 2] int32."""
  return np.array([(i, j) for i in range(count) for j in range(i, count)], np.int32).reshape(-1, 2)


class Plan(NamedTuple):
  """What the players of a game will do, [games, ...]."""

  step: jax.Array  # int32: environment steps of the game so far
  action: types.Action  # [.., 2, ...]
  planned: jax.Array  # [.., 2] bool: the action is to be observed and taken
  since: jax.Array  # [.., 2] int32: step of the last recorded decision; -1: none
  looks_at: jax.Array  # [.., 2] int32: step at which a waiting player decides again


class Setup(NamedTuple):
  """The parts of a program in which scripted players decide."""

  environment: base.Environment
  scripts: np.ndarray  # [P, 2] indices of the scripted players of each pairing
  mmr: np.ndarray  # [P, 2] of these players
  income: np.ndarray  # [P, 2] percent, see `Player`
  scripted_player: rollouts.ScriptedPlayer
  loops_per_step: int
  chunk: int  # players that decide in one vectorised operation


def make_setup(environment: base.Environment, players: Sequence[Player], pairs: np.ndarray,
               scripted_player: rollouts.ScriptedPlayer, loops_per_step: int, chunk: int) -> Setup:
  """Returns the parts of a program of pairings; see `make_demonstrations` and `Setup`."""
  scripts, mmr, income = (np.array(values)[pairs] for values in zip(*players, strict=True))
  return Setup(environment, scripts, mmr, income, scripted_player, loops_per_step, chunk)


def plays_both(pairing: jax.Array) -> jax.Array:
  """Marks both players of games as inferred and recorded: [games] -> [games, 2] bool."""
  return jnp.ones((*pairing.shape, 2), bool)


def strength(setup: Setup, pairing: jax.Array,
             conditioning: Conditioning) -> tuple[jax.Array, jax.Array]:
  """Returns the MMR and the income of scripted players; see `rollouts.Decider`."""
  del conditioning
  return (jnp.asarray(setup.mmr, jnp.int16)[pairing],
          jnp.asarray(setup.income, jnp.int32)[pairing])


def initial_plan(games: int, max_selected: int) -> Plan:
  """Returns the plans of games that begin."""
  action = jax.tree.map(lambda x: jnp.zeros((games, 2, *x.shape), x.dtype),
                        types.action_spec(max_selected))
  nothing = jnp.zeros((games, 2), jnp.int32)
  return Plan(step=jnp.zeros((games,), jnp.int32), action=action,
              planned=jnp.zeros((games, 2), bool), since=nothing - 1, looks_at=nothing)


def act(setup: Setup, key: jax.Array, game: Any, action: types.Action, pairing: jax.Array,
        decides: types.Array) -> types.Action:
  """Returns the actions of scripted players that decide; the others keep theirs.

  Args:
    setup: of the program.
    key: random key of all players.
    game: states of the games, [games, ...].
    action: [games, 2, ...].
    pairing: [games] int32.
    decides: [games, 2] bool.
  """
  scripts = jnp.asarray(setup.scripts, jnp.int32)[pairing]
  keys = jax.random.split(key, scripts.shape)

  def decide(row: jax.Array, _: types.Action) -> types.Action:
    index = row // 2, row % 2
    return jax.vmap(setup.scripted_player)(
      scripts[index], keys[index], jax.tree.map(lambda x: x[index[0]], game), index[1])

  return rows.unflatten(chunks.update_chosen(
    decide, decides.reshape(-1), rows.flatten(action), setup.chunk))


def _look(setup: Setup, key: jax.Array, game: Any, plan: Plan, opponent: jax.Array,
          advanced: jax.Array) -> Plan:
  """Returns the plans after the players that are due have decided; see `rollouts.Decider`."""
  due = jax.vmap(setup.environment.due)(game)
  acted = plan.planned & ~due  # an action that was taken is no plan any more
  since = jnp.where(acted, plan.step[:, None], plan.since)
  step, planned = plan.step + advanced, plan.planned & ~acted
  now = step[:, None]
  decides = due & ~planned & (now >= plan.looks_at)
  action = act(setup, key, game, plan.action, opponent, decides)
  following = now - (-action.delay.astype(jnp.int32) // setup.loops_per_step)
  waits = decides & (action.function == waiting.NO_OP) & (since >= 0) & (
    (following - since) * setup.loops_per_step <= types.MAX_DELAY)
  chosen = decides & ~waits
  return Plan(step=step, action=rows.select(chosen, action, plan.action), planned=planned | chosen,
              since=since, looks_at=jnp.where(waits, following, plan.looks_at))


def make_demonstrations(environment: base.Environment, players: Sequence[Player],
                        pairs: np.ndarray, config: rollouts.RolloutConfig,
                        scripted_player: rollouts.ScriptedPlayer, max_selected: int,
                        loops_per_step: int,
                        pack_step: Callable[[types.Step], Any] = lambda step: step,
                        ) -> rollouts.Rollouts:
  """Makes the compiled program that plays batches of games between scripted players.

  Args:
    environment: pure functions of a game's state.
    players: the scripted players.
    pairs: [P, 2] int32, indices of `players`: player 0 and player 1 of each pairing.
    config: sizes.
    scripted_player: (script, key, state, player) -> action, unbatched.
    max_selected: K, units that an action selects.
    loops_per_step: game loops of an environment step.
    pack_step: applied on the device to the steps [inference_batch, ...] of an iteration.

  Returns:
    Rollouts whose `params` are unused. `probabilities` [P] are those of a new game's pairing.
    Records have log-probabilities and core states of zero.
  """
  setup = make_setup(environment, players, pairs, scripted_player, loops_per_step, config.chunk)

  def decide(params, keys, game, player, pairing, observation, privileged, core,
             plan: Plan) -> StepOutput:
    del params, keys, game, pairing, observation, privileged
    action = jax.tree.map(lambda x: x[jnp.arange(len(player)), player], plan.action)
    zeros = Arguments(*[jnp.zeros(len(player))] * len(Arguments._fields))
    return StepOutput(action=action, log_prob=zeros, logits=zeros, state=core)

  def initial_state() -> types.CoreState:
    return types.CoreState(jnp.zeros((1, 1)), jnp.zeros((1, 1)))

  decider = rollouts.Decider(
    decide, initial_state, plays_both, functools.partial(strength, setup),
    initial_plan=functools.partial(initial_plan, max_selected=max_selected),
    look=functools.partial(_look, setup), ready=lambda plan: plan.planned)
  return rollouts.make_program(environment, decider, config, None, pack_step)
