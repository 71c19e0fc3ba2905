"""Abilities: stim, siege and phasing mode, scan, chrono boost, larva injection, cancellation."""

import jax.numpy as jnp
import numpy as np

from starleague.agent import vocabulary
from starleague.environments.skirmish.rules.interface import availability
from starleague.environments.skirmish.rules.interface.commands import Accepted
from starleague.environments.skirmish.rules.state.arrays import first_chosen, look_up
from starleague.environments.skirmish.rules.state.slots import (
  RallyPoints,
  Spawns,
  clear_slots,
  spawn,
)
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.state.supply import food, free_unit_slots
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import (
  BOOST,
  BOOST_LOOPS,
  CANCEL,
  CANCEL_LAST,
  CLOAK,
  CLOAK_COST,
  DECLOAK,
  ENERGY_COST,
  IDLE,
  INJECT,
  INJECT_LOOPS,
  PHASE,
  PHASE_LOOPS,
  QUEUE_LENGTH,
  RACES,
  REFUND,
  SCAN,
  SCAN_LOOPS,
  SIEGE,
  SIEGE_LOOPS,
  STIM,
  STIM_LOOPS,
  UNPHASE,
  UNSIEGE,
)

# The type that an ability changes its user into, and the cooldown that begins.
_MODES = {SIEGE: ("SiegeTankSieged", SIEGE_LOOPS), UNSIEGE: ("SiegeTank", SIEGE_LOOPS),
          PHASE: ("WarpPrismPhasing", PHASE_LOOPS), UNPHASE: ("WarpPrism", PHASE_LOOPS)}
# Abilities that z records as effects, and their functions.
_RECORDED = {STIM: "Effect_Stim_quick", SCAN: "Effect_Scan_pt",
             BOOST: "Effect_ChronoBoostEnergyCost_unit", INJECT: "Effect_InjectLarva_unit"}


def use_abilities(rules: tables.Rules, state: State, accepted: Accepted) -> State:
  """Applies the players' abilities, one a player and step."""
  s, used = rules.tier.structures, accepted.command.ability

  def users(ability):
    return accepted.users & (used == ability)[:, None]

  for ability in _RECORDED:
    if rules.has(ability):
      state = _record_effect(state, ability, jnp.any(users(ability), axis=1))
  if rules.has(STIM):
    state = _stim(rules, state, users(STIM)[:, s:])
  for ability, mode in _MODES.items():
    if rules.has(ability):
      state = _change_mode(rules, state, users(ability), *mode)
  if rules.has_cloaking:
    state = _cloak(rules, state, users(CLOAK), users(DECLOAK))
  for ability, cost in ENERGY_COST.items():
    if rules.has(ability):
      state = _use_energy(rules, state, accepted, ability, users(ability), cost)
  if rules.has(CANCEL):
    state = _cancel(rules, state, users(CANCEL)[:, :s])
    state = _cancel_last(rules, state, users(CANCEL_LAST)[:, :s])
  return state


def _record_effect(state: State, ability: int, used: Array) -> State:
  """Records an ability in the executed statistics of the players [2] bool that used it."""
  function = vocabulary.FUNCTIONS.index(_RECORDED[ability])
  effect = int(np.flatnonzero(vocabulary.EFFECT_FUNCTIONS == function)[0])
  effects = state.executed.effects.at[:, effect].max(used)
  return state._replace(executed=state.executed._replace(effects=effects))


def _stim(rules: tables.Rules, state: State, users: Array) -> State:
  """Stims units [2, M] bool, for hit points."""
  s = rules.tier.structures
  cost = availability.stim_cost(rules, state.kind[:, s:])
  return state._replace(
    stimmed=jnp.where(users, STIM_LOOPS, state.stimmed),
    health=state.health.at[:, s:].add(jnp.where(users, -cost, 0.0)))


def _change_mode(rules: tables.Rules, state: State, users: Array, into: str,
                 loops: float) -> State:
  """Turns units in slots [2, n] bool into another mode; they lose their orders."""
  tier = rules.tier
  units = users[:, tier.structures:]
  return state._replace(
    kind=jnp.where(users, rules.types.local(into), state.kind),
    cooldown=jnp.where(users[:, tier.unarmed:], loops, state.cooldown),
    orders=state.orders._replace(verb=jnp.where(units, IDLE, state.orders.verb)),
    next_orders=state.next_orders._replace(verb=jnp.where(units, IDLE, state.next_orders.verb)))


def _cloak(rules: tables.Rules, state: State, on: Array, off: Array) -> State:
  """Switches the cloaks of units in slots [2, n] bool on, for energy, and of others off."""
  s = rules.tier.structures
  return state._replace(cloaked=(state.cloaked | on[:, s:]) & ~off[:, s:],
                        energy=state.energy - CLOAK_COST * on)


def _use_energy(rules: tables.Rules, state: State, accepted: Accepted, ability: int, users: Array,
                cost: float) -> State:
  """Scan, boost or injection, by the first of the users [2, n] bool."""
  tier, command = rules.tier, accepted.command
  one = first_chosen(users)
  done = jnp.any(one, axis=1)
  state = state._replace(energy=state.energy - cost * one)
  target = (jnp.arange(tier.structures) == command.target[:, None]) & done[:, None]
  if ability == SCAN:
    return state._replace(
      scan_x=jnp.where(done, command.x, state.scan_x),
      scan_y=jnp.where(done, command.y, state.scan_y),
      scan_loops=jnp.where(done, SCAN_LOOPS, state.scan_loops))
  if ability == BOOST:
    return state._replace(boosted=jnp.where(target, BOOST_LOOPS // tier.tempo, state.boosted))
  return state._replace(injected=jnp.where(target, INJECT_LOOPS // tier.tempo, state.injected))


def _refund(state: State, minerals: Array, vespene: Array) -> State:
  """Pays money [2] int32 back; the score counts it as not spent."""
  score = state.score
  return state._replace(
    minerals=state.minerals + minerals, vespene=state.vespene + vespene,
    score=score._replace(
      spent=score.spent - minerals, spent_vespene=score.spent_vespene - vespene))


def _cancel(rules: tables.Rules, state: State, gone: Array) -> State:
  """Cancels structures [2, S] bool under construction, for a refund of three quarters.

  A Drone that became one returns if there is a slot and, below the food cap, food for it.
  """
  s, types, products = rules.tier.structures, rules.types, rules.products
  kind = jnp.where(gone, state.kind[:, :s], 0)

  def refund(prices):
    return jnp.sum(jnp.floor(REFUND * look_up(prices, kind)).astype(jnp.int32), axis=1)

  minerals, vespene = refund(products.minerals), refund(products.vespene)
  x, y = state.x[:, :s], state.y[:, :s]
  state = clear_slots(rules, state, jnp.pad(gone, ((0, 0), (0, rules.tier.units))))
  if rules.has_larvae:
    zerg = types.structure & (types.race == RACES.index("Zerg"))
    builder = look_up(np.where(zerg, products.producer[:len(types.names)], 0), kind)
    returns = builder > 0
    used, _ = food(rules, state)
    fed = (2 * rules.tier.food_cap - used)[:, None] // jnp.maximum(
      look_up(types.takes_food, builder), 1)
    returns &= jnp.cumsum(returns, axis=1) <= jnp.minimum(
      fed, free_unit_slots(rules, state)[:, None])
    state = spawn(rules, state, Spawns(jnp.where(returns, builder, 0), x, y),
                  RallyPoints(jnp.zeros_like(returns), x, y))
  return _refund(state, minerals, vespene)


def _cancel_last(rules: tables.Rules, state: State, structures: Array) -> State:
  """Cancels the last queued product of structures [2, S] bool; refunds all but its larva."""
  length = jnp.sum(state.queue > 0, axis=2)
  last = (jnp.arange(QUEUE_LENGTH) == length[:, :, None] - 1) & structures[:, :, None]
  product = jnp.sum(jnp.where(last, state.queue, 0), axis=2)
  state = state._replace(
    queue=jnp.where(last, 0, state.queue), timers=jnp.where(last, 0, state.timers))
  return _refund(state, *(jnp.sum(look_up(prices, product), axis=1) for prices in (
    rules.products.minerals, rules.products.vespene)))
