"""Orders: new ones, queued ones and patrols."""

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules.state import orders
from starleague.environments.skirmish.rules.state.state import Orders, idle_orders
from starleague.environments.skirmish.rules.tables.constants import (
  ATTACK,
  GATHER,
  IDLE,
  MOVE,
  PATROL,
)
from tests.environments.skirmish import default_games
from tests.environments.skirmish.states import first

RULES = default_games.RULES
M, S = RULES.tier.units, RULES.tier.structures
FIRST = np.arange(M)[None] == np.array([[0], [-1]])  # the first unit of player 0


def order(verb, x):
  new = idle_orders(RULES)
  return Orders(new.verb + verb, new.x + x, new.y, new.target, new.product)


def take(state, verb, x, queued):
  return orders.take_orders(RULES, state, jnp.array([queued, queued]), FIRST, order(verb, x))


def test_orders_replace_the_current_one_unless_they_are_queued():
  state = first(RULES)
  state.trip[0, 0] = 7
  now = take(state, MOVE, 3.0, queued=False)
  assert (int(now.orders.verb[0, 0]), float(now.orders.x[0, 0]), int(now.trip[0, 0])) == (
    MOVE, 3.0, 0)
  np.testing.assert_array_equal(now.orders.verb[1], state.orders.verb[1])
  later = take(now, ATTACK, 5.0, queued=True)
  assert (int(later.orders.verb[0, 0]), int(later.next_orders.verb[0, 0])) == (MOVE, ATTACK)
  # One order waits: a further queued one takes its place.
  third = take(later, MOVE, 6.0, queued=True)
  assert [float(orders.x[0, 0]) for orders in (third.orders, third.next_orders)] == [3.0, 6.0]
  assert int(third.next_orders.verb[0, 0]) == MOVE
  # A new order drops the queued one.
  again = take(later, MOVE, 4.0, queued=False)
  assert int(again.next_orders.verb[0, 0]) == IDLE


def test_an_idle_unit_takes_a_queued_order_at_once():
  state = first(RULES)
  state.orders.verb[:] = IDLE
  found = take(state, MOVE, 3.0, queued=True)
  assert (int(found.orders.verb[0, 0]), int(found.next_orders.verb[0, 0])) == (MOVE, IDLE)


def test_units_that_are_done_follow_their_queued_order_mine_or_idle():
  state = take(take(first(RULES), MOVE, 3.0, queued=False), ATTACK, 5.0, queued=True)
  found = orders.next_order(RULES, state, FIRST, FIRST)
  assert (int(found.orders.verb[0, 0]), float(found.orders.x[0, 0])) == (ATTACK, 5.0)
  assert int(found.next_orders.verb[0, 0]) == IDLE
  for mines, verb in ((FIRST, GATHER), (~FIRST, IDLE)):
    then = orders.next_order(RULES, found, FIRST, mines)
    assert (int(then.orders.verb[0, 0]), int(then.orders.target[0, 0])) == (verb, -1)


def test_a_patrol_turns_around_at_each_end():
  state = take(first(RULES), PATROL, 3.0, queued=False)
  start = float(state.x[0, S])
  for goal, back in ((start, 3.0), (3.0, start), (start, 3.0)):
    state = orders.next_order(RULES, state, FIRST, FIRST)
    assert int(state.orders.verb[0, 0]) == int(state.next_orders.verb[0, 0]) == PATROL
    assert (float(state.orders.x[0, 0]), float(state.next_orders.x[0, 0])) == (goal, back)


def test_a_queued_patrol_returns_to_where_it_begins():
  state = take(take(first(RULES), MOVE, 3.0, queued=False), PATROL, 5.0, queued=True)
  state.x[0, S] = 3.0  # where the move ends
  for goal, back in ((5.0, 3.0), (3.0, 5.0), (5.0, 3.0)):
    state = orders.next_order(RULES, state, FIRST, FIRST)
    assert int(state.orders.verb[0, 0]) == int(state.next_orders.verb[0, 0]) == PATROL
    assert (float(state.orders.x[0, 0]), float(state.next_orders.x[0, 0])) == (goal, back)
