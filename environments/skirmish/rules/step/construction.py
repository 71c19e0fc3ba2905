"""Construction of structures, once a step: builders begin them, and they grow until finished."""

from typing import NamedTuple

import jax.numpy as jnp

from starleague.environments.skirmish.rules.interface.commands import Accepted
from starleague.environments.skirmish.rules.state import orders, placement
from starleague.environments.skirmish.rules.state.arrays import (
  first_chosen,
  look_up,
  pick,
  squared_distance,
)
from starleague.environments.skirmish.rules.state.queries import finished_types
from starleague.environments.skirmish.rules.state.slots import (
  Spawns,
  clear_slots,
  free_structure_slots,
)
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import (
  BOOST,
  BUILD,
  BUILD_REACH,
  CONSTRUCT,
  LOOPS_PER_STEP,
  QUEUE_LENGTH,
  RACES,
  START_ENERGY,
  STARTING_HEALTH,
)


class Site(NamedTuple):
  """A player's site of a structure, and whether construction begins there."""

  x: Array  # [2] float32
  y: Array
  product: Array  # [2] int32, local type, 0 if there is no site
  begins: Array  # [2] bool
  slot: Array  # [2, S] bool: the slot that the structure takes


def construct(rules: tables.Rules, state: State) -> tuple[State, Spawns]:
  """Advances construction; builders begin at most one structure a player.

  Returns:
    The state, in which free builders have their next order, and the structures begun.
  """
  state = _grow(rules, state)
  builder, site = _builders_site(rules, state)
  state = _begin(rules, state, site)
  state = _release_builders(rules, state, builder, site)
  return state, _spawns(site)


def attach(rules: tables.Rules, state: State, accepted: Accepted) -> tuple[State, Spawns]:
  """Begins the add-on that a player has ordered; its structure makes nothing meanwhile.

  Returns:
    The state and the add-ons begun.
  """
  hosts, command = accepted.hosts, accepted.command
  begins = jnp.any(hosts, axis=1)
  product = jnp.where(begins, command.product, 0)
  # The command was checked in this step, and players take no slots from each other.
  empty = state.kind[:, :rules.tier.unarmed] == 0
  slot = jnp.pad(first_chosen(empty) & begins[:, None],
                 ((0, 0), (0, rules.tier.armed)))
  site = Site(command.x, command.y, product, begins, slot)
  state = _begin(rules, state, site)
  first = hosts[:, :, None] & (jnp.arange(QUEUE_LENGTH) == 0)
  loops = look_up(rules.products.loops, product)
  return state._replace(
    queue=jnp.where(first, product[:, None, None], state.queue),
    timers=jnp.where(first, loops[:, None, None], state.timers),
    add_on=jnp.where(hosts, 1 + jnp.argmax(site.slot, axis=1)[:, None], state.add_on)
    ), _spawns(site)


def _spawns(site: Site) -> Spawns:
  return Spawns(
    jnp.where(site.begins, site.product, 0)[:, None], site.x[:, None], site.y[:, None])


def _grow(rules: tables.Rules, state: State) -> State:
  """Advances unfinished structures by a step; the finished ones start to work."""
  types, s = rules.types, rules.tier.structures
  growing, kinds = state.unfinished > 0, state.kind[:, :s]
  loops = jnp.maximum(look_up(rules.products.loops, kinds), 1).astype(jnp.float32)

  def grow(values, most):
    grown = values + (1 - STARTING_HEALTH) * most * LOOPS_PER_STEP / loops
    return jnp.where(growing, jnp.minimum(most, grown), values)

  state = state._replace(
    health=state.health.at[:, :s].set(grow(state.health[:, :s], look_up(types.health, kinds))),
    unfinished=jnp.maximum(state.unfinished - LOOPS_PER_STEP, 0))
  if rules.has_shields:
    state = state._replace(shield=state.shield.at[:, :s].set(
      grow(state.shield[:, :s], look_up(types.shield, kinds))))
  ends = growing & (state.unfinished == 0)
  if rules.has_energy:
    state = state._replace(energy=state.energy.at[:, :s].set(jnp.where(
      ends, jnp.minimum(look_up(types.energy, kinds), START_ENERGY), state.energy[:, :s])))
  if rules.has_larvae:
    state = state._replace(larvae=jnp.where(ends & look_up(types.larvae, kinds), 1, state.larvae))
  return state


def _builders_site(rules: tables.Rules, state: State) -> tuple[Array, Site]:
  """The first builder of each player that has reached its site, [2, M] bool, and that site."""
  s, products, order = rules.tier.structures, rules.products, state.orders
  reach = look_up(rules.types.radius, order.product) + BUILD_REACH
  apart = squared_distance(state.x[:, s:], state.y[:, s:], order.x, order.y)
  ready = (order.verb == BUILD) & (apart <= reach * reach)
  builder = first_chosen(ready)
  x = jnp.sum(jnp.where(builder, order.x, 0.0), axis=1)
  y = jnp.sum(jnp.where(builder, order.y, 0.0), axis=1)
  product = jnp.sum(builder * order.product, axis=1)
  needed = look_up(products.requirement, product)
  met = pick(finished_types(rules, state), needed[:, None])[:, 0]
  empty = free_structure_slots(rules, state, product)
  begins = ((product > 0) & (state.minerals >= look_up(products.minerals, product))
            & (state.vespene >= look_up(products.vespene, product)) & ((needed == 0) | met)
            & jnp.any(empty, axis=1) & placement.placeable(
              rules, state, placement.true_ground(rules, state), x, y, product))
  slot = first_chosen(empty) & begins[:, None]
  return builder, Site(x, y, product, begins, slot)


def _begin(rules: tables.Rules, state: State, site: Site) -> State:
  """Puts the structures that begin into their slots and charges their price."""
  tier, types, products = rules.tier, rules.types, rules.products
  slot, product = site.slot, site.product

  def put(values, new):
    return jnp.where(jnp.pad(slot, ((0, 0), (0, tier.units))), new[:, None], values)

  minerals = jnp.where(site.begins, look_up(products.minerals, product), 0)
  vespene = jnp.where(site.begins, look_up(products.vespene, product), 0)
  state = state._replace(
    kind=put(state.kind, product), x=put(state.x, site.x), y=put(state.y, site.y),
    health=put(state.health, STARTING_HEALTH * look_up(types.health, product)),
    was_selected=put(state.was_selected, jnp.zeros(2, bool)),
    unfinished=jnp.where(slot, look_up(products.loops, product)[:, None], state.unfinished),
    queue=jnp.where(slot[:, :, None], 0, state.queue),
    timers=jnp.where(slot[:, :, None], 0, state.timers), rally=state.rally & ~slot,
    minerals=state.minerals - minerals, vespene=state.vespene - vespene,
    score=state.score._replace(
      spent=state.score.spent + minerals, spent_vespene=state.score.spent_vespene + vespene),
    cooldown=jnp.where(
      jnp.pad(slot[:, tier.unarmed:], ((0, 0), (0, tier.units))), 0.0, state.cooldown))
  if rules.has_shields:
    state = state._replace(
      shield=put(state.shield, STARTING_HEALTH * look_up(types.shield, product)),
      calm=put(state.calm, jnp.zeros(2, jnp.int32)))
  if rules.has_energy:
    state = state._replace(energy=put(state.energy, jnp.zeros(2)))
  if rules.has_larvae:
    state = state._replace(
      larvae=jnp.where(slot, 0, state.larvae), larva_loops=jnp.where(slot, 0, state.larva_loops),
      injected=jnp.where(slot, 0, state.injected))
  if rules.has(BOOST):
    state = state._replace(boosted=jnp.where(slot, 0, state.boosted))
  return state


def _release_builders(rules: tables.Rules, state: State, at_site: Array, site: Site) -> State:
  """Terran builders stay until the end, Protoss ones leave, Zerg ones become the structure.

  Args:
    rules: the game's constants.
    state: the game.
    at_site: [2, M] bool, the builder at the site.
    site: of both players.
  """
  race = look_up(rules.types.race, site.product)[:, None]
  builder = at_site & site.begins[:, None]
  stays, consumed = (builder & (race == RACES.index(name)) for name in ("Terran", "Zerg"))
  state = state._replace(orders=state.orders._replace(
    verb=jnp.where(stays, CONSTRUCT, state.orders.verb),
    target=jnp.where(stays, jnp.argmax(site.slot, axis=1)[:, None], state.orders.target)))
  if rules.has_larvae:
    state = clear_slots(
      rules, state, jnp.pad(consumed, ((0, 0), (rules.tier.structures, 0))))
  # Another structure may have taken the slot of one that is gone: the place tells them apart.
  standing = pick(state.unfinished > 0, state.orders.target) & (
    pick(state.x, state.orders.target) == state.orders.x) & (
    pick(state.y, state.orders.target) == state.orders.y)
  done = (state.orders.verb == CONSTRUCT) & ~standing
  leaves = builder & ~stays & ~consumed
  failed = at_site & ~site.begins[:, None]
  return orders.next_order(rules, state, done | leaves | failed, jnp.array(True))
