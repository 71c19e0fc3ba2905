"""Skirmish's compiled programs for the server: start, commands, steps, reports, placement.

A command of the API takes effect in the next step of 8 game loops, but its result is returned at
once, and a player may give any number of them. `command` therefore executes one command on the
state that the next step starts from. One command a player and step gives the same state as
`Environment.act` with the same command. Scripted players act before the commands.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from starleague.environments import base
from starleague.environments.sc2.server.game import exported
from starleague.environments.sc2.server.game.exported import Exported
from starleague.environments.skirmish.bots import players
from starleague.environments.skirmish.rules import environment
from starleague.environments.skirmish.rules.interface import (
  availability,
  commands,
  entities,
  observation,
  planes,
)
from starleague.environments.skirmish.rules.state import placement
from starleague.environments.skirmish.rules.state.add_ons import AddOns, add_ons_of
from starleague.environments.skirmish.rules.state.queries import max_health
from starleague.environments.skirmish.rules.state.state import Array, Commands, State
from starleague.environments.skirmish.rules.step import (
  abilities,
  accounting,
  construction,
  economy,
)
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.tables import GAME_CONFIGS, GameConfig

PLACEMENTS = 32  # places that one run of `placeable` tests
STEPS = 16  # most environment steps of one run of `advance`: 128 game loops


class Report(NamedTuple):
  """The values of a state that both players' observations show. JAX's or numpy's arrays."""

  player: Any  # [2, 10] int32, types.PLAYER_COLUMNS
  score: Any  # [2, 13] int32, types.SCORE_COLUMNS
  own: dict[str, Any]  # [2, n] each: entities.own_columns
  levels: dict[str, Any]  # [2, n] each: attack, armour and shield levels of upgrades
  max_health: Any  # [2, n] float32
  planes: Any  # [2, 7, H, W] uint8, types.MINIMAP_PLANES
  products: Any  # [2, C] int32: the local product that each function makes next, 0 for none
  add_ons: Any  # AddOns, [2, S] each


class Track(NamedTuple):
  """The values that the server reads of every state: [k, ...] for k states."""

  kind: Any  # [2, n] int32, as of State
  x: Any  # [2, n] float32
  y: Any
  unfinished: Any  # [2, S] int32
  hurt: Any  # [2, n] bool
  upgrades: Any  # [2, U] bool
  injected: Any  # [2, S] or [2, 0] int32
  spell_loops: Any  # [2, M] or [2, 0] int32
  seen: Any  # [2, n] bool, as of Memory
  remembered: Any  # [2, S] int32: `Memory.kind`
  patches: Any  # [2, R] int32
  winner: Any  # [] int32


class Programs(NamedTuple):
  """Compiled functions of a tier."""

  reset: Callable[[jax.Array, base.MatchUp], State]
  command: Callable[[State, Commands], State]  # executes commands; `State.refused` has results
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
  if rules.has_add_ons:
    state, begun = construction.attach(rules, state, accepted)
    state = accounting.record_spawns(rules, state, begun)
  return state._replace(commands=noted)


def track_of(state: State) -> Track:
  """Returns the tracked values of a state."""
  memory = state.memory
  return Track(
    state.kind, state.x, state.y, state.unfinished, state.hurt, state.upgrades, state.injected,
    state.spell_loops, memory.seen, memory.kind, memory.patches, state.winner)


class Bots(NamedTuple):
  """The scripted players of a game."""

  scripts: Any  # [2] int32, indices of `scripts.names_of(tier)`; -1 for participants
  noise: Any  # random key; equal ones give equal actions, those of `games.live.LiveGame`


for _kind in (Track, Report, Bots, AddOns):
  exported.register(_kind)


# (game, bots, state, steps played, count) -> (shown, pending, track). Plays `count` of at most
# STEPS steps. `shown` is the state that players observe. `pending` has the commands of scripted
# players that are due, too: the next step starts from it. `track` has the state after each step,
# [STEPS, ...]. A `count` of 0 notes the commands of scripted players only.
Advance = Callable[..., tuple[State, State, Track]]


def _advance(game: base.Environment, script: players.ScriptedPlayer | None, bots: Bots,
             state: State, steps: Array, count: Array) -> tuple[State, State, Track]:
  """Plays steps in one program: a call for each step would take longer than a step of `mini`."""
  track = jax.tree.map(lambda x: jnp.zeros((STEPS, *x.shape), x.dtype), track_of(state))
  step = functools.partial(_play_bots, game, script, bots) if script else lambda state, steps: state

  def body(i, carry):
    _, pending, track = carry
    # A run of no steps has one iteration, so that the scripts are compiled once.
    shown = lax.cond(count > 0, game.advance, lambda state: state, pending)
    put = functools.partial(lax.dynamic_update_index_in_dim, index=i, axis=0)
    played = steps + jnp.where(count > 0, i + 1, 0)
    return shown, step(shown, played), jax.tree.map(put, track, track_of(shown))

  return lax.fori_loop(0, jnp.maximum(count, 1), body, (state, state, track))


def _play_bots(game: base.Environment, script: players.ScriptedPlayer, bots: Bots, state: State,
               steps: Array) -> State:
  """Returns the state with the commands of scripted players that are due."""
  due = game.due(state) & (bots.scripts >= 0)

  def decide(player):
    key = jax.random.fold_in(jax.random.fold_in(bots.noise, steps), player)
    return script(bots.scripts[player], key, state, player)

  def act(state):
    nothing = jax.tree.map(
      lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(decide, jnp.int32(0)))
    actions = lax.map(
      lambda player: lax.cond(due[player], decide, lambda player: nothing, player), jnp.arange(2))
    return game.act(state, actions, due)

  return lax.cond(due.any(), act, lambda state: state, state)


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
    products=commands.next_products(rules, state), add_ons=add_ons_of(rules, state))


def _placeable(rules: tables.Rules, state: State, player: Array, x: Array, y: Array,
               product: Array) -> Array:
  """Whether structures, or units of warp gates, fit as far as a player knows: [PLACEMENTS] bool."""
  ground = placement.known_ground(rules, state)

  def one(x, y, product):
    def both(value):
      return jnp.broadcast_to(value, (2,))

    return placement.fits(rules, state, ground, both(x), both(y), both(product))[player]

  return jax.vmap(one)(x, y, product)


@functools.cache
def make_programs(tier: str) -> Programs:
  """Returns the programs of a tier, compiled at their first call."""
  def of_rules(function: Callable[..., Any]) -> Exported:
    return Exported(f"{tier}-{function.__name__.strip('_')}",
                    lambda: functools.partial(function, rules_of(tier)))

  return Programs(
    reset=Exported(f"{tier}-reset", lambda: _game(tier).reset), command=of_rules(execute),
    report=of_rules(_report), placeable=of_rules(_placeable))


@functools.cache
def make_advance(tier: str, scripted: bool) -> Advance:
  """Returns the program that plays steps of a tier, without its first argument.

  Args:
    tier: name of the tier.
    scripted: whether a game has scripted players. Games without any compile no scripts.
  """
  def make() -> Callable[..., Any]:
    script = players.make_scripted(**game_config(tier)._asdict()) if scripted else None
    return functools.partial(_advance, _game(tier), script)

  return Exported(f"{tier}-advance{'-scripted' * scripted}", make)


def _game(tier: str) -> base.Environment:
  return environment.make_skirmish(**game_config(tier)._asdict())


def to_host(tree: Any) -> Any:
  """Returns a tree with numpy arrays."""
  return jax.tree.map(np.asarray, tree)
