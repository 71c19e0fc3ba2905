"""The state of a game, and what its rules look up in it.

Every array is split by player, `[2, ...]`: a fight is then n x n a side. A player's n slots are its
structures' S first, those that shoot last, then its units' M. Positions are counted from the middle
of the map in map units, x to the right and y downwards, so that turning the map by half a turn is a
change of sign and a game turned so is the same game to the last bit. Resources are split too, by
the half of the map that they lie in; a player counts its own half's first.

What a tier's rules lack (shields, energy, larvae) has arrays of size zero.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from starleague.agent import types
from starleague.environments import base
from starleague.environments.skirmish.rules import tables

Array = Any
START_ENERGY = 50.0
TOWNHALL_REACH = 7.0  # how far a base's resources are from its town hall


class Orders(NamedTuple):
  """What units do; [2, M] each."""

  verb: Array  # int32, tables.IDLE to tables.RETURN
  x: Array  # float32: where to
  y: Array
  target: Array  # int32: a slot of the enemy, a resource or an own slot, as the verb says
  product: Array  # int32, local type: what to build


class Commands(NamedTuple):
  """What the players ordered since the last step; [2, ...]."""

  function: Array  # int32, local; 0 is none
  selected: Array  # [2, n] bool
  x: Array  # float32
  y: Array
  target_kind: Array  # int32, tables.NO_TARGET to tables.RESOURCE
  target: Array  # int32, a slot of that kind
  queued: Array  # bool
  repeat: Array  # int32, 1 to 3


class Score(NamedTuple):
  """Cumulative, [2] int32; money in minerals, idle times in game loops."""

  idle_production: Array
  idle_workers: Array
  units: Array
  structures: Array
  killed_units: Array
  killed_structures: Array
  collected: Array
  spent: Array
  collected_vespene: Array
  spent_vespene: Array


class Memory(NamedTuple):
  """What each player knows and remembers."""

  seen: Array  # [2, n] bool: the enemy's slots in sight
  visible: Array  # [2, H, W / 32] uint32: cells in sight, a bit each
  explored: Array  # [2, H, W / 32] uint32: cells ever in sight
  kind: Array  # [2, S] int32: the enemy's structures as last seen, 0 for none
  x: Array  # [2, S] float32
  y: Array
  health: Array
  patches: Array  # [2, R] int32: their contents as last seen
  met: Array  # [2] bool: an enemy was ever in sight


class State(NamedTuple):
  """A game. n slots a player, S of them structures, M units; R resources."""

  loop: Array  # [] int32
  side: Array  # [2] float32: +1 for the first place, -1 for the one opposite
  match_up: base.MatchUp
  race: Array  # [2] int32, indices of tables.RACES
  # Slots.
  kind: Array  # [2, n] int32: local types, 0 where empty
  x: Array  # [2, n] float32
  y: Array
  health: Array  # [2, n] float32
  shield: Array  # [2, n] or [2, 0] float32
  energy: Array  # [2, n] or [2, 0] float32
  hurt: Array  # [2, n] bool: in the last step
  calm: Array  # [2, n] or [2, 0] int32: loops since it was hurt, for shields
  # Structures.
  unfinished: Array  # [2, S] int32: loops of construction left
  queue: Array  # [2, S, 5] int32: products in the making, 0 past the end
  timers: Array  # [2, S, 5] int32: loops left of each
  rally: Array  # [2, S] bool: whether the next two count
  rally_x: Array  # [2, S] float32
  rally_y: Array
  larvae: Array  # [2, S] or [2, 0] int32
  larva_loops: Array  # [2, S] or [2, 0] int32: until the next one
  injected: Array  # [2, S] or [2, 0] int32: loops until a queen's larvae hatch, 0 for none
  boosted: Array  # [2, S] or [2, 0] int32: loops that it works faster for
  # Units.
  orders: Orders
  next_orders: Orders  # verb IDLE where there is none
  cooldown: Array  # [2, F] float32: loops until the weapon is ready; F: S's armed ones, then M
  trip: Array  # [2, M] int32: how far the work at a patch is, of mining.work_length
  cargo: Array  # [2, M] int32: minerals or vespene on their way to a town hall
  cargo_gas: Array  # [2, M] or [2, 0] bool: whether it is vespene, or was the last time
  stimmed: Array  # [2, M] or [2, 0] int32: loops left
  # Players.
  minerals: Array  # [2] int32
  vespene: Array  # [2] int32
  upgrades: Array  # [2, U] bool
  repair_debt: Array  # [2] float32: minerals below one that repairs still cost
  scan_x: Array  # [2] float32: what is looked at from above
  scan_y: Array
  scan_loops: Array  # [2] int32, 0 for none
  patches: Array  # [2, R / 2] int32: contents, of geysers too
  commands: Commands
  next_loop: Array  # [2] int32: when it may act again
  last_loop: Array  # [2] int32: when it acted last
  last_function: Array  # [2] int32, dense
  last_queued: Array  # [2] int32
  last_repeat: Array  # [2] int32, 0 to 2
  refused: Array  # [2] int32: why the last action did nothing, of refusals; 0 if it did something
  was_selected: Array  # [2, n] bool
  was_targeted: Array  # [2, 2 n + R] bool: own slots, the enemy's, resources
  memory: Memory
  score: Score
  executed: types.Statistics  # [2, ...]
  last_event: Array  # [] int32: the loop of the last income, product or damage
  luck: Array  # [2] uint32: what scripted players draw their manner of this game from
  winner: Array  # [] int32: 0 or 1, 2 for a draw, -1 while it goes on


def flip(values: Array) -> Array:
  """The other player's values: [2, ...] swapped along the first axis."""
  return values[::-1]


def look_up(table: np.ndarray, index: Array) -> Array:
  """Rows of a small constant table, in the table's own type (booleans as they are).

  Args:
    table: [Y] or [Y, C].
    index: [...] integers in 0..Y-1.

  Returns:
    [...] or [..., C].
  """
  return jnp.take(jnp.asarray(table), index, axis=0, mode="clip")


def pick(values: Array, index: Array) -> Array:
  """Each player's values [2, m] at its own indices [2, k]; negative ones count as the first."""
  return jnp.take_along_axis(values, jnp.maximum(index, 0), axis=1, mode="clip")


def least(values: Array) -> Array:
  """`argmin` over the axis before the last, as two minima: several times as fast on CPUs.

  Args:
    values: [2, m, k].

  Returns:
    [2, k] int32, the first of the least.
  """
  best = jnp.min(values, axis=1, keepdims=True)
  rows = jnp.arange(values.shape[1])[:, None]
  return jnp.min(jnp.where(values == best, rows, values.shape[1] - 1), axis=1)


def tally(index: Array, amount: Array, size: int) -> Array:
  """Sums amounts [2, k] by each player's own indices [2, k], negative ones left out: [2, size]."""
  index = jnp.where(index < 0, size, index)
  return jnp.zeros((2, size), amount.dtype).at[jnp.arange(2)[:, None], index].add(
    amount, mode="drop")


def resource_places(rules: tables.Rules, side: Array) -> tuple[Array, Array]:
  """Where each player's resources lie, its own half's first: x, y [2, R] float32."""
  half = np.array(rules.tier.patches, np.float32)
  both = jnp.asarray(np.concatenate([half, -half]))
  return side[:, None] * both[:, 0], side[:, None] * both[:, 1]


def geysers(rules: tables.Rules) -> np.ndarray:
  """Which resources are geysers, as every player counts them: [R] bool."""
  return np.tile(np.array(rules.tier.geysers), 2)


def both_halves(patches: Array) -> Array:
  """Contents [2, R / 2] as each player counts them: [2, R], its own half's first."""
  return jnp.concatenate([patches, flip(patches)], axis=1)


def idle_orders(rules: tables.Rules) -> Orders:
  """No orders at all."""
  shape = (2, rules.tier.units)
  integers, floats = jnp.zeros(shape, jnp.int32), jnp.zeros(shape, jnp.float32)
  return Orders(integers, floats, floats, integers, integers)


def no_commands(rules: tables.Rules) -> Commands:
  """Nobody ordered anything."""
  integers, floats = jnp.zeros(2, jnp.int32), jnp.zeros(2, jnp.float32)
  return Commands(
    function=integers, selected=jnp.zeros((2, rules.tier.slots), bool), x=floats, y=floats,
    target_kind=integers, target=integers, queued=jnp.zeros(2, bool), repeat=integers + 1)


def finished_kind(rules: tables.Rules, state: State) -> Array:
  """Local types of the structures that stand, 0 for the others: [2, S]."""
  return jnp.where(state.unfinished > 0, 0, state.kind[:, :rules.tier.structures])


def present_types(rules: tables.Rules, kind: Array) -> Array:
  """Which local types are there: [2, m] to [2, Y] bool, false for the empty one."""
  none = jnp.zeros((2, len(rules.types.names)), bool)
  return none.at[jnp.arange(2)[:, None], kind].set(True).at[:, 0].set(False)


def standing_types(rules: tables.Rules, state: State) -> Array:
  """Which local types stand finished, and those whose place they take: [2, Y] bool."""
  standing = finished_kind(rules, state)
  there = present_types(rules, standing)
  counts_as = rules.types.counts_as
  if (counts_as == np.arange(len(counts_as))).all():
    return there
  return there | present_types(rules, look_up(counts_as, standing))


def counts(rules: tables.Rules, state: State, *, finished: bool) -> Array:
  """How many of each local type the players have: [2, Y] int32.

  Args:
    rules: the game's constants.
    state: the game.
    finished: leave out structures under construction.
  """
  kind = state.kind
  if finished:
    kind = jnp.concatenate([finished_kind(rules, state), kind[:, rules.tier.structures:]], axis=1)
  return tally(kind, jnp.ones_like(kind), len(rules.types.names)).at[:, 0].set(0)


def food(rules: tables.Rules, state: State) -> tuple[Array, Array]:
  """Food taken, with what is in the making, and the most: [2] int32 each, in halves."""
  types_, s = rules.types, rules.tier.structures
  whole = look_up(types_.takes_food, state.kind).sum(axis=1)
  queued = look_up(rules.products.takes_food, state.queue).sum(axis=(1, 2))
  given = look_up(types_.gives_food, finished_kind(rules, state)).sum(axis=1)
  if types_.gives_food[~types_.structure].any():
    given = given + look_up(types_.gives_food, state.kind[:, s:]).sum(axis=1)
  return whole + queued, jnp.minimum(given, 2 * rules.tier.food_cap)


def room(rules: tables.Rules, state: State) -> Array:
  """Slots for units that neither a unit has nor one in the making will take: [2] int32."""
  taken = jnp.sum(state.kind[:, rules.tier.structures:] > 0, axis=1)
  coming = look_up(rules.products.brood, state.queue).sum(axis=(1, 2))
  return rules.tier.units - taken - coming


def next_products(rules: tables.Rules, state: State) -> Array:
  """What each function makes now, 0 for nothing: [2, C] local products.

  A level of an upgrade follows on the one before it, and is researched once at a time.
  """
  functions, products = rules.functions, rules.products
  if not rules.has_upgrades:
    return jnp.tile(jnp.asarray(functions.product), (2, 1))
  y = len(rules.types.names)
  line = (functions.product >= y)[:, None] & (
    products.function[None, y:] == np.arange(len(functions.names))[:, None])  # [C, U]
  owned = state.upgrades.astype(jnp.float32) @ jnp.asarray(line.T, jnp.float32)
  researched = look_up(np.where(np.arange(len(products.function)) >= y, products.function, 0),
                       state.queue).reshape(2, -1)
  busy = jnp.zeros((2, len(functions.names)), bool).at[
    jnp.arange(2)[:, None], researched].set(True).at[:, 0].set(False)
  owned = owned.astype(jnp.int32)
  left = (owned < functions.levels) & ~busy
  product = functions.product + owned * (functions.product >= y)
  return jnp.where((functions.product > 0) & (left | (functions.product < y)), product, 0)


def bonuses(rules: tables.Rules, state: State) -> Array | None:
  """What the players' upgrades add to EFFECTS of each type: [2, Z, Y], None without upgrades."""
  if not rules.has_upgrades:
    return None
  return jnp.einsum("pu,uzy->pzy", state.upgrades.astype(jnp.float32), rules.upgrades.effects)


def bonus(added: Array | None, effect: str, kind: Array) -> Array | float:
  """What upgrades add to one of EFFECTS of each slot: [2, m] local types to [2, m] float32."""
  if added is None:
    return 0.0
  return pick(added[:, tables.EFFECTS.index(effect)], kind)


def most_health(rules: tables.Rules, state: State, kind: Array) -> Array:
  """The health of local types [2, m] when unhurt, with what upgrades add: [2, m] float32."""
  return look_up(rules.types.health, kind) + bonus(bonuses(rules, state), "health", kind)


def vacate(rules: tables.Rules, state: State, gone: Array) -> State:
  """Empties slots [2, n]: of the dead, the cancelled, and those that became something else."""
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
    orders=state.orders._replace(verb=jnp.where(units, tables.IDLE, state.orders.verb)),
    next_orders=state.next_orders._replace(
      verb=jnp.where(units, tables.IDLE, state.next_orders.verb)),
    trip=jnp.where(units, 0, state.trip), cargo=jnp.where(units, 0, state.cargo))
  if rules.has_shields:
    state = state._replace(shield=jnp.where(gone, 0.0, state.shield))
  if rules.has_larvae:
    state = state._replace(larvae=jnp.where(structures, 0, state.larvae))
  return state


def geyser_taps(rules: tables.Rules, state: State) -> Array:
  """Which resources have a player's own finished gas structure on them: [2, R] bool."""
  s = rules.tier.structures
  x, y = resource_places(rules, state.side)
  gas = look_up(rules.types.gas, finished_kind(rules, state))
  apart = ((state.x[:, :s, None] - x[:, None]) ** 2 + (state.y[:, :s, None] - y[:, None]) ** 2)
  return jnp.any(gas[:, :, None] & (apart < 1.0), axis=1) & geysers(rules)


def by_dense(index: np.ndarray, values: Array, size: int) -> Array:
  """Values by local index [2, Y] to values by dense index [2, size], 0 where there is none."""
  place = np.zeros(size, np.int32)
  place[index] = np.arange(len(index))
  place[0] = 0
  return jnp.take(values.at[:, 0].set(jnp.zeros((), values.dtype)), place, axis=1)
