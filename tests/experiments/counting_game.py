"""A third game, for tests: the player with more queued actions wins. All of it is in this file."""

import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import ml_collections
import numpy as np

from starleague import agent, league
from starleague.actor.loops import engines
from starleague.actor.loops.league_evaluator import ArenaGame, PlayMatch
from starleague.actor.parts import CompiledGames, Parts
from starleague.agent import types
from starleague.agent.config import AgentConfig
from starleague.environments import base
from starleague.experiments.run.config.errors import check_known
from starleague.experiments.run.games.entry import Game

STEPS = 12  # of a game; each player acts in each
OPPONENTS = {"idle": 0, "eager": STEPS}  # with the number of actions that they queue
RACE = "terran"


class Count(NamedTuple):
  """A game: its steps, and what the players have done."""

  step: jax.Array
  acted: jax.Array  # [2]
  queued: jax.Array  # [2]


def make_environment(config: AgentConfig) -> base.Environment:
  """Returns the game with observations of an agent's sizes."""
  observation = types.zeros(types.observation_spec(config.max_entities, config.map_size))
  privileged = types.zeros(types.privileged_spec())

  def observe(state, player):
    del player
    seen = jax.tree.map(jnp.asarray, observation)._replace(game_loop=state.step)
    return seen, jax.tree.map(jnp.asarray, privileged)

  def outcome(state):
    lead = jnp.sign(state.queued[0] - state.queued[1]).astype(jnp.float32)
    over = state.step >= STEPS
    return base.Outcome(over, jnp.where(over, jnp.stack([lead, -lead]), 0.0))

  none = jnp.zeros((2,), jnp.int32)
  return base.Environment(
    reset=lambda key, match_up: Count(jnp.int32(0), none, none), observe=observe,
    act=lambda state, actions, acts: state._replace(
      acted=state.acted + acts, queued=state.queued + acts * (actions.queued > 0)),
    advance=lambda state: state._replace(step=jnp.minimum(state.step + 1, STEPS)),
    due=lambda state: (state.acted <= state.step) & (state.step < STEPS), outcome=outcome)


def scripted(index, key, state, player):
  """Queues the first actions of a game, as many as the opponent of that index does."""
  del key, player
  action = jax.tree.map(jnp.asarray, types.zeros(types.action_spec(8)))
  queues = jnp.array(list(OPPONENTS.values()))[index] > state.step
  return action._replace(delay=jnp.int16(1), queued=queues.astype(jnp.uint8))


def make_parts(config: ml_collections.ConfigDict, preset: AgentConfig) -> Parts:
  race = types.RACES.index(RACE)
  return Parts(
    config=preset, policy=agent.make_policy(preset), races=(race,), opponent_races=(race,),
    opponents=tuple(config.environment.opponents.split(",")), maps=(("table",),),
    mmr=config.environment.mmr, compiled=CompiledGames(make_environment(preset), scripted, 1.0))


def check(config: ml_collections.ConfigDict, preset: AgentConfig) -> None:
  del preset
  check_known("environment.opponents", config.environment.opponents.split(","), list(OPPONENTS))


class Arena:
  """One game at a time."""

  suffix = ".txt"
  final_errors: tuple[type[Exception], ...] = ()

  def __init__(self, parts: Parts, random: np.random.Generator):
    self._parts, self._random = parts, random
    self._environment = parts.compiled.environment
    self._step = jax.jit(parts.policy.step)

  def match(self, players: Sequence[league.Player], params: Sequence[Any]) -> PlayMatch:
    def act(player, state):
      if params[player] is None:
        return scripted(self._parts.opponents.index(players[player].name), None, state, player)
      observation, _ = self._environment.observe(state, player)
      key = jax.random.key(int(self._random.integers(2**31)))
      core = self._parts.policy.initial_state()
      return self._step(params[player], key, observation, core).action

    def play(game: int, on_step: Callable[[], object]) -> ArenaGame:
      state = self._environment.reset(None, None)
      for _ in range(STEPS):
        on_step()
        actions = jax.tree.map(lambda *x: jnp.stack(x), act(0, state), act(1, state))
        state = self._environment.advance(
          self._environment.act(state, actions, self._environment.due(state)))
      result = int(self._environment.outcome(state).reward[0])
      text = f"game {game}: {state.queued.tolist()}"
      return ArenaGame(result, STEPS, lambda path: pathlib.Path(path).write_text(text))

    return play


GAME = Game(
  name="counting", engine=engines.COMPILED, make_parts=make_parts, check=check, make_arena=Arena,
  races=lambda config: ("counting.races", [config.counting.races]), default_init="random",
  changes={"environment": {"opponents": "idle,eager"},
           "actor": {"demonstrators": "", "pseudo_probability": 0.0}},
  options={"races": RACE})
