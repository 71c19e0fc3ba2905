"""Structures in the making: what builders begin, and how it grows. Once a step."""

import jax.numpy as jnp

from starleague.environments.skirmish.rules import constants, orders, placement, tables
from starleague.environments.skirmish.rules.arrays import look_up, pick
from starleague.environments.skirmish.rules.constants import START_ENERGY
from starleague.environments.skirmish.rules.queries import finished_types
from starleague.environments.skirmish.rules.slots import Spawns, clear_slots
from starleague.environments.skirmish.rules.state import Array, State

BUILD_REACH = 0.8  # from a site's edge
STARTING_HEALTH = 0.1  # of a structure, as a share


def construct(rules: tables.Rules, state: State) -> tuple[State, Spawns]:
  """Builds on, begins at most one structure a player, and frees the builders that are done."""
  tier, types, products = rules.tier, rules.types, rules.products
  s = tier.structures
  growing = state.unfinished > 0
  kinds = state.kind[:, :s]
  loops = jnp.maximum(look_up(products.loops, kinds), 1).astype(jnp.float32)

  def grow(values, most):
    grown = values + (1 - STARTING_HEALTH) * most * constants.LOOPS_PER_STEP / loops
    return jnp.where(growing, jnp.minimum(most, grown), values)

  state = state._replace(
    health=state.health.at[:, :s].set(grow(state.health[:, :s], look_up(types.health, kinds))),
    unfinished=jnp.maximum(state.unfinished - constants.LOOPS_PER_STEP, 0))
  if rules.has_shields:
    state = state._replace(shield=state.shield.at[:, :s].set(
      grow(state.shield[:, :s], look_up(types.shield, kinds))))
  ends = growing & (state.unfinished == 0)
  if rules.has_energy:
    state = state._replace(energy=state.energy.at[:, :s].set(jnp.where(
      ends, jnp.minimum(look_up(types.energy, kinds), START_ENERGY), state.energy[:, :s])))
  if rules.has_larvae:
    state = state._replace(larvae=jnp.where(ends & look_up(types.larvae, kinds), 1, state.larvae))

  verb, site = state.orders.verb, state.orders
  reach = look_up(types.radius, site.product) + BUILD_REACH
  near = (site.x - state.x[:, s:]) ** 2 + (site.y - state.y[:, s:]) ** 2 <= reach * reach
  ready = (verb == constants.BUILD) & near
  first = ready & (jnp.cumsum(ready, axis=1) == 1)
  x = jnp.sum(jnp.where(first, site.x, 0.0), axis=1)
  y = jnp.sum(jnp.where(first, site.y, 0.0), axis=1)
  product = jnp.sum(first * site.product, axis=1)
  minerals, vespene = look_up(products.minerals, product), look_up(products.vespene, product)
  needed = look_up(products.requirement, product)
  stands = pick(finished_types(rules, state), needed[:, None])[:, 0]
  empty = free_slots(rules, state, product)
  begins = ((product > 0) & (state.minerals >= minerals) & (state.vespene >= vespene)
            & ((needed == 0) | stands) & jnp.any(empty, axis=1) & placement.placeable(
              rules, state, placement.true_ground(rules, state), x, y, product))
  slot = empty & (jnp.cumsum(empty, axis=1) == 1) & begins[:, None]

  def slots(values, new):
    return values.at[:, :s].set(jnp.where(slot, new[:, None], values[:, :s]))

  builder = first & begins[:, None]
  paid, gas_paid = jnp.where(begins, minerals, 0), jnp.where(begins, vespene, 0)
  race = look_up(types.race, product)
  # A Terran builder stays, a Protoss one goes on, a Zerg one turns into what it builds.
  stays = builder & (race == constants.RACES.index("Terran"))[:, None]
  turns = builder & (race == constants.RACES.index("Zerg"))[:, None]
  state = state._replace(
    kind=slots(state.kind, product), x=slots(state.x, x), y=slots(state.y, y),
    health=slots(state.health, STARTING_HEALTH * look_up(types.health, product)),
    was_selected=slots(state.was_selected, jnp.zeros(2, bool)),
    unfinished=jnp.where(slot, look_up(products.loops, product)[:, None], state.unfinished),
    queue=jnp.where(slot[:, :, None], 0, state.queue),
    timers=jnp.where(slot[:, :, None], 0, state.timers), rally=state.rally & ~slot,
    minerals=state.minerals - paid, vespene=state.vespene - gas_paid,
    score=state.score._replace(
      spent=state.score.spent + paid, spent_vespene=state.score.spent_vespene + gas_paid),
    orders=state.orders._replace(
      verb=jnp.where(stays, constants.CONSTRUCT, verb),
      target=jnp.where(stays, jnp.argmax(slot, axis=1)[:, None], state.orders.target)))
  state = state._replace(cooldown=state.cooldown.at[:, :tier.armed].set(
    jnp.where(slot[:, tier.unarmed:], 0.0, state.cooldown[:, :tier.armed])))
  if rules.has_shields:
    state = state._replace(
      shield=slots(state.shield, STARTING_HEALTH * look_up(types.shield, product)),
      calm=slots(state.calm, jnp.zeros(2, jnp.int32)))
  if rules.has_energy:
    state = state._replace(energy=slots(state.energy, jnp.zeros(2)))
  if rules.has_larvae:
    state = state._replace(
      larvae=jnp.where(slot, 0, state.larvae), larva_loops=jnp.where(slot, 0, state.larva_loops),
      injected=jnp.where(slot, 0, state.injected))
    state = clear_slots(rules, state, jnp.pad(turns, ((0, 0), (s, 0))))
  if rules.has(constants.BOOST):
    state = state._replace(boosted=jnp.where(slot, 0, state.boosted))
  standing = pick(state.unfinished > 0, state.orders.target)
  done = (state.orders.verb == constants.CONSTRUCT) & ~standing
  leaves = builder & ~stays & ~turns
  state = orders.next_order(rules, state, done | leaves | (first & ~begins[:, None]),
                            jnp.array(True))
  none = jnp.zeros((2, int(products.brood.max()) * s))
  births = Spawns(
    jnp.concatenate([jnp.where(begins, product, 0)[:, None], none.astype(jnp.int32)], axis=1),
    jnp.concatenate([x[:, None], none], axis=1), jnp.concatenate([y[:, None], none], axis=1))
  return state, births


def free_slots(rules: tables.Rules, state: State, product: Array) -> Array:
  """Which slots a structure [2] can take: [2, S] bool. Those that shoot have their own."""
  tier = rules.tier
  empty = state.kind[:, :tier.structures] == 0
  if not tier.armed:
    return empty
  own = jnp.arange(tier.structures) >= tier.unarmed
  return empty & (own == look_up(rules.types.fighter, product)[:, None])
