"""Slots: finding free ones, spawning into them, clearing them."""

from typing import NamedTuple

import jax.numpy as jnp

from starleague.environments.skirmish.rules.state.arrays import flip, look_up, pick
from starleague.environments.skirmish.rules.state.queries import max_health
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import (
  ABOARD,
  BOARD,
  GATHER,
  IDLE,
  LOAD,
  MOVE,
  START_ENERGY,
  STIM,
)


class Spawns(NamedTuple):
  """New units or structures, [2, k] each."""

  kind: Array  # int32, local types, 0 for none
  x: Array  # float32
  y: Array


class RallyPoints(NamedTuple):
  """Rally points of spawned units, [2, k] each."""

  rallied: Array  # bool: whether the next two are set
  x: Array  # float32
  y: Array


def free_structure_slots(rules: tables.Rules, state: State, product: Array) -> Array:
  """Slots that a structure [2] can take: [2, S] bool. Structures that shoot have their own."""
  tier = rules.tier
  empty = state.kind[:, :tier.structures] == 0
  if not tier.armed:
    return empty
  own = jnp.arange(tier.structures) >= tier.unarmed
  return empty & (own == look_up(rules.types.fighter, product)[:, None])


def spawn(rules: tables.Rules, state: State, units: Spawns, rally: RallyPoints) -> State:
  """Spawns units. Workers mine; others go to their rally point.

  Args:
    rules: the game's constants.
    state: the game, with a free slot for every unit (see `supply.free_unit_slots`).
    units: [2, k].
    rally: [2, k].
  """
  types, s = rules.types, rules.tier.structures
  source = _match_slots(state.kind[:, s:] == 0, units.kind > 0)
  born = source >= 0

  def at_slots(values):
    return jnp.where(born, pick(values, source), 0)

  def of_all(values):  # of structures and units; selecting costs half of updating a slice
    return jnp.pad(values, ((0, 0), (s, 0)))

  def put(values, new):
    return jnp.where(of_all(born), of_all(new), values)

  kind = at_slots(units.kind)
  moves = jnp.where(at_slots(rally.rallied) > 0, MOVE, IDLE)
  verb = jnp.where(look_up(types.worker, kind), GATHER, moves)
  old = state.orders
  state = state._replace(
    kind=put(state.kind, kind), x=put(state.x, at_slots(units.x)),
    y=put(state.y, at_slots(units.y)),
    health=put(state.health, max_health(rules, state, kind)),
    was_selected=state.was_selected & ~of_all(born),
    orders=old._replace(
      verb=jnp.where(born, verb, old.verb), x=jnp.where(born, at_slots(rally.x), old.x),
      y=jnp.where(born, at_slots(rally.y), old.y), target=jnp.where(born, -1, old.target)),
    next_orders=state.next_orders._replace(verb=jnp.where(born, IDLE, state.next_orders.verb)),
    cooldown=jnp.where(
      jnp.pad(born, ((0, 0), (rules.tier.armed, 0))), 0.0, state.cooldown),
    trip=jnp.where(born, 0, state.trip), cargo=jnp.where(born, 0, state.cargo))
  if rules.has_shields:
    state = state._replace(shield=put(state.shield, look_up(types.shield, kind)),
                           calm=jnp.where(of_all(born), 0, state.calm))
  if rules.has_energy:
    state = state._replace(energy=put(state.energy, jnp.minimum(
      look_up(types.energy, kind), START_ENERGY)))
  if rules.has(STIM):
    state = state._replace(stimmed=jnp.where(born, 0, state.stimmed))
  if rules.has_cloaking:
    state = state._replace(cloaked=state.cloaked & ~born)
  return state


def _match_slots(free: Array, born: Array) -> Array:
  """The unit that each slot takes, -1 for none: the k-th free slot takes the k-th unit.

  Args:
    free: [2, M] bool.
    born: [2, k] bool, no more than there are free slots.

  Returns:
    [2, M] int32, indices of the k units.
  """
  m, players = free.shape[1], jnp.arange(2)[:, None]
  rank = jnp.where(free, jnp.cumsum(free, axis=1) - 1, m)
  slot_of = jnp.full((2, m), m).at[players, rank].set(jnp.arange(m), mode="drop")
  slot = jnp.where(born, pick(slot_of, jnp.cumsum(born, axis=1) - 1), m)
  return jnp.full((2, m), -1).at[players, slot].set(jnp.arange(born.shape[1]), mode="drop")


def with_passengers(rules: tables.Rules, state: State, gone: Array) -> tuple[State, Array]:
  """Slots [2, n] bool with their passengers; the state, in which nobody goes to these slots."""
  lost, verb = pick(gone, state.orders.target), state.orders.verb
  inside, idle = lost & (verb == ABOARD), lost & ((verb == BOARD) | (verb == LOAD))
  state = state._replace(
    orders=state.orders._replace(verb=jnp.where(idle, IDLE, verb)),
    next_orders=state.next_orders._replace(
      verb=jnp.where(idle, IDLE, state.next_orders.verb)))
  return state, gone | jnp.pad(inside, ((0, 0), (rules.tier.structures, 0)))


def clear_slots(rules: tables.Rules, state: State, gone: Array) -> State:
  """Empties slots [2, n] bool of the dead, the cancelled and the consumed."""
  s = rules.tier.structures
  structures, units = gone[:, :s], gone[:, s:]
  targeted = jnp.pad(jnp.concatenate([gone, flip(gone)], axis=1),
                     ((0, 0), (0, rules.tier.resources)))
  state = state._replace(
    kind=jnp.where(gone, 0, state.kind), x=jnp.where(gone, 0.0, state.x),
    y=jnp.where(gone, 0.0, state.y), health=jnp.where(gone, 0.0, state.health),
    was_selected=state.was_selected & ~gone, was_targeted=state.was_targeted & ~targeted,
    unfinished=jnp.where(structures, 0, state.unfinished),
    queue=jnp.where(structures[:, :, None], 0, state.queue),
    timers=jnp.where(structures[:, :, None], 0, state.timers),
    orders=state.orders._replace(verb=jnp.where(units, IDLE, state.orders.verb)),
    next_orders=state.next_orders._replace(verb=jnp.where(units, IDLE, state.next_orders.verb)),
    trip=jnp.where(units, 0, state.trip), cargo=jnp.where(units, 0, state.cargo))
  if rules.has_shields:
    state = state._replace(shield=jnp.where(gone, 0.0, state.shield))
  if rules.has_larvae:
    state = state._replace(larvae=jnp.where(structures, 0, state.larvae))
  if rules.has_transports:
    state = state._replace(cargo_taken=jnp.where(units, 0, state.cargo_taken))
  if rules.has_sentries:
    state = state._replace(spell_loops=jnp.where(units, 0, state.spell_loops))
  return state
