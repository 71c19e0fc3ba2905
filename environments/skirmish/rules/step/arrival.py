"""The end of orders: goals that are reached or crowded, and targets that are gone."""

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules.state import orders
from starleague.environments.skirmish.rules.state.arrays import (
  flip,
  look_up,
  pairwise_squared_distance,
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
  CROWDED,
  MOVE,
  PATROL,
)


def complete_orders(rules: tables.Rules, state: State, plan: combat.Plan,
                    ended: Array | bool = False) -> State:
  """Ends orders whose goal is reached or crowded, or whose target is gone, and others.

  Args:
    rules: the game's constants.
    state: the game.
    plan: of the step.
    ended: [2, M] bool, units whose orders end for other reasons.
  """
  s, a = rules.tier.structures, rules.tier.armed
  order, verb = state.orders, state.orders.verb
  goal_x, goal_y = movement.on_ground(rules, state, order.x, order.y)
  square = squared_distance(state.x[:, s:], state.y[:, s:], goal_x, goal_y)
  engaged = jnp.any(plan.sight[:, :, a:] > 0, axis=1) & (state.cooldown[:, a:] > 0)
  crowded = _crowded(rules, state, goal_x, goal_y, square)
  arrived = ((verb == MOVE) & ((square < ARRIVED ** 2) | crowded)) | (
    ((verb == ATTACK) | (verb == PATROL)) & ((square < ATTACK_ARRIVED ** 2) | crowded) & ~engaged)
  seen = pick(state.memory.seen & (flip(state.kind) > 0), order.target)
  lost = (verb == ATTACK_UNIT) & ~seen
  # Workers without further orders mine: a stray order of a beginner costs a walk, not the income
  # of the rest of the game.
  worker = look_up(rules.types.worker, obeying_kind(rules, state))
  return orders.next_order(rules, state, arrived | lost | ended, worker)


def _crowded(rules: tables.Rules, state: State, x: Array, y: Array, square: Array) -> Array:
  """Units that find their goal taken by own units: [2, M] bool.

  Units that part from each other cannot all stand at the goal of their group. They have arrived
  where those that are nearer to it fill the disc between them and the goal.

  Args:
    rules: the game's constants.
    state: the game.
    x: [2, M] float32, the units' goals.
    y: [2, M].
    square: [2, M], their squared distances from them.
  """
  s = rules.tier.structures
  area = look_up(rules.types.radius ** 2, state.kind[:, s:])  # divided by pi, as `square`
  taken = jnp.where(movement.solid(rules, state), area, 0.0)
  distance = pairwise_squared_distance(x, y, state.x[:, s:], state.y[:, s:])  # [2, goal, unit]
  nearer = (distance <= square[:, :, None]) & ~np.eye(rules.tier.units, dtype=bool)
  if rules.has_flyers:
    flying = look_up(rules.types.flying, state.kind[:, s:])
    nearer &= flying[:, :, None] == flying[:, None]
  return jnp.sum(jnp.where(nearer, taken[:, None], 0.0), axis=2) >= CROWDED * square
