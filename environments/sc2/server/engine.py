"""Skirmish's compiled programs for the server: start, commands, steps, and what players may know.

A command of the API takes effect in the next step of 8 game loops, but its result is returned at
once, and a player may give any number of them. `command` therefore executes one command on the
state that the next step starts from. One command a player and step gives the same state as
`Environment.act` with the same command. Scripted players act through `act`, before the commands.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from starleague.agent import types
from starleague.environments import base
from starleague.environments.skirmish.bots import players
from starleague.environments.skirmish.games import exact
from starleague.environments.skirmish.rules import (
  abilities,
  availability,
  commands,
  economy,
  entities,
  environment,
  observation,
  placement,
  planes,
  tables,
)
from starleague.environments.skirmish.rules.config import GAME_CONFIGS, GameConfig
from starleague.environments.skirmish.rules.state import Array, Commands, State
from starleague.environments.skirmish.rules.upgrades import max_health

PLACEMENTS = 32  # places that one run of `placeable` tests
STEPS = 16  # most environment steps of one run of `advance`: 128 game loops


class Report(NamedTuple):
  """What a state shows in observations, of both players. JAX's or numpy's arrays."""

  player: Any  # [2, 10] int32, types.PLAYER_COLUMNS
  score: Any  # [2, 13] int32, types.SCORE_COLUMNS
  own: dict[str, Any]  # [2, n] each: entities.own_columns
  levels: dict[str, Any]  # [2, n] each: attack, armour and shield levels of upgrades
  max_health: Any  # [2, n] float32
  planes: Any  # [2, 7, H, W] uint8, types.MINIMAP_PLANES
  products: Any  # [2, C] int32: the local product that each function makes next, 0 for none


class Track(NamedTuple):
  """What the server must know of every state, [k, ...] of k states: the others are never read."""

  kind: Any  # [2, n] int32, as of State
  x: Any  # [2, n] float32
  y: Any
  unfinished: Any  # [2, S] int32
  hurt: Any  # [2, n] bool
  upgrades: Any  # [2, U] bool
  injected: Any  # [2, S] or [2, 0] int32
  seen: Any  # [2, n] bool, as of Memory
  remembered: Any  # [2, S] int32: `Memory.kind`
  patches: Any  # [2, R] int32
  winner: Any  # [] int32


class Programs(NamedTuple):
  """Compiled functions of a tier."""

  reset: Callable[[jax.Array, base.MatchUp], State]
  act: Callable[[State, types.Action, Array], State]  # (state, actions [2, ...], acts [2])
  command: Callable[[State, Commands], State]  # executes commands; `State.refused` has results
  # (state, count) -> (state, track): plays `count` of at most STEPS steps; tracks the state after
  # each of them, [STEPS, ...].
  advance: Callable[[State, Any], tuple[State, Track]]
  report: Callable[[State], Report]
  placeable: Callable[..., Array]  # (state, player, x, y, product [PLACEMENTS]) -> bool


def game_config(tier: str) -> GameConfig:
  """Returns the sizes with which the server plays a tier."""
  return GAME_CONFIGS[tier]


def rules_of(tier: str) -> tables.Rules:
  """Returns the tables of a tier."""
  return tables.make_rules(*game_config(tier))


def execute(rules: tables.Rules, state: State, given: Commands) -> State:
  """Executes the players' commands at once, without playing a step.

  Args:
    rules: the game's constants.
    state: the game.
    given: [2, ...]; function 0 for a player without a command, whose result does not change.
  """
  noted = state.commands
  state = state._replace(commands=given)
  can = availability.available(rules, state)
  state, accepted = commands.give_orders(rules, state, can)
  state = abilities.use_abilities(rules, state, accepted)
  state = economy.train(rules, state, accepted.trainers, accepted.command.product)
  return state._replace(commands=noted)


def track_of(state: State) -> Track:
  """Returns what is tracked of a state."""
  memory = state.memory
  return Track(state.kind, state.x, state.y, state.unfinished, state.hurt, state.upgrades,
               state.injected, memory.seen, memory.kind, memory.patches, state.winner)


def _advance(game: base.Environment, state: State, count: Array) -> tuple[State, Track]:
  """Plays steps in one program: a call for each would take longer than the steps of `mini`."""
  track = jax.tree.map(lambda x: jnp.zeros((STEPS, *x.shape), x.dtype), track_of(state))

  def body(i, carry):
    state, track = carry
    state = game.advance(state)
    put = functools.partial(lax.dynamic_update_index_in_dim, index=i, axis=0)
    return state, jax.tree.map(put, track, track_of(state))

  return lax.fori_loop(0, count, body, (state, track))


def _report(rules: tables.Rules, state: State) -> Report:
  bits = planes.bits(rules, state)
  levels = {} if not rules.has_upgrades else {
    name: jnp.take_along_axis(values, state.kind, axis=1)
    for name, values in entities.upgrade_levels(rules, state).items()}
  return Report(
    player=observation.player_columns(rules, state), score=observation.score_columns(state),
    own=entities.own_columns(rules, state), levels=levels,
    max_health=max_health(rules, state, state.kind),
    planes=jnp.stack([planes.unpack(rules, bits[player]) for player in range(2)]),
    products=commands.next_products(rules, state))


def _placeable(rules: tables.Rules, state: State, player: Array, x: Array, y: Array,
               product: Array) -> Array:
  """Whether structures fit where a player knows the ground: [PLACEMENTS] bool."""
  ground = placement.known_ground(rules, state)

  def one(x, y, product):
    def both(value):
      return jnp.broadcast_to(value, (2,))

    return placement.placeable(rules, state, ground, both(x), both(y), both(product))[player]

  return jax.vmap(one)(x, y, product)


@functools.cache
def make_programs(tier: str) -> Programs:
  """Returns the programs of a tier, compiled once."""
  rules = rules_of(tier)
  game = environment.make_skirmish(**game_config(tier)._asdict())
  bind = functools.partial
  return Programs(
    reset=exact.compiled(game.reset), act=exact.compiled(game.act),
    command=exact.compiled(bind(execute, rules)), advance=exact.compiled(bind(_advance, game)),
    report=exact.compiled(bind(_report, rules)),
    placeable=exact.compiled(bind(_placeable, rules)))


@functools.cache
def make_decide(tier: str) -> Callable[..., types.Action]:
  """Returns the scripted players of a tier: (index, noise key, steps, state, player) -> Action.

  A script's noise is that of `games.live.LiveGame`: equal seeds give equal actions.
  """
  script = players.make_scripted(**game_config(tier)._asdict())

  def decide(index, noise, steps, state, player):
    key = jax.random.fold_in(jax.random.fold_in(noise, steps), player)
    return script(index, key, state, player)

  return jax.jit(decide)


def no_actions(tier: str) -> tuple[types.Action, Any]:
  """Returns zero actions [2, ...], and False for each player's acting, [2]; numpy arrays."""
  actions, acts = exact.no_actions(game_config(tier), 1)
  return types.Action(*(values[0] for values in actions)), acts[0]


def to_host(tree: Any) -> Any:
  """Returns a tree with numpy arrays."""
  return jax.tree.map(np.asarray, tree)
