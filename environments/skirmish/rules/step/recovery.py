"""Recovery, once a step: energy, shields, regeneration, healing and repair."""

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules.interface import availability
from starleague.environments.skirmish.rules.state import orders
from starleague.environments.skirmish.rules.state.arrays import (
  argmin_rows,
  look_up,
  pairwise_squared_distance,
  pick,
  segment_sum,
  squared_distance,
)
from starleague.environments.skirmish.rules.state.queries import is_finished, max_health
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import (
  ATTRIBUTES,
  CLOAK_ENERGY_PER_LOOP,
  ENERGY_PER_LOOP,
  HEAL_PER_LOOP,
  HEAL_REACH,
  HEALTH_PER_ENERGY,
  LOOPS_PER_STEP,
  RACES,
  REGENERATION_PER_LOOP,
  REPAIR,
  REPAIR_COST,
  REPAIR_REACH,
  SCAN,
  SHIELD_DELAY,
  SHIELD_PER_LOOP,
  STIM,
)

_CALM_LIMIT = 10 * SHIELD_DELAY  # largest count of loops without damage


def recover(rules: tables.Rules, state: State) -> State:
  """Advances recovery and the durations of effects by a step."""
  working = is_finished(rules, state) & (state.kind > 0) & (state.health > 0)
  state = _restore(rules, state, working)
  if rules.has_cloaking:
    state = _uncloak(rules, state)
  if rules.has(STIM):
    state = state._replace(stimmed=jnp.maximum(state.stimmed - LOOPS_PER_STEP, 0))
  if rules.has_sentries:
    state = _wear_off(rules, state)
  if rules.has(SCAN):
    state = state._replace(scan_loops=jnp.maximum(state.scan_loops - LOOPS_PER_STEP, 0))
  if rules.types.local("Medivac"):
    state = _heal(rules, state)
  if rules.has_verb(REPAIR):
    state = _repair(rules, state)
  return state


def _restore(rules: tables.Rules, state: State, working: Array) -> State:
  """Restores energy and shields, and the health of Zerg, of finished living slots [2, n] bool."""
  types = rules.types
  if rules.has_energy:
    rate: Array | float = ENERGY_PER_LOOP
    if rules.has_cloaking:
      cloaked = jnp.pad(state.cloaked, ((0, 0), (rules.tier.structures, 0)))
      rate = jnp.where(cloaked, -CLOAK_ENERGY_PER_LOOP, ENERGY_PER_LOOP)
    state = state._replace(energy=jnp.where(working, jnp.minimum(
      state.energy + LOOPS_PER_STEP * rate, look_up(types.energy, state.kind)), 0.0))
  if rules.has_shields:
    calm = jnp.where(state.hurt, 0, jnp.minimum(state.calm + LOOPS_PER_STEP, _CALM_LIMIT))
    most = look_up(types.shield, state.kind)
    grown = jnp.minimum(state.shield + LOOPS_PER_STEP * SHIELD_PER_LOOP, most)
    state = state._replace(calm=calm, shield=jnp.where(
      working & (calm >= SHIELD_DELAY), grown, jnp.minimum(state.shield, most)))
  if rules.has_larvae:
    zerg = look_up(types.race == RACES.index("Zerg"), state.kind)
    most = max_health(rules, state, state.kind)
    grown = jnp.minimum(state.health + LOOPS_PER_STEP * REGENERATION_PER_LOOP, most)
    state = state._replace(health=jnp.where(zerg & working, grown, state.health))
  return state


def _wear_off(rules: tables.Rules, state: State) -> State:
  """Advances the times of Guardian Shields, Force Fields and hallucinations, which then die."""
  loops = state.spell_loops
  # The last value stays below 0: the dead are still hallucinations.
  left = jnp.where(loops < 0, jnp.minimum(loops + LOOPS_PER_STEP, -1),
                   jnp.maximum(loops - LOOPS_PER_STEP, 0))
  over = jnp.pad(left == -1, ((0, 0), (rules.tier.structures, 0)))
  return state._replace(
    spell_loops=left, health=jnp.where(over, 0.0, state.health),
    field_loops=jnp.maximum(state.field_loops - LOOPS_PER_STEP, 0))


def _uncloak(rules: tables.Rules, state: State) -> State:
  """Ends the cloaks for which no energy is left."""
  energy = state.energy[:, rules.tier.structures:]
  return state._replace(cloaked=state.cloaked & (energy > 0), energy=jnp.maximum(state.energy, 0.0))


def _heal(rules: tables.Rules, state: State) -> State:
  """Each Medivac heals the nearest damaged biological unit in reach, for energy."""
  types, s = rules.types, rules.tier.structures
  kind, x, y = state.kind[:, s:], state.x[:, s:], state.y[:, s:]
  biological = (types.attributes >> ATTRIBUTES.index("Biological")) & 1 > 0
  most, health = max_health(rules, state, kind), state.health[:, s:]
  hurt = look_up(biological & ~types.structure, kind) & (health > 0) & (health < most)
  amount = HEAL_PER_LOOP * LOOPS_PER_STEP
  cost = amount / HEALTH_PER_ENERGY
  medic = (kind == types.local("Medivac")) & (state.energy[:, s:] >= cost)
  square = pairwise_squared_distance(x, y, x, y)  # patient, medic
  # Whether a unit is a medic comes last: XLA would compute its energy again for each pair of units.
  near = hurt[:, :, None] & (square <= HEAL_REACH ** 2)
  patient, heals = argmin_rows(jnp.where(near, square, jnp.inf)), medic & jnp.any(near, axis=1)
  medics = segment_sum(jnp.where(heals, patient, -1), jnp.ones_like(x), rules.tier.units)
  healed = jnp.minimum(health + amount * medics, most)
  return state._replace(
    health=state.health.at[:, s:].set(jnp.where(hurt, healed, health)),
    energy=state.energy.at[:, s:].add(heals * -cost))


def _repair(rules: tables.Rules, state: State) -> State:
  """SCVs repair their target in reach.

  A repair from zero to full health takes the production time and a quarter of the mineral price.
  """
  types, products, s = rules.types, rules.products, rules.tier.structures
  repairs, target = state.orders.verb == REPAIR, state.orders.target
  reach = REPAIR_REACH + pick(look_up(types.radius, state.kind), target)
  square = squared_distance(
    state.x[:, s:], state.y[:, s:], pick(state.x, target), pick(state.y, target))
  works = repairs & pick(availability.repairable(rules, state), target) & (
    square <= reach * reach)
  repairers = segment_sum(jnp.where(works, target, -1), jnp.ones_like(target), rules.tier.slots)
  made_as = np.arange(len(types.names))  # a sieged tank was produced as a tank
  made_as[types.local("SiegeTankSieged")] = types.local("SiegeTank")
  loops = jnp.maximum(look_up(products.loops[made_as], state.kind), 1)
  share = repairers * LOOPS_PER_STEP / loops
  pays = state.minerals > 0
  cost = jnp.sum(share * look_up(products.minerals, state.kind), axis=1) * REPAIR_COST
  debt = state.repair_debt + cost * pays
  due = jnp.minimum(jnp.floor(debt).astype(jnp.int32), state.minerals)
  most = look_up(types.health, state.kind)
  healed = jnp.minimum(state.health + share * most, most)
  state = state._replace(
    health=jnp.where((repairers > 0) & pays[:, None], healed, state.health),
    repair_debt=debt - due, minerals=state.minerals - due,
    score=state.score._replace(spent=state.score.spent + due))
  done = repairs & ~pick(availability.repairable(rules, state), target)
  return orders.next_order(rules, state, done, jnp.array(True))
