"""Mining: workers fill their hands at a patch and bring that to a town hall. Once a step."""

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules import constants, orders, tables, tiers
from starleague.environments.skirmish.rules.arrays import (
  argmin_rows,
  flip,
  look_up,
  pick,
  segment_sum,
)
from starleague.environments.skirmish.rules.constants import TOWNHALL_REACH
from starleague.environments.skirmish.rules.queries import (
  both_halves,
  finished_kind,
  is_geyser,
  resource_positions,
  tapped_geysers,
)
from starleague.environments.skirmish.rules.state import Array, State

TRIP_UNIT = 6  # what a worker's work at a patch grows by a step; shared if it is crowded
WAY_STEPS = 1  # of a trip: from a base's patch to its town hall and back
FAR = 1e6  # more than any distance, squared


def work_length(tier: tiers.Tier) -> int:
  """What a worker does at a patch for a load, in the units of State.trip."""
  steps = round(tier.trip_loops / tier.tempo / constants.LOOPS_PER_STEP)
  return TRIP_UNIT * (steps - WAY_STEPS)


def _assign(rules: tables.Rules, state: State, target: Array,
            assigned: Array) -> tuple[Array, Array]:
  """Which resource each worker mines: [2, M], and whether it is another than before.

  Args:
    rules: the game's constants.
    state: the game.
    target: [2, M] int32, the resource that it mined, -1 for none and for who does not mine.
    assigned: [2, R] int32, how many mine each.
  """
  tier, s = rules.tier, rules.tier.structures
  patch_x, patch_y = resource_positions(rules, state.side)
  gas = is_geyser(rules)
  hall = look_up(rules.types.townhall, finished_kind(rules, state))
  apart = ((state.x[:, :s, None] - patch_x[:, None]) ** 2
           + (state.y[:, :s, None] - patch_y[:, None]) ** 2)
  served = jnp.any(hall[:, :, None] & (apart < TOWNHALL_REACH ** 2), axis=1)  # [2, R]
  rich = state.memory.patches > 0
  ground = rich & ~gas  # what a worker without orders takes to
  cost = jnp.where(ground & served, 4.0 * assigned, jnp.where(ground, FAR, 2 * FAR))
  dx = patch_x[:, :, None] - state.x[:, None, s:]
  dy = patch_y[:, :, None] - state.y[:, None, s:]
  nearest = argmin_rows(dx * dx + dy * dy + cost[:, :, None])
  gathers = state.orders.verb == constants.GATHER
  lost = gathers & ((target < 0) | ~pick(_minable(rules, state), target))
  target = jnp.where(lost, nearest, target)
  # One worker a step leaves the most crowded patch for one with room.
  crowds = jnp.where(served & ~gas, assigned, 0)
  vacant = jnp.where(ground & served, assigned, tier.units)
  full, open_ = jnp.argmax(crowds, axis=1), jnp.argmin(vacant, axis=1)
  crowd, space = jnp.max(crowds, axis=1), jnp.min(vacant, axis=1)
  on_full = gathers & (target == full[:, None])
  moves = on_full & (jnp.cumsum(on_full, axis=1) == 1)
  moves &= ((crowd > constants.WORKERS_PER_PATCH) & (space < constants.WORKERS_PER_PATCH))[:, None]
  return jnp.where(moves, open_[:, None], target), moves | lost


def _minable(rules: tables.Rules, state: State) -> Array:
  """Resources that are not known to be empty, geysers under an own gas structure: [2, R] bool."""
  rich = state.memory.patches > 0
  return rich & (tapped_geysers(rules, state) | ~is_geyser(rules)) if rules.has_gas else rich


def _fill(rules: tables.Rules, state: State, done: Array, target: Array) -> tuple[Array, Array]:
  """Who takes how much from the patches: loads [2, M], 0 for none, and what is left [2, R / 2].

  What is less than all ask for goes to one worker a player, to the player first on whose half of
  the map it lies; the others wait.

  Args:
    rules: the game's constants.
    state: the game.
    done: [2, M] bool, workers whose work at their patch is done.
    target: [2, M] int32, their patches.
  """
  tier, half = rules.tier, rules.tier.resources // 2
  workers = segment_sum(jnp.where(done, target, -1), jnp.ones_like(target), tier.resources)
  own, other = workers[:, :half], flip(workers[:, half:])
  load = np.where(np.array(tier.geysers), constants.LOAD_VESPENE, constants.LOAD_MINERALS)
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


def nearest_town_hall(rules: tables.Rules, state: State) -> tuple[Array, Array, Array]:
  """Each worker's nearest finished town hall, itself if there is none: x, y, squared distance."""
  s = rules.tier.structures
  x, y = state.x[:, s:], state.y[:, s:]
  hall = look_up(rules.types.townhall, finished_kind(rules, state))
  square = jnp.square(state.x[:, :s, None] - x[:, None]) + jnp.square(
    state.y[:, :s, None] - y[:, None])
  square = jnp.where(hall[:, :, None], square, FAR)
  nearest = argmin_rows(square)
  some = jnp.any(hall, axis=1, keepdims=True)
  return (jnp.where(some, pick(state.x, nearest), x), jnp.where(some, pick(state.y, nearest), y),
          jnp.min(square, axis=1))


def _hand_over(rules: tables.Rules, state: State) -> tuple[State, Array]:
  """Pays for what is brought to a town hall; who has handed something over: [2, M] bool."""
  verb = state.orders.verb
  _, _, far = nearest_town_hall(rules, state)
  hands = (state.cargo > 0) & ((verb == constants.GATHER) | (verb == constants.RETURN)) & (
    far <= constants.DROP_REACH ** 2)
  brought = jnp.where(hands, state.cargo, 0)

  def income(chosen):
    return jnp.sum(brought * chosen, axis=1) * state.match_up.income // 100

  minerals = income(~state.cargo_gas if rules.has_gas else 1)
  vespene = income(state.cargo_gas) if rules.has_gas else jnp.zeros_like(minerals)
  score = state.score._replace(
    collected=state.score.collected + minerals,
    collected_vespene=state.score.collected_vespene + vespene)
  return state._replace(
    cargo=jnp.where(hands, 0, state.cargo), minerals=state.minerals + minerals,
    vespene=state.vespene + vespene, score=score, last_event=jnp.where(
      jnp.any(minerals + vespene > 0), state.loop, state.last_event)), hands


def _dig(rules: tables.Rules, state: State, free: Array) -> State:
  """Sends workers to resources and moves the work of those there along.

  Args:
    rules: the game's constants.
    state: the game.
    free: [2, M] bool, whose hands are empty since the step before.
  """
  tier, s, gas = rules.tier, rules.tier.structures, is_geyser(rules)
  gathers = state.orders.verb == constants.GATHER
  target = jnp.where(gathers, state.orders.target, -1)
  assigned = segment_sum(target, jnp.ones_like(target), tier.resources)  # [2, R]
  target, renewed = _assign(rules, state, target, assigned)
  patch_x, patch_y = resource_positions(rules, state.side)
  apart_x, apart_y = pick(patch_x, target) - state.x[:, s:], pick(patch_y, target) - state.y[:, s:]
  works = gathers & free & (apart_x * apart_x + apart_y * apart_y < constants.MINING_REACH ** 2)
  there = _minable(rules, state) & (both_halves(state.patches) > 0)
  capacity = np.where(gas, constants.WORKERS_PER_GEYSER, constants.WORKERS_PER_PATCH)
  share = (TRIP_UNIT * capacity) // jnp.maximum(assigned, capacity)
  # Whoever is sent to another resource begins its work there anew.
  trip = jnp.where(renewed, 0, state.trip) + works * pick(share * there, target)
  taken, left = _fill(rules, state, works & (trip >= work_length(tier)), target)
  if rules.has_gas:
    state = state._replace(
      cargo_gas=jnp.where(taken > 0, look_up(gas, target), state.cargo_gas))
  return state._replace(
    orders=state.orders._replace(target=jnp.where(gathers, target, state.orders.target)),
    trip=jnp.where(taken > 0, 0, trip), cargo=state.cargo + taken, patches=left)


def mine(rules: tables.Rules, state: State) -> State:
  """Pays for what workers bring home, sends them to patches, and fills their hands there."""
  empty = state.cargo == 0
  state, handed = _hand_over(rules, state)
  state = _dig(rules, state, empty)
  # Whoever was only to bring its load, or has something else to do after it, goes on.
  waits = state.next_orders.verb != constants.IDLE
  done = (handed & waits) | ((state.orders.verb == constants.RETURN) & (state.cargo == 0))
  return orders.next_order(rules, state, done, done)
