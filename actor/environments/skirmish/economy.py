"""Mining, building and training: what costs time and minerals. Once a step."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from starleague.actor.environments.skirmish import orders, tables
from starleague.actor.environments.skirmish.state import (
  Array,
  State,
  both_halves,
  finished_kind,
  flip,
  food,
  look_up,
  patch_places,
)

MINING_REACH = 1.5  # from a patch's middle
TOWNHALL_REACH = 7.0  # patches farther from any town hall give nothing
BUILD_REACH = 0.8  # from a site's edge
FULL_PATCH = 2  # workers that mine a patch without waiting for one another
TRIP_UNIT = 6  # what a worker's trip grows by a step; shared if the patch is crowded
FAR = 1e6  # more than any distance, squared


class Births(NamedTuple):
  """What appeared on the map in a step: at most one structure and one unit of each structure."""

  kind: Array  # [2, 1 + S] int32, local types, 0 for none
  x: Array  # [2, 1 + S] float32
  y: Array


def trip_length(tier: tables.Tier) -> int:
  """A mining trip, in the units of State.trip."""
  return TRIP_UNIT * round(tier.trip_loops / tier.tempo / tables.LOOPS_PER_STEP)


def train(rules: tables.Rules, state: State, trainers: Array) -> State:
  """Puts the commanded type into queues, as often as it can be paid and fed.

  Args:
    rules: the game's constants.
    state: the game; its commands say what and how often.
    trainers: [2, S] bool, structures that train it.
  """
  types = rules.types
  product = look_up(rules.functions.product, state.commands.function).astype(jnp.int32)
  cost = look_up(types.cost, product).astype(jnp.int32)
  eats = look_up(types.takes_food, product).astype(jnp.int32)
  used, most = food(rules, state)
  length = jnp.sum(state.queue > 0, axis=2)
  want = jnp.minimum(state.commands.repeat[:, None], tables.QUEUE_LENGTH - length) * trainers
  affordable = jnp.minimum(state.minerals // jnp.maximum(cost, 1),
                           jnp.maximum(most - used, 0) // jnp.maximum(eats, 1))
  before = jnp.cumsum(want, axis=1) - want
  got = jnp.clip(affordable[:, None] - before, 0, want)
  place = jnp.arange(tables.QUEUE_LENGTH)
  fill = (place >= length[:, :, None]) & (place < (length + got)[:, :, None])
  paid = cost * got.sum(axis=1)
  loops = look_up(types.loops, product).astype(jnp.int32)
  return state._replace(
    queue=jnp.where(fill, product[:, None, None], state.queue),
    training=jnp.where((length == 0) & (got > 0), loops[:, None], state.training),
    minerals=state.minerals - paid, score=state.score._replace(spent=state.score.spent + paid))


def finish_units(rules: tables.Rules, state: State) -> tuple[State, Births]:
  """Trains on, and puts the finished units beside their building."""
  types, s = rules.types, rules.tier.structures
  busy = state.queue[:, :, 0] > 0
  left = jnp.where(busy, state.training - tables.LOOPS_PER_STEP, 0)
  done = busy & (left <= 0)
  product = jnp.where(done, state.queue[:, :, 0], 0)
  queue = jnp.where(done[:, :, None], jnp.pad(state.queue[:, :, 1:], ((0, 0), (0, 0), (0, 1))),
                    state.queue)
  following = look_up(types.loops, queue[:, :, 0]).astype(jnp.int32)
  free = state.kind[:, s:] == 0
  # The k-th unit takes the k-th free slot. Food keeps units fewer than slots, so each finds one.
  match = (free[:, :, None] & done[:, None, :]
           & (jnp.cumsum(free, axis=1)[:, :, None] == jnp.cumsum(done, axis=1)[:, None, :]))
  born = jnp.any(match, axis=2)

  def spread(values):
    return jnp.sum(match * values[:, None, :], axis=2)

  radius = look_up(types.radius, state.kind[:, :s]) + 0.7
  angle = np.linspace(0.0, np.pi / 2, s, dtype=np.float32)  # towards the middle of the map
  birth_x = state.x[:, :s] + state.side[:, None] * radius * np.cos(angle)
  birth_y = state.y[:, :s] + state.side[:, None] * radius * np.sin(angle)
  kind = spread(product)
  worker = look_up(types.worker, kind) > 0
  rallied = spread(state.rally) > 0
  verb = jnp.where(worker, tables.GATHER, jnp.where(rallied, tables.MOVE, tables.IDLE))
  old = state.orders

  def slots(values, new):
    return values.at[:, s:].set(jnp.where(born, new, values[:, s:]))

  state = state._replace(
    kind=slots(state.kind, kind), x=slots(state.x, spread(birth_x)),
    y=slots(state.y, spread(birth_y)), health=slots(state.health, look_up(types.health, kind)),
    was_selected=slots(state.was_selected, False),
    training=jnp.where(done, following + left, left), queue=queue,
    orders=old._replace(
      verb=jnp.where(born, verb, old.verb), x=jnp.where(born, spread(state.rally_x), old.x),
      y=jnp.where(born, spread(state.rally_y), old.y), target=jnp.where(born, -1, old.target)),
    next_orders=state.next_orders._replace(
      verb=jnp.where(born, tables.IDLE, state.next_orders.verb)),
    cooldown=jnp.where(born, 0.0, state.cooldown), trip=jnp.where(born, 0, state.trip))
  state = state._replace(training=jnp.where(state.queue[:, :, 0] > 0, state.training, 0))
  none = jnp.zeros((2, 1))
  births = Births(
    jnp.concatenate([none.astype(jnp.int32), product], axis=1),
    jnp.concatenate([none, birth_x], axis=1), jnp.concatenate([none, birth_y], axis=1))
  return state, births


def mine(rules: tables.Rules, state: State) -> State:
  """Sends workers to patches, and pays for the trips that they complete."""
  tier, s = rules.tier, rules.tier.structures
  patch_x, patch_y = patch_places(rules, state.side)
  hall = look_up(rules.types.townhall, finished_kind(rules, state)) > 0
  apart = ((state.x[:, :s, None] - patch_x[:, None]) ** 2
           + (state.y[:, :s, None] - patch_y[:, None]) ** 2)
  served = jnp.any(hall[:, :, None] & (apart < TOWNHALL_REACH ** 2), axis=1)  # [2, R]
  gathers = state.orders.verb == tables.GATHER
  every = jnp.arange(tier.resources)
  dx = patch_x[:, None] - state.x[:, s:, None]
  dy = patch_y[:, None] - state.y[:, s:, None]
  distance = dx * dx + dy * dy  # [2, M, R]
  at = gathers[:, :, None] & (state.orders.target[:, :, None] == every)
  assigned = jnp.sum(at, axis=1)  # [2, R]
  rich = state.memory.patches > 0
  cost = jnp.where(rich & served, 4.0 * assigned, jnp.where(rich, FAR, 2 * FAR))
  nearest = jnp.argmin(distance + cost[:, None], axis=2)
  lost = gathers & ~jnp.any(at & rich[:, None], axis=2)
  target = jnp.where(lost, nearest, state.orders.target)
  # One worker a step leaves the most crowded patch for one with room.
  full = jnp.argmax(jnp.where(served, assigned, 0), axis=1)
  open_ = jnp.argmin(jnp.where(rich & served, assigned, tier.units), axis=1)
  crowd = jnp.max(jnp.where(served, assigned, 0), axis=1)
  room = jnp.min(jnp.where(rich & served, assigned, tier.units), axis=1)
  on_full = gathers & (target == full[:, None])
  moves = on_full & (jnp.cumsum(on_full, axis=1) == 1)
  moves &= ((crowd > FULL_PATCH) & (room < FULL_PATCH))[:, None]
  target = jnp.where(moves, open_[:, None], target)

  at = gathers[:, :, None] & (target[:, :, None] == every)
  working = at & (distance < MINING_REACH ** 2)
  pays = served & (both_halves(state.patches) > 0)
  share = (TRIP_UNIT * FULL_PATCH) // jnp.maximum(assigned, FULL_PATCH)
  trip = state.trip + jnp.sum(working * (share * pays)[:, None], axis=2)
  length = trip_length(tier)
  done = trip >= length
  trips = jnp.sum(working & done[:, :, None], axis=1)  # [2, R]
  half = tier.resources // 2
  own, other = trips[:, :half], flip(trips[:, half:])  # on the patches of one's own half
  asked = tables.TRIP_MINERALS * (own + other)
  enough = asked <= state.patches

  def paid(count):
    fair = state.patches * count // jnp.maximum(own + other, 1)
    return jnp.where(enough, tables.TRIP_MINERALS * count, fair)

  income = jnp.sum(paid(own), axis=1) + flip(jnp.sum(paid(other), axis=1))
  return state._replace(
    orders=state.orders._replace(target=jnp.where(gathers, target, state.orders.target)),
    trip=jnp.where(moves | lost, 0, jnp.where(done, trip - length, trip)),
    patches=state.patches - paid(own) - paid(other), minerals=state.minerals + income,
    score=state.score._replace(collected=state.score.collected + income))


def construct(rules: tables.Rules, state: State) -> tuple[State, Births]:
  """Builds on, begins at most one structure a player, and frees the builders that are done."""
  tier, types, s = rules.tier, rules.types, rules.tier.structures
  growing = state.unfinished > 0
  kinds = state.kind[:, :s]
  most, loops = look_up(types.health, kinds), jnp.maximum(look_up(types.loops, kinds), 1.0)
  grown = jnp.minimum(most, state.health[:, :s] + 0.9 * most * tables.LOOPS_PER_STEP / loops)
  state = state._replace(
    health=state.health.at[:, :s].set(jnp.where(growing, grown, state.health[:, :s])),
    unfinished=jnp.maximum(state.unfinished - tables.LOOPS_PER_STEP, 0))

  verb, site = state.orders.verb, state.orders
  reach = look_up(types.radius, site.product) + BUILD_REACH
  near = (site.x - state.x[:, s:]) ** 2 + (site.y - state.y[:, s:]) ** 2 <= reach * reach
  ready = (verb == tables.BUILD) & near
  first = ready & (jnp.cumsum(ready, axis=1) == 1)
  x, y = jnp.sum(first * site.x, axis=1), jnp.sum(first * site.y, axis=1)
  product = jnp.sum(first * site.product, axis=1)
  cost = look_up(types.cost, product).astype(jnp.int32)
  needed = look_up(types.requirement, product).astype(jnp.int32)
  met = (needed == 0) | jnp.any(finished_kind(rules, state) == needed[:, None], axis=1)
  begins = ((product > 0) & (state.minerals >= cost) & met
            & orders.placeable(rules, state, x, y, product) & jnp.any(kinds == 0, axis=1))
  slot = (kinds == 0) & (jnp.cumsum(kinds == 0, axis=1) == 1) & begins[:, None]

  def slots(values, new):
    return values.at[:, :s].set(jnp.where(slot, new[:, None], values[:, :s]))

  builder = first & begins[:, None]
  paid = jnp.where(begins, cost, 0)
  spawned = look_up(types.loops, product).astype(jnp.int32)
  state = state._replace(
    kind=slots(state.kind, product), x=slots(state.x, x), y=slots(state.y, y),
    health=slots(state.health, 0.1 * look_up(types.health, product)),
    was_selected=slots(state.was_selected, jnp.zeros(2, bool)),
    unfinished=jnp.where(slot, spawned[:, None], state.unfinished),
    queue=jnp.where(slot[:, :, None], 0, state.queue),
    training=jnp.where(slot, 0, state.training), rally=state.rally & ~slot,
    minerals=state.minerals - paid,
    score=state.score._replace(spent=state.score.spent + paid),
    orders=state.orders._replace(
      verb=jnp.where(builder, tables.CONSTRUCT, verb),
      target=jnp.where(builder, jnp.argmax(slot, axis=1)[:, None], state.orders.target)))
  standing = jnp.any(
    (state.unfinished > 0)[:, None] & (state.orders.target[:, :, None] == jnp.arange(s)), axis=2)
  done = (state.orders.verb == tables.CONSTRUCT) & ~standing
  state = orders.next_order(rules, state, done | (first & ~begins[:, None]), jnp.array(True))
  none = jnp.zeros((2, tier.structures))
  births = Births(
    jnp.concatenate([jnp.where(begins, product, 0)[:, None], none.astype(jnp.int32)], axis=1),
    jnp.concatenate([x[:, None], none], axis=1), jnp.concatenate([y[:, None], none], axis=1))
  return state, births
