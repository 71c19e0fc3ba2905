"""The end of orders: goals that are reached, and targets that are gone."""

import jax.numpy as jnp

from starleague.environments.skirmish.rules.state import orders
from starleague.environments.skirmish.rules.state.arrays import (
  flip,
  look_up,
  pick,
  squared_distance,
)
from starleague.environments.skirmish.rules.state.queries import obeying_kind
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.step import combat, movement
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import (
  ARRIVED,
  ATTACK,
  ATTACK_ARRIVED,
  ATTACK_UNIT,
  MOVE,
  PATROL,
)


def complete_orders(rules: tables.Rules, state: State, plan: combat.Plan,
                    ended: Array | bool = False) -> State:
  """Ends orders whose goal is reached or whose target is gone, and others [2, M] bool."""
  s, a = rules.tier.structures, rules.tier.armed
  order, verb = state.orders, state.orders.verb
  goal_x, goal_y = movement.on_ground(rules, state, order.x, order.y)
  square = squared_distance(state.x[:, s:], state.y[:, s:], goal_x, goal_y)
  engaged = jnp.any(plan.sight[:, :, a:] > 0, axis=1) & (state.cooldown[:, a:] > 0)
  arrived = ((verb == MOVE) & (square < ARRIVED ** 2)) | (
    ((verb == ATTACK) | (verb == PATROL)) & (square < ATTACK_ARRIVED ** 2) & ~engaged)
  seen = pick(state.memory.seen & (flip(state.kind) > 0), order.target)
  lost = (verb == ATTACK_UNIT) & ~seen
  # Workers without further orders mine: a stray order of a beginner costs a walk, not the income
  # of the rest of the game.
  worker = look_up(rules.types.worker, obeying_kind(rules, state))
  return orders.next_order(rules, state, arrived | lost | ended, worker)
