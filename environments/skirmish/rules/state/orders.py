"""Unit orders: taking a new one, and continuing with the queued one."""

import jax.numpy as jnp

from starleague.environments.skirmish.rules.state.state import Array, Orders, State
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import GATHER, IDLE, PATROL


def take_orders(rules: tables.Rules, state: State, queued: Array, units: Array,
                new: Orders) -> State:
  """Gives units an order, at once or after their current one.

  Args:
    rules: the game's constants.
    state: the game.
    queued: [2] bool.
    units: [2, M] bool, the units that take the order.
    new: [2, M].
  """
  s = rules.tier.structures
  later = units & queued[:, None] & (state.orders.verb != IDLE)
  now = units & ~later
  orders = Orders(*(jnp.where(now, a, b) for a, b in zip(new, state.orders, strict=True)))
  waiting = Orders(*(jnp.where(later, a, b) for a, b in zip(new, state.next_orders, strict=True)))
  waiting = waiting._replace(verb=jnp.where(now, IDLE, waiting.verb))
  if rules.has_verb(PATROL):
    # A patrol returns to where it began.
    back = now & (new.verb == PATROL)
    waiting = waiting._replace(
      verb=jnp.where(back, PATROL, waiting.verb),
      x=jnp.where(back, state.x[:, s:], waiting.x), y=jnp.where(back, state.y[:, s:], waiting.y))
  return state._replace(orders=orders, next_orders=waiting, trip=jnp.where(now, 0, state.trip))


def next_order(rules: tables.Rules, state: State, done: Array, mine: Array) -> State:
  """Gives units that are done their queued order; without one they mine or idle.

  Args:
    rules: the game's constants.
    state: the game.
    done: [2, M] bool.
    mine: [2, M] bool: units that mine if nothing is queued.
  """
  idle = jnp.where(mine, GATHER, IDLE)
  waiting = state.next_orders.verb != IDLE
  verb = jnp.where(waiting, state.next_orders.verb, idle)
  follow = state.next_orders._replace(
    verb=verb, target=jnp.where(waiting, state.next_orders.target, -1))
  orders = Orders(*(jnp.where(done, a, b) for a, b in zip(follow, state.orders, strict=True)))
  # A patrol turns around: its goal becomes the place to return to. One that begins returns here.
  patrols = done & (state.next_orders.verb == PATROL)
  turns, s = state.orders.verb == PATROL, rules.tier.structures
  back_x = jnp.where(turns, state.orders.x, state.x[:, s:])
  back_y = jnp.where(turns, state.orders.y, state.y[:, s:])
  queued = state.next_orders._replace(
    verb=jnp.where(done & ~patrols, IDLE, state.next_orders.verb),
    x=jnp.where(patrols, back_x, state.next_orders.x),
    y=jnp.where(patrols, back_y, state.next_orders.y))
  return state._replace(orders=orders, next_orders=queued, trip=jnp.where(done, 0, state.trip))
