"""From what players order to what units do."""

import jax.numpy as jnp
import numpy as np

from starleague.actor.environments.skirmish import tables
from starleague.actor.environments.skirmish.state import (
  Array,
  Orders,
  State,
  both_halves,
  finished_kind,
  flip,
  food,
  look_up,
  patch_places,
)

NOWHERE = -1e6  # the radius of what is not there


def available(rules: tables.Rules, state: State) -> Array:
  """Which functions can do something now: [2, C] bool by local function.

  A function can if something that executes it is there and free, and, for what is made, if it can
  be paid, fed and put somewhere; for what needs a target, if there is one to see.
  """
  tier, types, functions = rules.tier, rules.types, rules.functions
  standing = finished_kind(rules, state)
  free = jnp.where(state.orders.verb == tables.CONSTRUCT, 0, state.kind[:, tier.structures:])
  room = jnp.where(state.queue[:, :, -1] == 0, standing, 0)  # can take one more in training
  every = jnp.arange(len(types.names))

  def present(kind):
    return jnp.any(kind[:, :, None] == every, axis=1)

  able = present(jnp.concatenate([standing, free], axis=1))  # [2, Y]
  able_to_train = present(room)
  executor = (able @ jnp.asarray(functions.capable.T, jnp.float32)) > 0
  trainer = (able_to_train @ jnp.asarray(functions.capable.T, jnp.float32)) > 0
  product, kind = functions.product, functions.kind
  cost = jnp.asarray(types.cost[product])
  paid = state.minerals[:, None] >= cost
  used, most = food(rules, state)
  fed = used[:, None] + jnp.asarray(types.takes_food[product]) <= most[:, None]
  needed = types.requirement[product]
  met = able[:, needed] | (needed == 0)
  slot = jnp.any(state.kind[:, :tier.structures] == 0, axis=1, keepdims=True)
  ok = jnp.where(kind == tables.BUILDING, executor & paid & met & slot,
                 jnp.where(kind == tables.TRAINING, trainer & paid & fed & met, executor))
  enemy = jnp.any(state.memory.seen, axis=1) | jnp.any(state.memory.kind > 0, axis=1)
  patch = jnp.any(state.memory.patches > 0, axis=1)
  ok &= jnp.where(functions.verb == tables.ATTACK_UNIT, enemy[:, None], True)
  ok &= jnp.where(functions.verb == tables.GATHER, patch[:, None], True)
  return ok.at[:, 0].set(True)


def placeable(rules: tables.Rules, state: State, x: Array, y: Array, product: Array) -> Array:
  """Whether a structure fits: on the map, clear of structures and of patches. [2] bool.

  Args:
    rules: the game's constants.
    state: the game.
    x: [2] float32, its middle.
    y: [2].
    product: [2] int32, local type.
  """
  types, s = rules.types, rules.tier.structures
  radius = look_up(types.radius, product)
  inside = jnp.maximum(jnp.abs(x), jnp.abs(y)) + radius <= rules.half
  patch_x, patch_y = patch_places(rules, state.side)
  kinds = jnp.concatenate([state.kind[:, :s], flip(state.kind[:, :s])], axis=1)
  radii = jnp.concatenate([
    jnp.where(kinds > 0, look_up(types.radius, kinds), NOWHERE),
    jnp.where(both_halves(state.patches) > 0, tables.PATCH_RADIUS, NOWHERE)], axis=1)
  xs = jnp.concatenate([state.x[:, :s], flip(state.x[:, :s]), patch_x], axis=1)
  ys = jnp.concatenate([state.y[:, :s], flip(state.y[:, :s]), patch_y], axis=1)
  apart = jnp.maximum(radius[:, None] + radii, 0.0)
  clear = (xs - x[:, None]) ** 2 + (ys - y[:, None]) ** 2 >= apart * apart
  return inside & jnp.all(clear, axis=1)


def _executors(rules: tables.Rules, state: State, function: Array) -> Array:
  """Selected slots that can execute the function: [2, n] bool."""
  tier = rules.tier
  can = look_up(rules.functions.capable.astype("float32"), function)  # [2, Y]
  kind = jnp.concatenate([finished_kind(rules, state), state.kind[:, tier.structures:]], axis=1)
  one_hot = kind[:, :, None] == jnp.arange(len(rules.types.names))
  capable = jnp.any(one_hot & (can[:, None] > 0), axis=2)
  locked = jnp.pad(state.orders.verb == tables.CONSTRUCT, ((0, 0), (tier.structures, 0)))
  return state.commands.selected & capable & ~locked


def _aim(rules: tables.Rules, state: State) -> tuple[Array, Array, Array]:
  """Where a command points, and at what slot: x, y [2], and whether its target is still there."""
  commands = state.commands
  patch_x, patch_y = patch_places(rules, state.side)
  memory, s = state.memory, rules.tier.structures
  enemy_kind, enemy_x, enemy_y = flip(state.kind), flip(state.x), flip(state.y)

  def known(current, remembered):
    """The enemy's slots as the player knows them: in sight, or as last seen."""
    return current.at[:, :s].set(jnp.where(memory.seen[:, :s], current[:, :s], remembered))

  there = (jnp.where(memory.seen, enemy_kind, 0) > 0).at[:, :s].set(
    jnp.where(memory.seen[:, :s], enemy_kind[:, :s], memory.kind) > 0)
  x = jnp.stack([state.x, known(enemy_x, memory.x)], axis=1)  # [2, 2, n]
  y = jnp.stack([state.y, known(enemy_y, memory.y)], axis=1)
  here = jnp.stack([state.kind > 0, there], axis=1)
  slots = jnp.arange(rules.tier.slots) == commands.target[:, None]
  patches = jnp.arange(rules.tier.resources) == commands.target[:, None]

  def chosen(units, resources):
    side = commands.target_kind[:, None, None] == jnp.array([[[tables.OWN], [tables.ENEMY]]])
    total = jnp.sum(units * (side & slots[:, None]), axis=(1, 2))
    mine = commands.target_kind[:, None] == tables.RESOURCE
    return total + jnp.sum(resources * (mine & patches), axis=1)

  pointed = commands.target_kind == tables.NO_TARGET
  aim_x = jnp.where(pointed, commands.x, chosen(x, patch_x))
  aim_y = jnp.where(pointed, commands.y, chosen(y, patch_y))
  exists = chosen(here.astype(jnp.float32), (both_halves(state.patches) > 0).astype(jnp.float32))
  return aim_x, aim_y, pointed | (exists > 0)


def give_orders(rules: tables.Rules, state: State, can: Array) -> tuple[State, Array]:
  """The players' commands become their units' orders.

  Args:
    rules: the game's constants.
    state: the game.
    can: [2, C] bool, `available(state)`; a command that is not available does nothing.

  Returns:
    The state with new orders and rally points, and the slots that train: [2, S] bool.
  """
  tier, functions, commands = rules.tier, rules.functions, state.commands
  s = tier.structures
  valid = jnp.any(can & (commands.function[:, None] == jnp.arange(len(functions.names))), axis=1)
  aim_x, aim_y, there = _aim(rules, state)
  wants = {tables.ATTACK_UNIT: tables.ENEMY, tables.GATHER: tables.RESOURCE}
  verb = look_up(functions.verb, commands.function).astype(jnp.int32)
  for needy, target in wants.items():
    valid &= (verb != needy) | (commands.target_kind == target)
  product = look_up(functions.product, commands.function).astype(jnp.int32)
  valid &= there & ((verb != tables.BUILD) | placeable(rules, state, aim_x, aim_y, product))
  smart = look_up(np.array(functions.names) == "Smart_unit", commands.function) > 0
  verb = jnp.where(smart & (commands.target_kind == tables.ENEMY), tables.ATTACK_UNIT, verb)
  executors = _executors(rules, state, commands.function) & valid[:, None]
  units = executors[:, s:]
  # A building site takes one worker, the first.
  units &= (verb != tables.BUILD)[:, None] | (jnp.cumsum(units, axis=1) == 1)
  kind = look_up(functions.kind, commands.function).astype(jnp.int32)
  gathers = smart & (commands.target_kind == tables.RESOURCE)
  worker = look_up(rules.types.worker, state.kind[:, s:]) > 0
  verbs = jnp.where(gathers[:, None] & worker, tables.GATHER, verb[:, None])
  # What is remembered but not in sight is not shot at but gone for.
  hidden = (verb == tables.ATTACK_UNIT) & ~jnp.any(
    state.memory.seen & (jnp.arange(tier.slots) == commands.target[:, None]), axis=1)
  verbs = jnp.where(hidden[:, None], tables.ATTACK, verbs)
  ones = jnp.ones_like(verbs)
  given = Orders(verbs, aim_x[:, None] * ones, aim_y[:, None] * ones,
                 commands.target[:, None] * ones, product[:, None] * ones)
  later = units & commands.queued[:, None] & (state.orders.verb != tables.IDLE)
  now = units & ~later
  orders = Orders(*(jnp.where(now, a, b) for a, b in zip(given, state.orders, strict=True)))
  queued = Orders(*(jnp.where(later, a, b) for a, b in zip(given, state.next_orders, strict=True)))
  queued = queued._replace(verb=jnp.where(now, tables.IDLE, queued.verb))
  rallied = executors[:, :s] & (kind == tables.COMMAND)[:, None]
  state = state._replace(
    orders=orders, next_orders=queued, trip=jnp.where(now, 0, state.trip),
    rally=state.rally | rallied,
    rally_x=jnp.where(rallied, aim_x[:, None], state.rally_x),
    rally_y=jnp.where(rallied, aim_y[:, None], state.rally_y))
  return state, executors[:, :s] & (kind == tables.TRAINING)[:, None]


def next_order(rules: tables.Rules, state: State, done: Array, mine: Array) -> State:
  """Units that are done turn to what was queued; else builders go back to mine, others rest.

  Args:
    rules: the game's constants.
    state: the game.
    done: [2, M] bool.
    mine: [2, M] bool: those that mine if nothing was queued.
  """
  idle = jnp.where(mine, tables.GATHER, tables.IDLE)
  waiting = state.next_orders.verb != tables.IDLE
  verb = jnp.where(waiting, state.next_orders.verb, idle)
  follow = state.next_orders._replace(
    verb=verb, target=jnp.where(waiting, state.next_orders.target, -1))
  orders = Orders(*(jnp.where(done, a, b) for a, b in zip(follow, state.orders, strict=True)))
  queued = state.next_orders._replace(verb=jnp.where(done, tables.IDLE, state.next_orders.verb))
  return state._replace(
    orders=orders, next_orders=queued, trip=jnp.where(done, 0, state.trip))
