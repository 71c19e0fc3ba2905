"""What units and structures do at once, and what goes on by itself: doses, sieges, scans, repair."""

import jax.numpy as jnp
import numpy as np

from starleague.agent import vocabulary
from starleague.environments.skirmish.rules import availability, constants, orders, slots, tables
from starleague.environments.skirmish.rules.arrays import argmin_rows, look_up, pick, segment_sum
from starleague.environments.skirmish.rules.slots import clear_slots
from starleague.environments.skirmish.rules.state import Array, State
from starleague.environments.skirmish.rules.supply import food, free_unit_slots
from starleague.environments.skirmish.rules.upgrades import max_health


def _effect_index(name: str) -> int:
  effects = vocabulary.EFFECT_FUNCTIONS
  return int(np.flatnonzero(effects == vocabulary.FUNCTIONS.index(name))[0])


def use_abilities(rules: tables.Rules, state: State, given: orders.Given) -> State:
  """What was commanded that happens at once: one ability a player and step."""
  tier, s = rules.tier, rules.tier.structures

  def users(ability):
    return given.users & (given.ability == ability)[:, None]

  used = []
  if rules.has(constants.STIM):
    takes = users(constants.STIM)[:, s:]
    cost = availability.stim_cost(rules, state.kind[:, s:])
    state = state._replace(
      stimmed=jnp.where(takes, constants.STIM_LOOPS, state.stimmed),
      health=state.health.at[:, s:].add(jnp.where(takes, -cost, 0.0)))
    used.append(("Effect_Stim_quick", jnp.any(takes, axis=1)))
  for ability, into in ((constants.SIEGE, "SiegeTankSieged"), (constants.UNSIEGE, "SiegeTank")):
    if rules.has(ability):
      turns = users(ability)
      waits = turns[:, tier.unarmed:]
      state = state._replace(
        kind=jnp.where(turns, rules.types.local(into), state.kind),
        cooldown=jnp.where(waits, constants.SIEGE_LOOPS, state.cooldown),
        orders=state.orders._replace(
          verb=jnp.where(turns[:, s:], constants.IDLE, state.orders.verb)),
        next_orders=state.next_orders._replace(
          verb=jnp.where(turns[:, s:], constants.IDLE, state.next_orders.verb)))
  for ability, cost in constants.ENERGY_COST.items():
    if not rules.has(ability):
      continue
    can = users(ability)
    one = can & (jnp.cumsum(can, axis=1) == 1)  # one of those selected
    done = jnp.any(one, axis=1)
    state = state._replace(energy=state.energy - cost * one)
    slot = (jnp.arange(s) == given.target[:, None]) & done[:, None]
    if ability == constants.SCAN:
      state = state._replace(
        scan_x=jnp.where(done, given.x, state.scan_x),
        scan_y=jnp.where(done, given.y, state.scan_y),
        scan_loops=jnp.where(done, constants.SCAN_LOOPS, state.scan_loops))
      used.append(("Effect_Scan_pt", done))
    elif ability == constants.BOOST:
      state = state._replace(
        boosted=jnp.where(slot, constants.BOOST_LOOPS // tier.tempo, state.boosted))
      used.append(("Effect_ChronoBoostEnergyCost_unit", done))
    else:
      state = state._replace(
        injected=jnp.where(slot, constants.INJECT_LOOPS // tier.tempo, state.injected))
      used.append(("Effect_InjectLarva_unit", done))
  if rules.has(constants.CANCEL):
    state = _cancel(rules, state, users(constants.CANCEL)[:, :s])
    state = _cancel_last(rules, state, users(constants.CANCEL_LAST)[:, :s])
  if used:
    flags = state.executed.effects
    for name, done in used:
      flags = flags.at[:, _effect_index(name)].max(done)
    state = state._replace(executed=state.executed._replace(effects=flags))
  return state


def _cancel(rules: tables.Rules, state: State, gone: Array) -> State:
  """Takes down what is under construction, for three quarters of its price.

  What a Drone became gives it back, if there is a slot for it and the map's food allows one more.
  """
  s, types, products = rules.tier.structures, rules.types, rules.products
  kind = jnp.where(gone, state.kind[:, :s], 0)

  def refund(prices):
    return jnp.sum(jnp.floor(constants.REFUND * look_up(prices, kind)).astype(jnp.int32), axis=1)

  minerals, vespene = refund(products.minerals), refund(products.vespene)
  x, y = state.x[:, :s], state.y[:, :s]
  state = clear_slots(rules, state, jnp.pad(gone, ((0, 0), (0, rules.tier.units))))
  if rules.has_larvae:
    zerg = types.structure & (types.race == constants.RACES.index("Zerg"))
    builder = look_up(np.where(zerg, products.producer[:len(types.names)], 0), kind)
    back = builder > 0
    used, _ = food(rules, state)
    fed = (2 * rules.tier.food_cap - used)[:, None] // jnp.maximum(
      look_up(types.takes_food, builder), 1)
    back &= jnp.cumsum(back, axis=1) <= jnp.minimum(fed, free_unit_slots(rules, state)[:, None])
    drones = slots.Spawns(jnp.where(back, builder, 0), x, y)
    state = slots.spawn(rules, state, drones, slots.RallyPoints(jnp.zeros_like(back), x, y))
  return state._replace(
    minerals=state.minerals + minerals, vespene=state.vespene + vespene,
    score=state.score._replace(
      spent=state.score.spent - minerals, spent_vespene=state.score.spent_vespene - vespene))


def _cancel_last(rules: tables.Rules, state: State, structures: Array) -> State:
  """Takes the last product out of queues, for its whole price; its larva is lost."""
  length = jnp.sum(state.queue > 0, axis=2)
  last = (jnp.arange(constants.QUEUE_LENGTH) == length[:, :, None] - 1) & structures[:, :, None]
  product = jnp.sum(jnp.where(last, state.queue, 0), axis=2)

  def refund(prices):
    return jnp.sum(look_up(prices, product), axis=1)

  minerals, vespene = refund(rules.products.minerals), refund(rules.products.vespene)
  return state._replace(
    queue=jnp.where(last, 0, state.queue), timers=jnp.where(last, 0, state.timers),
    minerals=state.minerals + minerals, vespene=state.vespene + vespene,
    score=state.score._replace(
      spent=state.score.spent - minerals, spent_vespene=state.score.spent_vespene - vespene))


def recover(rules: tables.Rules, state: State) -> State:
  """What comes back with time: energy, shields, the health of Zerg, and what is healed."""
  types, step = rules.types, constants.LOOPS_PER_STEP
  alive = (state.kind > 0) & (state.health > 0)
  whole = jnp.pad(state.unfinished == 0, ((0, 0), (0, rules.tier.units)), constant_values=True)
  if rules.has_energy:
    state = state._replace(energy=jnp.where(whole & alive, jnp.minimum(
      state.energy + step * constants.ENERGY_PER_LOOP, look_up(types.energy, state.kind)), 0.0))
  if rules.has_shields:
    calm = jnp.where(state.hurt, 0, jnp.minimum(state.calm + step, 10 * constants.SHIELD_DELAY))
    most = look_up(types.shield, state.kind)
    grown = jnp.minimum(state.shield + step * constants.SHIELD_PER_LOOP, most)
    state = state._replace(calm=calm, shield=jnp.where(
      whole & alive & (calm >= constants.SHIELD_DELAY), grown, jnp.minimum(state.shield, most)))
  if rules.has_larvae:
    zerg = look_up(types.race == constants.RACES.index("Zerg"), state.kind)
    most = max_health(rules, state, state.kind)
    state = state._replace(health=jnp.where(
      zerg & alive & whole, jnp.minimum(state.health + step * constants.REGENERATION_PER_LOOP, most), state.health))
  if rules.has(constants.STIM):
    state = state._replace(stimmed=jnp.maximum(state.stimmed - step, 0))
  if rules.has(constants.SCAN):
    state = state._replace(scan_loops=jnp.maximum(state.scan_loops - step, 0))
  if rules.types.local("Medivac"):
    state = _heal(rules, state)
  if (rules.functions.verb == constants.REPAIR).any():
    state = _repair(rules, state)
  return state


def _heal(rules: tables.Rules, state: State) -> State:
  """Each Medivac heals the nearest hurt body within reach, for energy."""
  types, s = rules.types, rules.tier.structures
  kind, x, y = state.kind[:, s:], state.x[:, s:], state.y[:, s:]
  body = (types.attributes >> constants.ATTRIBUTES.index("Biological")) & 1 > 0
  most = max_health(rules, state, kind)
  health = state.health[:, s:]
  hurt = look_up(body & ~types.structure, kind) & (health > 0) & (health < most)
  amount = constants.HEAL_PER_LOOP * constants.LOOPS_PER_STEP
  cost = amount / constants.HEALTH_PER_ENERGY
  medic = (kind == types.local("Medivac")) & (state.energy[:, s:] >= cost)
  square = (x[:, :, None] - x[:, None]) ** 2 + (y[:, :, None] - y[:, None]) ** 2  # body, medic
  near = medic[:, None] & hurt[:, :, None] & (square <= constants.HEAL_REACH ** 2)
  nearest = argmin_rows(jnp.where(near, square, jnp.inf))
  works = jnp.any(near, axis=1)
  helped = segment_sum(jnp.where(works, nearest, -1), jnp.ones_like(x), rules.tier.units)
  healed = jnp.minimum(health + amount * helped, most)
  return state._replace(
    health=state.health.at[:, s:].set(jnp.where(hurt, healed, health)),
    energy=state.energy.at[:, s:].add(works * -cost))


def _repair(rules: tables.Rules, state: State) -> State:
  """SCVs beside what they repair: a whole repair takes the time and a quarter of the price."""
  types, products, s = rules.types, rules.products, rules.tier.structures
  verb, target = state.orders.verb, state.orders.target
  repairs = verb == constants.REPAIR
  can = availability.repairable(rules, state)
  reach = constants.REPAIR_REACH + pick(look_up(types.radius, state.kind), target)
  square = ((state.x[:, s:] - pick(state.x, target)) ** 2
            + (state.y[:, s:] - pick(state.y, target)) ** 2)
  works = repairs & pick(can, target) & (square <= reach * reach)
  hands = segment_sum(jnp.where(works, target, -1), jnp.ones_like(target), rules.tier.slots)
  made_as = np.arange(len(types.names))  # a sieged tank was made as a tank
  made_as[types.local("SiegeTankSieged")] = types.local("SiegeTank")
  loops = jnp.maximum(look_up(products.loops[made_as], state.kind), 1)
  price = look_up(products.minerals, state.kind)
  share = hands * constants.LOOPS_PER_STEP / loops
  pays = state.minerals > 0
  debt = state.repair_debt + jnp.sum(share * price, axis=1) * constants.REPAIR_COST * pays
  due = jnp.minimum(jnp.floor(debt).astype(jnp.int32), state.minerals)
  most = look_up(types.health, state.kind)
  healed = jnp.minimum(state.health + share * most, most)
  state = state._replace(
    health=jnp.where((hands > 0) & pays[:, None], healed, state.health),
    repair_debt=debt - due, minerals=state.minerals - due,
    score=state.score._replace(spent=state.score.spent + due))
  still = pick(availability.repairable(rules, state), target)
  return orders.next_order(rules, state, repairs & ~still, jnp.array(True))

