"""Reasons why a command has no effect, as StarCraft II's action results (its `ActionResult`)."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules.interface import availability
from starleague.environments.skirmish.rules.state import add_ons
from starleague.environments.skirmish.rules.state.arrays import look_up, pick
from starleague.environments.skirmish.rules.state.queries import finished_kind, finished_types
from starleague.environments.skirmish.rules.state.slots import free_structure_slots
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.state.supply import food, free_unit_slots, next_products
from starleague.environments.skirmish.rules.tables import constants, tables

Check = tuple[Array, Array | int]  # [2] bool, and the action result where it is false

NOT_SUPPORTED = 2
ERROR = 3
CANT_QUEUE_THAT_ORDER = 4
COOLDOWN = 6
QUEUE_IS_FULL = 7
NOT_ENOUGH_MINERALS = 9
NOT_ENOUGH_VESPENE = 10
NOT_ENOUGH_FOOD = 13
NOT_ENOUGH_LIFE = 15
NOT_ENOUGH_ENERGY = 17
NOT_ENOUGH_CHARGES = 21
CANT_TARGET_THAT_UNIT = 36
COULDNT_ALLOCATE_UNIT = 37
CANT_FIND_PLACEMENT_LOCATION = 41
CANT_BUILD_LOCATION_INVALID = 44
CANT_TRAIN_TOO_FAR_FROM_TRAIN_POWER_SOURCE = 52
CANT_FIND_DROP_OFF = 65
NOT_ENOUGH_ROOM_TO_LOAD_UNIT = 67
CANT_UNLOAD_UNITS_THERE = 68
CANT_LOAD_THAT_UNIT = 73
NO_CARGO_TO_UNLOAD = 74
TECH_REQUIREMENTS_NOT_MET = 79
YOU_CANT_ISSUE_COMMANDS_TO_THAT_UNIT = 88
MUST_TARGET_RESOURCES = 89
REQUIRES_REPAIR_TARGET = 91
MUST_TARGET_ENEMY_UNITS = 109
MUST_TARGET_STRUCTURES = 115
CANT_FIND_ENOUGH_TARGETS = 198
ALREADY_SPAWNING_LARVA = 199
CANT_TARGET_EXHAUSTED_RESOURCES = 200
TARGET_IS_OUT_OF_RANGE = 209
CANT_FIND_CANCEL_ORDER = 214

# Messages for human players, who know what they ordered.
MESSAGES = {
  NOT_SUPPORTED: "not in this game", ERROR: "not possible",
  CANT_QUEUE_THAT_ORDER: "done or under way already", COOLDOWN: "not again yet",
  QUEUE_IS_FULL: "the queue is full", NOT_ENOUGH_MINERALS: "not enough minerals",
  NOT_ENOUGH_VESPENE: "not enough vespene", NOT_ENOUGH_FOOD: "not enough supply",
  NOT_ENOUGH_LIFE: "not enough health", NOT_ENOUGH_ENERGY: "not enough energy",
  NOT_ENOUGH_CHARGES: "no larva", CANT_TARGET_THAT_UNIT: "no such target",
  COULDNT_ALLOCATE_UNIT: "no more of these fit in the game",
  CANT_FIND_PLACEMENT_LOCATION: "no place for it",
  CANT_BUILD_LOCATION_INVALID: "cannot be built there",
  CANT_TRAIN_TOO_FAR_FROM_TRAIN_POWER_SOURCE: "needs the power of a Pylon",
  CANT_FIND_DROP_OFF: "no town hall", NOT_ENOUGH_ROOM_TO_LOAD_UNIT: "no room aboard",
  CANT_UNLOAD_UNITS_THERE: "no ground to land on", CANT_LOAD_THAT_UNIT: "cannot board",
  NO_CARGO_TO_UNLOAD: "nothing to bring",
  TECH_REQUIREMENTS_NOT_MET: "needs something else first",
  YOU_CANT_ISSUE_COMMANDS_TO_THAT_UNIT: "no selected unit can",
  MUST_TARGET_RESOURCES: "needs minerals or a tapped geyser",
  REQUIRES_REPAIR_TARGET: "nothing to repair", MUST_TARGET_ENEMY_UNITS: "needs an enemy",
  MUST_TARGET_STRUCTURES: "needs a structure", CANT_FIND_ENOUGH_TARGETS: "nothing to aim at",
  ALREADY_SPAWNING_LARVA: "injected already",
  CANT_TARGET_EXHAUSTED_RESOURCES: "nothing left there",
  TARGET_IS_OUT_OF_RANGE: "too far away", CANT_FIND_CANCEL_ORDER: "nothing to cancel"}


def first_failure(checks: Sequence[Check]) -> Array:
  """The action result of the first check that fails, 0 if all hold: [2] int32."""
  found = jnp.zeros(2, jnp.int32)
  for holds, result in reversed(checks):
    found = jnp.where(holds, found, result)
  return found


def unavailable_reason(rules: tables.Rules, state: State, function: Array) -> Array:
  """Why a player cannot use a function with any selection: [2] int32, ERROR without a reason.

  Args:
    rules: the game's constants.
    state: the game.
    function: [2] int32, local functions that `availability.available` rejects.
  """
  ability = look_up(rules.functions.ability, function)
  checks = [*_production_checks(rules, state, function), *_command_checks(rules, state, function)]
  if rules.has(constants.INJECT):
    waits = jnp.any(availability.injectable(rules, state), axis=1)
    checks.append(((ability != constants.INJECT) | waits, ALREADY_SPAWNING_LARVA))
  found = first_failure(checks)
  other = jnp.where(
    ability == constants.NO_ABILITY, ERROR, unable_reason(rules, state, ability, state.kind > 0))
  return jnp.where(found == 0, other, found)


def _production_checks(rules: tables.Rules, state: State, function: Array) -> list[Check]:
  """Requirements of building and training: technology, money, food, slots, larvae, queues."""
  products, kind = rules.products, look_up(rules.functions.kind, function)
  builds, trains = kind == constants.BUILDING, kind == constants.TRAINING
  if rules.has_add_ons:
    builds |= kind == constants.ATTACHING
  warps = kind == constants.WARPING
  product = pick(next_products(rules, state), function[:, None])[:, 0]
  brood, takes_food = look_up(products.brood, product), look_up(products.takes_food, product)
  used, most = food(rules, state)
  standing = finished_types(rules, state).at[:, 0].set(True)
  met = pick(standing, look_up(products.requirement, product)[:, None])[:, 0]
  if rules.has_add_ons:
    met &= pick(standing, look_up(products.add_on, product)[:, None])[:, 0]
  if rules.has_warp_gates:
    trains |= warps
    met &= availability.has_upgrade_for(rules, state, product)
  structure = jnp.where(product < len(rules.types.names), product, 0)
  checks: list[Check] = [
    (~(builds | trains) | (product > 0), CANT_QUEUE_THAT_ORDER),
    (met, TECH_REQUIREMENTS_NOT_MET),
    (state.minerals >= look_up(products.minerals, product), NOT_ENOUGH_MINERALS),
    (state.vespene >= look_up(products.vespene, product), NOT_ENOUGH_VESPENE),
    (~trains | (takes_food == 0) | (used + takes_food <= most), NOT_ENOUGH_FOOD),
    (~trains | (brood <= free_unit_slots(rules, state)), COULDNT_ALLOCATE_UNIT),
    (~builds | jnp.any(free_structure_slots(rules, state, structure), axis=1),
     COULDNT_ALLOCATE_UNIT)]
  if rules.has_larvae:
    fertile = jnp.any(state.larvae > 0, axis=1)
    checks.append((~trains | ~look_up(products.larva, product) | fertile, NOT_ENOUGH_CHARGES))
  if rules.has_warp_gates:
    power = availability.has_power(rules, state)
    checks += [(~warps | power, CANT_TRAIN_TOO_FAR_FROM_TRAIN_POWER_SOURCE), (~warps, COOLDOWN)]
  return [*checks, (~trains, QUEUE_IS_FULL), (~builds, CANT_FIND_PLACEMENT_LOCATION)]


def _command_checks(rules: tables.Rules, state: State, function: Array) -> list[Check]:
  """Requirements of commands to units: targets, cargo and a town hall."""
  verb = look_up(rules.functions.verb, function)
  hall = jnp.any(look_up(rules.types.townhall, finished_kind(rules, state)), axis=1)
  return [
    (verb != constants.ATTACK_UNIT, CANT_FIND_ENOUGH_TARGETS),
    (verb != constants.GATHER, CANT_FIND_ENOUGH_TARGETS),
    ((verb != constants.RETURN) | hall, CANT_FIND_DROP_OFF),
    ((verb != constants.RETURN) & (verb != constants.UNLOAD), NO_CARGO_TO_UNLOAD),
    (verb != constants.LOAD, CANT_LOAD_THAT_UNIT),
    (verb != constants.REPAIR, REQUIRES_REPAIR_TARGET)]


def unable_reason(rules: tables.Rules, state: State, ability: Array, users: Array) -> Array:
  """Why slots cannot use an ability now: [2] int32, 0 for constants.NO_ABILITY.

  Args:
    rules: the game's constants.
    state: the game.
    ability: [2] int32, constants.NO_ABILITY to constants.HALLUCINATE.
    users: [2, n] bool, the slots asked.
  """
  results = np.zeros(constants.HALLUCINATE + 1, np.int32)
  results[[*constants.ENERGY_COST, constants.CLOAK]] = NOT_ENOUGH_ENERGY
  results[[constants.CANCEL, constants.CANCEL_LAST]] = CANT_FIND_CANCEL_ORDER
  results[[constants.SIEGE, constants.UNSIEGE, constants.RALLY, constants.DECLOAK,
           constants.PHASE, constants.UNPHASE]] = YOU_CANT_ISSUE_COMMANDS_TO_THAT_UNIT
  found = look_up(results, ability)
  if rules.has_cloaking:
    researched = availability.has_cloaking_field(rules, state)
    found = jnp.where(
      (ability == constants.CLOAK) & ~researched, TECH_REQUIREMENTS_NOT_MET, found)
  s = rules.tier.structures
  if rules.has_sentries:
    sentry = users[:, s:] & (state.kind[:, s:] == rules.types.local("Sentry"))
    rich = jnp.any(sentry & (
      state.energy[:, s:] >= constants.ENERGY_COST[constants.GUARD]), axis=1)
    found = jnp.where(rich & (ability == constants.GUARD), COOLDOWN, found)
    found = jnp.where(rich & (ability == constants.HALLUCINATE), COULDNT_ALLOCATE_UNIT, found)
  if not rules.has(constants.STIM):
    return found
  can_use = (availability.stim_cost(rules, state.kind[:, s:]) > 0) & users[:, s:]
  rested = jnp.any(can_use & (state.stimmed == 0), axis=1)
  stim = jnp.where(availability.has_stim(rules, state),
                   jnp.where(rested, NOT_ENOUGH_LIFE, COOLDOWN), TECH_REQUIREMENTS_NOT_MET)
  return jnp.where(ability == constants.STIM, stim, found)


def queue_reason(rules: tables.Rules, state: State, trainers: Array, product: Array) -> Array:
  """Why no trainer can queue a product: [2] int32.

  Args:
    rules: the game's constants.
    state: the game.
    trainers: [2, S] bool, the structures asked.
    product: [2] int32.
  """
  if not rules.has_larvae:
    return jnp.full(2, QUEUE_IS_FULL)
  larva = look_up(rules.products.larva, product)
  barren = ~jnp.any(trainers & (state.larvae > 0), axis=1)
  reason = jnp.where(larva & barren, NOT_ENOUGH_CHARGES, QUEUE_IS_FULL)
  if rules.has_add_ons:
    equipped = jnp.any(trainers & add_ons.equipped(rules, state, product), axis=1)
    reason = jnp.where(equipped, reason, TECH_REQUIREMENTS_NOT_MET)
  return reason
