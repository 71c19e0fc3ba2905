"""Skirmish as an Environment: reset, observe, act, advance, due, outcome."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from starleague.environments import base
from starleague.environments.skirmish.rules.interface import (
  acting,
  availability,
  commands,
  observation,
  perception,
)
from starleague.environments.skirmish.rules.state import add_ons, initial_state
from starleague.environments.skirmish.rules.state.arrays import flip
from starleague.environments.skirmish.rules.state.slots import Spawns
from starleague.environments.skirmish.rules.state.state import Array, State, no_commands
from starleague.environments.skirmish.rules.step import (
  abilities,
  accounting,
  arrival,
  combat,
  construction,
  economy,
  mining,
  movement,
  recovery,
  transport,
)
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import LOOPS_PER_STEP, TICKS_PER_STEP


def reset(rules: tables.Rules, key: Array, match_up: base.MatchUp) -> State:
  """The first state of a game."""
  state = perception.perceive(rules, initial_state.initial_state(rules, key, match_up))
  # Without weak types: a state from the host would otherwise compile a second program.
  return jax.tree.map(lambda x: lax.convert_element_type(x, x.dtype), state)


def due(state: State) -> Array:
  """The players whose delay is over: [2] bool, all False once the game is over."""
  return (state.loop >= state.next_loop) & (state.winner < 0)


def outcome(state: State) -> base.Outcome:
  """Whether the game is over, and the players' rewards."""
  won = (state.winner == jnp.arange(2)).astype(jnp.float32)
  return base.Outcome(over=state.winner >= 0, reward=won - flip(won))


def step(rules: tables.Rules, state: State) -> State:
  """Plays a step of a game that is not over."""
  can = availability.available(rules, state)
  state, accepted = commands.give_orders(rules, state, can)
  state = abilities.use_abilities(rules, state, accepted)
  state = economy.train(rules, state, accepted.trainers, accepted.command.product)
  attached = []
  if rules.has_add_ons:
    state, begun = construction.attach(rules, state, accepted)
    attached = [begun]
  state, units = economy.finish_production(rules, state)
  state = economy.grow_larvae(rules, state)
  state = mining.mine(rules, state)
  state, structures = construction.construct(rules, state)
  state = accounting.record_spawns(rules, state, Spawns(*(
    jnp.concatenate(parts, axis=1) for parts in zip(*attached, structures, units, strict=True))))
  state = state._replace(hurt=jnp.zeros_like(state.hurt), commands=no_commands(rules))
  plan = combat.plan(rules, state)
  for _ in range(TICKS_PER_STEP):
    state = combat.tick(rules, state, plan)
  state = recovery.recover(rules, state)
  ended: Array | bool = False
  if rules.has_transports:
    state, ended = transport.transfer(rules, state)
  state = combat.remove_dead(rules, state)
  if rules.has_add_ons:
    state = add_ons.link(rules, state)
  state = movement.separate_units(rules, state, plan.barrier)
  state = state._replace(loop=state.loop + LOOPS_PER_STEP)
  state = perception.perceive(rules, state)
  state = arrival.complete_orders(rules, state, plan, ended)
  state = accounting.count_idle_time(rules, state)
  return state._replace(winner=accounting.winner(rules, state))


def advance(rules: tables.Rules, state: State) -> State:
  """Plays a step of 8 game loops; a game that is over does not change."""
  running = state.winner < 0
  return jax.tree.map(lambda new, old: jnp.where(running, new, old), step(rules, state), state)


def make_skirmish(tier: str = "mini", *, max_entities: int = 64, map_size: int = 32,
                  location_size: int = 32, max_selected: int = 8) -> base.Environment:
  """Makes Skirmish, the embedded RTS.

  Args:
    tier: a name of `tiers.TIERS`.
    max_entities: E, rows of an observation.
    map_size: H = W of its planes.
    location_size: L, rows and columns of the location grid of actions.
    max_selected: K, units that an action can select.

  Returns:
    An Environment of pure functions of one game, to be vmapped.

  Raises:
    ValueError: an unknown tier, or sizes too small for it.
  """
  rules = tables.make_rules(tier, max_entities, map_size, location_size, max_selected)
  bind = functools.partial
  return base.Environment(
    reset=bind(reset, rules), observe=bind(observation.observe, rules),
    act=bind(acting.act, rules), advance=bind(advance, rules), due=due, outcome=outcome)
