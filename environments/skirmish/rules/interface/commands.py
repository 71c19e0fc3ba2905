"""Commands of the players: their targets, executors and requirements, and the resulting orders.

A command that cannot be executed has no effect; `State.refused` then has its action result.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules.interface import action_results, availability, boarding
from starleague.environments.skirmish.rules.state import add_ons, orders, placement
from starleague.environments.skirmish.rules.state.arrays import (
  first_chosen,
  flip,
  look_up,
  pick,
  squared_distance,
)
from starleague.environments.skirmish.rules.state.queries import (
  finished_kind,
  is_geyser,
  obeying_kind,
  on_map,
  ready_kind,
  resource_positions,
)
from starleague.environments.skirmish.rules.state.state import Array, Orders, State
from starleague.environments.skirmish.rules.state.supply import next_products
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import (
  ABILITY,
  ATTACHING,
  ATTACK,
  ATTACK_UNIT,
  BOOST,
  BUILD,
  BUILDING,
  CANCEL,
  COMMAND,
  CONSTRUCT,
  ENEMY,
  FORCE_FIELD,
  FORCE_FIELD_RANGE,
  GATHER,
  GEYSER_SNAP,
  INJECT,
  NO_ABILITY,
  NO_TARGET,
  OWN,
  RALLY,
  REPAIR,
  RESOURCE,
  RETURN,
  TRAINING,
  WARPING,
)


class Command(NamedTuple):
  """The players' commands with their targets looked up; [2] each."""

  function: Array  # int32, local
  kind: Array  # int32, constants.OTHER to constants.WARPING
  verb: Array  # int32
  ability: Array  # int32
  product: Array  # int32
  smart: Array  # bool: a smart command at a target, whose verb depends on the target
  target_kind: Array  # int32
  target: Array  # int32, an index of that kind
  x: Array  # float32: position of the target, or the point
  y: Array
  exists: Array  # bool: the target is there as far as its player knows
  misses_geyser: Array  # bool: a gas structure too far from any geyser


class Accepted(NamedTuple):
  """The executed commands other than unit orders."""

  command: Command
  trainers: Array  # [2, S] bool: structures that make the product; of gates, the first
  hosts: Array  # [2, S] bool: the structure that begins an add-on, at the command's place
  users: Array  # [2, n] bool: slots that use the ability


def give_orders(rules: tables.Rules, state: State, can: Array) -> tuple[State, Accepted]:
  """Gives units their orders, and returns the commands that other modules execute.

  Args:
    rules: the game's constants.
    state: the game.
    can: [2, C] bool, `availability.available`.

  Returns:
    The state with new orders, rally points and action results; and training and abilities.
  """
  command, s = _resolve(rules, state), rules.tier.structures
  asked = _executors(rules, state, command)
  if rules.has_add_ons:
    command, asked = _attach(rules, state, command, asked)
  checks, at_transports = _checks(rules, state, can, command, asked), []
  if rules.has_transports:
    transfer = boarding.resolve(rules, state, command.function, command.target_kind, command.target,
                                command.x, command.y, asked)
    checks += boarding.checks(transfer)
    at_transports = boarding.own_reasons(transfer)
  refused = action_results.first_failure(checks)
  asked &= (refused == 0)[:, None]
  units, given = _unit_orders(rules, state, command, asked)
  if rules.has_transports:
    units, given = boarding.unit_orders(rules, state, transfer, units, given)
  rallied = asked[:, :s] & ((command.kind == COMMAND) | (command.ability == RALLY))[:, None]
  warps = command.kind == WARPING
  trainers = asked[:, :s] & ((command.kind == TRAINING) | warps)[:, None] & _takes_more(
    rules, state, command)
  placed = rallied | (trainers & warps[:, None])  # a unit appears at the rally point of its gate
  hosts = asked[:, :s] & (command.kind == ATTACHING)[:, None]
  users = asked & (command.kind == ABILITY)[:, None]
  users = availability.restrict_users(rules, state, users, command.ability)
  if rules.has_sentries:
    users &= (command.ability != FORCE_FIELD)[:, None] | _in_cast_range(state, command)
  executed = jnp.any(units, axis=1) | jnp.any(
    rallied | trainers | hosts, axis=1) | jnp.any(users, axis=1)
  # Every executor may have a reason of its own.
  own_reason = action_results.first_failure([
    (command.kind != TRAINING,
     action_results.queue_reason(rules, state, asked[:, :s], command.product)),
    (command.kind != WARPING, action_results.COOLDOWN),
    (command.ability == NO_ABILITY,
     action_results.unable_reason(rules, state, command.ability, asked)),
    (command.verb != REPAIR, action_results.REQUIRES_REPAIR_TARGET),
    (command.verb != RETURN, action_results.NO_CARGO_TO_UNLOAD), *at_transports])
  refused = jnp.where((refused == 0) & ~executed, own_reason, refused)
  state = orders.take_orders(rules, state, state.commands.queued, units, given)
  state = state._replace(
    refused=jnp.where(command.function > 0, refused, state.refused), rally=state.rally | rallied,
    rally_x=jnp.where(placed, command.x[:, None], state.rally_x),
    rally_y=jnp.where(placed, command.y[:, None], state.rally_y))
  return state, Accepted(command, trainers, hosts, users)


def _attach(rules: tables.Rules, state: State, command: Command,
            asked: Array) -> tuple[Command, Array]:
  """The first executor of a command for an add-on, with the add-on of its type and its place.

  Args:
    rules: the game's constants.
    state: the game.
    command: of both players.
    asked: [2, n] bool, slots that can execute the function.

  Returns:
    The command and the executors; those of other commands as they are.
  """
  s = rules.tier.structures
  attaches = command.kind == ATTACHING
  free = asked[:, :s] & add_ons.can_attach(rules, state)
  host = first_chosen(free)
  kind = jnp.sum(jnp.where(host, state.kind[:, :s], 0), axis=1)
  # The add-ons of a function by their producer: [C, Y].
  products = rules.products
  add_on = np.zeros((len(rules.functions.names), len(rules.types.names)), np.int32)
  of_type = np.flatnonzero(rules.types.add_on)
  add_on[products.function[of_type], products.producer[of_type]] = of_type
  product = pick(look_up(add_on, command.function), kind[:, None])[:, 0]
  x, y = add_ons.places(*(
    jnp.sum(jnp.where(host, values[:, :s], 0.0), axis=1) for values in (state.x, state.y)))
  return command._replace(
    product=jnp.where(attaches, product, command.product),
    x=jnp.where(attaches, x, command.x), y=jnp.where(attaches, y, command.y)), jnp.where(
      attaches[:, None], jnp.pad(host, ((0, 0), (0, rules.tier.units))), asked)


def _resolve(rules: tables.Rules, state: State) -> Command:
  """Looks up the verbs, products and targets of the commands."""
  functions, commands = rules.functions, state.commands
  function, target, target_kind = commands.function, commands.target, commands.target_kind
  verb = look_up(functions.verb, function)
  product = pick(next_products(rules, state), function[:, None])[:, 0]
  smart = look_up(np.array(functions.names) == "Smart_unit", function)
  x, y, exists = _aim(rules, state)
  misses_geyser = jnp.zeros(2, bool)
  if rules.has_gas:
    geyser, geyser_x, geyser_y, near = _nearest_geyser(rules, state, x, y)
    # Gathering at an own gas structure means gathering at its geyser.
    taps = _own_target(state, look_up(rules.types.gas, ready_kind(rules, state))) & near
    taps &= smart | (verb == GATHER)
    target = jnp.where(taps, geyser, target)
    target_kind = jnp.where(taps, RESOURCE, target_kind)
    # A gas structure is placed exactly on the geyser.
    on_geyser = (verb == BUILD) & look_up(rules.types.gas, product)
    misses_geyser = on_geyser & ~near
    x, y = jnp.where(on_geyser, geyser_x, x), jnp.where(on_geyser, geyser_y, y)
  verb = jnp.where(smart & (target_kind == ENEMY), ATTACK_UNIT, verb)
  return Command(
    function=function, kind=look_up(functions.kind, function), verb=verb,
    ability=look_up(functions.ability, function), product=product, smart=smart,
    target_kind=target_kind, target=target, x=x, y=y, exists=exists, misses_geyser=misses_geyser)


def _aim(rules: tables.Rules, state: State) -> tuple[Array, Array, Array]:
  """The targets' positions x, y [2], and whether they exist as far as their player knows."""
  commands = state.commands
  patch_x, patch_y = resource_positions(rules, state.side)
  enemy_kind, enemy_x, enemy_y, _ = placement.known_enemies(rules, state)
  x = jnp.stack([state.x, enemy_x], axis=1)  # [2, 2, n]
  y = jnp.stack([state.y, enemy_y], axis=1)
  own = state.kind > 0
  if rules.has_transports:  # nobody goes to a passenger
    own &= on_map(state)
  here = jnp.stack([own, enemy_kind > 0], axis=1)
  slots = jnp.arange(rules.tier.slots) == commands.target[:, None]
  patches = jnp.arange(rules.tier.resources) == commands.target[:, None]

  def chosen(units, resources):
    side = commands.target_kind[:, None, None] == jnp.array([[[OWN], [ENEMY]]])
    total = jnp.sum(units * (side & slots[:, None]), axis=(1, 2))
    mine = commands.target_kind[:, None] == RESOURCE
    return total + jnp.sum(resources * (mine & patches), axis=1)

  pointed = commands.target_kind == NO_TARGET
  x = jnp.where(pointed, commands.x, chosen(x, patch_x))
  y = jnp.where(pointed, commands.y, chosen(y, patch_y))
  exists = chosen(here.astype(jnp.float32), (state.memory.patches > 0).astype(jnp.float32))
  return x, y, pointed | (exists > 0)


def _nearest_geyser(rules: tables.Rules, state: State, x: Array,
                    y: Array) -> tuple[Array, Array, Array, Array]:
  """The geyser nearest to a place [2]: its index, x, y, and whether it is within GEYSER_SNAP."""
  patch_x, patch_y = resource_positions(rules, state.side)
  square = squared_distance(x[:, None], y[:, None], patch_x, patch_y)
  square = jnp.where(is_geyser(rules), square, jnp.inf)
  nearest = jnp.argmin(square, axis=1)

  def at(values):
    return pick(values, nearest[:, None])[:, 0]

  return nearest, at(patch_x), at(patch_y), at(square) <= GEYSER_SNAP ** 2


def _own_target(state: State, table: Array) -> Array:
  """A table [2, n] at the own slot that a command targets, False for other targets: [2] bool."""
  there = pick(table, state.commands.target[:, None])[:, 0]
  return there & (state.commands.target_kind == OWN)


def _executors(rules: tables.Rules, state: State, command: Command) -> Array:
  """Selected slots that can execute the function: [2, n] bool."""
  ready = jnp.concatenate([finished_kind(rules, state), obeying_kind(rules, state)], axis=1)
  capable = pick(look_up(rules.functions.capable, command.function), ready)
  locked = jnp.pad(state.orders.verb == CONSTRUCT, ((0, 0), (rules.tier.structures, 0)))
  # Unfinished structures execute nothing, but can be cancelled.
  return jnp.where((command.ability == CANCEL)[:, None],
                   state.commands.selected & (state.kind > 0),
                   state.commands.selected & capable & ~locked)


def _checks(rules: tables.Rules, state: State, can: Array, command: Command,
            asked: Array) -> list[action_results.Check]:
  """Requirements of a command, each with its action result; the first failure counts."""
  verb, ability, target_kind = command.verb, command.ability, command.target_kind
  gone = jnp.where(target_kind == RESOURCE, action_results.CANT_TARGET_EXHAUSTED_RESOURCES,
                   action_results.CANT_TARGET_THAT_UNIT)
  checks: list[action_results.Check] = [
    (jnp.any(asked, axis=1), action_results.YOU_CANT_ISSUE_COMMANDS_TO_THAT_UNIT),
    (pick(can, command.function[:, None])[:, 0],
     action_results.unavailable_reason(rules, state, command.function)),
    (command.exists, gone)]
  places = (verb == BUILD) | (command.kind == ATTACHING)
  if rules.has_warp_gates:
    warps = command.kind == WARPING
    places |= warps
    checks.append((~warps | placement.powered(rules, state, command.x, command.y),
                   action_results.CANT_TRAIN_TOO_FAR_FROM_TRAIN_POWER_SOURCE))
  if rules.has_gas:
    checks.append((~command.misses_geyser, action_results.CANT_BUILD_LOCATION_INVALID))
  checks += [
    ((verb != ATTACK_UNIT) | (target_kind == ENEMY), action_results.MUST_TARGET_ENEMY_UNITS),
    ((verb != GATHER) | (target_kind == RESOURCE), action_results.MUST_TARGET_RESOURCES),
    # The check uses what the player knows: hidden obstacles show when the builder arrives.
    (~places | placement.fits(
      rules, state, placement.known_ground(rules, state), command.x, command.y, command.product),
     action_results.CANT_BUILD_LOCATION_INVALID)]
  if rules.has_verb(REPAIR):
    hurt = _own_target(state, availability.repairable(rules, state))
    checks.append(((verb != REPAIR) | hurt, action_results.REQUIRES_REPAIR_TARGET))
  if rules.has(INJECT):
    hatchery = _own_target(state, look_up(rules.types.larvae, ready_kind(rules, state)))
    injectable = _own_target(state, availability.injectable(rules, state))
    checks += [
      ((ability != INJECT) | hatchery, action_results.CANT_TARGET_THAT_UNIT),
      ((ability != INJECT) | injectable, action_results.ALREADY_SPAWNING_LARVA)]
  if rules.has(BOOST):
    structure = _own_target(state, look_up(rules.types.structure, ready_kind(rules, state)))
    checks.append(((ability != BOOST) | structure, action_results.MUST_TARGET_STRUCTURES))
  if rules.has_sentries:
    reaches = jnp.any(asked & _in_cast_range(state, command), axis=1)
    checks.append(((ability != FORCE_FIELD) | reaches, action_results.TARGET_IS_OUT_OF_RANGE))
  return checks


def _in_cast_range(state: State, command: Command) -> Array:
  """Slots that reach the command's place with a Force Field: [2, n] bool."""
  return squared_distance(
    state.x, state.y, command.x[:, None], command.y[:, None]) <= FORCE_FIELD_RANGE ** 2


def _unit_orders(rules: tables.Rules, state: State, command: Command,
                 asked: Array) -> tuple[Array, Orders]:
  """The units that take an order, [2, M] bool, and the order of each, [2, M]."""
  tier, types, s = rules.tier, rules.types, rules.tier.structures
  verb, target = command.verb, command.target
  units = asked[:, s:] & ((command.kind == COMMAND) | (command.kind == BUILDING))[:, None]
  # A site takes one builder, the first selected.
  units &= (verb != BUILD)[:, None] | first_chosen(units)
  if rules.has_verb(REPAIR):
    itself = jnp.arange(s, tier.slots) == target[:, None]
    units &= (verb != REPAIR)[:, None] | ~itself
  gathers = command.smart & (command.target_kind == RESOURCE)
  worker = look_up(types.worker, obeying_kind(rules, state))
  verbs = jnp.where(gathers[:, None] & worker, GATHER, verb[:, None])
  loaded = state.cargo > 0
  home = command.smart & _own_target(state, look_up(types.townhall, ready_kind(rules, state)))
  verbs = jnp.where(home[:, None] & loaded, RETURN, verbs)
  units &= (verbs != RETURN) | loaded
  # Units go to a target that is remembered but out of sight, attacking what they meet.
  hidden = (verb == ATTACK_UNIT) & ~jnp.any(
    state.memory.seen & (jnp.arange(tier.slots) == target[:, None]), axis=1)
  verbs = jnp.where(hidden[:, None], ATTACK, verbs)
  # So do units without a weapon against it.
  kind, flies = state.kind[:, s:], pick(look_up(types.flying, flip(state.kind)), target[:, None])
  hits = look_up(types.ground.damage > 0, kind)
  if rules.has_flyers:
    hits = jnp.where(flies, look_up(types.air.damage > 0, kind), hits)
  verbs = jnp.where((verbs == ATTACK_UNIT) & ~hits, ATTACK, verbs)
  ones = jnp.ones_like(verbs)
  return units, Orders(
    verb=verbs, x=command.x[:, None] * ones, y=command.y[:, None] * ones,
    target=command.target[:, None] * ones, product=command.product[:, None] * ones)


def _takes_more(rules: tables.Rules, state: State, command: Command) -> Array:
  """Structures whose queue has room for the command's product: [2, S] bool."""
  product = command.product
  takes = state.queue[:, :, -1] == 0
  if rules.has_add_ons:
    takes &= ~add_ons.attaching(rules, state) & add_ons.equipped(rules, state, product)
  if rules.has_upgrades:
    morphs = (product > 0) & (product < len(rules.types.names)) & (
      look_up(rules.products.brood, product) == 0)
    morphs |= command.kind == WARPING
    if rules.has_warp_gates:
      takes &= ~availability.opening(rules, state)
    takes &= ~morphs[:, None] | availability.can_morph(rules, state)
  if rules.has_larvae:
    takes &= ~look_up(rules.products.larva, product)[:, None] | (state.larvae > 0)
  return takes
