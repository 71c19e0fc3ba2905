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

_ROUNDED = 1.00001  # a squared distance times this is not less than the same one rounded otherwise


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
  crowded = _crowded(rules, state, goal_x, goal_y)
  arrived = ((verb == MOVE) & ((square < ARRIVED ** 2) | crowded)) | (
    ((verb == ATTACK) | (verb == PATROL)) & ((square < ATTACK_ARRIVED ** 2) | crowded) & ~engaged)
  seen = pick(state.memory.seen & (flip(state.kind) > 0), order.target)
  lost = (verb == ATTACK_UNIT) & ~seen
  # Workers without further orders mine: a stray order of a beginner costs a walk, not the income
  # of the rest of the game.
  worker = look_up(rules.types.worker, obeying_kind(rules, state))
  return orders.next_order(rules, state, arrived | lost | ended, worker)


def end_of_attacks(rules: tables.Rules, kind: Array) -> Array:
  """The farthest from their common goal at which attacks of units [M] end, map units: [] float32.

  Args:
    rules: the game's constants.
    kind: [M] int32, local types, 0 for none.
  """
  area = jnp.sum(look_up(rules.types.radius ** 2, kind) * (kind > 0))
  return jnp.maximum(jnp.sqrt(area / CROWDED), ATTACK_ARRIVED)


def _crowded(rules: tables.Rules, state: State, x: Array, y: Array) -> Array:
  """Units that find their goal taken by own units: [2, M] bool.

  Units that part from each other cannot all stand at the goal of their group. They have arrived
  where those that are nearer to it fill the disc between them and the goal.

  Args:
    rules: the game's constants.
    state: the game.
    x: [2, M] float32, the units' goals.
    y: [2, M].
  """
  s = rules.tier.structures
  kind, unit_x, unit_y = state.kind[:, s:], state.x[:, s:], state.y[:, s:]
  area = look_up(rules.types.radius ** 2, kind)  # divided by pi, as squared distances are
  taken = jnp.where(movement.solid(rules, state), area, 0.0)
  if rules.has_flyers:  # flyers do not stand in the way of walkers: they count as far away
    layer = look_up(np.where(rules.types.flying, 8.0 * rules.half, 0.0).astype(np.float32), kind)
    unit_x, x = unit_x + layer, x + layer
  square = squared_distance(unit_x, unit_y, x, y)
  # Units come first here, [2, unit, goal]: sums over them are several times as fast. Each counts
  # itself, whichever way its distance is rounded.
  nearer = pairwise_squared_distance(unit_x, unit_y, x, y) <= _ROUNDED * square[:, None]
  others = jnp.sum(jnp.where(nearer, taken[:, :, None], 0.0), axis=1) - taken
  return others >= CROWDED * square
