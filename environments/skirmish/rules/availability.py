"""What can be done now: which functions a player may use, and which of its own can use them."""

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules import constants, placement, tables
from starleague.environments.skirmish.rules.arrays import look_up, pick
from starleague.environments.skirmish.rules.queries import (
  finished_kind,
  finished_types,
  present_types,
)
from starleague.environments.skirmish.rules.state import Array, State
from starleague.environments.skirmish.rules.supply import food, free_unit_slots, next_products


def stim_cost(rules: tables.Rules, kind: Array) -> Array:
  """Hit points that a dose costs each slot; 0 for those that take none. [2, m] float32."""
  table = np.array([constants.STIM_COST.get(name, 0.0) for name in rules.types.names], np.float32)
  return look_up(table, kind)


def knows_stim(rules: tables.Rules, state: State) -> Array:
  """Whether a player has researched what doses need: [2] bool."""
  effect = rules.upgrades.effects[:, constants.EFFECTS.index("stim")].max(axis=1) > 0  # [U]
  return jnp.any(state.upgrades & effect, axis=1)


def can_stim(rules: tables.Rules, state: State) -> Array:
  """Units that can take a dose: [2, M] bool."""
  s = rules.tier.structures
  cost = stim_cost(rules, state.kind[:, s:])
  return knows_stim(rules, state)[:, None] & (cost > 0) & (state.health[:, s:] > cost) & (state.stimmed == 0)


def repairable(rules: tables.Rules, state: State) -> Array:
  """Own slots that an SCV can repair: [2, n] bool."""
  types = rules.types
  mechanical = (types.attributes >> constants.ATTRIBUTES.index("Mechanical")) & 1 > 0
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
  if ability == constants.STIM:
    return jnp.concatenate([none, can_stim(rules, state)], axis=1)
  if ability == constants.CANCEL:
    return jnp.pad(state.unfinished > 0, ((0, 0), (0, tier.units)))
  if ability == constants.CANCEL_LAST:
    return users & jnp.pad(state.queue[:, :, 0] > 0, ((0, 0), (0, tier.units)))
  return users & (state.energy >= constants.ENERGY_COST[ability]) if ability in constants.ENERGY_COST else users


def available(rules: tables.Rules, state: State) -> Array:
  """Which functions can do something now: [2, C] bool by local function.

  A function can if something that executes it is there and free, and, for what is made, if it can
  be paid, fed and put somewhere; for what needs a target, if there is one that the player knows.
  """
  tier, functions, products = rules.tier, rules.functions, rules.products
  s = tier.structures
  standing = finished_kind(rules, state)
  free = jnp.where(state.orders.verb == constants.CONSTRUCT, 0, state.kind[:, s:])
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
  fed &= (brood == 0) | (brood <= free_unit_slots(rules, state)[:, None])
  needed = look_up(products.requirement, product)
  stands = finished_types(rules, state).at[:, 0].set(True)
  met = pick(stands, needed)
  if rules.has_upgrades:
    turns = (product > 0) & (product < len(rules.types.names)) & (brood == 0)
    idle = some_can(present_types(rules, jnp.where(state.queue[:, :, 0] == 0, standing, 0)))
    trainer = jnp.where(turns, idle, trainer)
  if rules.has_larvae:
    fertile = some_can(present_types(rules, jnp.where(space & (state.larvae > 0), standing, 0)))
    trainer = jnp.where(look_up(products.larva, product), fertile, trainer)
  built = np.where(kind == constants.BUILDING, functions.product, 0)
  empty = state.kind[:, :s] == 0
  slot = jnp.any(empty[:, :tier.unarmed], axis=1, keepdims=True)
  if tier.armed:
    shoots = rules.types.fighter[built]
    slot = jnp.where(shoots, jnp.any(empty[:, tier.unarmed:], axis=1, keepdims=True), slot)
  makes = (product > 0) & paid & met
  ok = jnp.where(kind == constants.BUILDING, executor & makes & slot,
                 jnp.where(kind == constants.TRAINING, trainer & makes & fed, executor))
  for c in np.flatnonzero(kind == constants.ABILITY):
    able = able_users(rules, state, int(functions.ability[c]))
    if functions.ability[c] == constants.RALLY:
      able = look_up(functions.capable[c], jnp.concatenate([standing, free], axis=1))
    ok = ok.at[:, c].set(jnp.any(able, axis=1))
  if rules.has(constants.INJECT):
    waits = jnp.any(injectable(rules, state), axis=1, keepdims=True)
    ok &= (functions.ability != constants.INJECT) | waits
  if rules.has_gas:
    ground = placement.known_ground(rules, state)
    for c in np.flatnonzero((kind == constants.BUILDING) & rules.types.gas[built]):
      radius = float(rules.types.radius[functions.product[c]])
      ok = ok.at[:, c].min(placement.free_geyser(rules, state, ground, radius))
  enemy = jnp.any(state.memory.seen, axis=1) | jnp.any(state.memory.kind > 0, axis=1)
  patch = jnp.any(state.memory.patches > 0, axis=1)
  ok &= (functions.verb != constants.ATTACK_UNIT) | enemy[:, None]
  ok &= (functions.verb != constants.GATHER) | patch[:, None]
  brings = jnp.any((state.cargo > 0) & (free > 0), axis=1) & jnp.any(
    look_up(rules.types.townhall, standing), axis=1)
  ok &= (functions.verb != constants.RETURN) | brings[:, None]
  if (functions.verb == constants.REPAIR).any():
    # Nobody repairs itself: there must be another one.
    repairs = functions.capable[functions.verb == constants.REPAIR].any(axis=0)
    hands = look_up(repairs, jnp.concatenate([standing, free], axis=1))
    hurt = repairable(rules, state)
    pairs = jnp.sum(hands, axis=1) * jnp.sum(hurt, axis=1) - jnp.sum(hands & hurt, axis=1)
    ok &= (functions.verb != constants.REPAIR) | (pairs > 0)[:, None]
  return ok.at[:, 0].set(True)
