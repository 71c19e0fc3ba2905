"""Transport, once a step: a unit of each player boards, and a passenger leaves its transport.

Passengers are units with the verb ABOARD, whose target is their transport. They are off the map,
out of everybody's range and sight, and die with their transport.
"""

import jax.numpy as jnp

from starleague.environments.skirmish.rules.interface import boarding
from starleague.environments.skirmish.rules.state.arrays import look_up, pick, squared_distance
from starleague.environments.skirmish.rules.state.queries import is_transport
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import (
  ABOARD,
  ALL_PASSENGERS,
  ARRIVED,
  BOARD,
  CONSTRUCT,
  DEAD_HEALTH,
  FIRST_PASSENGER,
  IDLE,
  LOAD,
  LOADING_REACH,
  OFF_MAP,
  RACES,
  REPAIR,
  UNLOAD,
)


def transfer(rules: tables.Rules, state: State) -> tuple[State, Array]:
  """Boards and drops passengers.

  Returns:
    The state, and the units whose order is done or has lost its target, [2, M] bool.
  """
  state, over = _board(rules, state)
  state, done = _drop(rules, state)
  return state, over | done


def _at(values: Array, slot: Array) -> Array:
  """Each player's value [2, 1] of a slot [2, 1]."""
  return pick(values, slot)


def _first(rules: tables.Rules, units: Array) -> tuple[Array, Array]:
  """The slot of each player's first chosen unit, and whether there is one: [2, 1] each."""
  tier = rules.tier
  slot = jnp.min(jnp.where(units, jnp.arange(tier.structures, tier.slots), tier.slots), axis=1,
                 keepdims=True)
  return slot, slot < tier.slots


def _board(rules: tables.Rules, state: State) -> tuple[State, Array]:
  """The first unit of each player in reach of its transport boards, or is loaded by it."""
  s, order, verb = rules.tier.structures, state.orders, state.orders.verb
  every, slots = jnp.arange(rules.tier.slots), jnp.arange(s, rules.tier.slots)
  to_x, to_y = pick(state.x, order.target), pick(state.y, order.target)
  goes = (verb == BOARD) | (verb == LOAD)
  square = squared_distance(state.x[:, s:], state.y[:, s:], to_x, to_y)
  reach = look_up(jnp.square(jnp.array([LOADING_REACH[race] for race in RACES])), state.race)
  one, some = _first(rules, goes & (square <= reach[:, None]))
  other, loads = _at(order.target, one - s), _at(verb, one - s) == LOAD
  passenger, carrier = jnp.where(loads, other, one), jnp.where(loads, one, other)
  size = look_up(rules.types.cargo_size, _at(state.kind, passenger))
  taken = size + _at(state.cargo_taken, carrier - s)
  enters = (some & (size > 0) & is_transport(rules, _at(state.kind, carrier))
            & (taken <= int(rules.types.cargo_space.max()))
            & (_at(verb, passenger - s) != CONSTRUCT)
            & (jnp.minimum(_at(state.health, passenger), _at(state.health, carrier))
               > DEAD_HEALTH))
  inside, away = enters & (slots == passenger), enters & (every == passenger)
  off = OFF_MAP * state.side[:, None]
  # Orders end whose own target boards, or has boarded before.
  over = ((slots == one) & ~inside) | (goes & (jnp.abs(to_x) >= OFF_MAP)) | (
    (goes | (verb == REPAIR)) & enters & (order.target == passenger))
  return state._replace(
    x=jnp.where(away, off, state.x), y=jnp.where(away, off, state.y),
    cargo_taken=jnp.where(enters & (slots == carrier), taken, state.cargo_taken),
    orders=order._replace(verb=jnp.where(inside, ABOARD, verb),
                          target=jnp.where(inside, carrier, order.target)),
    next_orders=state.next_orders._replace(
      verb=jnp.where(inside, IDLE, state.next_orders.verb))), over


def _drop(rules: tables.Rules, state: State) -> tuple[State, Array]:
  """The first transport of each player at its place drops one passenger, on passable ground."""
  s, types, order = rules.tier.structures, rules.types, state.orders
  every, slots = jnp.arange(rules.tier.slots), jnp.arange(s, rules.tier.slots)
  apart = squared_distance(state.x[:, s:], state.y[:, s:], order.x, order.y)
  arrived = (apart < ARRIVED ** 2) | (order.target != ALL_PASSENGERS) | (
    state.kind[:, s:] == types.local("WarpPrismPhasing"))  # which does not move
  carrier, some = _first(rules, (order.verb == UNLOAD) & arrived)
  wanted = _at(order.target, carrier - s)
  passenger, found = _first(rules, (order.verb == ABOARD) & (order.target == carrier) & (
    (wanted < 0) | (slots == wanted)))
  x, y = _at(state.x, carrier), _at(state.y, carrier)
  drops = some & found & boarding.over_ground(rules, state, x[:, 0], y[:, 0])[:, None]
  lands, leaves = drops & (every == passenger), drops & (slots == passenger)
  size = look_up(types.cargo_size, _at(state.kind, passenger))
  single = (wanted >= 0) | (wanted == FIRST_PASSENGER)
  here = some & (slots == carrier)
  return state._replace(
    x=jnp.where(lands, x, state.x), y=jnp.where(lands, y, state.y),
    cargo_taken=jnp.where(here & drops, state.cargo_taken - size, state.cargo_taken),
    orders=order._replace(verb=jnp.where(leaves, IDLE, order.verb))), here & (~drops | single)
