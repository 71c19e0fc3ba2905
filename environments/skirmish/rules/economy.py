"""Making units and upgrades: what costs time and money. Once a step."""

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules import constants, slots, tables
from starleague.environments.skirmish.rules.arrays import look_up, pick, segment_sum
from starleague.environments.skirmish.rules.constants import START_ENERGY
from starleague.environments.skirmish.rules.queries import finished_kind
from starleague.environments.skirmish.rules.state import Array, State
from starleague.environments.skirmish.rules.supply import food, free_unit_slots


def train(rules: tables.Rules, state: State, trainers: Array, product: Array) -> State:
  """Puts the commanded product into queues, as often as it can be paid and fed.

  Args:
    rules: the game's constants.
    state: the game; its commands say how often.
    trainers: [2, S] bool, structures that make it.
    product: [2] int32.
  """
  products = rules.products
  minerals, eats = look_up(products.minerals, product), look_up(products.takes_food, product)
  used, most = food(rules, state)
  length = jnp.sum(state.queue > 0, axis=2)
  want = jnp.minimum(state.commands.repeat[:, None], constants.QUEUE_LENGTH - length) * trainers
  affordable = jnp.minimum(state.minerals // jnp.maximum(minerals, 1),
                           jnp.where(eats > 0, jnp.maximum(most - used, 0), 1 << 20)
                           // jnp.maximum(eats, 1))
  vespene = look_up(products.vespene, product)
  if rules.has_gas:
    affordable = jnp.minimum(affordable, jnp.where(
      vespene > 0, state.vespene // jnp.maximum(vespene, 1), 1 << 20))
  brood = look_up(products.brood, product)
  affordable = jnp.minimum(affordable, jnp.where(
    brood > 0, jnp.maximum(free_unit_slots(rules, state), 0), 1 << 20) // jnp.maximum(brood, 1))
  if rules.has_upgrades:  # a level is researched once, and a hall turns into another once
    affordable = jnp.where((product > 0) & (brood == 0), jnp.minimum(affordable, 1), affordable)
  larva = look_up(products.larva, product)
  if rules.has_larvae:
    want = jnp.where(larva[:, None], jnp.minimum(want, state.larvae), want)
  before = jnp.cumsum(want, axis=1) - want
  got = jnp.clip(affordable[:, None] - before, 0, want)
  place = jnp.arange(constants.QUEUE_LENGTH)
  fill = (place >= length[:, :, None]) & (place < (length + got)[:, :, None])
  total = got.sum(axis=1)
  score = state.score._replace(spent=state.score.spent + minerals * total)
  state = state._replace(
    queue=jnp.where(fill, product[:, None, None], state.queue),
    timers=jnp.where(fill, look_up(products.loops, product)[:, None, None], state.timers),
    minerals=state.minerals - minerals * total)
  if rules.has_larvae:
    state = state._replace(larvae=state.larvae - got * larva[:, None])
  if rules.has_gas:
    state = state._replace(vespene=state.vespene - vespene * total)
    score = score._replace(spent_vespene=score.spent_vespene + vespene * total)
  return state._replace(score=score)


def _work(rules: tables.Rules, state: State) -> tuple[State, Array]:
  """Makes a step's progress in all queues; the products that are done, at most one a structure."""
  s = rules.tier.structures
  busy = state.queue > 0

  def next_in_line(queue):
    """What is made one after the other, all but what larvae become: the first of it [2, S, 5]."""
    if not rules.has_larvae:
      return (queue > 0) & (jnp.arange(constants.QUEUE_LENGTH) == 0)
    waits = (queue > 0) & ~look_up(rules.products.larva, queue)
    return waits & (jnp.cumsum(waits, axis=2) == 1)

  in_line = next_in_line(state.queue)
  runs = in_line
  if rules.has_larvae:
    runs |= look_up(rules.products.larva, state.queue)
  pace = jnp.full((2, s), constants.LOOPS_PER_STEP)
  if rules.has(constants.BOOST):
    pace = jnp.where(state.boosted > 0, constants.LOOPS_PER_STEP * 3 // 2, pace)
    state = state._replace(boosted=jnp.maximum(state.boosted - constants.LOOPS_PER_STEP, 0))
  timers = jnp.where(busy, state.timers - runs * pace[:, :, None], 0)
  # What waits for a place among the living stays at the end of its time.
  ready = runs & (timers <= 0)
  first = jnp.argmax(ready, axis=2)
  some = jnp.any(ready, axis=2)
  at = jnp.arange(constants.QUEUE_LENGTH) == first[:, :, None]
  done = jnp.where(some, jnp.sum(jnp.where(at, state.queue, 0), axis=2), 0)
  over = jnp.sum(jnp.where(at & some[:, :, None], timers, 0), axis=2)
  moves = some[:, :, None] & (jnp.arange(constants.QUEUE_LENGTH) >= first[:, :, None])

  def close(values):
    return jnp.where(moves, jnp.pad(values[:, :, 1:], ((0, 0), (0, 0), (0, 1))), values)

  queue, timers = close(state.queue), close(timers)
  # What follows one after the other gets the time that was left over.
  carried = next_in_line(queue) & jnp.any(at & in_line & ready, axis=2, keepdims=True)
  return state._replace(queue=queue, timers=timers + jnp.where(carried, over[:, :, None], 0)), done


def finish_production(rules: tables.Rules, state: State) -> tuple[State, slots.Spawns]:
  """Makes progress in queues: units appear beside their building, upgrades count from now on."""
  types, products, s = rules.types, rules.products, rules.tier.structures
  y = len(types.names)
  state, done = _work(rules, state)
  brood = look_up(products.brood, done)
  if rules.has_upgrades:
    level = jnp.where(done >= y, done - y, -1)
    new = segment_sum(level, jnp.ones_like(level), len(rules.upgrades.names)) > 0
    health = rules.upgrades.effects[:, constants.EFFECTS.index("health")]  # [U, Y]
    more = pick(new.astype(jnp.float32) @ health, state.kind)
    turned = (done > 0) & (done < y) & (brood == 0)
    into = jnp.where(turned, done, 0)
    # What it turns into counts as born, for what both cost; what it was has been counted.
    was = jnp.where(turned, look_up(types.value, state.kind[:, :s]), 0)
    state = state._replace(
      upgrades=state.upgrades | new, health=state.health + more,
      kind=state.kind.at[:, :s].set(jnp.where(turned, done, state.kind[:, :s])),
      score=state.score._replace(structures=state.score.structures - jnp.sum(was, axis=1)),
      executed=state.executed._replace(
        upgrades=_flags(state.executed.upgrades, rules.upgrades.index, new)))
    if rules.has_energy:
      fresh = jnp.where(turned & (look_up(types.energy, into) > 0), START_ENERGY,
                        state.energy[:, :s])
      state = state._replace(energy=state.energy.at[:, :s].set(fresh))
  kinds = jnp.where(brood > 0, done, 0)
  most = int(products.brood.max())
  # A brood's units one after the other: [2, most * S].
  product = jnp.concatenate([jnp.where(brood > i, kinds, 0) for i in range(most)], axis=1)
  radius = look_up(types.radius, state.kind[:, :s]) + 0.7
  angle = np.linspace(0.0, np.pi / 2, s, dtype=np.float32)  # towards the middle of the map
  births_x, births_y = [], []
  for i in range(most):
    births_x.append(state.x[:, :s] + state.side[:, None] * radius * np.cos(angle + 0.3 * i))
    births_y.append(state.y[:, :s] + state.side[:, None] * radius * np.sin(angle + 0.3 * i))
  birth_x, birth_y = jnp.concatenate(births_x, axis=1), jnp.concatenate(births_y, axis=1)
  rally = slots.RallyPoints(*(jnp.tile(values, (1, most)) for values in (
    state.rally, state.rally_x, state.rally_y)))
  state = slots.spawn(rules, state, slots.Spawns(product, birth_x, birth_y), rally)
  if rules.has_upgrades:
    product = product.at[:, :s].add(into)
    birth_x = birth_x.at[:, :s].set(jnp.where(turned, state.x[:, :s], birth_x[:, :s]))
    birth_y = birth_y.at[:, :s].set(jnp.where(turned, state.y[:, :s], birth_y[:, :s]))
  none = jnp.zeros((2, 1))
  births = slots.Spawns(
    jnp.concatenate([none.astype(jnp.int32), product], axis=1),
    jnp.concatenate([none, birth_x], axis=1), jnp.concatenate([none, birth_y], axis=1))
  return state, births


def _flags(flags: Array, index: np.ndarray, values: Array) -> Array:
  """Sets flags [2, size] where values [2, m] of dense indices [m] are true."""
  return flags.at[:, index].max(values)


def grow_larvae(rules: tables.Rules, state: State) -> State:
  """Larvae come with time, up to three a hatchery, and in threes where a queen brought them, to 19."""
  if not rules.has_larvae:
    return state
  step, wait = constants.LOOPS_PER_STEP, -(-constants.LARVA_LOOPS // rules.tier.tempo)
  hatchery = look_up(rules.types.larvae, finished_kind(rules, state))
  waits = hatchery & (state.larvae < constants.SPAWNED_LARVAE_LIMIT)
  left = jnp.where(waits, jnp.where(state.larva_loops > 0, state.larva_loops, wait) - step, 0)
  comes = waits & (left <= 0)
  injected = jnp.maximum(state.injected - step, 0) * hatchery
  hatches = hatchery & (state.injected > 0) & (injected == 0)
  larvae = jnp.minimum(state.larvae + comes + constants.INJECTED_LARVAE * hatches, constants.LARVAE_LIMIT)
  return state._replace(larvae=jnp.where(hatchery, larvae, 0), larva_loops=jnp.where(comes, 0, left),
                        injected=injected)
