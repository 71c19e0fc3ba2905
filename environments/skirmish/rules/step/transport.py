"""Transport, once a step: a unit of each player boards, and a passenger leaves its transport.

Passengers are units with the verb ABOARD, whose target is their transport. They are off the map,
out of everybody's range and sight, and die with their transport.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

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


class Move(NamedTuple):
  """A passenger of each player that boards or leaves, [2, 1] each unless stated."""

  happens: Array  # bool
  passenger: Array  # int32, slots
  carrier: Array
  size: Array  # int32: the space of the passenger
  x: Array  # float32: its new place
  y: Array
  over: Array  # [2, M] bool: units whose order is done or has lost its target


def transfer(rules: tables.Rules, state: State) -> tuple[State, Array]:
  """Boards and drops passengers.

  Returns:
    The state, and the units whose order is done or has lost its target, [2, M] bool.
  """
  order, next_verb, taken = state.orders, state.next_orders.verb, state.cargo_taken
  every = jnp.arange(rules.tier.slots)
  slots = every[rules.tier.structures:]
  boards, drops = _boards(rules, state), _drops(rules, state)
  enters, leaves = ((slots == move.passenger) & move.happens for move in (boards, drops))

  def put(values, boards_to, drops_to):
    at = jnp.where((every == drops.passenger) & drops.happens, drops_to, values)
    return jnp.where((every == boards.passenger) & boards.happens, boards_to, at)

  for move, sign in ((boards, 1), (drops, -1)):
    taken += jnp.where((slots == move.carrier) & move.happens, sign * move.size, 0)
  return state._replace(
    x=put(state.x, boards.x, drops.x), y=put(state.y, boards.y, drops.y), cargo_taken=taken,
    orders=order._replace(
      verb=jnp.where(enters, ABOARD, jnp.where(leaves, IDLE, order.verb)),
      target=jnp.where(enters, boards.carrier, order.target)),
    next_orders=state.next_orders._replace(verb=jnp.where(enters, IDLE, next_verb))
    ), boards.over | drops.over


def _first(rules: tables.Rules, units: Array) -> tuple[Array, Array]:
  """The slot of each player's first chosen unit, and whether there is one: [2, 1] each."""
  tier = rules.tier
  slot = jnp.min(jnp.where(units, jnp.arange(tier.structures, tier.slots), tier.slots), axis=1,
                 keepdims=True)
  return slot, slot < tier.slots


def _boards(rules: tables.Rules, state: State) -> Move:
  """The first unit of each player in reach of its transport boards, or is loaded by it."""
  s, order, verb = rules.tier.structures, state.orders, state.orders.verb
  slots = jnp.arange(s, rules.tier.slots)
  to_x, to_y = pick(state.x, order.target), pick(state.y, order.target)
  goes = (verb == BOARD) | (verb == LOAD)
  square = squared_distance(state.x[:, s:], state.y[:, s:], to_x, to_y)
  reach = look_up(np.square(np.array([LOADING_REACH[race] for race in RACES], np.float32)),
                  state.race)
  one, some = _first(rules, goes & (square <= reach[:, None]))
  other, loads = pick(order.target, one - s), pick(verb, one - s) == LOAD
  passenger, carrier = jnp.where(loads, other, one), jnp.where(loads, one, other)
  size = look_up(rules.types.cargo_size, pick(state.kind, passenger))
  room = int(rules.types.cargo_space.max()) - pick(state.cargo_taken, carrier - s)
  health = jnp.minimum(pick(state.health, passenger), pick(state.health, carrier))
  enters = (some & (size > 0) & (size <= room) & (health > DEAD_HEALTH)
            & is_transport(rules, pick(state.kind, carrier))
            & (pick(verb, passenger - s) != CONSTRUCT))
  # Orders end whose own target boards, has boarded before, or died while they were queued.
  gone = (jnp.abs(to_x) >= OFF_MAP) | (pick(state.kind, order.target) == 0)
  over = ((slots == one) & ~(enters & ~loads)) | (goes & gone) | (
    (goes | (verb == REPAIR)) & enters & (order.target == passenger))
  off = OFF_MAP * state.side[:, None]
  return Move(enters, passenger, carrier, size, off, off, over)


def _drops(rules: tables.Rules, state: State) -> Move:
  """The first transport of each player at its place drops one passenger, on passable ground."""
  s, types, order = rules.tier.structures, rules.types, state.orders
  slots = jnp.arange(s, rules.tier.slots)
  apart = squared_distance(state.x[:, s:], state.y[:, s:], order.x, order.y)
  arrived = (apart < ARRIVED ** 2) | (order.target != ALL_PASSENGERS) | (
    state.kind[:, s:] == types.local("WarpPrismPhasing"))  # which does not move
  carrier, some = _first(rules, (order.verb == UNLOAD) & arrived)
  wanted = pick(order.target, carrier - s)
  passenger, found = _first(rules, (order.verb == ABOARD) & (order.target == carrier) & (
    (wanted < 0) | (slots == wanted)))
  x, y = pick(state.x, carrier), pick(state.y, carrier)
  drops = some & found & boarding.over_ground(rules, state, x[:, 0], y[:, 0])[:, None]
  size = look_up(types.cargo_size, pick(state.kind, passenger))
  single = (wanted >= 0) | (wanted == FIRST_PASSENGER)
  return Move(drops, passenger, carrier, size, x, y,
              some & (slots == carrier) & (~drops | single))
