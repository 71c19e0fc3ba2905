"""Mining, once a step: workers fill up at a patch and carry the load to a town hall."""

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules.state import orders
from starleague.environments.skirmish.rules.state.arrays import (
  argmin_rows,
  first_chosen,
  flip,
  look_up,
  min_rows,
  pairwise_squared_distance,
  pick,
  segment_sum,
  squared_distance,
)
from starleague.environments.skirmish.rules.state.queries import (
  both_halves,
  finished_kind,
  harvester_counts,
  is_geyser,
  resource_positions,
  served_resources,
  tapped_geysers,
)
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import (
  DROP_REACH,
  GATHER,
  IDLE,
  LOAD_MINERALS,
  LOAD_VESPENE,
  LOOPS_PER_STEP,
  MINING_REACH,
  RETURN,
  WORKERS_PER_GEYSER,
  WORKERS_PER_PATCH,
)
from starleague.environments.skirmish.rules.tables.tiers import Tier

_FULL_RATE = 6  # work a step of a worker at its patch; shared if the patch is crowded
_WALKING_STEPS = 1  # of a trip: from a base's patch to its town hall and back
_CROWDING_COST = 4.0  # squared map units for each worker at a patch
_FAR = 1e6  # more than any squared distance


def work_length(tier: Tier) -> int:
  """The work at a patch for one load, in the units of `State.trip`."""
  steps = round(tier.trip_loops / tier.tempo / LOOPS_PER_STEP)
  return _FULL_RATE * (steps - _WALKING_STEPS)


def mine(rules: tables.Rules, state: State) -> State:
  """Workers deliver their loads, go to a resource, and fill up there."""
  empty = state.cargo == 0
  state, delivered = _deliver(rules, state)
  state = _harvest(rules, state, empty)
  # Workers with a queued order, or ordered only to deliver, continue with their next order.
  waits = state.next_orders.verb != IDLE
  done = (delivered & waits) | ((state.orders.verb == RETURN) & (state.cargo == 0))
  return orders.next_order(rules, state, done, done)


def nearest_town_hall(rules: tables.Rules, state: State) -> tuple[Array, Array, Array]:
  """Each unit's nearest finished town hall, [2, M] each.

  Returns:
    x, y: its position, or the unit's own if there is none.
    squared distance: 1e6 if there is none.
  """
  s = rules.tier.structures
  x, y = state.x[:, s:], state.y[:, s:]
  hall = look_up(rules.types.townhall, finished_kind(rules, state))
  square = pairwise_squared_distance(state.x[:, :s], state.y[:, :s], x, y)
  square = jnp.where(hall[:, :, None], square, _FAR)
  nearest, some = argmin_rows(square), jnp.any(hall, axis=1, keepdims=True)
  return (jnp.where(some, pick(state.x, nearest), x), jnp.where(some, pick(state.y, nearest), y),
          min_rows(square))


def _deliver(rules: tables.Rules, state: State) -> tuple[State, Array]:
  """Pays for loads that reach a town hall; also returns the units that delivered, [2, M] bool."""
  verb = state.orders.verb
  _, _, square = nearest_town_hall(rules, state)
  delivers = (state.cargo > 0) & ((verb == GATHER) | (verb == RETURN)) & (
    square <= DROP_REACH ** 2)
  loads = jnp.where(delivers, state.cargo, 0)

  def income(chosen):
    return jnp.sum(loads * chosen, axis=1) * state.match_up.income // 100

  minerals = income(~state.cargo_gas if rules.has_gas else 1)
  vespene = income(state.cargo_gas) if rules.has_gas else jnp.zeros_like(minerals)
  score = state.score._replace(
    collected=state.score.collected + minerals,
    collected_vespene=state.score.collected_vespene + vespene)
  return state._replace(
    cargo=jnp.where(delivers, 0, state.cargo), minerals=state.minerals + minerals,
    vespene=state.vespene + vespene, score=score, last_event=jnp.where(
      jnp.any(minerals + vespene > 0), state.loop, state.last_event)), delivers


def _harvest(rules: tables.Rules, state: State, free: Array) -> State:
  """Assigns workers to resources and advances the work of those that are there.

  Args:
    rules: the game's constants.
    state: the game.
    free: [2, M] bool, workers without cargo since the previous step.
  """
  tier, s, gas = rules.tier, rules.tier.structures, is_geyser(rules)
  gathers = state.orders.verb == GATHER
  assigned = harvester_counts(rules, state)
  target, changed = _assign(rules, state, assigned)
  patch_x, patch_y = resource_positions(rules, state.side)
  square = squared_distance(
    state.x[:, s:], state.y[:, s:], pick(patch_x, target), pick(patch_y, target))
  works = gathers & free & (square < MINING_REACH ** 2)
  there = _minable(rules, state) & (both_halves(state.patches) > 0)
  capacity = np.where(gas, WORKERS_PER_GEYSER, WORKERS_PER_PATCH)
  work, crowd = _FULL_RATE * capacity, jnp.maximum(assigned, capacity)
  # More workers than units of work share the steps: each works in `work` of `crowd` steps.
  takes_turns = crowd > work
  shared = work * jnp.where(takes_turns, state.loop // LOOPS_PER_STEP, 1)
  share = shared // crowd
  rate = jnp.where(takes_turns, shared - share * crowd < work, share)
  # A worker sent to another resource starts its work from zero.
  trip = jnp.where(changed, 0, state.trip) + works * pick(rate * there, target)
  taken, left = _take_loads(rules, state, works & (trip >= work_length(tier)), target)
  if rules.has_gas:
    state = state._replace(
      cargo_gas=jnp.where(taken > 0, look_up(gas, target), state.cargo_gas))
  return state._replace(
    orders=state.orders._replace(target=jnp.where(gathers, target, state.orders.target)),
    trip=jnp.where(taken > 0, 0, trip), cargo=state.cargo + taken, patches=left)


def _assign(rules: tables.Rules, state: State, assigned: Array) -> tuple[Array, Array]:
  """Assigns workers to resources.

  Args:
    rules: the game's constants.
    state: the game.
    assigned: [2, R] int32, workers at each resource.

  Returns:
    target: [2, M] int32, -1 for units that do not mine.
    changed: [2, M] bool.
  """
  tier, s = rules.tier, rules.tier.structures
  patch_x, patch_y = resource_positions(rules, state.side)
  gas, gathers = is_geyser(rules), state.orders.verb == GATHER
  target = jnp.where(gathers, state.orders.target, -1)
  served = jnp.any(served_resources(rules, state), axis=1)  # [2, R]
  rich = state.memory.patches > 0
  minerals = rich & ~gas  # workers are sent to geysers by orders only
  cost = jnp.where(
    minerals & served, _CROWDING_COST * assigned, jnp.where(minerals, _FAR, 2 * _FAR))
  square = pairwise_squared_distance(patch_x, patch_y, state.x[:, s:], state.y[:, s:])
  nearest = argmin_rows(square + cost[:, :, None])
  lost = gathers & ((target < 0) | ~pick(_minable(rules, state), target))
  target = jnp.where(lost, nearest, target)
  # One worker a step leaves the most crowded patch for one with room.
  crowds = jnp.where(served & ~gas, assigned, 0)
  vacant = jnp.where(minerals & served, assigned, tier.units)
  full, open_ = jnp.argmax(crowds, axis=1), jnp.argmin(vacant, axis=1)
  on_full = gathers & (target == full[:, None])
  moves = first_chosen(on_full)
  moves &= ((jnp.max(crowds, axis=1) > WORKERS_PER_PATCH)
            & (jnp.min(vacant, axis=1) < WORKERS_PER_PATCH))[:, None]
  return jnp.where(moves, open_[:, None], target), moves | lost


def _minable(rules: tables.Rules, state: State) -> Array:
  """Resources not known to be empty; geysers need an own gas structure. [2, R] bool."""
  rich = state.memory.patches > 0
  return rich & (tapped_geysers(rules, state) | ~is_geyser(rules)) if rules.has_gas else rich


def _take_loads(rules: tables.Rules, state: State, done: Array,
                target: Array) -> tuple[Array, Array]:
  """Takes loads from the resources.

  A resource with too little for all goes to one worker a player, first to the player on whose half
  of the map it lies. The other workers wait.

  Args:
    rules: the game's constants.
    state: the game.
    done: [2, M] bool, workers whose work at their resource is done.
    target: [2, M] int32, their resources.

  Returns:
    taken: [2, M] int32, loads.
    left: [2, R / 2] int32, contents.
  """
  tier, half = rules.tier, rules.tier.resources // 2
  workers = segment_sum(jnp.where(done, target, -1), jnp.ones_like(target), tier.resources)
  own, other = workers[:, :half], flip(workers[:, half:])
  load = jnp.where(np.array(tier.geysers), LOAD_VESPENE, LOAD_MINERALS)
  enough = load * (own + other) <= state.patches
  first = jnp.where(own > 0, jnp.minimum(load, state.patches), 0)
  second = jnp.where(other > 0, jnp.minimum(load, state.patches - first), 0)
  left = state.patches - jnp.where(enough, load * (own + other), first + second)
  share = jnp.concatenate([jnp.where(enough, load, first), flip(jnp.where(enough, load, second))],
                          axis=1)
  slots = jnp.where(done, jnp.arange(tier.units), tier.units)
  lowest = jnp.full((2, tier.resources), tier.units).at[
    jnp.arange(2)[:, None], jnp.maximum(target, 0)].min(slots)
  takes = done & (pick(both_halves(enough), target)
                  | (pick(lowest, target) == jnp.arange(tier.units)))
  return jnp.where(takes, pick(share, target), 0), left
