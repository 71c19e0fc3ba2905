"""From what players order to what units do."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from starleague.actor.environments.skirmish import placement, tables
from starleague.actor.environments.skirmish.state import (
  Array,
  Orders,
  State,
  finished_kind,
  food,
  geysers,
  look_up,
  next_products,
  pick,
  present_types,
  resource_places,
  room,
  standing_types,
)

GEYSER_REACH = 3.0  # how far off a geyser a gas structure may be aimed at
SCAN_ENERGY, BOOST_ENERGY, INJECT_ENERGY = 50.0, 50.0, 25.0
STIM_COST = {"Marine": 10.0, "Marauder": 20.0}  # hit points


class Given(NamedTuple):
  """What became of the players' commands besides orders."""

  trainers: Array  # [2, S] bool: structures that make the product
  product: Array  # [2] int32
  users: Array  # [2, n] bool: slots that use the ability
  ability: Array  # [2] int32
  x: Array  # [2] float32: where it points
  y: Array
  target: Array  # [2] int32, an own slot


def stim_cost(rules: tables.Rules, kind: Array) -> Array:
  """Hit points that a dose costs each slot; 0 for those that take none. [2, m] float32."""
  table = np.array([STIM_COST.get(name, 0.0) for name in rules.types.names], np.float32)
  return look_up(table, kind)


def can_stim(rules: tables.Rules, state: State) -> Array:
  """Units that can take a dose: [2, M] bool."""
  s = rules.tier.structures
  effect = rules.upgrades.effects[:, tables.EFFECTS.index("stim")].max(axis=1) > 0  # [U]
  cost = stim_cost(rules, state.kind[:, s:])
  known = jnp.any(state.upgrades & effect, axis=1, keepdims=True)
  return known & (cost > 0) & (state.health[:, s:] > cost) & (state.stimmed == 0)


def repairable(rules: tables.Rules, state: State) -> Array:
  """Own slots that an SCV can repair: [2, n] bool."""
  types = rules.types
  mechanical = (types.attributes >> tables.ATTRIBUTES.index("Mechanical")) & 1 > 0
  whole = jnp.pad(state.unfinished == 0, ((0, 0), (0, rules.tier.units)), constant_values=True)
  return look_up(mechanical, state.kind) & whole & (state.health > 0) & (
    state.health < look_up(types.health, state.kind) - 0.5)


def injectable(rules: tables.Rules, state: State) -> Array:
  """Own slots that a queen can bring larvae to: one injection at a time. [2, n] bool."""
  waits = look_up(rules.types.larvae, finished_kind(rules, state)) & (state.injected == 0)
  return jnp.pad(waits, ((0, 0), (0, rules.tier.units)))


def able_users(rules: tables.Rules, state: State, ability: int) -> Array:
  """Own slots that could use an ability now: [2, n] bool."""
  tier, s = rules.tier, rules.tier.structures
  none = jnp.zeros((2, s), bool)
  standing = jnp.concatenate([finished_kind(rules, state), state.kind[:, s:]], axis=1)
  able = jnp.any((rules.functions.ability == ability)[:, None] & rules.functions.capable, axis=0)
  users = look_up(able, standing)
  if ability == tables.STIM:
    return jnp.concatenate([none, can_stim(rules, state)], axis=1)
  if ability == tables.CANCEL:
    return jnp.pad(state.unfinished > 0, ((0, 0), (0, tier.units)))
  if ability == tables.CANCEL_LAST:
    return users & jnp.pad(state.queue[:, :, 0] > 0, ((0, 0), (0, tier.units)))
  cost = {tables.SCAN: SCAN_ENERGY, tables.BOOST: BOOST_ENERGY, tables.INJECT: INJECT_ENERGY}
  return users & (state.energy >= cost[ability]) if ability in cost else users


def available(rules: tables.Rules, state: State) -> Array:
  """Which functions can do something now: [2, C] bool by local function.

  A function can if something that executes it is there and free, and, for what is made, if it can
  be paid, fed and put somewhere; for what needs a target, if there is one that the player knows.
  """
  tier, functions, products = rules.tier, rules.functions, rules.products
  s = tier.structures
  standing = finished_kind(rules, state)
  free = jnp.where(state.orders.verb == tables.CONSTRUCT, 0, state.kind[:, s:])
  space = state.queue[:, :, -1] == 0  # can take one more in the making
  capable = jnp.asarray(functions.capable.T, jnp.float32)

  def some_can(there):
    return (there @ capable) > 0

  executor = some_can(present_types(rules, jnp.concatenate([standing, free], axis=1)))
  trainer = some_can(present_types(rules, jnp.where(space, standing, 0)))
  product = next_products(rules, state)  # [2, C]
  kind = functions.kind
  paid = state.minerals[:, None] >= look_up(products.minerals, product)
  if rules.has_gas:
    paid &= state.vespene[:, None] >= look_up(products.vespene, product)
  used, most = food(rules, state)
  eats = look_up(products.takes_food, product)
  brood = look_up(products.brood, product)
  fed = (eats == 0) | (used[:, None] + eats <= most[:, None])
  fed &= (brood == 0) | (brood <= room(rules, state)[:, None])
  needed = look_up(products.requirement, product)
  stands = standing_types(rules, state).at[:, 0].set(True)
  met = pick(stands, needed)
  if rules.has_upgrades:
    turns = (product > 0) & (product < len(rules.types.names)) & (brood == 0)
    idle = some_can(present_types(rules, jnp.where(state.queue[:, :, 0] == 0, standing, 0)))
    trainer = jnp.where(turns, idle, trainer)
  if rules.has_larvae:
    fertile = some_can(present_types(rules, jnp.where(space & (state.larvae > 0), standing, 0)))
    trainer = jnp.where(look_up(products.larva, product), fertile, trainer)
  built = np.where(kind == tables.BUILDING, functions.product, 0)
  empty = state.kind[:, :s] == 0
  slot = jnp.any(empty[:, :tier.plain], axis=1, keepdims=True)
  if tier.armed:
    shoots = rules.types.fighter[built]
    slot = jnp.where(shoots, jnp.any(empty[:, tier.plain:], axis=1, keepdims=True), slot)
  makes = (product > 0) & paid & met
  ok = jnp.where(kind == tables.BUILDING, executor & makes & slot,
                 jnp.where(kind == tables.TRAINING, trainer & makes & fed, executor))
  for c in np.flatnonzero(kind == tables.ABILITY):
    able = able_users(rules, state, int(functions.ability[c]))
    if functions.ability[c] == tables.RALLY:
      able = look_up(functions.capable[c], jnp.concatenate([standing, free], axis=1))
    ok = ok.at[:, c].set(jnp.any(able, axis=1))
  if rules.has(tables.INJECT):
    waits = jnp.any(injectable(rules, state), axis=1, keepdims=True)
    ok &= (functions.ability != tables.INJECT) | waits
  if rules.has_gas:
    ground = placement.known_ground(rules, state)
    for c in np.flatnonzero((kind == tables.BUILDING) & rules.types.gas[built]):
      radius = float(rules.types.radius[functions.product[c]])
      ok = ok.at[:, c].min(placement.free_geyser(rules, state, ground, radius))
  enemy = jnp.any(state.memory.seen, axis=1) | jnp.any(state.memory.kind > 0, axis=1)
  patch = jnp.any(state.memory.patches > 0, axis=1)
  ok &= (functions.verb != tables.ATTACK_UNIT) | enemy[:, None]
  ok &= (functions.verb != tables.GATHER) | patch[:, None]
  if (functions.verb == tables.REPAIR).any():
    # Nobody repairs itself: there must be another one.
    repairs = functions.capable[functions.verb == tables.REPAIR].any(axis=0)
    hands = look_up(repairs, jnp.concatenate([standing, free], axis=1))
    hurt = repairable(rules, state)
    pairs = jnp.sum(hands, axis=1) * jnp.sum(hurt, axis=1) - jnp.sum(hands & hurt, axis=1)
    ok &= (functions.verb != tables.REPAIR) | (pairs > 0)[:, None]
  return ok.at[:, 0].set(True)


def _executors(rules: tables.Rules, state: State, function: Array) -> Array:
  """Selected slots that can execute the function: [2, n] bool."""
  tier = rules.tier
  can = look_up(rules.functions.capable, function)  # [2, Y]
  kind = jnp.concatenate([finished_kind(rules, state), state.kind[:, tier.structures:]], axis=1)
  capable = pick(can, kind)
  locked = jnp.pad(state.orders.verb == tables.CONSTRUCT, ((0, 0), (tier.structures, 0)))
  return state.commands.selected & capable & ~locked


def _aim(rules: tables.Rules, state: State) -> tuple[Array, Array, Array]:
  """Where a command points: x, y [2], and whether its target is there as far as is known."""
  commands = state.commands
  patch_x, patch_y = resource_places(rules, state.side)
  enemy_kind, enemy_x, enemy_y, _ = placement.known_enemies(rules, state)
  x = jnp.stack([state.x, enemy_x], axis=1)  # [2, 2, n]
  y = jnp.stack([state.y, enemy_y], axis=1)
  here = jnp.stack([state.kind, enemy_kind], axis=1) > 0
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
  exists = chosen(here.astype(jnp.float32), (state.memory.patches > 0).astype(jnp.float32))
  return aim_x, aim_y, pointed | (exists > 0)


def _geyser_near(rules: tables.Rules, state: State, x: Array, y: Array):
  """The geyser nearest to a place: its index [2], x, y, and whether it is near enough."""
  patch_x, patch_y = resource_places(rules, state.side)
  square = (patch_x - x[:, None]) ** 2 + (patch_y - y[:, None]) ** 2
  square = jnp.where(geysers(rules), square, jnp.inf)
  nearest = jnp.argmin(square, axis=1)

  def at(values):
    return pick(values, nearest[:, None])[:, 0]

  return nearest, at(patch_x), at(patch_y), at(square) <= GEYSER_REACH ** 2


def _own_target(state: State, table: Array) -> Array:
  """A table [2, n] at the own slot that a command targets, False if it is none: [2] bool."""
  there = pick(table, state.commands.target[:, None])[:, 0]
  return there & (state.commands.target_kind == tables.OWN)


def give_orders(rules: tables.Rules, state: State, can: Array) -> tuple[State, Given]:
  """The players' commands become their units' orders.

  Args:
    rules: the game's constants.
    state: the game.
    can: [2, C] bool, `available(state)`; a command that is not available does nothing.

  Returns:
    The state with new orders and rally points, and what else was commanded.
  """
  tier, functions, commands = rules.tier, rules.functions, state.commands
  s = tier.structures
  function = commands.function
  valid = pick(can, function[:, None])[:, 0]
  aim_x, aim_y, there = _aim(rules, state)
  verb, ability = look_up(functions.verb, function), look_up(functions.ability, function)
  kind = look_up(functions.kind, function)
  product = pick(next_products(rules, state), function[:, None])[:, 0]
  target, target_kind = commands.target, commands.target_kind
  smart = look_up(np.array(functions.names) == "Smart_unit", function)
  finished = jnp.concatenate([finished_kind(rules, state), state.kind[:, s:]], axis=1)
  if rules.has_gas:
    geyser, geyser_x, geyser_y, near = _geyser_near(rules, state, aim_x, aim_y)
    # Gathering at an own gas structure is gathering at its geyser.
    taps = _own_target(state, look_up(rules.types.gas, finished)) & near
    taps &= smart | (verb == tables.GATHER)
    target = jnp.where(taps, geyser, target)
    target_kind = jnp.where(taps, tables.RESOURCE, target_kind)
    on_geyser = (verb == tables.BUILD) & look_up(rules.types.gas, product)
    valid &= ~on_geyser | near
    aim_x = jnp.where(on_geyser, geyser_x, aim_x)
    aim_y = jnp.where(on_geyser, geyser_y, aim_y)
  wants = {tables.ATTACK_UNIT: tables.ENEMY, tables.GATHER: tables.RESOURCE}
  for needy, wanted in wants.items():
    valid &= (verb != needy) | (target_kind == wanted)
  # An order tells nothing that its player does not know: whether it fails shows on the spot.
  valid &= there & ((verb != tables.BUILD) | placement.placeable(
    rules, state, placement.known_ground(rules, state), aim_x, aim_y, product))
  if (functions.verb == tables.REPAIR).any():
    valid &= (verb != tables.REPAIR) | _own_target(state, repairable(rules, state))
  if rules.has(tables.INJECT):
    waits = _own_target(state, injectable(rules, state))
    valid &= (ability != tables.INJECT) | waits
  if rules.has(tables.BOOST):
    structure = _own_target(state, look_up(rules.types.structure, finished))
    valid &= (ability != tables.BOOST) | structure
  verb = jnp.where(smart & (target_kind == tables.ENEMY), tables.ATTACK_UNIT, verb)
  executors = _executors(rules, state, function) & valid[:, None]
  units = executors[:, s:] & ((kind == tables.COMMAND) | (kind == tables.BUILDING))[:, None]
  # A building site takes one worker, the first.
  units &= (verb != tables.BUILD)[:, None] | (jnp.cumsum(units, axis=1) == 1)
  if (functions.verb == tables.REPAIR).any():
    itself = jnp.arange(s, tier.slots) == target[:, None]
    units &= (verb != tables.REPAIR)[:, None] | ~itself
  gathers = smart & (target_kind == tables.RESOURCE)
  worker = look_up(rules.types.worker, state.kind[:, s:])
  verbs = jnp.where(gathers[:, None] & worker, tables.GATHER, verb[:, None])
  # What is remembered but not in sight is not shot at but gone for.
  hidden = (verb == tables.ATTACK_UNIT) & ~jnp.any(
    state.memory.seen & (jnp.arange(tier.slots) == target[:, None]), axis=1)
  verbs = jnp.where(hidden[:, None], tables.ATTACK, verbs)
  ones = jnp.ones_like(verbs)
  given = Orders(verbs, aim_x[:, None] * ones, aim_y[:, None] * ones,
                 target[:, None] * ones, product[:, None] * ones)
  later = units & commands.queued[:, None] & (state.orders.verb != tables.IDLE)
  now = units & ~later
  orders = Orders(*(jnp.where(now, a, b) for a, b in zip(given, state.orders, strict=True)))
  queued = Orders(*(jnp.where(later, a, b) for a, b in zip(given, state.next_orders, strict=True)))
  queued = queued._replace(verb=jnp.where(now, tables.IDLE, queued.verb))
  if (functions.verb == tables.PATROL).any():
    # A patrol comes back to where it began.
    back = now & (verb == tables.PATROL)[:, None]
    queued = queued._replace(
      verb=jnp.where(back, tables.PATROL, queued.verb),
      x=jnp.where(back, state.x[:, s:], queued.x), y=jnp.where(back, state.y[:, s:], queued.y))
  rallied = executors[:, :s] & ((kind == tables.COMMAND) | (ability == tables.RALLY))[:, None]
  state = state._replace(
    orders=orders, next_orders=queued, trip=jnp.where(now, 0, state.trip),
    rally=state.rally | rallied,
    rally_x=jnp.where(rallied, aim_x[:, None], state.rally_x),
    rally_y=jnp.where(rallied, aim_y[:, None], state.rally_y))
  trainers = executors[:, :s] & (kind == tables.TRAINING)[:, None]
  if rules.has_upgrades:
    turns = (product < len(rules.types.names)) & (look_up(rules.products.brood, product) == 0)
    trainers &= ~turns[:, None] | (state.queue[:, :, 0] == 0)
  # What is unfinished can be cancelled, though it executes nothing else.
  users = jnp.where((ability == tables.CANCEL)[:, None], commands.selected & valid[:, None],
                    executors)
  users &= (kind == tables.ABILITY)[:, None]
  return state, Given(trainers=trainers, product=product, users=users, ability=ability, x=aim_x,
                      y=aim_y, target=target)


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
  # A patrol turns round: where it was going is where it will come back to.
  turns = done & (state.next_orders.verb == tables.PATROL) & (state.orders.verb == tables.PATROL)
  queued = state.next_orders._replace(
    verb=jnp.where(done & ~turns, tables.IDLE, state.next_orders.verb),
    x=jnp.where(turns, state.orders.x, state.next_orders.x),
    y=jnp.where(turns, state.orders.y, state.next_orders.y))
  return state._replace(
    orders=orders, next_orders=queued, trip=jnp.where(done, 0, state.trip))
