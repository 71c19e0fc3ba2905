"""Production of units, upgrades and larvae, once a step."""

import jax.numpy as jnp
import numpy as np

from starleague.environments.skirmish.rules.state import add_ons, placement
from starleague.environments.skirmish.rules.state.arrays import look_up, pick, segment_sum
from starleague.environments.skirmish.rules.state.queries import finished_kind, warp_gates
from starleague.environments.skirmish.rules.state.slots import RallyPoints, Spawns, spawn
from starleague.environments.skirmish.rules.state.state import Array, State
from starleague.environments.skirmish.rules.state.supply import food, free_unit_slots
from starleague.environments.skirmish.rules.tables import tables
from starleague.environments.skirmish.rules.tables.constants import (
  BOOST,
  EFFECTS,
  INJECTED_LARVAE,
  LARVA_LOOPS,
  LARVAE_LIMIT,
  LOOPS_PER_STEP,
  QUEUE_LENGTH,
  REACTOR,
  SPAWNED_LARVAE_LIMIT,
  START_ENERGY,
  WARP_IN_LOOPS,
)

_UNLIMITED = 1 << 20
_SPAWN_MARGIN = 0.7  # from the edge of a structure to the units that it spawns
_SPAWN_ANGLE = 0.3  # radians between two units of a brood


def _affordable(rules: tables.Rules, state: State, product: Array) -> Array:
  """The number of a product [2] that money, food and free slots allow: [2] int32."""
  products = rules.products
  used, most = food(rules, state)

  def times(budget, price):
    """The number of items that the budget pays; without limit if the price is 0."""
    return jnp.where(price > 0, jnp.maximum(budget, 0), _UNLIMITED) // jnp.maximum(price, 1)

  brood = look_up(products.brood, product)
  affordable = jnp.minimum(times(state.minerals, look_up(products.minerals, product)),
                           times(most - used, look_up(products.takes_food, product)))
  if rules.has_gas:
    affordable = jnp.minimum(affordable, times(state.vespene, look_up(products.vespene, product)))
  affordable = jnp.minimum(affordable, times(free_unit_slots(rules, state), brood))
  if rules.has_upgrades:  # levels are researched once, and a town hall morphs once
    affordable = jnp.where((product > 0) & (brood == 0), jnp.minimum(affordable, 1), affordable)
  return affordable


def train(rules: tables.Rules, state: State, trainers: Array, product: Array) -> State:
  """Queues the commanded product, as often as commanded and affordable; one of warp gates.

  Args:
    rules: the game's constants.
    state: the game; its commands have the number of repeats.
    trainers: [2, S] bool, structures that make the product.
    product: [2] int32.
  """
  products = rules.products
  length = jnp.sum(state.queue > 0, axis=2)
  want = jnp.minimum(state.commands.repeat[:, None], QUEUE_LENGTH - length) * trainers
  larva, gate = look_up(products.larva, product), warp_gates(rules, state)
  most = _affordable(rules, state, product)[:, None]
  if rules.has_warp_gates:
    most = jnp.where(gate, jnp.minimum(most, 1), most)
  if rules.has_larvae:
    want = jnp.where(larva[:, None], jnp.minimum(want, state.larvae), want)
  before = jnp.cumsum(want, axis=1) - want
  got = jnp.clip(most - before, 0, want)
  place = jnp.arange(QUEUE_LENGTH)
  fill = (place >= length[:, :, None]) & (place < (length + got)[:, :, None])
  minerals = look_up(products.minerals, product) * got.sum(axis=1)
  score = state.score._replace(spent=state.score.spent + minerals)
  queue = jnp.where(fill, product[:, None, None], state.queue)
  timers = jnp.where(fill, look_up(products.loops, product)[:, None, None], state.timers)
  if rules.has_warp_gates:
    queue, timers = _warp_in(rules, product, gate & (got > 0), queue, timers)
  state = state._replace(queue=queue, timers=timers, minerals=state.minerals - minerals)
  if rules.has_larvae:
    state = state._replace(larvae=state.larvae - got * larva[:, None])
  if rules.has_gas:
    vespene = look_up(products.vespene, product) * got.sum(axis=1)
    state = state._replace(vespene=state.vespene - vespene)
    score = score._replace(spent_vespene=score.spent_vespene + vespene)
  return state._replace(score=score)


def _warp_in(rules: tables.Rules, product: Array, gate: Array, queue: Array,
             timers: Array) -> tuple[Array, Array]:
  """The queues with the warp-ins that begin: the unit's, then the rest of the cooldown.

  Args:
    rules: the game's constants.
    product: [2] int32, the unit.
    gate: [2, S] bool, gates that begin one.
    queue: [2, S, 5] int32.
    timers: [2, S, 5] int32.
  """
  place, gate = jnp.arange(QUEUE_LENGTH), gate[:, :, None]
  warp_in = -(-WARP_IN_LOOPS // rules.tier.tempo)
  rest = (look_up(rules.products.warp_cooldown, product) - warp_in)[:, None, None]
  timers = jnp.where(gate & (place == 0), warp_in, jnp.where(gate & (place == 1), rest, timers))
  return jnp.where(gate & (place == 1), rules.types.warp_gate, queue), timers


def _open_gates(rules: tables.Rules, state: State) -> State:
  """Begins the morph of idle Gateways into warp gates, by itself as in the real game."""
  gateway = rules.products.producer[rules.types.warp_gate]
  upgrade = rules.products.upgrade[rules.types.warp_gate] - len(rules.types.names)
  begins = (finished_kind(rules, state) == gateway) & (
    state.queue[:, :, 0] == 0) & state.upgrades[:, upgrade, None]
  first = begins[:, :, None] & (jnp.arange(QUEUE_LENGTH) == 0)
  return state._replace(
    queue=jnp.where(first, rules.types.warp_gate, state.queue),
    timers=jnp.where(first, rules.products.loops[rules.types.warp_gate], state.timers))


def _places_in_line(rules: tables.Rules, queue: Array) -> Array:
  """The places, from 1, of products that are made in sequence: [2, S, 5] int32, 0 for the others.

  Products of larvae are made in parallel and are not in line.
  """
  if not rules.has_larvae:
    return ((queue > 0) & (jnp.arange(QUEUE_LENGTH) == 0)).astype(jnp.int32)
  waits = (queue > 0) & ~look_up(rules.products.larva, queue)
  return waits * jnp.cumsum(waits, axis=2)


def _advance_queues(rules: tables.Rules, state: State) -> tuple[State, Array]:
  """Advances all queues by a step.

  Returns:
    The state, and the finished product of each structure, one at most: [2, S] int32, 0 for none.
  """
  place, lanes = _places_in_line(rules, state.queue), jnp.int32(1)
  if rules.has_add_ons:  # with a Reactor, two products are made at a time
    attached = add_ons.add_ons_of(rules, state)
    lanes = 1 + add_ons.has_finished(rules, attached, REACTOR)[:, :, None]
  in_line = (place > 0) & (place <= lanes)
  runs = in_line
  if rules.has_larvae:
    runs |= look_up(rules.products.larva, state.queue)
  pace = jnp.full((2, rules.tier.structures), LOOPS_PER_STEP)
  if rules.has(BOOST):
    pace = jnp.where(state.boosted > 0, LOOPS_PER_STEP * 3 // 2, pace)
    state = state._replace(boosted=jnp.maximum(state.boosted - LOOPS_PER_STEP, 0))
  timers = jnp.where(state.queue > 0, state.timers - runs * pace[:, :, None], 0)
  if rules.has_add_ons:
    begun = add_ons.attaching(rules, state)[:, :, None] & (jnp.arange(QUEUE_LENGTH) == 0)
    timers = jnp.where(begun, attached.loops[:, :, None], timers)
  # Finished products beyond the first stay in the queue until the next step.
  ready = runs & (timers <= 0)
  first, some = jnp.argmax(ready, axis=2), jnp.any(ready, axis=2)
  at = jnp.arange(QUEUE_LENGTH) == first[:, :, None]
  done = jnp.where(some, jnp.sum(jnp.where(at, state.queue, 0), axis=2), 0)
  over = jnp.sum(jnp.where(at & some[:, :, None], timers, 0), axis=2)
  moves = some[:, :, None] & (jnp.arange(QUEUE_LENGTH) >= first[:, :, None])

  def close_gap(values):
    return jnp.where(moves, jnp.pad(values[:, :, 1:], ((0, 0), (0, 0), (0, 1))), values)

  queue, timers = close_gap(state.queue), close_gap(timers)
  # The product that moves up gets the time that was left over.
  carried = (_places_in_line(rules, queue) == lanes) & jnp.any(
    at & in_line & ready, axis=2, keepdims=True)
  timers = timers + jnp.where(carried, over[:, :, None], 0)
  return state._replace(queue=queue, timers=timers), done


def _complete_upgrades(rules: tables.Rules, state: State, done: Array) -> State:
  """Adds finished upgrades, and the health that they give to units on the map.

  Args:
    rules: the game's constants.
    state: the game.
    done: [2, S] int32, finished products.
  """
  y = len(rules.types.names)
  level = jnp.where(done >= y, done - y, -1)
  new = segment_sum(level, jnp.ones_like(level), len(rules.upgrades.names)) > 0
  health = rules.upgrades.effects[:, EFFECTS.index("health")]  # [U, Y]
  more = pick(new.astype(jnp.float32) @ health, state.kind)
  flags = state.executed.upgrades.at[:, rules.upgrades.index].max(new)
  return state._replace(upgrades=state.upgrades | new, health=state.health + more,
                        executed=state.executed._replace(upgrades=flags))


def _morph(rules: tables.Rules, state: State, into: Array) -> State:
  """Morphs structures into the type that their queue has finished: a Lair, for example.

  Args:
    rules: the game's constants.
    state: the game.
    into: [2, S] int32, local types, 0 for structures that stay as they are.
  """
  types, s = rules.types, rules.tier.structures
  morphs = into > 0
  # The score of the new type, which `environment` adds, includes that of the original.
  old_value = jnp.where(morphs, look_up(types.value, state.kind[:, :s]), 0)
  state = state._replace(
    kind=state.kind.at[:, :s].set(jnp.where(morphs, into, state.kind[:, :s])),
    score=state.score._replace(structures=state.score.structures - jnp.sum(old_value, axis=1)))
  if rules.has_warp_gates:
    state = state._replace(rally=state.rally & (into != types.warp_gate))
  growth = types.health / np.maximum(types.health[types.counts_as], 1)
  if (growth > 1).any():  # the share of health stays
    state = state._replace(health=state.health.at[:, :s].multiply(
      jnp.where(morphs, look_up(growth, into), 1.0)))
  if rules.has_energy:
    energy = jnp.where(morphs & (look_up(types.energy, into) > 0), START_ENERGY,
                       state.energy[:, :s])
    state = state._replace(energy=state.energy.at[:, :s].set(energy))
  return state


def _broods(rules: tables.Rules, state: State, done: Array) -> Spawns:
  """The units of finished products, beside their structure or where it warps: [2, most * S].

  Args:
    rules: the game's constants.
    state: the game.
    done: [2, S] int32, finished products.
  """
  s, most = rules.tier.structures, int(rules.products.brood.max())
  brood = look_up(rules.products.brood, done)
  kinds = jnp.where(brood > 0, done, 0)
  kind = jnp.concatenate([jnp.where(brood > i, kinds, 0) for i in range(most)], axis=1)
  radius = look_up(rules.types.radius, state.kind[:, :s]) + _SPAWN_MARGIN
  angle = np.linspace(0.0, np.pi / 2, s, dtype=np.float32)  # towards the middle of the map
  side = state.side[:, None]
  x, y = (list(places) for places in zip(*(
    _on_own_ground(rules, state, state.x[:, :s] + side * radius * np.cos(angle + turn),
                   state.y[:, :s] + side * radius * np.sin(angle + turn))
    for turn in _SPAWN_ANGLE * np.arange(most, dtype=np.float32)), strict=True))
  if rules.has_warp_gates:
    gate = warp_gates(rules, state)
    x[0], y[0] = jnp.where(gate, state.rally_x, x[0]), jnp.where(gate, state.rally_y, y[0])
  return Spawns(kind, jnp.concatenate(x, axis=1), jnp.concatenate(y, axis=1))


def _on_own_ground(rules: tables.Rules, state: State, x: Array, y: Array) -> tuple[Array, Array]:
  """Places beside structures [2, S]; the structure's own for those that a cliff parts from it."""
  terrain, s = rules.terrain, rules.tier.structures
  if terrain is None:
    return x, y
  at_x, at_y = state.x[:, :s], state.y[:, :s]
  same = placement.on_terrain(rules, state, terrain.passable, x, y) & (
    placement.on_terrain(rules, state, terrain.high, x, y)
    == placement.on_terrain(rules, state, terrain.high, at_x, at_y))
  return jnp.where(same, x, at_x), jnp.where(same, y, at_y)


def finish_production(rules: tables.Rules, state: State) -> tuple[State, Spawns]:
  """Advances all queues: units spawn beside their structure, and upgrades take effect.

  Returns:
    The state, and the spawned units and morphed structures, [2, most * S].
  """
  s, y = rules.tier.structures, len(rules.types.names)
  if rules.has_warp_gates:
    state = _open_gates(rules, state)
  state, done = _advance_queues(rules, state)
  into = jnp.where((done < y) & (look_up(rules.products.brood, done) == 0), done, 0)
  if rules.has_add_ons:  # an add-on is a structure of its own: its producer does not morph
    into = jnp.where(add_ons.is_add_on(rules, done), 0, into)
  if rules.has_upgrades:
    state = _morph(rules, _complete_upgrades(rules, state, done), into)
  units = _broods(rules, state, done)
  repeats = (1, units.kind.shape[1] // s)
  rally = RallyPoints(*(jnp.tile(values, repeats) for values in (
    state.rally, state.rally_x, state.rally_y)))
  state = spawn(rules, state, units, rally)
  if rules.has_upgrades:
    units = Spawns(
      kind=units.kind.at[:, :s].add(into),
      x=units.x.at[:, :s].set(jnp.where(into > 0, state.x[:, :s], units.x[:, :s])),
      y=units.y.at[:, :s].set(jnp.where(into > 0, state.y[:, :s], units.y[:, :s])))
  return state, units


def grow_larvae(rules: tables.Rules, state: State) -> State:
  """Hatcheries spawn larvae up to three; injections add three each, up to 19."""
  if not rules.has_larvae:
    return state
  step, wait = LOOPS_PER_STEP, -(-LARVA_LOOPS // rules.tier.tempo)
  hatchery = look_up(rules.types.larvae, finished_kind(rules, state))
  waits = hatchery & (state.larvae < SPAWNED_LARVAE_LIMIT)
  left = jnp.where(waits, jnp.where(state.larva_loops > 0, state.larva_loops, wait) - step, 0)
  spawns = waits & (left <= 0)
  injected = jnp.maximum(state.injected - step, 0) * hatchery
  hatches = hatchery & (state.injected > 0) & (injected == 0)
  larvae = jnp.minimum(state.larvae + spawns + INJECTED_LARVAE * hatches, LARVAE_LIMIT)
  return state._replace(larvae=jnp.where(hatchery, larvae, 0),
                        larva_loops=jnp.where(spawns, 0, left), injected=injected)
