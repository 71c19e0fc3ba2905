"""From what players order to what units do."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules import (
  action_results,
  availability,
  constants,
  placement,
  tables,
)
from starleague.environments.skirmish.rules.arrays import look_up, pick
from starleague.environments.skirmish.rules.queries import (
  finished_kind,
  is_geyser,
  resource_positions,
)
from starleague.environments.skirmish.rules.state import Array, Orders, State
from starleague.environments.skirmish.rules.supply import next_products

GEYSER_REACH = 3.0  # how far off a geyser a gas structure may be aimed at


class Given(NamedTuple):
  """What became of the players' commands besides orders."""

  trainers: Array  # [2, S] bool: structures that make the product
  product: Array  # [2] int32
  users: Array  # [2, n] bool: slots that use the ability
  ability: Array  # [2] int32
  x: Array  # [2] float32: where it points
  y: Array
  target: Array  # [2] int32, an own slot


def _executors(rules: tables.Rules, state: State, function: Array) -> Array:
  """Selected slots that can execute the function: [2, n] bool."""
  tier = rules.tier
  can = look_up(rules.functions.capable, function)  # [2, Y]
  kind = jnp.concatenate([finished_kind(rules, state), state.kind[:, tier.structures:]], axis=1)
  capable = pick(can, kind)
  locked = jnp.pad(state.orders.verb == constants.CONSTRUCT, ((0, 0), (tier.structures, 0)))
  return state.commands.selected & capable & ~locked


def _aim(rules: tables.Rules, state: State) -> tuple[Array, Array, Array]:
  """Where a command points: x, y [2], and whether its target is there as far as is known."""
  commands = state.commands
  patch_x, patch_y = resource_positions(rules, state.side)
  enemy_kind, enemy_x, enemy_y, _ = placement.known_enemies(rules, state)
  x = jnp.stack([state.x, enemy_x], axis=1)  # [2, 2, n]
  y = jnp.stack([state.y, enemy_y], axis=1)
  here = jnp.stack([state.kind, enemy_kind], axis=1) > 0
  slots = jnp.arange(rules.tier.slots) == commands.target[:, None]
  patches = jnp.arange(rules.tier.resources) == commands.target[:, None]

  def chosen(units, resources):
    side = commands.target_kind[:, None, None] == jnp.array([[[constants.OWN], [constants.ENEMY]]])
    total = jnp.sum(units * (side & slots[:, None]), axis=(1, 2))
    mine = commands.target_kind[:, None] == constants.RESOURCE
    return total + jnp.sum(resources * (mine & patches), axis=1)

  pointed = commands.target_kind == constants.NO_TARGET
  aim_x = jnp.where(pointed, commands.x, chosen(x, patch_x))
  aim_y = jnp.where(pointed, commands.y, chosen(y, patch_y))
  exists = chosen(here.astype(jnp.float32), (state.memory.patches > 0).astype(jnp.float32))
  return aim_x, aim_y, pointed | (exists > 0)


def _geyser_near(rules: tables.Rules, state: State, x: Array, y: Array):
  """The geyser nearest to a place: its index [2], x, y, and whether it is near enough."""
  patch_x, patch_y = resource_positions(rules, state.side)
  square = (patch_x - x[:, None]) ** 2 + (patch_y - y[:, None]) ** 2
  square = jnp.where(is_geyser(rules), square, jnp.inf)
  nearest = jnp.argmin(square, axis=1)

  def at(values):
    return pick(values, nearest[:, None])[:, 0]

  return nearest, at(patch_x), at(patch_y), at(square) <= GEYSER_REACH ** 2


def _own_target(state: State, table: Array) -> Array:
  """A table [2, n] at the own slot that a command targets, False if it is none: [2] bool."""
  there = pick(table, state.commands.target[:, None])[:, 0]
  return there & (state.commands.target_kind == constants.OWN)


def _carry_out(rules: tables.Rules, state: State, queued: Array, units: Array,
               given: Orders) -> State:
  """Units [2, M] take an order, at once or after what they do."""
  s = rules.tier.structures
  later = units & queued[:, None] & (state.orders.verb != constants.IDLE)
  now = units & ~later
  orders = Orders(*(jnp.where(now, a, b) for a, b in zip(given, state.orders, strict=True)))
  waiting = Orders(*(jnp.where(later, a, b) for a, b in zip(given, state.next_orders, strict=True)))
  waiting = waiting._replace(verb=jnp.where(now, constants.IDLE, waiting.verb))
  if (rules.functions.verb == constants.PATROL).any():
    # A patrol comes back to where it began.
    back = now & (given.verb == constants.PATROL)
    waiting = waiting._replace(
      verb=jnp.where(back, constants.PATROL, waiting.verb),
      x=jnp.where(back, state.x[:, s:], waiting.x), y=jnp.where(back, state.y[:, s:], waiting.y))
  return state._replace(
    orders=orders, next_orders=waiting, trip=jnp.where(now, 0, state.trip))


def give_orders(rules: tables.Rules, state: State, can: Array) -> tuple[State, Given]:
  """The players' commands become their units' orders.

  Args:
    rules: the game's constants.
    state: the game.
    can: [2, C] bool, `availability.available`; a command that is not available does nothing.

  Returns:
    The state with new orders and rally points, with why a command did nothing if it did, and what
    else was commanded.
  """
  tier, functions, commands = rules.tier, rules.functions, state.commands
  s, function = tier.structures, commands.function
  aim_x, aim_y, there = _aim(rules, state)
  verb, ability = look_up(functions.verb, function), look_up(functions.ability, function)
  kind = look_up(functions.kind, function)
  product = pick(next_products(rules, state), function[:, None])[:, 0]
  target, target_kind = commands.target, commands.target_kind
  smart = look_up(np.array(functions.names) == "Smart_unit", function)
  finished = jnp.concatenate([finished_kind(rules, state), state.kind[:, s:]], axis=1)
  # What is unfinished can be cancelled, though it executes nothing else.
  asked = jnp.where((ability == constants.CANCEL)[:, None], commands.selected & (state.kind > 0),
                    _executors(rules, state, function))
  gone = jnp.where(target_kind == constants.RESOURCE, action_results.CANT_TARGET_EXHAUSTED_RESOURCES,
                   action_results.CANT_TARGET_THAT_UNIT)
  # What must hold for a command to be carried out, and what its player is told if it does not.
  checks = [
    (jnp.any(asked, axis=1), action_results.YOU_CANT_ISSUE_COMMANDS_TO_THAT_UNIT),
    (pick(can, function[:, None])[:, 0], action_results.unavailable_reason(rules, state, function)),
    (there, gone)]
  if rules.has_gas:
    geyser, geyser_x, geyser_y, near = _geyser_near(rules, state, aim_x, aim_y)
    # Gathering at an own gas structure is gathering at its geyser.
    taps = _own_target(state, look_up(rules.types.gas, finished)) & near
    taps &= smart | (verb == constants.GATHER)
    target = jnp.where(taps, geyser, target)
    target_kind = jnp.where(taps, constants.RESOURCE, target_kind)
    on_geyser = (verb == constants.BUILD) & look_up(rules.types.gas, product)
    checks.append((~on_geyser | near, action_results.CANT_BUILD_LOCATION_INVALID))
    aim_x = jnp.where(on_geyser, geyser_x, aim_x)
    aim_y = jnp.where(on_geyser, geyser_y, aim_y)
  checks += [
    ((verb != constants.ATTACK_UNIT) | (target_kind == constants.ENEMY),
     action_results.MUST_TARGET_ENEMY_UNITS),
    ((verb != constants.GATHER) | (target_kind == constants.RESOURCE), action_results.MUST_TARGET_RESOURCES),
    # An order tells nothing that its player does not know: whether it fails shows on the spot.
    ((verb != constants.BUILD) | placement.placeable(
      rules, state, placement.known_ground(rules, state), aim_x, aim_y, product),
     action_results.CANT_BUILD_LOCATION_INVALID)]
  if (functions.verb == constants.REPAIR).any():
    hurt = _own_target(state, availability.repairable(rules, state))
    checks.append(((verb != constants.REPAIR) | hurt, action_results.REQUIRES_REPAIR_TARGET))
  if rules.has(constants.INJECT):
    hatchery = _own_target(state, look_up(rules.types.larvae, finished))
    waits = _own_target(state, availability.injectable(rules, state))
    checks += [((ability != constants.INJECT) | hatchery, action_results.CANT_TARGET_THAT_UNIT),
               ((ability != constants.INJECT) | waits, action_results.ALREADY_SPAWNING_LARVA)]
  if rules.has(constants.BOOST):
    structure = _own_target(state, look_up(rules.types.structure, finished))
    checks.append(((ability != constants.BOOST) | structure, action_results.MUST_TARGET_STRUCTURES))
  refused = action_results.first_failure(checks)
  asked &= (refused == 0)[:, None]
  verb = jnp.where(smart & (target_kind == constants.ENEMY), constants.ATTACK_UNIT, verb)
  units = asked[:, s:] & ((kind == constants.COMMAND) | (kind == constants.BUILDING))[:, None]
  # A building site takes one worker, the first.
  units &= (verb != constants.BUILD)[:, None] | (jnp.cumsum(units, axis=1) == 1)
  if (functions.verb == constants.REPAIR).any():
    itself = jnp.arange(s, tier.slots) == target[:, None]
    units &= (verb != constants.REPAIR)[:, None] | ~itself
  gathers = smart & (target_kind == constants.RESOURCE)
  worker = look_up(rules.types.worker, state.kind[:, s:])
  verbs = jnp.where(gathers[:, None] & worker, constants.GATHER, verb[:, None])
  loaded = state.cargo > 0
  home = smart & _own_target(state, look_up(rules.types.townhall, finished))
  verbs = jnp.where(home[:, None] & loaded, constants.RETURN, verbs)
  units &= (verbs != constants.RETURN) | loaded
  # What is remembered but not in sight is not shot at but gone for.
  hidden = (verb == constants.ATTACK_UNIT) & ~jnp.any(
    state.memory.seen & (jnp.arange(tier.slots) == target[:, None]), axis=1)
  verbs = jnp.where(hidden[:, None], constants.ATTACK, verbs)
  ones = jnp.ones_like(verbs)
  state = _carry_out(rules, state, commands.queued, units, Orders(
    verbs, aim_x[:, None] * ones, aim_y[:, None] * ones, target[:, None] * ones,
    product[:, None] * ones))
  rallied = asked[:, :s] & ((kind == constants.COMMAND) | (ability == constants.RALLY))[:, None]
  trainers = asked[:, :s] & (kind == constants.TRAINING)[:, None] & _takes_more(rules, state, product)
  users = asked & (kind == constants.ABILITY)[:, None]
  for each in set(functions.ability.tolist()) - {constants.NO_ABILITY, constants.RALLY}:
    users &= (ability != each)[:, None] | availability.able_users(rules, state, each)
  # Those who were asked may all have reasons of their own.
  idle = ~(jnp.any(units, axis=1) | jnp.any(rallied | trainers, axis=1) | jnp.any(users, axis=1))
  own = action_results.first_failure([
    (kind != constants.TRAINING, action_results.queue_reason(rules, state, asked[:, :s], product)),
    (ability == constants.NO_ABILITY, action_results.unable_reason(rules, state, ability, asked)),
    (verb != constants.REPAIR, action_results.REQUIRES_REPAIR_TARGET),
    (verb != constants.RETURN, action_results.NO_CARGO_TO_UNLOAD)])
  refused = jnp.where((refused == 0) & idle, own, refused)
  state = state._replace(
    refused=jnp.where(function > 0, refused, state.refused), rally=state.rally | rallied,
    rally_x=jnp.where(rallied, aim_x[:, None], state.rally_x),
    rally_y=jnp.where(rallied, aim_y[:, None], state.rally_y))
  return state, Given(trainers=trainers, product=product, users=users, ability=ability, x=aim_x,
                      y=aim_y, target=target)


def _takes_more(rules: tables.Rules, state: State, product: Array) -> Array:
  """Structures whose queue has a place for a product: [2, S] bool."""
  takes = state.queue[:, :, -1] == 0
  if rules.has_upgrades:  # whatever turns into something else makes nothing besides
    turns = (product > 0) & (product < len(rules.types.names)) & (
      look_up(rules.products.brood, product) == 0)
    takes &= ~turns[:, None] | (state.queue[:, :, 0] == 0)
  if rules.has_larvae:
    takes &= ~look_up(rules.products.larva, product)[:, None] | (state.larvae > 0)
  return takes


def next_order(rules: tables.Rules, state: State, done: Array, mine: Array) -> State:
  """Units that are done turn to what was queued; else builders go back to mine, others rest.

  Args:
    rules: the game's constants.
    state: the game.
    done: [2, M] bool.
    mine: [2, M] bool: those that mine if nothing was queued.
  """
  idle = jnp.where(mine, constants.GATHER, constants.IDLE)
  waiting = state.next_orders.verb != constants.IDLE
  verb = jnp.where(waiting, state.next_orders.verb, idle)
  follow = state.next_orders._replace(
    verb=verb, target=jnp.where(waiting, state.next_orders.target, -1))
  orders = Orders(*(jnp.where(done, a, b) for a, b in zip(follow, state.orders, strict=True)))
  # A patrol turns round: where it was going is where it will come back to.
  turns = done & (state.next_orders.verb == constants.PATROL) & (state.orders.verb == constants.PATROL)
  queued = state.next_orders._replace(
    verb=jnp.where(done & ~turns, constants.IDLE, state.next_orders.verb),
    x=jnp.where(turns, state.orders.x, state.next_orders.x),
    y=jnp.where(turns, state.orders.y, state.next_orders.y))
  return state._replace(
    orders=orders, next_orders=queued, trip=jnp.where(done, 0, state.trip))
